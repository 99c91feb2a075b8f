import { afterAll, beforeAll, expect, test } from 'vitest';
import { cycle, inTime, overlaps, timed } from './lock-history.ts';
import { LockPeer } from './lock-peer.ts';
import { Scene } from './scene.ts';

let java: LockPeer;
beforeAll(async () => {
  java = await LockPeer.curator();
});
afterAll(() => java[Symbol.asyncDispose]());

const PATH = '/locks/shared';
const ROUNDS = 20;

test("writers exclude everybody, here and in Curator's InterProcessReadWriteLock", async () => {
  await using scene = await Scene.onZooKeeper();
  const counter = await scene.counter();
  const gate = await (await scene.holdfast()).readWriteLock('shared').write.acquire();
  const as = ['writer', 'reader', 'reader', 'writer'] as const;
  const cycles = as.flatMap(async (side, index) => {
    const [client, holdfast] = await Promise.all([scene.peer(java), scene.holdfast()]);
    const lock = holdfast.readWriteLock('shared');
    const ofJava = client.cycle(side === 'writer' ? 'write' : 'read', PATH, { rounds: ROUNDS, counter });
    const ofHoldfast = cycle(holdfast.zk, side === 'writer' ? lock.write : lock.read, {
      who: `holdfast-${index}`,
      rounds: ROUNDS,
      counter,
      as: side === 'writer' ? 'holder' : 'reader',
    });
    return [...(await ofJava), ...(await ofHoldfast)];
  });
  await scene.untilInQueue(PATH, 1 + 2 * as.length);
  await gate.release();
  const history = (await Promise.all(cycles)).flat();

  const together = overlaps(history);
  expect(together.filter((pair) => pair.some(({ shared }) => !shared))).toEqual([]);
  expect(history).toHaveLength(2 * as.length * ROUNDS);
  const written = history.filter(({ shared }) => !shared);
  expect(String((await scene.zk.get(counter)).data)).toBe(String(written.length));
  await scene.untilInQueue(PATH, 0);
});

test('readers of both kinds hold it together, and a writer of either kind waits for both', async () => {
  await using scene = await Scene.onZooKeeper();
  const [holdfast, other, reader, writer] = await Promise.all([
    scene.holdfast(),
    scene.holdfast(),
    scene.peer(java),
    scene.peer(java),
  ]);
  const { read, write } = holdfast.readWriteLock('shared');

  await reader.acquire('read', PATH);
  const besideJava = await read.acquire();
  const ofJava = writer.acquire('write', PATH);
  await scene.untilInQueue(PATH, 3);
  const ofHoldfast = timed(write.acquire());
  await scene.untilInQueue(PATH, 4);
  expect(await read.tryAcquire(), 'a reader overtook a writer').toBeNull();
  expect((await other.inspect('shared')).holders.map(({ session }) => session)).toEqual([
    reader.session,
    holdfast.zk.session.id,
  ]);

  const readerLeftNs = await reader.release('read');
  const holdfastLeftNs = process.hrtime.bigint();
  await besideJava.release();
  const { enteredNs } = await ofJava;
  expect(enteredNs).toBeGreaterThan(readerLeftNs);
  expect(enteredNs).toBeGreaterThan(holdfastLeftNs);

  const writerLeftNs = await writer.release('write');
  const written = await ofHoldfast;
  expect(written.enteredNs).toBeGreaterThan(writerLeftNs);
  const behindHoldfast = reader.acquire('read', PATH);
  await scene.untilInQueue(PATH, 2);
  const writtenUntilNs = process.hrtime.bigint();
  await written.lease.release();
  expect((await behindHoldfast).enteredNs).toBeGreaterThan(writtenUntilNs);
  const besideJavaAgain = await read.tryAcquire();
  expect(besideJavaAgain).not.toBeNull();
});

test('a writer here that goes on as a reader keeps writers of Curator out', async () => {
  await using scene = await Scene.onZooKeeper();
  const [holdfast, writer, reader] = await Promise.all([
    scene.holdfast(),
    scene.peer(java),
    scene.peer(java),
  ]);
  const lock = holdfast.readWriteLock('shared');
  const written = await lock.write.acquire();
  const queued = writer.acquire('write', PATH);
  await scene.untilInQueue(PATH, 2);

  const readLease = await lock.downgrade(written);
  expect(readLease.token).toBe(written.token);
  const { holders, queue } = await holdfast.inspect('shared');
  expect(holders.map(({ role, session }) => [role, session])).toEqual([['read', holdfast.zk.session.id]]);
  expect(queue.map(({ role, session }) => [role, session])).toEqual([['write', writer.session]]);
  // The writer has looked again and found the reader ahead of it.
  await scene.untilWatched(`${PATH}/${holders[0]!.id}`, writer.session);
  const behindWriter = reader.acquire('read', PATH);
  await scene.untilInQueue(PATH, 3);

  const leftNs = process.hrtime.bigint();
  await readLease.release();
  const { enteredNs } = await queued;
  expect(enteredNs).toBeGreaterThan(leftNs);
  const writerLeftNs = await writer.release('write');
  expect((await behindWriter).enteredNs).toBeGreaterThan(writerLeftNs);
});

test('an upgradable reader here becomes the writer among readers and writers of Curator', async () => {
  await using scene = await Scene.onZooKeeper();
  const [holdfast, reader, writer, late] = await Promise.all([
    scene.holdfast(),
    scene.peer(java),
    scene.peer(java),
    scene.peer(java),
  ]);
  await reader.acquire('read', PATH);
  const upgradable = await holdfast.readWriteLock('shared').upgradable.acquire();
  await late.acquire('read', PATH); // Curator takes it for a reader, and reads beside it.
  const queued = writer.acquire('write', PATH);
  await scene.untilInQueue(PATH, 4);
  const upgrading = timed(upgradable.upgrade());
  await scene.untilInQueue(PATH, 5);
  const lefts = [await reader.release('read'), await late.release('read')];
  const { lease, enteredNs } = await upgrading;
  for (const leftNs of lefts) expect(enteredNs).toBeGreaterThan(leftNs);

  // Back to reading: the writer that waits still waits, and so does a reader that comes behind it.
  const behind = reader.acquire('read', PATH);
  await scene.untilInQueue(PATH, 4);
  await lease.release();
  await scene.untilInQueue(PATH, 3);
  const again = await upgradable.upgrade({ timeoutMs: 10_000 });
  await again.release();
  const upgradableLeftNs = process.hrtime.bigint();
  await upgradable.release();
  const written = await queued;
  expect(written.enteredNs).toBeGreaterThan(upgradableLeftNs);
  expect(written.token).toBeGreaterThan(lease.token);
  const writerLeftNs = await writer.release('write');
  expect((await behind).enteredNs).toBeGreaterThan(writerLeftNs);
});

test('upgrades exclude everybody, and everybody gets a turn, among readers and writers of Curator', async () => {
  await using scene = await Scene.onZooKeeper();
  const counter = await scene.counter();
  const kinds = ['write', 'read', 'read'] as const;
  const ofJava = kinds.map(async (kind) =>
    (await scene.peer(java)).cycle(kind, PATH, { rounds: ROUNDS, counter }),
  );
  const ofHoldfast = ['one', 'two'].map(async (who) => {
    const holdfast = await scene.holdfast();
    const { zk } = holdfast;
    const upgraded = {
      acquire: async () => {
        await using upgradable = await holdfast.readWriteLock('shared').upgradable.acquire();
        await zk.get(counter);
        return await upgradable.upgrade(); // Which keeps the upgradable one until it is let go.
      },
    };
    return cycle(zk, upgraded, { who, rounds: ROUNDS, counter, as: 'holder' });
  });
  const history = (await Promise.all([...ofJava, ...ofHoldfast])).flat();
  expect(overlaps(history).filter((pair) => pair.some(({ shared }) => !shared))).toEqual([]);
  const written = inTime(history.filter(({ shared }) => !shared));
  expect(written).toHaveLength(3 * ROUNDS);
  expect(String((await scene.zk.get(counter)).data)).toBe(String(written.length));
  const tokens = written.map(({ token }) => token);
  expect(tokens).toEqual(tokens.toSorted((a, b) => (a < b ? -1 : 1)));
  await scene.untilInQueue(PATH, 0);
});

// CURATOR-276, fixed in Curator 5.5: nobody who shares the lock can protect against it.
test('a writer of Curator 5.4 that goes on as a reader lets the next writer in', async () => {
  await using scene = await Scene.onZooKeeper();
  const [holdfast, client] = await Promise.all([scene.holdfast(), scene.peer(java)]);
  await client.acquire('write', PATH);
  const queued = holdfast.readWriteLock('shared').write.acquire();
  await scene.untilInQueue(PATH, 2);
  await client.acquire('read', PATH);
  await client.release('write');
  const written = await queued;
  const { holders, queue } = await holdfast.inspect('shared');
  expect(holders.map(({ token }) => token)).toEqual([written.token]);
  expect(
    queue.map(({ role, session }) => [role, session]),
    'Java reads all the while',
  ).toEqual([['read', client.session]]);
});
