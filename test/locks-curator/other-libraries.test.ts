import { afterAll, beforeAll, expect, test } from 'vitest';
import { ForeignNodeError, WrongKindError } from '../../src/holdfast.ts';
import { cycle, inTime, overlaps, timed } from './lock-history.ts';
import { LockPeer } from './lock-peer.ts';
import { Scene } from './scene.ts';

let java: LockPeer;
let kazoo: LockPeer;
beforeAll(async () => {
  kazoo = LockPeer.kazoo();
  java = await LockPeer.curator();
});
afterAll(async () => {
  await java[Symbol.asyncDispose]();
  await kazoo[Symbol.asyncDispose]();
});

const PATH = '/locks/shared';

test('contenders with the names of go-zookeeper stand in the same queue', async () => {
  await using scene = await Scene.onZooKeeper();
  const [holdfast, client] = await Promise.all([scene.holdfast(), scene.peer(java)]);
  const { zk } = scene;
  const goEntry = () =>
    zk.create(`${PATH}/_c_0123456789abcdef0123456789abcdef-lock-`, '', { mode: 'ephemeral-sequential' });
  await zk.ensurePath(PATH);
  const first = await goEntry();
  const mutex = holdfast.mutex('shared');
  expect(await mutex.tryAcquire()).toBeNull();
  const behind = new Promise<string>((resolve) => {
    mutex.on('waiting', (event) => resolve(event.behind));
  });
  const waiting = timed(mutex.acquire());
  expect(`${PATH}/${await behind}`).toBe(first.path);
  const ofJava = client.acquire('mutex', PATH);
  await scene.untilInQueue(PATH, 3);
  const last = await goEntry();

  const deletedNs = process.hrtime.bigint();
  await zk.delete(first.path);
  const { lease, enteredNs } = await waiting;
  expect(enteredNs).toBeGreaterThan(deletedNs);
  // Go goes by the number behind "lock-", and fails at a name where it finds none.
  const numbers = (await zk.children(PATH)).map((name) => Number(name.split('lock-').at(-1)));
  expect(numbers.sort((a, b) => a - b)).toEqual([1, 2, 3]);
  expect(Number(last.path.split('lock-').at(-1))).toBe(3);
  await lease.release();
  await ofJava;
});

test('kazoo with its default names is refused, by name, and nothing is left behind', async () => {
  await using scene = await Scene.onZooKeeper();
  const [holdfast, python] = await Promise.all([scene.holdfast(), scene.peer(kazoo)]);
  const { node } = await python.acquire('default-lock', PATH);
  const mutex = holdfast.mutex('shared');
  for (const attempt of [() => mutex.acquire(), () => mutex.tryAcquire()]) {
    const refusal = await attempt().catch((error) => error);
    expect(refusal).toBeInstanceOf(ForeignNodeError);
    expect(refusal.message).toContain(`${node} (kazoo`);
  }
  await scene.untilInQueue(PATH, 1);
  expect(await holdfast.inspect('shared')).toEqual({
    name: 'shared',
    kind: 'unknown',
    holders: [],
    queue: [],
    foreign: [node],
    numbered: expect.any(Number),
  });
});

test('kazoo with its default names does not see us', async () => {
  await using scene = await Scene.onZooKeeper();
  const [holdfast, python] = await Promise.all([scene.holdfast(), scene.peer(kazoo)]);
  const lease = await holdfast.mutex('shared').acquire();
  await python.acquire('default-lock', PATH); // This is why it is refused.
  lease.assertHeld();
});

test('kazoo with names like ours, Curator and Holdfast exclude each other', async () => {
  await using scene = await Scene.onZooKeeper();
  const counter = await scene.counter();
  const rounds = 15;
  const clients = await Promise.all([kazoo, kazoo, java, java].map((each) => scene.peer(each)));
  const beforeNs = process.hrtime.bigint();
  const betweenNs = await clients[0]!.clockNs();
  expect(betweenNs).toBeGreaterThan(beforeNs);
  expect(betweenNs).toBeLessThan(process.hrtime.bigint());

  const gate = await (await scene.holdfast()).mutex('shared').acquire();
  const holdfasts = await Promise.all([scene.holdfast(), scene.holdfast()]);
  const cycles = [
    ...clients.map((client) => client.cycle('mutex', PATH, { rounds, counter })),
    ...holdfasts.map((holdfast, index) =>
      cycle(holdfast.zk, holdfast.mutex('shared'), {
        who: `holdfast-${index}`,
        rounds,
        counter,
        as: 'holder',
      }),
    ),
  ];
  await scene.untilInQueue(PATH, 1 + cycles.length);
  await gate.release();
  const history = inTime((await Promise.all(cycles)).flat());
  expect(overlaps(history)).toEqual([]);
  expect(String((await scene.zk.get(counter)).data)).toBe(String(cycles.length * rounds));
  const tokens = history.map(({ token }) => token);
  expect(tokens).toEqual([...tokens].sort((a, b) => (a < b ? -1 : 1)));
  expect(new Set(history.slice(0, cycles.length).map(({ who }) => who)).size).toBe(cycles.length);
  await scene.untilInQueue(PATH, 0);
});

test('another kind of lock under the same name is refused, where Curator would let both in', async () => {
  await using scene = await Scene.onZooKeeper();
  const [holdfast, client, other] = await Promise.all([scene.holdfast(), scene.peer(java), scene.peer(java)]);
  const { node } = await client.acquire('write', PATH);
  const refusal = await holdfast
    .mutex('shared')
    .acquire()
    .catch((error) => error);
  expect(refusal).toBeInstanceOf(WrongKindError);
  expect(refusal.message).toContain(node);
  await scene.untilInQueue(PATH, 1);
  await other.acquire('mutex', PATH);
});

test("ZooKeeper's own WriteLock is refused, by name, and nothing is left behind", async () => {
  await using scene = await Scene.onZooKeeper();
  const [holdfast, client] = await Promise.all([scene.holdfast(), scene.peer(java)]);
  await scene.zk.ensurePath('/locks');
  const { node } = await client.acquire('write-lock', PATH);
  const refusal = await holdfast
    .mutex('shared')
    .acquire()
    .catch((error) => error);
  expect(refusal).toBeInstanceOf(ForeignNodeError);
  expect(refusal.message).toContain(`${node} (ZooKeeper's own WriteLock)`);
  await scene.untilInQueue(PATH, 1);
});
