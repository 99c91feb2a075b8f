import { mkdtemp, readFile, readlink, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { startServer } from '../../src/server.ts';
import { connect } from '../../src/zookeeper.ts';

async function socketFolder(): Promise<AsyncDisposable & { path: string }> {
  const path = await mkdtemp(join(tmpdir(), 'holdfast-unix-'));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

describe('a server on a unix socket', () => {
  test('is reached by the path, with a chroot behind a colon', async () => {
    await using folder = await socketFolder();
    await using server = await startServer({ socketPath: join(folder.path, 'zk.sock') });
    expect(server.connectString).toBe(`unix:${folder.path}/zk.sock`);
    await using zk = await connect(server.connectString);
    await zk.create('/app');
    await using inside = await connect(`${server.connectString}:/app`);
    await inside.create('/a', 'within');
    expect((await zk.get('/app/a')).data?.toString()).toBe('within');
  });

  test('that is not there is told by its path', async () => {
    await using folder = await socketFolder();
    const socket = join(folder.path, 'none.sock');
    const failure = connect(`unix:${socket}`, { timeoutMs: 200 });
    await expect(failure).rejects.toThrow(
      `no session with unix:${socket} within 200 ms; last: unix:${socket}: `,
    );
  });

  test.each<[string, (path: string) => Promise<void>, (path: string) => Promise<string>]>([
    ['a regular file', (path) => writeFile(path, 'kept'), (path) => readFile(path, 'utf8')],
    ['a link', (path) => symlink('elsewhere', path), (path) => readlink(path)],
  ])('is refused where %s is, which stays as it is', async (_what, make, read) => {
    await using folder = await socketFolder();
    const socketPath = join(folder.path, 'zk.sock');
    await make(socketPath);
    const before = await read(socketPath);
    await expect(startServer({ socketPath })).rejects.toMatchObject({ code: 'EADDRINUSE' });
    expect(await read(socketPath)).toBe(before);
  });

  test('takes the place of a socket on which no process listens, and of no other', async () => {
    await using folder = await socketFolder();
    const socketPath = join(folder.path, 'zk.sock');
    await using first = await startServer({ socketPath });
    await expect(startServer({ socketPath })).rejects.toMatchObject({ code: 'EADDRINUSE' });
    const aside = join(folder.path, 'aside');
    await rename(socketPath, aside);
    await first.stop();
    await rename(aside, socketPath); // As after a crash: the file of the socket is there, and nothing behind it.
    await using second = await startServer({ socketPath });
    await using zk = await connect(second.connectString);
    expect(await zk.exists('/')).toBeDefined();
  });
});
