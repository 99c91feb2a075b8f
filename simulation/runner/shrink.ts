// Makes a failing scenario smaller: fewer faults, clients, steps, for as long as the same property is violated.

import type { Scenario } from '../scenario/scenario.ts';
import type { Outcome } from '../world/run-scenario.ts';
import type { Engine } from './engine.ts';

interface Shrunk {
  readonly scenario: Scenario;
  /** Undefined if it did not fail to begin with. */
  readonly violation: Outcome['violation'];
}

export async function shrink(
  engine: Engine,
  scenario: Scenario,
  tell: (line: string) => void,
  runsMax = 2_000,
): Promise<Shrunk> {
  let { violation } = await engine.run(scenario);
  if (!violation) return { scenario, violation };
  const { property } = violation;
  let smallest = scenario;
  let runCount = 1;
  for (let changed = true; changed; ) {
    changed = false;
    for (const candidate of smaller(smallest)) {
      if (runCount++ >= runsMax) return { scenario: smallest, violation };
      const outcome = await engine.run(candidate);
      if (outcome.violation?.property !== property) continue;
      smallest = candidate;
      violation = outcome.violation;
      changed = true;
      tell(`${runCount} runs: ${sizeOf(smallest)}`);
      break;
    }
  }
  return { scenario: smallest, violation };
}

function sizeOf({ faults, clients }: Scenario): string {
  const steps = clients.flatMap(({ tasks }) => tasks).reduce((sum, task) => sum + task.length, 0);
  return `${clients.length} clients, ${steps} steps, ${faults.length} faults`;
}

/** What is left when something is left out: the larger parts first. */
function* smaller(scenario: Scenario): Generator<Scenario> {
  const { faults, clients } = scenario;
  for (const rest of withoutParts(faults)) yield { ...scenario, faults: rest };
  for (const rest of withoutParts(clients)) {
    if (rest.length === 0) continue;
    const names = new Set(rest.map(({ name }) => name));
    const left = faults.filter((fault) => !('client' in fault) || names.has(fault.client));
    yield { ...scenario, clients: rest, faults: left };
  }
  for (const [index, client] of clients.entries()) {
    const withTasks = (tasks: typeof client.tasks): Scenario => ({
      ...scenario,
      clients: clients.with(index, { ...client, tasks }),
    });
    for (const [number, task] of client.tasks.entries()) {
      for (const rest of withoutParts(task)) yield withTasks(client.tasks.with(number, rest));
    }
    if (client.clockRate !== 1)
      yield { ...scenario, clients: clients.with(index, { ...client, clockRate: 1 }) };
  }
  if (scenario.splitChance > 0) yield { ...scenario, splitChance: 0 };
  if (scenario.delayMsMax > 2) yield { ...scenario, delayMsMax: 2 };
  if (scenario.syncMsMax > 1) yield { ...scenario, syncMsMax: 1 };
}

/** Without each half, each quarter, … each single one. */
function* withoutParts<T>(items: readonly T[]): Generator<readonly T[]> {
  for (let size = items.length; size >= 1; size = Math.floor(size / 2)) {
    for (let from = 0; from < items.length; from += size) {
      yield [...items.slice(0, from), ...items.slice(from + size)];
    }
  }
}
