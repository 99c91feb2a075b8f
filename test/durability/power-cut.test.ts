import { join } from 'node:path';
import { expect, test } from 'vitest';
import { SimulatedFolder } from '../../simulation/environment/simulated-folder.ts';
import { seededRandom } from '../../src/base/random.ts';
import { open as openStore } from '../../src/server/storage/store.test-data.ts';
import { connect } from '../../src/zookeeper.ts';
import { DiskImage, whyNotMountable } from '../support/disk-image.ts';
import { until } from '../support/until.ts';
import { DurableServer } from './durable-server.ts';
import { Workload } from './workload.ts';

const ROUNDS = Number(process.env['HOLDFAST_POWER_CUT_ROUNDS'] ?? 6);
const WRITERS = 8;
const LOG_BYTES_MAX = 8_000;

const whyNot = await whyNotMountable();
if (whyNot !== undefined)
  console.warn(`power cuts are SIMULATED here, no disk image can be mounted: ${whyNot}`);

test(
  `nothing that was answered is lost, and nothing is half-applied, over ${ROUNDS} power cuts`,
  { timeout: 60_000 + ROUNDS * 20_000 },
  whyNot === undefined ? onImages : simulated,
);

/** Each round goes on with the disk that the power cut before it left. */
async function onImages(): Promise<void> {
  const random = seededRandom(Number(process.env['HOLDFAST_SEED'] ?? 1));
  let disk = await DiskImage.create({ megabytes: 64 });
  let server: DurableServer | undefined;
  try {
    const start = () => DurableServer.start(join(disk.path, 'data'), { logBytesMax: LOG_BYTES_MAX });
    server = await start();
    const workload = await withClient(server, (zk) => Workload.begin(zk, WRITERS));
    for (let round = 0; round < ROUNDS; round++) {
      const { connectString } = server;
      const clients = await Promise.all([0, 1, 2].map(() => connect(connectString)));
      const writing = workload.run(clients);
      const quota = workload.answeredCount + (random.u32() % 400);
      await until(`${quota} answers`, () => workload.answeredCount >= quota);
      // Dead first: a copy takes some milliseconds, and a disk is not written while its power goes.
      await server.kill();
      const left = await disk.afterPowerCut();
      await disk[Symbol.asyncDispose]();
      disk = left;
      await Promise.all(clients.map((zk) => zk.close()));
      await writing;
      server = await start();
      await withClient(server, (zk) => workload.verify(zk, `round ${round}`));
    }
    console.log(`power cuts: ${ROUNDS} rounds on ext4 images, ${workload.answeredCount} answered writes`);
  } finally {
    await server?.kill();
    await disk[Symbol.asyncDispose]();
  }
}

/** Where nothing can be mounted: the folder that loses names and sectors. */
async function simulated(): Promise<void> {
  const random = seededRandom(1);
  let folder = new SimulatedFolder();
  for (let round = 0; round < ROUNDS * 20; round++) {
    const { store, owner } = await openStore(folder, 1_000);
    folder.stopAt = folder.calls.length + 1 + (random.u32() % 100);
    for (let count = 0; count < 60; count++) {
      store.append(owner.perform(owner.next(random)));
      if (random.u32() % 2 === 0) await Promise.race([store.settled(), folder.stopped]);
    }
    folder = folder.afterPowerCut(random);
    const found = (await openStore(folder, 1_000)).owner;
    expect(found.durableZxid).toBeGreaterThanOrEqual(owner.durableZxid);
    const newest = [...owner.history.keys()].filter((zxid) => zxid <= found.durableZxid).at(-1)!;
    expect(found.picture() === owner.history.get(newest), `round ${round}`).toBe(true);
  }
}

async function withClient<T>(
  server: DurableServer,
  use: (zk: Awaited<ReturnType<typeof connect>>) => Promise<T>,
): Promise<T> {
  await using zk = await connect(server.connectString);
  return await use(zk);
}
