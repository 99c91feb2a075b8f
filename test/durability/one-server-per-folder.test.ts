import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ownIdentity } from '../../src/base/process-identity.ts';
import { FolderInUseError, startServer } from '../../src/server.ts';
import { connect } from '../../src/zookeeper.ts';
import { DurableServer } from './durable-server.ts';

const logBytesMax = 1 << 20;
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-lock-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const inUseBy = (pid: number | undefined) => ({
  code: 'HOLDFAST_FOLDER_IN_USE',
  message: `${folder} is in use by process ${pid}`,
});

describe('a folder with a server in it', () => {
  test('is refused to a second server of the same process, and free once the first has stopped', async () => {
    const first = await startServer({ folder });
    const second = startServer({ folder });
    await expect(second).rejects.toBeInstanceOf(FolderInUseError);
    await expect(second).rejects.toMatchObject({ ...inUseBy(process.pid), folder, pid: process.pid });
    await first.stop();
    await (await startServer({ folder })).stop();
    expect((await readdir(folder)).filter((name) => name.startsWith('lock'))).toEqual([]);
  });

  test('is refused to a server of another process, naming the first', async () => {
    const first = await DurableServer.start(folder, { logBytesMax });
    try {
      await expect(startServer({ folder })).rejects.toMatchObject(inUseBy(first.process.pid));
      await expect(DurableServer.start(folder, { logBytesMax })).rejects.toMatchObject(
        inUseBy(first.process.pid),
      );
      await using zk = await connect(first.connectString);
      await zk.create('/still-mine', '');
    } finally {
      await first.kill();
    }
    // Killed: nobody has let go of it, and it is taken over.
    await using server = await startServer({ folder });
    await using zk = await connect(server.connectString);
    expect(await zk.children('/')).toContain('still-mine');
  });

  test('goes to one of many that start at once after it was killed', async () => {
    const dead = await DurableServer.start(folder, { logBytesMax });
    await dead.kill();
    const starting = Array.from({ length: 4 }, () => DurableServer.start(folder, { logBytesMax }));
    const inProcess = Array.from({ length: 4 }, () => startServer({ folder }));
    const results = await Promise.allSettled([...starting, ...inProcess]);
    const started = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    for (const server of started) await (server instanceof DurableServer ? server.kill() : server.stop());
    expect(started).toHaveLength(1);
    for (const result of results)
      if (result.status === 'rejected')
        expect(result.reason).toMatchObject({ code: 'HOLDFAST_FOLDER_IN_USE' });
    expect((await readdir(folder)).filter((name) => name.startsWith('lock.'))).toEqual([]);
  });
});

describe('a lock that was left behind', () => {
  const own = ownIdentity();
  const leftovers = {
    'by a process that is gone': JSON.stringify({ pid: 2 ** 22 + 1, startedAt: own.startedAt }),
    'by a process whose number another has now': JSON.stringify({
      pid: own.pid,
      startedAt: '1 of another start',
    }),
    'half-written by a power cut': '{"pid":',
    'empty by a power cut': '',
  };
  for (const [how, content] of Object.entries(leftovers)) {
    test(`${how} is taken over`, async () => {
      await writeFile(join(folder, 'lock'), content);
      await using _server = await startServer({ folder });
      expect(JSON.parse(await readFile(join(folder, 'lock'), 'utf8'))).toEqual(own);
    });
  }

  test('in the midst of a takeover is taken over as well', async () => {
    await writeFile(join(folder, 'lock'), leftovers['by a process that is gone']);
    await writeFile(join(folder, 'lock.takeover'), leftovers['by a process that is gone']);
    await using _server = await startServer({ folder });
    expect((await readdir(folder)).filter((name) => name.startsWith('lock'))).toEqual(['lock']);
  });
});
