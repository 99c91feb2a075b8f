import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cycle, inTime, overlaps, timed } from './lock-history.ts';
import { LockPeer } from './lock-peer.ts';
import { Scene } from './scene.ts';

let java: LockPeer;
beforeAll(async () => {
  java = await LockPeer.curator();
});
afterAll(() => java[Symbol.asyncDispose]());

const CLIENTS_EACH = 3;

test('the clocks of Java and Node have the same origin, so that holds of both can be compared', async () => {
  await using scene = await Scene.onZooKeeper();
  const client = await scene.peer(java);
  const beforeNs = process.hrtime.bigint();
  const betweenNs = await client.clockNs();
  expect(betweenNs).toBeGreaterThan(beforeNs);
  expect(betweenNs).toBeLessThan(process.hrtime.bigint());
});

describe.each([
  ['ZooKeeper', Scene.onZooKeeper, 50],
  ['the embedded server', Scene.onEmbeddedServer, 10],
] as const)("a mutex shared with Curator's InterProcessMutex on %s", (_server, sceneOn, rounds) => {
  test('excludes both ways, in order of arrival', async () => {
    await using scene = await sceneOn();
    const counter = await scene.counter();
    const gate = await (await scene.holdfast()).mutex('shared').acquire();
    const holdfasts = await Promise.all(Array.from({ length: CLIENTS_EACH }, () => scene.holdfast()));
    const javas = await Promise.all(Array.from({ length: CLIENTS_EACH }, () => scene.peer(java)));
    const cycles = [
      ...javas.map((client) => client.cycle('mutex', '/locks/shared', { rounds, counter })),
      ...holdfasts.map((holdfast, index) =>
        cycle(holdfast.zk, holdfast.mutex('shared'), {
          who: `holdfast-${index}`,
          rounds,
          counter,
          as: 'holder',
        }),
      ),
    ];
    await scene.untilInQueue('/locks/shared', 1 + cycles.length);
    await gate.release();
    const history = inTime((await Promise.all(cycles)).flat());

    expect(overlaps(history)).toEqual([]);
    expect(history).toHaveLength(cycles.length * rounds);
    expect(String((await scene.zk.get(counter)).data)).toBe(String(history.length));
    const tokens = history.map(({ token }) => token);
    expect(tokens).toEqual([...tokens].sort((a, b) => (a < b ? -1 : 1)));
    expect(tokens[0]).toBeGreaterThan(gate.token);
    // All were in the queue when it began to move: nobody came twice before everybody came once.
    expect(new Set(history.slice(0, cycles.length).map(({ who }) => who)).size).toBe(cycles.length);
    const handOvers = history.slice(1).map(({ who }, index) => [history[index]!.who, who]);
    const isJava = (who: string | undefined) => who!.startsWith('java');
    expect(handOvers.some(([from, to]) => isJava(from) && !isJava(to))).toBe(true);
    expect(handOvers.some(([from, to]) => !isJava(from) && isJava(to))).toBe(true);
    await scene.untilInQueue('/locks/shared', 0);
  });
});

test('a mutex that tasks share is given up for Curator, kept or passed on, and taken again behind it', async () => {
  await using scene = await Scene.onZooKeeper();
  const [holdfast, client] = await Promise.all([scene.holdfast(), scene.peer(java)]);
  const lock = holdfast.mutex('shared', { cache: true, handOff: { grantsMax: 1, ms: 60_000 } });
  const kept = await lock.acquire();
  await kept.release();
  await scene.untilInQueue('/locks/shared', 1);
  const first = await client.acquire('mutex', '/locks/shared');
  expect(first.token).toBeGreaterThan(kept.token);
  expect(await lock.tryAcquire()).toBeNull();
  const waiting = timed(lock.acquire());
  await scene.untilInQueue('/locks/shared', 2);
  const clientLeftNs = await client.release('mutex');
  const { lease, enteredNs } = await waiting;
  expect(enteredNs).toBeGreaterThan(clientLeftNs);

  const tasks = [timed(lock.acquire()), timed(lock.acquire())] as const;
  const ofJava = client.acquire('mutex', '/locks/shared');
  await scene.untilInQueue('/locks/shared', 2);
  await holdfast.zk.sync();
  await lease.release();
  const passed = await tasks[0]; // Once, while Curator waits.
  expect([passed.lease.token, passed.lease.section]).toEqual([lease.token, 1]);
  const leftNs = process.hrtime.bigint();
  await passed.lease.release();
  const second = await ofJava;
  expect(second.enteredNs).toBeGreaterThan(leftNs);
  const lastLeftNs = await client.release('mutex');
  const last = await tasks[1];
  expect(last.enteredNs).toBeGreaterThan(lastLeftNs);
  expect(last.lease.token).toBeGreaterThan(second.token);
  await last.lease.release();
});

test('a namespace of Curator is a folder', async () => {
  await using scene = await Scene.onZooKeeper();
  const [holdfast, client] = await Promise.all([
    scene.holdfast({ root: '/billing/locks' }),
    scene.peer(java, { namespace: 'billing' }),
  ]);
  const { token } = await client.acquire('mutex', '/locks/a');
  expect(await holdfast.mutex('a').tryAcquire()).toBeNull();
  expect((await holdfast.inspect('a')).holders.map((holder) => holder.token)).toEqual([token]);
});

test('one who gives up between two of the other kind lets nobody past the holder', async () => {
  await using scene = await Scene.onZooKeeper();
  const [holdfast, other, holder, next] = await Promise.all([
    scene.holdfast(),
    scene.holdfast(),
    scene.peer(java),
    scene.peer(java),
  ]);
  const mutex = holdfast.mutex('shared');
  const held = await holder.acquire('mutex', '/locks/shared');
  const abort = new AbortController();
  const givenUp = mutex.acquire({ signal: abort.signal });
  await scene.untilInQueue('/locks/shared', 2);
  const ofJava = next.acquire('mutex', '/locks/shared');
  await scene.untilInQueue('/locks/shared', 3);
  abort.abort(new Error('no time'));
  await expect(givenUp).rejects.toThrow('no time');
  // It has looked again, and found the holder ahead of it.
  await scene.untilWatched(`/locks/shared/${held.node}`, next.session);
  const leftNs = await holder.release('mutex');
  expect((await ofJava).enteredNs).toBeGreaterThan(leftNs);

  const betweenAbort = new AbortController();
  const between = other.mutex('shared').acquire({ signal: betweenAbort.signal });
  await scene.untilInQueue('/locks/shared', 2);
  const last = timed(mutex.acquire());
  await scene.untilInQueue('/locks/shared', 3);
  betweenAbort.abort(new Error('no time'));
  await expect(between).rejects.toThrow('no time');
  await scene.untilWatched(`/locks/shared/${(await ofJava).node}`, holdfast.zk.session.id);
  const nextLeftNs = await next.release('mutex');
  expect((await last).enteredNs).toBeGreaterThan(nextLeftNs);
});

test("several mutexes at once are shared with Curator's InterProcessMultiLock", async () => {
  await using scene = await Scene.onZooKeeper();
  const [holdfast, client] = await Promise.all([scene.holdfast(), scene.peer(java)]);
  const both = holdfast.multiLock(['a', 'b']);
  await client.acquire('multi', '/locks/a', '/locks/b');
  expect(await both.tryAcquire()).toBeNull();
  const waiting = timed(both.acquire());
  await scene.untilInQueue('/locks/b', 2);
  const clientLeftNs = await client.release('multi');
  const { lease, enteredNs } = await waiting;
  expect(enteredNs).toBeGreaterThan(clientLeftNs);
  const again = client.acquire('multi', '/locks/a', '/locks/b');
  await scene.untilInQueue('/locks/a', 2);
  const leftNs = process.hrtime.bigint();
  await lease.release();
  expect((await again).enteredNs).toBeGreaterThan(leftNs);
});
