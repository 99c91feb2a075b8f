import { isIPv4 } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { LockRevokedError, WrongKindError } from '../../src/holdfast.ts';
import { until } from '../support/until.ts';
import { timed } from './lock-history.ts';
import { LockPeer } from './lock-peer.ts';
import { Scene } from './scene.ts';

let java: LockPeer;
beforeAll(async () => {
  java = await LockPeer.curator();
});
afterAll(() => java[Symbol.asyncDispose]());

test("Curator's Revoker asks a holder here, who holds on until it releases", async () => {
  await using scene = await Scene.onZooKeeper();
  const [holdfast, client] = await Promise.all([scene.holdfast(), scene.peer(java)]);
  const lease = await holdfast.mutex('shared').acquire({ reason: 'nightly' });
  const asked = new Promise<unknown>((resolve) => {
    lease.revocation.addEventListener('abort', () => resolve(lease.revocation.reason));
  });
  const [holder] = (await client.ask('participants', '/locks/shared')).split(',');
  await client.ask('revoke', holder!);
  expect(await asked).toBeInstanceOf(LockRevokedError);
  lease.assertHeld();
  // Who asks wants to see who has it: the mark goes away again.
  await until('the mark going', async () => {
    return (await holdfast.inspect('shared')).holders[0]?.owner.reason === 'nightly';
  });
  expect(await (await scene.holdfast()).mutex('shared').tryAcquire()).toBeNull();

  const waiting = client.acquire('mutex', '/locks/shared');
  await scene.untilInQueue('/locks/shared', 2);
  const leftNs = process.hrtime.bigint();
  await lease.release();
  expect((await waiting).enteredNs).toBeGreaterThan(leftNs);
});

test("a request from here calls Curator's RevocationListener", async () => {
  await using scene = await Scene.onZooKeeper();
  const [holdfast, client] = await Promise.all([scene.holdfast(), scene.peer(java)]);
  const { node } = await client.acquire('revocable', '/locks/shared');
  expect((await holdfast.inspect('shared')).holders).toMatchObject([{ id: node, owner: {} }]);
  const waiting = timed(holdfast.mutex('shared').acquire());
  await scene.untilInQueue('/locks/shared', 2);
  expect(await holdfast.revoke('shared', { holder: 'somebody else' })).toBe(0);
  expect(await holdfast.revoke('shared', { holder: node })).toBe(1);
  await client.ask('await-revocation');
  const leftNs = await client.release('revocable');
  const { lease, enteredNs } = await waiting;
  expect(enteredNs).toBeGreaterThan(leftNs);
  expect(lease.signal.aborted, 'a request to another holder reached us').toBe(false);
});

// A LeaderLatch that waits looks again only when the node ahead is deleted, and its watch is spent on any change.
test('a leader cannot be asked: a LeaderLatch behind it would wait for ever', async () => {
  await using scene = await Scene.onZooKeeper();
  const [holdfast, client] = await Promise.all([scene.holdfast(), scene.peer(java)]);
  const leadership = await holdfast.election('shared', { id: 'ours' }).campaign();
  await client.ask('latch', '/locks/shared', 'theirs');
  await scene.untilInQueue('/locks/shared', 2);
  const { holders } = await holdfast.inspect('shared');
  await scene.untilWatched(`/locks/shared/${holders[0]!.id}`, client.session);
  await expect(holdfast.revoke('shared')).rejects.toBeInstanceOf(WrongKindError);
  expect(await client.ask('candidates')).toBe('ours,theirs');
  await leadership.resign();
  await client.ask('await-leadership');
});

test('inspect and list show contenders of Curator beside ours', async () => {
  await using scene = await Scene.onZooKeeper();
  const [holdfast, first, second] = await Promise.all([
    scene.holdfast({ app: 'reports' }),
    scene.peer(java),
    scene.peer(java),
  ]);
  const { token, node } = await first.acquire('mutex', '/locks/a');
  const waiting = holdfast.mutex('a').acquire({ reason: 'nightly' });
  await scene.untilInQueue('/locks/a', 2);
  await second.ask('latch', '/locks/b', 'candidate-7');
  await second.ask('await-leadership');

  const a = await holdfast.inspect('a');
  expect(a).toMatchObject({
    name: 'a',
    kind: 'mutex',
    holders: [{ id: node, role: 'exclusive', token, session: first.session }],
    queue: [{ session: holdfast.zk.session.id, owner: { app: 'reports', reason: 'nightly' } }],
    foreign: [],
  });
  // Curator writes its address unless its user wants something else there.
  expect(isIPv4(a.holders[0]!.owner.text!)).toBe(true);
  const [listed, b] = await holdfast.list();
  expect(listed).toEqual(a);
  expect(b).toMatchObject({
    name: 'b',
    kind: 'election',
    holders: [{ role: 'leader', session: second.session, owner: { text: 'candidate-7' } }],
    queue: [],
  });
  await first.release('mutex');
  await (await waiting).release();
});
