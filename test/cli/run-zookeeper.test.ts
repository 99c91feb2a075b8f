import { describe, expect, test } from 'vitest';
import { connect } from '../../src/holdfast.ts';
import { FaultProxy } from '../../src/testing.ts';
import { sharedStandalone } from '../support/shared-servers.ts';
import { until } from '../support/until.ts';
import { holdfast } from './command-process.ts';
import { isAnyAlive, markOf, STUBBORN } from './run-scene.ts';

describe('holdfast run on ZooKeeper', () => {
  test('passes exit codes through, and leaves nothing behind', async () => {
    const { connectString } = sharedStandalone();
    const run = (...args: string[]) => holdfast(['run', '--servers', connectString, ...args]).ended;
    expect((await run('zk-a,zk-b', '--', 'sh', '-c', 'exit 42')).code).toBe(42);
    await using onlooker = await connect({ servers: connectString });
    for (const lock of ['zk-a', 'zk-b']) expect((await onlooker.inspect(lock)).holders).toEqual([]);
  });

  test('goes on after a cut connection, with the lock confirmed', async () => {
    const { host, port, connectString } = sharedStandalone();
    await using proxy = await FaultProxy.start({ target: { host, port } });
    const ticking = 'for i in $(seq 500); do echo tick; sleep 0.05; done';
    await using run = holdfast([
      'run',
      '--servers',
      `127.0.0.1:${proxy.port}`,
      'zk-cut',
      '--',
      'sh',
      '-c',
      ticking,
    ]);
    await run.says('tick');
    await using onlooker = await connect({ servers: connectString });
    const before = await onlooker.inspect('zk-cut');
    proxy.resetAll();
    await until('it is connected again', () => proxy.acceptedCount > 1);
    const said = run.stdout.length;
    await until('it ticks on', () => run.stdout.length > said + 20);
    expect((await onlooker.inspect('zk-cut')).holders).toEqual(before.holders);
    run.kill('SIGTERM');
    expect((await run.ended).code).toBe(143);
  });

  test('ends everything when its node is removed', async () => {
    const { connectString } = sharedStandalone();
    await using run = holdfast(['run', '--servers', connectString, 'zk-removed', '--', ...STUBBORN]);
    const mark = await markOf(run);
    await using onlooker = await connect({ servers: connectString });
    const { holders } = await onlooker.inspect('zk-removed');
    await onlooker.zk.delete(`/locks/zk-removed/${holders[0]!.id}`);
    expect(await run.exited).toBe(201);
    expect(isAnyAlive(mark)).toBe(false);
  });
});
