import { describe, expect, test } from 'vitest';
import { connect, type Holdfast, type LockLease } from '../../src/holdfast.ts';
import { startTestServer, type TestServer } from '../../src/testing.ts';
import { looseEnds } from '../support/loose-ends.ts';
import { until } from '../support/until.ts';

type Acquire = (holdfast: Holdfast, bounds?: { readonly timeoutMs: number }) => Promise<LockLease>;

const recipes: Readonly<Record<string, Acquire>> = {
  mutex: (holdfast, bounds) => holdfast.mutex('m').acquire(bounds),
  'mutex with handOff': (holdfast, bounds) => holdfast.mutex('m', { handOff: true }).acquire(bounds),
  'read lock': (holdfast, bounds) => holdfast.readWriteLock('m').read.acquire(bounds),
  'write lock': (holdfast, bounds) => holdfast.readWriteLock('m').write.acquire(bounds),
  'upgradable lock': (holdfast, bounds) => holdfast.readWriteLock('m').upgradable.acquire(bounds),
  semaphore: (holdfast, bounds) => holdfast.semaphore('m', { permits: 2 }).acquire({ ...bounds, permits: 2 }),
  'multi-lock': (holdfast, bounds) => holdfast.multiLock(['a', 'b']).acquire(bounds),
  election: (holdfast, bounds) => holdfast.election('m').campaign(bounds),
  'simple lock': (holdfast, bounds) => holdfast.simpleLock('simple').acquire(bounds),
};

/** Every removal by this client is refused, until the refusal is cancelled. */
function refuseRemovals(server: TestServer, { zk }: Holdfast): { cancel(): void } {
  const rule = { error: 'no-auth', times: 1_000_000, session: zk.session.id } as const;
  const refusals = (['delete', 'multi'] as const).map((operation) => server.refuse({ operation, ...rule }));
  return {
    cancel() {
      for (const refusal of refusals) refusal.cancel();
    },
  };
}

function entriesOf(server: TestServer, { zk }: Holdfast): readonly string[] {
  return server.sessions().find(({ id }) => id === zk.session.id)!.ephemerals;
}

describe('a release that the server refuses', () => {
  for (const [recipe, acquire] of Object.entries(recipes)) {
    test(`rejects at each call, and resolves only when the entry is gone: ${recipe}`, async () => {
      await using _ends = looseEnds();
      await using server = await startTestServer();
      await using holdfast = await connect({ servers: server.connectString });
      const lease = await acquire(holdfast);
      await holdfast.zk.sync('/'); // A semaphore's entry at the turnstile is gone then.
      const refusal = refuseRemovals(server, holdfast);
      for (let call = 0; call < 3; call++) {
        await expect(lease.release()).rejects.toMatchObject({ code: 'ZK_NO_AUTH' });
      }
      expect(entriesOf(server, holdfast)).not.toEqual([]);
      refusal.cancel();
      await lease.release();
      expect(entriesOf(server, holdfast)).toEqual([]);
      await (await acquire(holdfast, { timeoutMs: 5_000 })).release();
    });

    test(`is repeated without another call: ${recipe}`, async () => {
      await using _ends = looseEnds();
      await using server = await startTestServer();
      const logged: string[] = [];
      const log = (_level: string, message: string) => void logged.push(message);
      await using holdfast = await connect({ servers: server.connectString, log });
      await using other = await connect({ servers: server.connectString });
      const lease = await acquire(holdfast);
      const refusal = refuseRemovals(server, holdfast);
      await expect(lease.release()).rejects.toMatchObject({ code: 'ZK_NO_AUTH' });
      const waiting = acquire(other);
      refusal.cancel();
      await (await waiting).release();
      await until('the log to say so', () =>
        logged.includes('an entry whose removal was refused is removed'),
      );
      expect(logged).toContain('the removal of an entry was refused, and is repeated');
    });
  }

  test('is no longer repeated once the client is closed', async () => {
    await using _ends = looseEnds();
    await using server = await startTestServer();
    const holdfast = await connect({ servers: server.connectString });
    const lease = await holdfast.mutex('m').acquire();
    refuseRemovals(server, holdfast);
    await expect(lease.release()).rejects.toMatchObject({ code: 'ZK_NO_AUTH' });
    await holdfast.close();
  });

  test('does not remove the entry of a later holder of a simple lock', async () => {
    await using _ends = looseEnds();
    await using server = await startTestServer();
    await using holdfast = await connect({ servers: server.connectString });
    await using other = await connect({ servers: server.connectString });
    const lease = await holdfast.simpleLock('simple').acquire();
    const refusal = refuseRemovals(server, holdfast);
    await expect(lease.release()).rejects.toMatchObject({ code: 'ZK_NO_AUTH' });
    await other.zk.delete('/locks/simple');
    const later = await other.simpleLock('simple').acquire();
    refusal.cancel();
    await lease.release();
    await later.guard([]);
    expect(await other.zk.exists('/locks/simple')).not.toBeUndefined();
    await later.release();
  });
});

test('a leader whose release is refused leads again when its entry is gone', async () => {
  await using _ends = looseEnds();
  await using server = await startTestServer();
  await using holdfast = await connect({ servers: server.connectString });
  const stop = new AbortController();
  const epochs: bigint[] = [];
  let refusal = refuseRemovals(server, holdfast);
  const leading = holdfast.election('e').lead(
    async ({ epoch }) => {
      epochs.push(epoch);
      if (epochs.length === 2) {
        refusal = refuseRemovals(server, holdfast);
        stop.abort(new Error('enough'));
      }
    },
    { signal: stop.signal },
  );
  leading.catch(() => {});
  await until('the next campaign to wait behind the refused entry', () => {
    return entriesOf(server, holdfast).length === 2;
  });
  refusal.cancel();
  await expect(leading).rejects.toThrow('enough');
  expect(epochs).toHaveLength(2);
  refusal.cancel();
  await until('the last entry to be removed', () => entriesOf(server, holdfast).length === 0);
});

describe('a mutex whose tasks share a place', () => {
  for (const options of [{ handOff: true }, { cache: true }]) {
    test(`waits for its refused entry, and holds when that is removed: ${JSON.stringify(options)}`, async () => {
      await using _ends = looseEnds();
      await using server = await startTestServer();
      await using holdfast = await connect({ servers: server.connectString });
      await using other = await connect({ servers: server.connectString });
      const lock = holdfast.mutex('m', options);
      const lease = await lock.acquire();
      const elsewhere = other.mutex('m').acquire();
      await until('two to stand in the queue', async () => {
        return (await other.zk.children('/locks/m')).length === 2;
      });
      const refusal = refuseRemovals(server, holdfast);
      await lease.release().catch(() => {});
      expect(await lock.tryAcquire()).toBeNull();
      const next = lock.acquire();
      refusal.cancel();
      await (await elsewhere).release();
      const second = await next;
      expect(second.token).toBeGreaterThan(lease.token);
      await second.release();
    });
  }

  test('tries a refused entry again before it asks whether the lock is free', async () => {
    await using _ends = looseEnds();
    await using server = await startTestServer();
    await using holdfast = await connect({ servers: server.connectString });
    const lock = holdfast.mutex('m', { handOff: true });
    const lease = await lock.acquire();
    const refusal = refuseRemovals(server, holdfast);
    await expect(lease.release()).rejects.toMatchObject({ code: 'ZK_NO_AUTH' });
    refusal.cancel();
    const again = await lock.tryAcquire();
    expect(again).not.toBeNull();
    await again!.release();
  });

  test('gives a cached entry up to others although that was refused at first', async () => {
    await using _ends = looseEnds();
    await using server = await startTestServer();
    await using holdfast = await connect({ servers: server.connectString });
    await using other = await connect({ servers: server.connectString });
    const lock = holdfast.mutex('m', { cache: true });
    await (await lock.acquire()).release();
    const refusal = refuseRemovals(server, holdfast);
    const waiting = other.mutex('m').acquire();
    await until('the entry to be refused', () => entriesOf(server, holdfast).length === 1);
    refusal.cancel();
    await (await waiting).release();
  });
});

describe('an entry that is given up and cannot be removed', () => {
  for (const [recipe, acquire] of Object.entries(recipes)) {
    // A waiter of a simple lock has no entry.
    if (recipe === 'simple lock') continue;
    test(`is removed once the server allows it: ${recipe}`, async () => {
      await using _ends = looseEnds();
      await using server = await startTestServer();
      await using holdfast = await connect({ servers: server.connectString });
      await using other = await connect({ servers: server.connectString });
      const held =
        recipe === 'read lock' ? await other.readWriteLock('m').write.acquire() : await acquire(other);
      const waiting = acquire(holdfast, { timeoutMs: 300 });
      await until('the waiter to join', () => entriesOf(server, holdfast).length > 0);
      const refusal = refuseRemovals(server, holdfast);
      await expect(waiting).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
      expect(entriesOf(server, holdfast)).not.toEqual([]);
      refusal.cancel();
      await until('the entry to be removed', () => entriesOf(server, holdfast).length === 0);
      await held.release();
    });
  }
});
