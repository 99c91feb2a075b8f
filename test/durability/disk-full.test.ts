import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { SimulatedFolder } from '../../simulation/environment/simulated-folder.ts';
import { seededRandom } from '../../src/base/random.ts';
import { open as openStore } from '../../src/server/storage/store.test-data.ts';
import { startServer } from '../../src/server.ts';
import { connect, type ZooKeeper } from '../../src/zookeeper.ts';
import { SmallDisk, whyNotMountable } from '../support/disk-image.ts';
import { until } from '../support/until.ts';
import { fourLetterWord } from '../support/zookeeper-process.ts';

const whyNot = await whyNotMountable();
if (whyNot !== undefined)
  console.warn(`a full disk is SIMULATED here, no small one can be mounted: ${whyNot}`);

test(
  'a full disk makes the server read-only, and room makes it take writes again, without losing an answer',
  { timeout: 90_000 },
  whyNot === undefined ? onSmallDisk : simulated,
);

const limits = { tickMs: 500, sessionTimeoutMsMin: 1_000 };

async function onSmallDisk(): Promise<void> {
  await using disk = await SmallDisk.create({ kilobytes: 6_144 });
  const filler = join(disk.path, 'filler');
  await writeFile(filler, Buffer.alloc(5_296 * 1024)); // Gone, it leaves room for logs and snapshots of all there is.
  const said: string[] = [];
  const start = () =>
    startServer({
      folder: join(disk.path, 'data'),
      logBytesMax: 150 * 1024,
      limits,
      log: (level, message) => said.push(`${level}: ${message}`),
    });
  const kept: string[] = [];
  let childrenBefore: string[];
  {
    await using server = await start();
    await using zk = await connect(server.connectString);
    await zk.create('/watched', 'before');
    let events = 0;
    await zk.get('/watched', { watch: () => events++ });

    const full = await fillUp(zk, kept);
    expect(full).toMatchObject({ code: 'ZK_NOT_READ_ONLY', outcome: 'not-applied' });
    expect(kept.length).toBeGreaterThan(5);
    expect(said).toContain('error: the log cannot be written: writes are refused');

    // Reads go on, for those who are there and those who ask for no more than that.
    for (const path of kept) expect((await zk.get(path)).data).toHaveLength(20_000);
    expect(await fourLetterWord(server, 'isro')).toBe('ro');
    expect(await fourLetterWord(server, 'mntr')).toContain('zk_server_state\tread-only\n');
    expect(await fourLetterWord(server, 'srvr')).toContain('Mode: read-only\n');
    await using reader = await connect(server.connectString, { readOnly: true });
    expect(reader.session.readOnly).toBe(true);
    expect((await reader.get('/watched')).data?.toString()).toBe('before');
    await expect(reader.set('/watched', 'x')).rejects.toMatchObject({ code: 'ZK_NOT_READ_ONLY' });
    await expect(zk.create('/refused', '')).rejects.toMatchObject({ code: 'ZK_NOT_READ_ONLY' });

    await rm(filler);
    await until('writes are taken again', async () => (await fourLetterWord(server, 'isro')) === 'rw');
    expect(said).toContain('warn: the log can be written again');
    for (let count = 0; count < 20; count++) await createOne(zk, kept);
    await zk.set('/watched', 'after');
    await until('the watch fires', () => events === 1);
    await until('the reader may write', async () =>
      reader.set('/watched', 'by the reader').then(
        () => true,
        () => false,
      ),
    );
    childrenBefore = (await zk.children('/')).sort();
    expect(childrenBefore).not.toContain('refused');
    for (const path of kept) expect(childrenBefore).toContain(path.slice(1));
  }
  await using server = await start();
  await using zk = await connect(server.connectString);
  expect((await zk.children('/')).sort()).toEqual(childrenBefore);
  for (const path of kept) expect((await zk.get(path)).data).toHaveLength(20_000);
}

async function createOne(zk: ZooKeeper, kept: string[]): Promise<void> {
  const { path } = await zk.create('/n-', Buffer.alloc(20_000, 1), { mode: 'persistent-sequential' });
  kept.push(path);
}

/** Writes until it is refused, and says how. The write that the disk did not take is cut off: its outcome is unknown. */
async function fillUp(zk: ZooKeeper, kept: string[]): Promise<unknown> {
  for (;;) {
    try {
      await createOne(zk, kept);
    } catch (error) {
      if ((error as { code: string }).code !== 'ZK_CONNECTION_LOSS') return error;
    }
  }
}

/** Where nothing can be mounted: the folder that fails when it is told to. */
async function simulated(): Promise<void> {
  const folder = new SimulatedFolder();
  const { store, owner } = await openStore(folder, 2_000);
  const random = seededRandom(1);
  for (let round = 0; round < 20; round++) {
    folder.fault = ({ kind }) =>
      kind === 'write' ? Object.assign(new Error('no space left on device'), { code: 'ENOSPC' }) : undefined;
    store.append(owner.perform(owner.next(random)));
    await until('the disk is full', () => owner.failure !== undefined);
    folder.fault = undefined;
    await until('the disk is well again', () => owner.failure === undefined);
    for (let count = 0; count < 10; count++) store.append(owner.perform(owner.next(random)));
    await store.settled();
    expect((await openStore(folder.copy())).owner.picture() === owner.picture()).toBe(true);
  }
}
