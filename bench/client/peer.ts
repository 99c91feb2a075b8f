// One client in a process of its own: does what it is told over IPC, and measures itself.
import { memoryUsage } from 'node:process';
import { clients } from './clients.ts';

/** What the bench asks of a peer. */
export type Task =
  /** `count` reads of one small node, `width` of them under way at any time, each caller awaiting its own. */
  | { readonly kind: 'reads'; readonly count: number; readonly width: number }
  /** `count` reads, `width` of them made in one tick, then all awaited, and again. */
  | { readonly kind: 'bursts'; readonly count: number; readonly width: number }
  /** As `bursts`, each asked for as one, where the client can do that. */
  | { readonly kind: 'batches'; readonly count: number; readonly width: number }
  /** As `reads`, with writes of one small node. */
  | { readonly kind: 'writes'; readonly count: number; readonly width: number }
  /** `count` watches on absent nodes, and what the process has grown by. */
  | { readonly kind: 'watches'; readonly count: number };

export interface Measurement {
  readonly elapsedMs: number;
  readonly cpuMs: number;
  readonly bytesGrown: number;
}

const [, , name, servers, root] = process.argv as string[] as [string, string, string, string, string];
const client = await clients[name as keyof typeof clients](servers);
let watchCursor = 0;

process.on('message', async (task: Task) => {
  const bytesBefore = await bytesInUse();
  const cpu = process.cpuUsage();
  const startedAtMs = performance.now();
  await perform(task);
  const elapsedMs = performance.now() - startedAtMs;
  const { user, system } = process.cpuUsage(cpu);
  const bytesGrown = (await bytesInUse()) - bytesBefore;
  process.send!({ elapsedMs, cpuMs: (user + system) / 1000, bytesGrown } satisfies Measurement);
});
process.on('disconnect', () => process.exit()); // The bench is gone: so are we.
process.send!('ready');

async function perform(task: Task): Promise<void> {
  switch (task.kind) {
    case 'reads':
      return inParallel(task, () => client.get(`${root}/read`));
    case 'writes':
      return inParallel(task, () => client.set(`${root}/write`));
    case 'bursts':
      for (let done = 0; done < task.count; done += task.width) {
        await Promise.all(Array.from({ length: task.width }, () => client.get(`${root}/read`)));
      }
      return;
    case 'batches':
      for (let done = 0; done < task.count; done += task.width) {
        await client.getMany(`${root}/read`, task.width);
      }
      return;
    case 'watches':
      await inParallel({ count: task.count, width: 500 }, () =>
        client.watch(`${root}/watched-${watchCursor++}`),
      );
      return;
  }
}

async function inParallel({ count, width }: { count: number; width: number }, run: () => Promise<unknown>) {
  let left = count;
  await Promise.all(
    Array.from({ length: width }, async () => {
      while (left-- > 0) await run();
    }),
  );
}

/** Heap and what hangs off it, after two collections; the native client keeps its own, so resident memory too. */
async function bytesInUse(): Promise<number> {
  for (let pass = 0; pass < 2; pass++) {
    globalThis.gc!();
    await new Promise((resolve) => setImmediate(resolve));
  }
  const { heapUsed, external, rss } = memoryUsage();
  return name === 'native' ? rss : heapUsed + external;
}
