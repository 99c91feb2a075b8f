import type { Address } from './frame-client.ts';
import { type Scenario, type Step, scenarioOf } from './scenario.ts';
import { Side } from './side.ts';

const STEP_LETTERS_MAX = 1_000;
const NEIGHBOURS = 3;

export interface Servers {
  readonly real: Address;
  readonly embedded: Address;
}

/** The first step that the servers disagree on. */
export interface Difference {
  readonly scenario: Scenario;
  readonly index: number;
  readonly real: readonly string[];
  readonly embedded: readonly string[];
}

export interface Result {
  readonly steps: number;
  readonly difference: Difference | undefined;
}

export type Trace = (index: number, step: Step, real: readonly string[], embedded: readonly string[]) => void;

/** Runs a scenario on both servers, step by step, until they disagree or it is over. */
export async function compare(servers: Servers, seed: number, trace?: Trace): Promise<Result> {
  const scenario = scenarioOf(seed);
  const sides = [
    new Side(servers.real, scenario, { keepsOldConnections: true }),
    new Side(servers.embedded, scenario),
  ] as const;
  try {
    for (const [index, step] of scenario.steps.entries()) {
      const [real, embedded] = await Promise.all([sides[0].perform(step), sides[1].perform(step)]);
      trace?.(index, step, real, embedded);
      if (real.join('\n') !== embedded.join('\n')) {
        return { steps: index, difference: { scenario, index, real, embedded } };
      }
    }
    return { steps: scenario.steps.length, difference: undefined };
  } finally {
    await Promise.all(sides.map((side) => side.end()));
  }
}

/** A difference as a person wants to read it. */
export function story({ scenario, index, real, embedded }: Difference): string {
  const { seed, steps } = scenario;
  const at = real.findIndex((line, each) => line !== embedded[each]);
  const first = at === -1 ? real.length : at;
  return [
    `scenario ${seed} differs at step ${index}: ${describeStep(steps[index]!).slice(0, STEP_LETTERS_MAX)}`,
    '  ZooKeeper:',
    ...around(first, real),
    '  embedded server:',
    ...around(first, embedded),
    `  replay: npx tsx scripts/differential.ts --seed ${seed} --scenarios 1 --trace`,
  ].join('\n');
}

/** The line that differs with its neighbours. */
function around(first: number, lines: readonly string[]): string[] {
  const shown = lines.map((line, index) => `    ${index === first ? '*' : ' '} ${line}`);
  if (first >= lines.length) shown.push('    * nothing more');
  return shown.slice(Math.max(0, first - NEIGHBOURS), first + NEIGHBOURS + 1);
}

/** A step in one line. */
export function describeStep(step: Step): string {
  const { kind, session, ...rest } = step;
  const text = JSON.stringify(rest, (_name, value: unknown) => {
    if (typeof value === 'bigint') return `${value}n`;
    if (typeof value === 'object' && value !== null && 'type' in value && value.type === 'Buffer') {
      return `<${Buffer.from((value as unknown as { data: number[] }).data).toString('latin1')}>`;
    }
    return value;
  });
  return `session ${session} ${kind} ${text}`;
}
