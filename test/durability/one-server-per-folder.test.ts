import { mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { lockFile } from '../../src/base/lock-file.ts';
import { ownIdentity, ownPlace } from '../../src/base/process-identity.ts';
import { FolderInUseError, type RunningServer, startServer } from '../../src/server.ts';
import { connect } from '../../src/zookeeper.ts';
import { until } from '../support/until.ts';
import { DurableServer } from './durable-server.ts';

const logBytesMax = 1 << 20;
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-lock-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const namesBeside = async (prefix: string) =>
  (await readdir(folder)).filter((name) => name.startsWith(prefix)).sort();

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
    expect(await namesBeside('lock.takeover')).toEqual([]);
    await (await startServer({ folder })).stop();
    expect(await namesBeside('lock')).toEqual([]);
  });

  test('is refused to a server of another container, and the other way round', async () => {
    const inside = await DurableServer.startInContainer(folder, { logBytesMax });
    try {
      await expect(startServer({ folder })).rejects.toMatchObject({
        code: 'HOLDFAST_FOLDER_IN_USE',
        pid: 1,
        message: expect.stringMatching(
          /is in use by process 1 of another container, on host .+; stop that one/,
        ),
      });
      // Process 1 of this one is process 1 of that one, by number.
      await expect(DurableServer.startInContainer(folder, { logBytesMax })).rejects.toMatchObject({
        code: 'HOLDFAST_FOLDER_IN_USE',
      });
    } finally {
      await inside.kill();
    }
    let outside: RunningServer | undefined;
    await until('the container is gone', async () => {
      outside = await startServer({ folder }).catch(() => undefined);
      return outside !== undefined;
    });
    try {
      await expect(DurableServer.startInContainer(folder, { logBytesMax })).rejects.toMatchObject({
        message: expect.stringContaining(`is in use by process ${process.pid} of another container`),
      });
    } finally {
      await outside!.stop();
    }
    await (await DurableServer.startInContainer(folder, { logBytesMax })).kill();
  });

  test('is refused also when its server is stopped and answers nothing', async () => {
    const stopped = await DurableServer.start(folder, { logBytesMax });
    stopped.process.kill('SIGSTOP');
    try {
      await expect(startServer({ folder })).rejects.toMatchObject(inUseBy(stopped.process.pid));
    } finally {
      await stopped.kill();
    }
  });

  test('is locked with a path longer than the address of a socket', async () => {
    const deep = join(folder, 'd'.repeat(100), 'e'.repeat(100));
    await using _first = await startServer({ folder: deep });
    await expect(startServer({ folder: deep })).rejects.toMatchObject({ pid: process.pid });
    await expect(DurableServer.startInContainer(deep, { logBytesMax })).rejects.toMatchObject({
      code: 'HOLDFAST_FOLDER_IN_USE',
    });
  });

  test('stays locked by the second when the first, whose lock was removed by hand, lets go', async () => {
    const path = join(folder, 'lock');
    const first = await lockFile(path);
    await rm(path);
    const second = await lockFile(path);
    if (!first.locked || !second.locked) throw new Error('not taken');
    await first.release();
    expect(await lockFile(path)).toMatchObject({ locked: false, runs: true, holder: { pid: process.pid } });
    await second.release();
    expect(await namesBeside('lock')).toEqual([]);
  });
});

const own = ownIdentity();
const GONE = { pid: 2 ** 22 + 1, startedAt: own.startedAt };

describe('a lock that was left behind', () => {
  const leftovers = {
    'by a process of an older version that is gone': JSON.stringify(GONE),
    'by a process of an older version whose number another has now': JSON.stringify({
      pid: own.pid,
      startedAt: '1 of another start',
    }),
    'by a process before the machine started': JSON.stringify({
      ...GONE,
      ...ownPlace(),
      bootId: 'another',
      socket: `lock.${'0'.repeat(16)}`,
    }),
    'half-written by a power cut': '{"pid":',
    'empty by a power cut': '',
    'with the name of another file for its socket': JSON.stringify({
      ...own,
      ...ownPlace(),
      socket: 'log.1',
    }),
  };
  for (const [how, content] of Object.entries(leftovers)) {
    test(`${how} is taken over`, async () => {
      await writeFile(join(folder, 'log.1'), 'is not touched');
      await writeFile(join(folder, 'lock'), content);
      const lock = await lockFile(join(folder, 'lock'));
      expect(lock.locked).toBe(true);
      expect(JSON.parse(await readFile(join(folder, 'lock'), 'utf8'))).toMatchObject({
        ...own,
        ...ownPlace(),
      });
      expect(await readFile(join(folder, 'log.1'), 'utf8')).toBe('is not touched');
      if (lock.locked) await lock.release();
    });
  }

  test('by a killed process whose number another process has now is taken over', async () => {
    const killed = await DurableServer.start(folder, { logBytesMax });
    await killed.kill();
    const holder = JSON.parse(await readFile(join(folder, 'lock'), 'utf8'));
    await writeFile(join(folder, 'lock'), JSON.stringify({ ...holder, ...own }));
    await (await startServer({ folder })).stop();
    expect(await namesBeside('lock')).toEqual([]);
  });

  test('in the midst of a takeover is taken over as well', async () => {
    await writeFile(join(folder, 'lock'), JSON.stringify(GONE));
    await writeFile(join(folder, 'lock.takeover'), JSON.stringify(GONE));
    await using _server = await startServer({ folder });
    const { socket } = JSON.parse(await readFile(join(folder, 'lock'), 'utf8'));
    expect(await namesBeside('lock')).toEqual(['lock', socket]);
  });

  test('without its socket is refused while its process runs, and to other containers, who cannot tell', async () => {
    const server = await startServer({ folder });
    const { socket } = JSON.parse(await readFile(join(folder, 'lock'), 'utf8'));
    await rm(join(folder, socket));
    await expect(startServer({ folder })).rejects.toMatchObject({ pid: process.pid });
    await expect(DurableServer.startInContainer(folder, { logBytesMax })).rejects.toMatchObject({
      message: expect.stringContaining(`make sure that it does not, then remove ${join(folder, 'lock')}`),
    });
    await server.stop();
    await (await startServer({ folder })).stop();
  });

  test('that cannot be read is an error, and stays', async () => {
    await mkdir(join(folder, 'lock'));
    await expect(startServer({ folder })).rejects.toMatchObject({ code: 'EISDIR' });
    expect((await stat(join(folder, 'lock'))).isDirectory()).toBe(true);
  });

  test('half made is removed after a minute, and what is of others never', async () => {
    const long = new Date(Date.now() - 61_000);
    const [old, young] = ['lock.0123456789abcdef.draft', 'lock.0123456789abcdee.draft'];
    const others = ['lock.backup', 'lock.0123456789ABCDEF', 'locksmith'];
    for (const name of [old!, young!, ...others]) await writeFile(join(folder, name), '');
    for (const name of [old!, ...others]) await utimes(join(folder, name), long, long);
    const alive = createServer().listen(join(folder, 'lock.0123456789abcded'));
    await utimes(join(folder, 'lock.0123456789abcded'), long, long);
    await (await startServer({ folder })).stop();
    expect(await namesBeside('lock')).toEqual(['lock.0123456789abcded', young, ...others].sort());
    alive.close();
  });
});
