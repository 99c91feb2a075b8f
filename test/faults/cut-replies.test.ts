import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { FaultProxy } from '../../src/testing.ts';
import { ConnectionLossError, connect, type ZooKeeper } from '../../src/zookeeper.ts';
import { looseEnds } from '../support/loose-ends.ts';
import { sharedStandalone } from '../support/shared-servers.ts';
import { until } from '../support/until.ts';

const CONNECT_RESPONSE_BYTES = 4 + 37;
const DATA = 'hello';
const GET_DATA_REPLY_BYTES = 4 + 16 + (4 + DATA.length) + 68;
/** Far longer than any of these tests, so that no ping is among the bytes that are counted. */
const SESSION_MS = 30_000;

/** 0, 1, …, count */
const upTo = (count: number) => Array.from({ length: count + 1 }, (_, index) => index);

describe('a connection cut inside a reply', () => {
  test('does not show in a read, at whichever byte of the answer it happens', async () => {
    await using _ends = looseEnds();
    await using observer = await connect(sharedStandalone().connectString);
    const path = `/${randomUUID()}`;
    await observer.create(path, DATA, { mode: 'ephemeral' });
    await Promise.all(
      upTo(GET_DATA_REPLY_BYTES).map(async (bytes) => {
        await using proxy = await FaultProxy.start({ target: sharedStandalone() });
        await using zk = await connect(proxy.connectString, { sessionTimeoutMs: SESSION_MS });
        const { session } = zk;
        const { id } = session;
        proxy.cutAfter({ direction: 'to-client', bytes });
        const { data, stat } = await zk.get(path);
        expect([data?.toString(), stat.version, stat.ephemeralOwner]).toEqual([DATA, 0, observer.session.id]);
        await until('a second connection', () => proxy.acceptedCount === 2);
        expect((await zk.get(path)).data?.toString()).toBe(DATA);
        expect([zk.session, zk.session.id]).toEqual([session, id]);
        expect(proxy.acceptedCount).toBe(2);
      }),
    );
  });

  test('does not keep a client from its first session, at whichever byte of the grant it happens', async () => {
    await using _ends = looseEnds();
    await Promise.all(
      upTo(CONNECT_RESPONSE_BYTES).map(async (bytes) => {
        await using proxy = await FaultProxy.start({ target: sharedStandalone() });
        proxy.cutAfter({ direction: 'to-client', bytes });
        await using zk = await connect(proxy.connectString, { sessionTimeoutMs: SESSION_MS });
        await zk.sync();
        await until('a second connection', () => proxy.acceptedCount === 2);
        await zk.sync();
        expect(proxy.acceptedCount).toBe(2);
      }),
    );
  });

  test('does not cost the session, at whichever byte of its renewal it happens', async () => {
    await using _ends = looseEnds();
    await Promise.all(
      upTo(CONNECT_RESPONSE_BYTES).map(async (bytes) => {
        await using proxy = await FaultProxy.start({ target: sharedStandalone() });
        await using zk = await connect(proxy.connectString, { sessionTimeoutMs: SESSION_MS });
        const { session } = zk;
        const path = `/${randomUUID()}`;
        await zk.create(path, DATA, { mode: 'ephemeral' });
        proxy.resetAll();
        proxy.cutAfter({ direction: 'to-client', bytes });
        expect((await zk.get(path)).stat.ephemeralOwner).toBe(session.id);
        await until('a third connection', () => proxy.acceptedCount === 3);
        expect((await zk.get(path)).stat.ephemeralOwner).toBe(session.id);
        expect(zk.session).toBe(session);
      }),
    );
  });

  test('is not confused with a network that delivers byte by byte', async () => {
    await using _ends = looseEnds();
    await using proxy = await FaultProxy.start({ target: sharedStandalone() });
    proxy.slice(1);
    await using zk = await connect(proxy.connectString, { sessionTimeoutMs: SESSION_MS });
    const path = `/${randomUUID()}`;
    const [, state, names] = await Promise.all([
      zk.create(path, DATA, { mode: 'ephemeral' }),
      zk.get(path),
      zk.children('/'),
    ]);
    expect(state.data?.toString()).toBe(DATA);
    expect(names).toContain(path.slice(1));
    expect(proxy.acceptedCount).toBe(1);
  });
});

describe('a write whose connection is cut', () => {
  const CREATE_REPLY_BYTES = 4 + 16 + (4 + `/${randomUUID()}/n-0000000000`.length) + 68;

  test('rejects as unknown when its answer is cut, happened, and is not made again', async () => {
    await using _ends = looseEnds();
    await Promise.all(
      upTo(CREATE_REPLY_BYTES - 1)
        .filter((bytes) => bytes < 30 || bytes % 8 === 0)
        .map(async (bytes) => {
          await using scene = await createUnderCut({ direction: 'to-client', bytes });
          await expectUnknown(scene.created);
          expect(await scene.nodesMade()).toBe(1);
        }),
    );
  });

  test('rejects as unknown when the request itself is cut, and has not happened', async () => {
    await using _ends = looseEnds();
    await Promise.all(
      upTo(60).map(async (bytes) => {
        await using scene = await createUnderCut({ direction: 'to-server', bytes });
        await expectUnknown(scene.created);
        expect(await scene.nodesMade()).toBe(0);
      }),
    );
  });

  test('takes the writes behind it along, of which a prefix has happened and nothing twice', async () => {
    await using _ends = looseEnds();
    await Promise.all(
      [0, 1, 500, 1_000, 3_000, 6_000].map(async (bytes) => {
        await using proxy = await FaultProxy.start({ target: sharedStandalone() });
        await using zk = await connect(proxy.connectString, { sessionTimeoutMs: SESSION_MS });
        const path = `/${randomUUID()}`;
        await zk.create(path);
        proxy.cutAfter({ direction: 'to-client', bytes });
        const WRITES = 100;
        const writes = Array.from({ length: WRITES }, (_, index) =>
          zk.create(`${path}/n-`, String(index), { mode: 'persistent-sequential' }),
        );
        const settled = await Promise.allSettled(writes);
        const answered = settled.findIndex(({ status }) => status === 'rejected');
        for (const result of settled.slice(answered)) {
          expect(result).toMatchObject({ status: 'rejected', reason: { outcome: 'unknown' } });
          expect((result as PromiseRejectedResult).reason).toBeInstanceOf(ConnectionLossError);
        }
        await zk.sync();
        const names = (await zk.children(path)).sort();
        expect(names.length).toBeGreaterThanOrEqual(answered);
        expect(names.length).toBeLessThanOrEqual(WRITES);
        // Each number's node holds the data of the write of that number: none was made twice or out of turn.
        const states = await Promise.all(names.map((name) => zk.get(`${path}/${name}`)));
        expect(states.map(({ data }) => Number(data))).toEqual(names.map((_, index) => index));
        await zk.deleteTree(path);
      }),
    );
  });
});

async function createUnderCut(cut: { direction: 'to-client' | 'to-server'; bytes: number }) {
  const proxy = await FaultProxy.start({ target: sharedStandalone() });
  const zk = await connect(proxy.connectString, { sessionTimeoutMs: SESSION_MS });
  const parent = `/${randomUUID()}`;
  await zk.create(parent);
  proxy.cutAfter(cut);
  return {
    created: zk.create(`${parent}/n-`, DATA, { mode: 'persistent-sequential' }),
    /** Asked through the same client: whatever it might send again comes before the question. */
    async nodesMade() {
      await zk.sync();
      const names = await zk.children(parent);
      await zk.deleteTree(parent);
      return names.length;
    },
    async [Symbol.asyncDispose]() {
      await zk.close();
      await proxy[Symbol.asyncDispose]();
    },
  };
}

async function expectUnknown(write: ReturnType<ZooKeeper['create']>): Promise<void> {
  const error = await write.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(ConnectionLossError);
  expect(error).toMatchObject({ outcome: 'unknown' });
}
