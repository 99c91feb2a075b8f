import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { Program } from '../foreign-clients/run-program.ts';
import { until } from '../support/until.ts';
import { timed } from './lock-history.ts';
import { LockPeer } from './lock-peer.ts';
import { Scene } from './scene.ts';

const SESSION_TIMEOUT_MS = 2_000;

test('a Java process that is killed leaves its locks to those who wait here', async () => {
  await using scene = await Scene.onZooKeeper();
  await using doomed = await LockPeer.curator();
  const holdfast = await scene.holdfast();
  const [holder, waiter] = await Promise.all([
    doomed.client(scene.servers, { sessionTimeoutMs: SESSION_TIMEOUT_MS }),
    doomed.client(scene.servers, { sessionTimeoutMs: SESSION_TIMEOUT_MS }),
  ]);
  const { token } = await holder.acquire('mutex', '/locks/a');
  await holder.acquire('semaphore', '/locks/b', 1);
  await holder.acquire('write', '/locks/c');
  void waiter.acquire('mutex', '/locks/a').catch(() => {});
  await scene.untilInQueue('/locks/a', 2);
  const granted = Promise.all([
    holdfast.mutex('a').acquire(),
    holdfast.semaphore('b', { permits: 1 }).acquire(),
    holdfast.readWriteLock('c').read.acquire(),
  ]);
  await scene.untilInQueue('/locks/a', 3);
  await scene.untilInQueue('/locks/b/leases', 2);
  await scene.untilInQueue('/locks/c', 2);

  await doomed.kill();
  const [lease] = await granted;
  expect(lease.token).toBeGreaterThan(token);
  for (const { holders, queue } of await holdfast.list()) {
    expect(holders.map(({ session }) => session)).toEqual([holdfast.zk.session.id]);
    expect(queue).toEqual([]);
  }
});

test('a Java process that is killed while it waits lets nobody past the holder', async () => {
  await using scene = await Scene.onZooKeeper();
  await using java = await LockPeer.curator();
  await using doomed = await LockPeer.curator();
  const [holdfast, holder, waiter] = await Promise.all([
    scene.holdfast(),
    scene.peer(java),
    doomed.client(scene.servers, { sessionTimeoutMs: SESSION_TIMEOUT_MS }),
  ]);
  const { node } = await holder.acquire('mutex', '/locks/shared');
  void waiter.acquire('mutex', '/locks/shared').catch(() => {});
  await scene.untilInQueue('/locks/shared', 2);
  const waiting = timed(holdfast.mutex('shared').acquire());
  await scene.untilInQueue('/locks/shared', 3);

  await doomed.kill();
  await scene.untilInQueue('/locks/shared', 2);
  await scene.untilWatched(`/locks/shared/${node}`, holdfast.zk.session.id);
  const leftNs = await holder.release('mutex');
  expect((await waiting).enteredNs).toBeGreaterThan(leftNs);
});

test('a process of ours that is killed leaves its lock to Java', async () => {
  await using scene = await Scene.onZooKeeper();
  await using java = await LockPeer.curator();
  const client = await scene.peer(java);
  const script = fileURLToPath(new URL('./holdfast-holder.ts', import.meta.url));
  await using doomed = new Program(process.execPath, ['--import', 'tsx', script, scene.servers, 'shared']);
  await until('the holder holding', () => doomed.said.includes('holds'));
  const [, token] = /^holds (\d+), and waits$/m.exec(doomed.said)!;
  const waiting = client.acquire('mutex', '/locks/shared');
  await scene.untilInQueue('/locks/shared', 3);

  doomed.child.kill('SIGKILL');
  await doomed.result();
  const grant = await waiting;
  expect(grant.token).toBeGreaterThan(BigInt(token!));
  expect(await scene.zk.children('/locks/shared')).toEqual([grant.node]);
});
