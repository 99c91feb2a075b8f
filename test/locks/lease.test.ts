import { describe, expect, test } from 'vitest';
import { deferred } from '../../src/base/deferred.ts';
import {
  Fence,
  LockReleasedError,
  LockRevokedError,
  ops,
  StaleTokenError,
  ZooKeeperFence,
} from '../../src/holdfast.ts';
import { onEveryLockBackend } from '../support/lock-backends.ts';
import { until } from '../support/until.ts';
import { turns } from '../support/witness.ts';

describe('a lease', () => {
  // M7, M8
  onEveryLockBackend('is re-entered by use, and by within; the last release lets go', async (workspace) => {
    const [holdfast, other] = await workspace.holdfasts(2);
    const lock = holdfast!.mutex('m');
    await lock.use(async (outer) => {
      await lock.use(async (inner) => {
        expect(inner.token).toBe(outer.token);
        expect(await other!.mutex('m').tryAcquire()).toBeNull();
        const third = await lock.acquire({ within: inner });
        expect(third.token).toBe(outer.token);
        await third.release();
        await third.release(); // Idempotent: counts once.
        expect(() => third.assertHeld()).toThrow(LockReleasedError);
        expect(third.remainingMs()).toBe(0);
      });
      outer.assertHeld();
      expect(await workspace.entries('m')).toHaveLength(1);
      expect(await other!.mutex('m').tryAcquire()).toBeNull();
      // A plain acquire is another contender, also in here.
      expect(await lock.tryAcquire()).toBeNull();
    });
    expect(await workspace.entries('m')).toEqual([]);
  });

  onEveryLockBackend('is not re-entered from outside, nor by a lease of another lock', async (workspace) => {
    const holdfast = await workspace.holdfast();
    const lock = holdfast.mutex('m');
    const [held, elsewhere] = [await lock.acquire(), await holdfast.mutex('n').acquire()];
    await expect(lock.acquire({ within: elsewhere })).rejects.toBeInstanceOf(TypeError);
    const order: string[] = [];
    const outside = lock.use(async () => order.push('outside'));
    await workspace.untilEntries('m', 2);
    order.push('released');
    await Promise.all([held.release(), elsewhere.release()]);
    await outside;
    expect(order).toEqual(['released', 'outside']);
    await expect(lock.acquire({ within: held })).rejects.toMatchObject({ code: 'LOCK_RELEASED' });
    await expect(lock.tryAcquire({ within: held })).rejects.toMatchObject({ code: 'LOCK_RELEASED' });
    // What was entered and left is not entered any more, in what goes on from there.
    let later: Promise<unknown> | undefined;
    const gate = deferred();
    await lock.use(async () => {
      later = gate.promise.then(() => lock.use(async (lease) => lease.assertHeld()));
    });
    gate.resolve();
    await later;
  });

  onEveryLockBackend('of any lock is re-entered in the same way', async (workspace) => {
    const holdfast = await workspace.holdfast();
    const locks = [
      holdfast.multiLock(['a', 'b']),
      holdfast.readWriteLock('c').write,
      holdfast.readWriteLock('d').read,
      holdfast.semaphore('s', { permits: 1 }),
      holdfast.election('e'),
      holdfast.simpleLock('simple'),
    ];
    for (const lock of locks) {
      const same = await lock.use((outer) =>
        lock.use((inner) => inner.token === outer.token, { timeoutMs: 5_000 }),
      );
      expect(same).toBe(true);
    }
  });

  onEveryLockBackend('guards writes: all of them while it is held, none after', async (workspace) => {
    const [holdfast, other] = await workspace.holdfasts(2);
    const { admin } = workspace;
    await admin.create('/data', 'old');
    for (const lock of [holdfast!.mutex('m'), holdfast!.multiLock(['a', 'b'])]) {
      const held = await lock.acquire();
      const [stat, created] = await held.guard([ops.set('/data', 'new'), ops.create('/made')]);
      expect(stat.version).toBeGreaterThan(0);
      expect(created.path).toBe('/made');
      await expect(held.guard([ops.set('/data', 'x'), ops.create('/made')])).rejects.toMatchObject({
        name: 'MultiError',
        index: 1,
        condition: 'node-exists',
      });
      expect((await admin.get('/data')).data?.toString()).toBe('new');
      await admin.delete('/made');
      // Removed by hand, and written before anybody could say so.
      const [name] = await workspace.entries(lock.name.split('+')[0]!);
      await admin.delete(`/locks/${lock.name.split('+')[0]}/${name}`);
      await expect(held.guard([ops.set('/data', 'late')])).rejects.toMatchObject({ code: 'LOCK_LOST' });
      expect((await admin.get('/data')).data?.toString()).toBe('new');
      await held.release();
      await expect(held.guard([ops.set('/data', 'late')])).rejects.toMatchObject({
        code: expect.stringMatching(/^LOCK_(RELEASED|LOST)$/),
      });
    }
    await (await other!.multiLock(['a', 'b', 'm']).acquire({ timeoutMs: 5_000 })).release();
  });

  onEveryLockBackend(
    'does not fire its signal by being released, however late that is looked at',
    async (workspace) => {
      const lock = (await workspace.holdfast()).mutex('m');
      const held = await lock.acquire();
      const { signal } = held;
      await held.release();
      expect(held.signal).toBe(signal);
      expect(signal.aborted).toBe(false);
    },
  );

  onEveryLockBackend(
    "tells its lock's listeners, in order, and survives what they throw",
    async (workspace) => {
      const logged: unknown[] = [];
      const holdfast = await workspace.holdfast({ log: (_level, _message, fields) => logged.push(fields) });
      const other = await workspace.holdfast();
      const lock = holdfast.mutex('m');
      const told: string[] = [];
      lock.on('waiting', ({ ahead, behind }) =>
        told.push(`waiting, ${ahead} ahead, ${behind.includes('-lock-')}`),
      );
      lock.on('position', ({ ahead }) => told.push(`position ${ahead}`));
      lock.on('lockAcquired', ({ waitedMs, lease }) =>
        told.push(`acquired ${waitedMs >= 0} ${lease.lockName}`),
      );
      lock.on('lockReleased', ({ heldMs }) => told.push(`released ${heldMs >= 0}`));
      lock.on('lockAcquired', () => {
        throw new Error('of a listener');
      });
      const leftOut = () => told.push('never');
      lock.on('waiting', leftOut);
      lock.off('waiting', leftOut);
      const first = await other.mutex('m').acquire();
      const second = other.mutex('m').acquire();
      await workspace.untilEntries('m', 2);
      const waiting = lock.acquire();
      await workspace.untilEntries('m', 3);
      await until('the wait to be told', () => told.length === 2);
      await first.release();
      await (await second).release();
      await (await waiting).release();
      await turns();
      expect(told).toEqual(['waiting, 2 ahead, true', 'position 2', 'acquired true m', 'released true']);
      expect(JSON.stringify(logged.map((fields) => String((fields as { error?: unknown }).error)))).toContain(
        'of a listener',
      );
    },
  );
});

describe('revocation', () => {
  // M11
  onEveryLockBackend('asks the holder, whose lease says so and stays held', async (workspace) => {
    const [holdfast, other] = await workspace.holdfasts(2);
    const lock = holdfast!.mutex('m');
    const told: bigint[] = [];
    lock.on('revoked', ({ token }) => told.push(token));
    expect(await other!.revoke('m')).toBe(0);
    for (const asked of ['at once', 'later'] as const) {
      const held = await lock.acquire();
      const { signal, revocation } = held;
      if (asked === 'later')
        await until('the watch', async () => (await workspace.watchedPaths()).length > 0);
      const next = other!.mutex('m').acquire();
      const [entry] = await workspace.untilEntries('m', 2);
      if (asked === 'at once') expect(await other!.revoke('m')).toBe(1);
      else await workspace.admin.set(`/locks/m/${entry}`, '__REVOKE__');
      await until('the signal', () => revocation.aborted);
      expect(revocation.reason).toBeInstanceOf(LockRevokedError);
      expect(signal.aborted).toBe(false);
      held.assertHeld();
      await turns();
      expect(told.at(-1)).toBe(held.token);
      expect((await other!.inspect('m')).queue).toHaveLength(1); // Waiters did not take it for a release.
      await held.release();
      await (await next).release();
    }
    expect(told).toHaveLength(2);
  });

  onEveryLockBackend('of other data is none; of one holder among many asks that one', async (workspace) => {
    const holdfast = await workspace.holdfast();
    const semaphore = holdfast.semaphore('s', { permits: 2 });
    const [one, two] = [await semaphore.acquire(), await semaphore.acquire()];
    const signals = [one.revocation, two.revocation];
    const { holders } = await holdfast.inspect('s');
    const first = holders.find(({ token }) => token === one.token)!;
    await until('the watches', async () => (await workspace.watchedPaths()).length === 2);
    await workspace.admin.set(`/locks/s/leases/${first.id}`, '__REVOKE__ please');
    await workspace.admin.set(`/locks/s/leases/${first.id}`, '');
    expect(await holdfast.revoke('s', { holder: first.id })).toBe(1);
    await until('the first', () => signals[0]!.aborted);
    await workspace.admin.sync('/');
    expect(signals[1]!.aborted).toBe(false);
    await Promise.all([one.release(), two.release()]);
    const simple = await holdfast.simpleLock('x').acquire();
    const { revocation } = simple;
    expect(await holdfast.revoke('x')).toBe(1);
    await until('the simple lock', () => revocation.aborted);
    await simple.release();
  });

  onEveryLockBackend('is followed by a signal of the loss, if there is one', async (workspace) => {
    const { holdfast, expire } = await workspace.faulty();
    const held = await holdfast.mutex('m').acquire();
    const { signal, revocation } = held;
    await until('the watch', async () => (await workspace.watchedPaths()).length > 0);
    expect(await holdfast.revoke('m')).toBe(1);
    await until('the revocation', () => revocation.aborted);
    expect(signal.aborted).toBe(false);
    await expire();
    await until('the loss', () => signal.aborted);
    expect(signal.reason).toMatchObject({ code: 'LOCK_LOST' });
    expect(held.revocation.aborted).toBe(true);
  });
});

describe('a fence', () => {
  test('admits what is not smaller than the largest, and says what it has seen', () => {
    const fence = new Fence();
    for (const token of [1n, 1n, 2n ** 62n, 2n ** 62n]) fence.admit(token);
    expect(() => fence.admit(2n ** 62n - 1n)).toThrow(StaleTokenError);
    expect(fence.highest).toBe(2n ** 62n);
    expect(() => new Fence({ highest: 9n }).admit(8n)).toThrow('token 8 is stale: 9 has been admitted');
    expect(() => fence.admit(5 as never)).toThrow(TypeError);
  });

  onEveryLockBackend('in ZooKeeper does the same for all who share it, racing or not', async (workspace) => {
    const clients = await workspace.holdfasts(3);
    const fences = clients.map(({ zk }) => new ZooKeeperFence(zk, '/fences/of/data'));
    const admitted: bigint[] = [];
    await Promise.all(
      Array.from({ length: 12 }, async (_, index) => {
        const token = BigInt(index * 1000 + 1);
        await fences[index % 3]!.admit(token).then(
          () => admitted.push(token),
          (error) => expect(error).toBeInstanceOf(StaleTokenError),
        );
      }),
    );
    expect(admitted).toContain(11001n);
    expect((await workspace.admin.get('/fences/of/data')).data?.toString()).toBe('11001');
    await fences[0]!.admit(11001n);
    await expect(fences[1]!.admit(11000n)).rejects.toMatchObject({ token: 11000n, highest: 11001n });
    const lock = clients[0]!.mutex('m');
    const [old, next] = [await lock.use(({ token }) => token), await lock.use(({ token }) => token)];
    const fence = new ZooKeeperFence(clients[0]!.zk, '/fences/of/locks');
    await fence.admit(next);
    await expect(fence.admit(old)).rejects.toBeInstanceOf(StaleTokenError);
    await expect(fence.admit(7 as never)).rejects.toBeInstanceOf(TypeError);
  });
});
