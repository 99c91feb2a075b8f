// `npm run soak:client`: memory over a million operations and 100 000 watches set and fired. Fails if it grows.
import { connect, type ZooKeeper } from 'holdfast/zookeeper';
import { startZooKeeper } from '../../test/support/zookeeper-process.ts';

const OPERATIONS = 1_000_000;
const WATCH_CYCLES = 100_000;
const QUARTERS = 4;
const GROWTH_BYTES_MAX = 2 * 1024 * 1024;

await using server = await startZooKeeper({ tickTimeMs: 2_000, jvmFlags: ['-Xmx512m', '-XX:+UseSerialGC'] });
await using zk = await connect(server.connectString);
await zk.create('/soak', 'x');

await soak('operations', OPERATIONS, async (count) => {
  await inParallel(count, 200, async (index) => {
    if (index % 10 === 0) await zk.set('/soak', 'x');
    else if (index % 10 === 1) await zk.exists('/absent');
    else if (index % 100 === 2) await zk.get('/absent').catch(() => undefined);
    else await zk.get('/soak', index % 10 === 3 ? { timeoutMs: 60_000 } : {});
  });
});
await soak('watch cycles', WATCH_CYCLES, (count) => inParallel(count, 100, (index) => watchCycle(zk, index)));

/** A watch set, fired by a change, and its event awaited. */
async function watchCycle(client: ZooKeeper, index: number): Promise<void> {
  const path = `/soak/w-${index % 100}`;
  const fired = new Promise<void>((resolve) => {
    client.exists(path, { watch: () => resolve() }).catch(() => undefined);
  });
  await client.create(path, '');
  await fired;
  await client.delete(path);
}

async function soak(name: string, total: number, run: (count: number) => Promise<void>): Promise<void> {
  const heap: number[] = [];
  for (let quarter = 1; quarter <= QUARTERS; quarter++) {
    await run(total / QUARTERS);
    heap.push(heapBytes());
    console.log(`${name}: ${(total / QUARTERS) * quarter}, heap ${(heap.at(-1)! / 2 ** 20).toFixed(2)} MiB`);
  }
  const growthBytes = heap[3]! - heap[1]!;
  console.log(`${name}: ${Math.round(growthBytes / 1024)} KiB from the second quarter to the fourth`);
  if (growthBytes > GROWTH_BYTES_MAX) throw new Error(`${name}: memory grows`);
}

function heapBytes(): number {
  globalThis.gc!();
  globalThis.gc!();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

async function inParallel(
  count: number,
  width: number,
  run: (index: number) => Promise<void>,
): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: width }, async () => {
      while (next < count) await run(next++);
    }),
  );
}
