import { mkdtemp, rm } from 'node:fs/promises';
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
});
