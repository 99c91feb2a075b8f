// A wait is called off, runs out of time, or loses its connection, at every single moment of it: nothing may be left,
// everybody must get on, and every call must settle. That is what each run of the simulation asks for.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Fault, LockStep, PlannedLock, Scenario } from '../../src/testing/simulation/scenario.ts';
import { outcomeOf } from './in-macrotask.ts';
import { smallWorld, taking } from './small-world.ts';

const RECIPES: readonly {
  readonly name: string;
  readonly lock: PlannedLock;
  readonly changes?: Partial<LockStep>;
}[] = [
  { name: 'mutex', lock: { name: 'm', recipe: 'mutex' } },
  { name: 'reader', lock: { name: 'rw', recipe: 'read-write' }, changes: { mode: 'read' } },
  { name: 'writer', lock: { name: 'rw', recipe: 'read-write' } },
  { name: 'semaphore', lock: { name: 's', recipe: 'semaphore', permits: 2 } },
  { name: 'election', lock: { name: 'e', recipe: 'election' } },
  { name: 'simple lock', lock: { name: 'x', recipe: 'simple' } },
];
/** More than anything takes that a wait is made of. */
const STEPS_MAX = 40;
const REACTIONS = [0, 1, 2, 3, 5, 8];
/** Clients are connected by then, and the wait is over. */
const SWEEP_MS = { from: 200, to: 260 };

let stackTraceLimit = 0;
beforeAll(() => {
  ({ stackTraceLimit } = Error);
  Error.stackTraceLimit = 0; // Thousands of errors, and nobody reads where they come from.
});
afterAll(() => {
  Error.stackTraceLimit = stackTraceLimit;
});

async function expectGood(scenario: Scenario, at: string): Promise<void> {
  const { violation } = await outcomeOf(scenario);
  expect(violation, at).toBeUndefined();
}

for (const { name, lock, changes = {} } of RECIPES) {
  /** One holds, one is called off while it waits, one comes behind it. */
  const contended = (waiting: Partial<LockStep>, faults: readonly Fault[] = []): Scenario =>
    smallWorld(
      [lock],
      [
        [taking(lock, { holdMs: 20 })],
        [taking(lock, { ...changes, ...waiting, afterMs: 4 })],
        [taking(lock, { ...changes, afterMs: 8 })],
      ],
      { faults },
    );

  describe(`a ${name}`, { timeout: 240_000 }, () => {
    test('may be called off at any moment', async () => {
      for (let steps = 0; steps <= STEPS_MAX; steps++) {
        for (const reactions of REACTIONS) {
          await expectGood(
            contended({ abort: { steps, reactions } }),
            `after ${steps} steps, ${reactions} reactions`,
          );
        }
      }
    });

    test('may run out of time at any moment', async () => {
      for (let timeoutMs = 0; timeoutMs <= 40; timeoutMs++) {
        await expectGood(contended({ timeoutMs }), `after ${timeoutMs} ms`);
      }
    });

    test('may lose its connection at any moment, and after any byte', async () => {
      for (let atMs = SWEEP_MS.from; atMs <= SWEEP_MS.to; atMs += 2) {
        await expectGood(contended({}, [{ kind: 'reset', client: 'client-1', atMs }]), `at ${atMs} ms`);
      }
      for (let bytes = 0; bytes <= 400; bytes += 20) {
        for (const heading of ['to-client', 'to-server'] as const) {
          const cut: Fault = { kind: 'cut', client: 'client-1', atMs: SWEEP_MS.from, heading, bytes };
          await expectGood(contended({}, [cut]), `${heading} after ${bytes} bytes`);
        }
      }
    });
  });
}
