// A process that runs seeds, as many as it is told.
import type { Outcome } from '../world/run-scenario.ts';
import { loadEngine } from './engine.ts';

/** What a worker is told: run these seeds. */
export interface Order {
  readonly from: number;
  readonly count: number;
  readonly plan: object;
}

/** What it answers. */
export interface Report {
  readonly seedCount: number;
  readonly grantCount: number;
  readonly stepCount: number;
  readonly failures: readonly {
    readonly seed: number;
    readonly violation: NonNullable<Outcome['violation']>;
  }[];
  readonly reached: Readonly<Record<string, number>>;
  /** Of all runs, in the order of their seeds. */
  readonly digests: readonly string[];
}

const engine = await loadEngine(process.argv[2]!);
Error.stackTraceLimit = 0; // Errors are part of everyday life here, and nobody reads where they come from.

process.on('message', (order: Order) => void work(order));
process.send!('ready');

async function work({ from, count, plan }: Order): Promise<void> {
  const failures: Report['failures'][number][] = [];
  const digests: string[] = [];
  let grantCount = 0;
  let stepCount = 0;
  for (let seed = from; seed < from + count; seed++) {
    const outcome = await engine.run(engine.planScenario(seed, plan));
    grantCount += outcome.grantCount;
    stepCount += outcome.stepCount;
    digests.push(outcome.digest);
    if (outcome.violation) failures.push({ seed, violation: outcome.violation });
  }
  const report: Report = {
    ...{ seedCount: count, grantCount, stepCount, failures, digests },
    reached: engine.takeReached(),
  };
  process.send!(report);
}
