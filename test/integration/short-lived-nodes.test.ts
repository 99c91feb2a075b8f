import { expect, test } from 'vitest';
import { connect } from '../../src/zookeeper.ts';
import { until } from '../support/until.ts';
import { startZooKeeper } from '../support/zookeeper-process.ts';

test('containers go when they are empty, and nodes with a time to live when it is over', async () => {
  await using server = await startZooKeeper({ containerCheckIntervalMs: 100 });
  await using zk = await connect(server.connectString);
  await zk.create('/box', '', { mode: 'container' });
  await zk.create('/box/child');
  await zk.create('/brief', '', { mode: 'persistent-with-ttl', ttlMs: 50 });
  const kept = await zk.create('/long', '', { mode: 'persistent-with-ttl', ttlMs: 600_000 });
  expect(kept.stat.ephemeralOwner).toBe(0n);
  await zk.delete('/box/child');
  await until('both are gone', async () => !(await zk.exists('/box')) && !(await zk.exists('/brief')));
  expect(await zk.exists('/long')).toBeDefined();
});
