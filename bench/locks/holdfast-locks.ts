// Holdfast's mutex in a process of its own, told over standard input what to measure, as CuratorLocks.java is.
import { createInterface } from 'node:readline';
import { connect, type Holdfast } from 'holdfast';

const clients: Holdfast[] = [];
const [, , servers] = process.argv as string[] as [string, string, string];
console.log('ready');
for await (const line of createInterface({ input: process.stdin })) {
  const [tasks, locks, sessions, cycles] = line.trim().split(' ').map(Number) as [
    number,
    number,
    number,
    number,
  ];
  while (clients.length < sessions) clients.push(await connect({ servers, sessionTimeoutMs: 30_000 }));
  console.log(await measure({ tasks, locks, sessions, cycles }));
}
process.exit(0);

/** Milliseconds for that many acquire and release cycles of all tasks together. */
async function measure(scenario: {
  readonly tasks: number;
  readonly locks: number;
  readonly sessions: number;
  readonly cycles: number;
}): Promise<number> {
  const { tasks, locks, sessions, cycles } = scenario;
  let left = cycles;
  const startedAtMs = performance.now();
  await Promise.all(
    Array.from({ length: tasks }, async (_, task) => {
      const lock = clients[task % sessions]!.mutex(`holdfast-${task % locks}`);
      while (left-- > 0) {
        const lease = await lock.acquire();
        await lease.release();
      }
    }),
  );
  return performance.now() - startedAtMs;
}
