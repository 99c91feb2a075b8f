// A wait is called off, runs out of time, or loses its connection or its client, at every single moment of it: nothing
// may be left, everybody must get on, and every call must settle. That is what each run of the simulation asks for.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type {
  CloseStep,
  Fault,
  LockStep,
  PlannedLock,
  Scenario,
} from '../../simulation/scenario/scenario.ts';
import { outcomeOf } from './in-macrotask.ts';
import { smallWorld, taking } from './small-world.ts';

const RECIPES: readonly {
  readonly name: string;
  readonly lock: PlannedLock;
  readonly changes?: Partial<LockStep>;
  /** Where several are taken as one: by the one who holds, the one who waits, and the one behind it. */
  readonly several?: readonly [readonly string[], readonly string[], readonly string[]];
}[] = [
  { name: 'mutex', lock: { name: 'm', recipe: 'mutex' } },
  { name: 'reader', lock: { name: 'rw', recipe: 'read-write' }, changes: { mode: 'read' } },
  { name: 'writer', lock: { name: 'rw', recipe: 'read-write' } },
  { name: 'semaphore', lock: { name: 's', recipe: 'semaphore', permits: 2 } },
  { name: 'election', lock: { name: 'e', recipe: 'election' } },
  { name: 'simple lock', lock: { name: 'x', recipe: 'simple' } },
  {
    name: 'multi-lock',
    lock: { name: 'a', recipe: 'mutex' },
    several: [
      ['a', 'b'],
      ['c', 'b', 'a'],
      ['b', 'c'],
    ],
  },
];
/** More than anything takes that a wait is made of. */
const STEPS_MAX = 40;
const REACTIONS = [0, 1, 2, 3, 5, 8];
const CLOSING_REACTIONS = [0, 3];
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

for (const { name, lock, changes = {}, several } of RECIPES) {
  const locks = several ? ['a', 'b', 'c'].map((each) => ({ ...lock, name: each })) : [lock];
  const all = (index: 0 | 1 | 2) => several && { locks: several[index] };
  /** One holds, one is called off while it waits, one comes behind it. */
  const contended = (waiting: Partial<LockStep>, faults: readonly Fault[] = []): Scenario =>
    smallWorld(
      locks,
      [
        [taking(lock, { holdMs: 20, ...all(0) })],
        [taking(lock, { ...changes, ...waiting, afterMs: 4, ...all(1) })],
        [taking(lock, { ...changes, afterMs: 8, ...all(2) })],
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

    test('may have its client closed at any moment, waiting or holding', async () => {
      for (const who of [0, 1]) {
        for (let steps = 0; steps <= STEPS_MAX; steps++) {
          for (const reactions of CLOSING_REACTIONS) {
            const close: CloseStep = {
              kind: 'close',
              afterMs: who === 0 ? 0 : 4,
              when: { steps, reactions },
            };
            const scenario = contended({});
            const { tasks, ...client } = scenario.clients[who]!;
            const clients = scenario.clients.with(who, { ...client, tasks: [...tasks, [close]] });
            await expectGood(
              { ...scenario, clients },
              `client-${who} after ${steps} steps, ${reactions} reactions`,
            );
          }
        }
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
