import { afterAll, beforeAll, expect, test } from 'vitest';
import { cycle, mostAtOnce, timed } from './lock-history.ts';
import { LockPeer } from './lock-peer.ts';
import { Scene } from './scene.ts';

let java: LockPeer;
beforeAll(async () => {
  java = await LockPeer.curator();
});
afterAll(() => java[Symbol.asyncDispose]());

const PATH = '/locks/shared';
const PERMITS = 3;
const CLIENTS_EACH = 4;
const ROUNDS = 15;

test("a semaphore shared with Curator's InterProcessSemaphoreV2 never has more holders than permits", async () => {
  await using scene = await Scene.onZooKeeper();
  const counter = await scene.counter();
  const gate = await (await scene.holdfast())
    .semaphore('shared', { permits: PERMITS })
    .acquire({ permits: PERMITS });
  const cycles = Array.from({ length: CLIENTS_EACH }, async (_, index) => {
    const [client, holdfast] = await Promise.all([scene.peer(java), scene.holdfast()]);
    const ofJava = client.cycle('semaphore', PATH, { rounds: ROUNDS, counter, leases: PERMITS });
    const ofHoldfast = cycle(holdfast.zk, holdfast.semaphore('shared', { permits: PERMITS }), {
      who: `holdfast-${index}`,
      rounds: ROUNDS,
      counter,
      as: 'one-of-many',
    });
    return [...(await ofJava), ...(await ofHoldfast)];
  });
  await scene.untilInQueue(`${PATH}/locks`, 2 * CLIENTS_EACH);
  await gate.release();
  const history = (await Promise.all(cycles)).flat();

  expect(history).toHaveLength(2 * CLIENTS_EACH * ROUNDS);
  expect(mostAtOnce(history)).toBeLessThanOrEqual(PERMITS);
  await scene.untilInQueue(`${PATH}/locks`, 0);
  await scene.untilInQueue(`${PATH}/leases`, 0);
});

test('permits that one kind holds are not there for the other, and come free for it', async () => {
  await using scene = await Scene.onZooKeeper();
  const [holdfast, first, second] = await Promise.all([scene.holdfast(), scene.peer(java), scene.peer(java)]);
  const semaphore = holdfast.semaphore('shared', { permits: 2 });

  await first.acquire('semaphore', PATH, 2);
  const lease = await semaphore.acquire();
  expect(await semaphore.tryAcquire()).toBeNull();
  const both = timed(semaphore.acquire({ permits: 2 }));
  await scene.untilInQueue(`${PATH}/leases`, 4);
  const { holders, queue } = await holdfast.inspect('shared');
  expect(holders.map(({ session }) => session)).toEqual([first.session, holdfast.zk.session.id]);
  expect(queue.map(({ session }) => session)).toEqual([holdfast.zk.session.id]);

  await lease.release();
  // Requests of a session are answered in order: who waits has looked again by now, and would be in.
  for (let answer = 0; answer < 3; answer++) await holdfast.zk.exists(PATH);
  const firstLeftNs = await first.release('semaphore');
  const granted = await both;
  expect(granted.enteredNs).toBeGreaterThan(firstLeftNs);
  const third = second.acquire('semaphore', PATH, 2);
  await scene.untilInQueue(`${PATH}/leases`, 3);
  const leftNs = process.hrtime.bigint();
  await granted.lease.release();
  expect((await third).enteredNs).toBeGreaterThan(leftNs);
});

test("a semaphore with one permit is Curator's InterProcessSemaphoreMutex", async () => {
  await using scene = await Scene.onZooKeeper();
  const [holdfast, client] = await Promise.all([scene.holdfast(), scene.peer(java)]);
  const semaphore = holdfast.semaphore('shared', { permits: 1 });
  await client.acquire('semaphore-mutex', PATH);
  expect(await semaphore.tryAcquire()).toBeNull();
  const waiting = timed(semaphore.acquire());
  await scene.untilInQueue(`${PATH}/leases`, 2);
  const clientLeftNs = await client.release('semaphore-mutex');
  const { lease, enteredNs } = await waiting;
  expect(enteredNs).toBeGreaterThan(clientLeftNs);
  const again = client.acquire('semaphore-mutex', PATH);
  await scene.untilInQueue(`${PATH}/leases`, 2);
  const leftNs = process.hrtime.bigint();
  await lease.release();
  expect((await again).enteredNs).toBeGreaterThan(leftNs);
});
