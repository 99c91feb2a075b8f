import { describe, expect } from 'vitest';
import { ContenderEvictedError, type LockLease, LockLostError } from '../../src/holdfast.ts';
import { everyBackend, onEveryLockBackend, SHORT_SESSION_MS } from '../support/lock-backends.ts';
import { until } from '../support/until.ts';
import { turns } from '../support/witness.ts';

const firing = ({ signal }: LockLease) =>
  new Promise<unknown>((resolve) =>
    signal.aborted
      ? resolve(signal.reason)
      : signal.addEventListener('abort', () => resolve(signal.reason), { once: true }),
  );

describe('a session that ends', () => {
  // M3; kazoo: contender acquires after session expiry of the common client
  onEveryLockBackend(
    'while holding: the lease says so, and the next in line is granted, of the same client too',
    async (workspace) => {
      const { holdfast, expire } = await workspace.faulty();
      const lock = holdfast.mutex('m');
      const events: string[] = [];
      lock.on('lost', ({ token, error }) => events.push(`${token} ${error.code}`));
      const held = await lock.acquire();
      const waiting = lock.acquire();
      await workspace.untilEntries('m', 2);
      const reason = firing(held);
      await expire();
      expect(await reason).toBeInstanceOf(LockLostError);
      expect(held.remainingMs()).toBe(0);
      expect(() => held.assertHeld()).toThrow(LockLostError);
      const next = await waiting;
      expect(next.token).toBeGreaterThan(held.token);
      await held.release(); // Of no effect on the node of the later grant.
      expect(await workspace.entries('m')).toHaveLength(1);
      next.assertHeld();
      await next.release();
      expect(events).toEqual([`${held.token} LOCK_LOST`]);
    },
    everyBackend,
  );

  onEveryLockBackend('while waiting: the queue is joined again under the next one', async (workspace) => {
    const { holdfast, expire } = await workspace.faulty();
    const other = await workspace.holdfast();
    const held = await other.mutex('m').acquire();
    const waiting = holdfast.mutex('m').acquire();
    const [, first] = await workspace.untilEntries('m', 2);
    await expire();
    let again: string | undefined;
    await until('the waiter to be back', async () => {
      again = (await workspace.entries('m'))[1];
      return again !== undefined && again !== first;
    });
    await held.release();
    const lease = await waiting;
    expect(await workspace.entries('m')).toEqual([again]);
    await lease.release();
  });

  onEveryLockBackend(
    'while waiting, with nothing getting through to the server: the same',
    async (workspace) => {
      const { holdfast, proxy } = await workspace.faulty({ sessionTimeoutMs: SHORT_SESSION_MS });
      const held = await (await workspace.holdfast()).mutex('m').acquire();
      const waiting = holdfast.mutex('m').acquire();
      await workspace.untilEntries('m', 2);
      await until('the watches', async () => (await workspace.watchedPaths()).length === 3);
      proxy.blackhole('to-server');
      await workspace.untilEntries('m', 1);
      proxy.heal();
      proxy.resetAll();
      await workspace.untilEntries('m', 2);
      await held.release();
      await (await waiting).release();
    },
  );

  onEveryLockBackend('while releasing: the release is done', async (workspace) => {
    const { holdfast, proxy, expire, isolate } = await workspace.faulty();
    const held = await holdfast.mutex('m').acquire();
    isolate();
    await until('the connection to be down', () => holdfast.zk.session.state === 'suspended');
    const released = held.release();
    await expire();
    proxy.heal();
    await released;
    await workspace.untilEntries('m', 0);
    await (await holdfast.mutex('m').acquire()).release();
  });

  // L3: never two by their own clocks
  onEveryLockBackend(
    'unseen, behind a silent network: the holder is told before the next is granted',
    async (workspace) => {
      const { holdfast, proxy } = await workspace.faulty({ sessionTimeoutMs: SHORT_SESSION_MS });
      const other = await workspace.holdfast();
      const held = await holdfast.mutex('m').acquire();
      const told = firing(held).then((reason) => ({ reason, atMs: performance.now() }));
      const waiting = other
        .mutex('m')
        .acquire()
        .then((lease) => ({ lease, atMs: performance.now() }));
      await workspace.untilEntries('m', 2);
      proxy.blackhole('both');
      const [lost, granted] = await Promise.all([told, waiting]);
      expect(lost.reason).toMatchObject({ code: 'LOCK_LOST' });
      expect(lost.atMs).toBeLessThan(granted.atMs);
      expect(held.remainingMs()).toBe(0);
      await granted.lease.release();
      proxy.heal();
      proxy.resetAll();
      await held.release();
      await (await holdfast.mutex('m').acquire()).release();
    },
    ['embedded server', 'ZooKeeper ensemble'],
  );
});

describe('a connection that is lost, with the session kept', () => {
  onEveryLockBackend(
    'loses no place: the holder holds, the waiter is granted when its turn comes',
    async (workspace) => {
      const one = await workspace.faulty();
      const two = await workspace.faulty();
      const held = await one.holdfast.mutex('m').acquire();
      const waiting = two.holdfast.mutex('m').acquire();
      const before = await workspace.untilEntries('m', 2);
      one.proxy.resetAll();
      two.proxy.resetAll();
      await until('both to be back', () =>
        [one, two].every(({ holdfast }) => holdfast.zk.session.state === 'connected'),
      );
      held.assertHeld();
      expect(await workspace.entries('m')).toEqual(before);
      await held.release();
      await (await waiting).release();
    },
    everyBackend,
  );

  // The baton is passed while nobody hears it
  onEveryLockBackend('hears of a release that happened meanwhile', async (workspace) => {
    const holder = await workspace.holdfast();
    const { holdfast, proxy, isolate } = await workspace.faulty();
    const held = await holder.mutex('m').acquire();
    const waiting = holdfast.mutex('m').acquire();
    await workspace.untilEntries('m', 2);
    await until('the watches', async () => (await workspace.watchedPaths()).length === 3);
    isolate();
    await until('the connection to be down', () => holdfast.zk.session.state === 'suspended');
    await held.release();
    proxy.heal();
    await (await waiting).release();
  });

  // CURATOR-678, 202: release is not forgotten, and comes before anything newer
  onEveryLockBackend('finishes a release before a new attempt', async (workspace) => {
    const { holdfast, proxy, isolate } = await workspace.faulty();
    const lock = holdfast.mutex('m');
    const held = await lock.acquire();
    const [old] = await workspace.entries('m');
    isolate();
    await until('the connection to be down', () => holdfast.zk.session.state === 'suspended');
    let done = false;
    const released = held.release().then(() => {
      done = true;
    });
    const next = lock.acquire({ timeoutMs: 10_000 });
    await turns(10);
    expect(done).toBe(false);
    expect(held.remainingMs()).toBe(0);
    proxy.heal();
    await released;
    expect(await workspace.entries('m')).not.toContain(old);
    await (await next).release();
  });

  // S11's kind, E7, E15: given up while nobody can be told
  onEveryLockBackend('has a wait given up meanwhile undone when it is back', async (workspace) => {
    const { holdfast, proxy, isolate } = await workspace.faulty();
    const held = await (await workspace.holdfast()).mutex('m').acquire();
    const waiting = expect(holdfast.mutex('m').acquire({ timeoutMs: 500 })).rejects.toMatchObject({
      code: 'LOCK_UNREACHABLE',
    });
    await workspace.untilEntries('m', 2);
    isolate();
    await waiting;
    expect(await workspace.entries('m')).toHaveLength(2);
    proxy.heal();
    await workspace.untilEntries('m', 1);
    expect(await holdfast.mutex('m').attempt({ timeoutMs: 50 })).toEqual({ ok: false, reason: 'timeout' });
    await held.release();
  });
});

describe('a node removed by hand', () => {
  onEveryLockBackend('while held: the lease is lost, and says so', async (workspace) => {
    const [holder, other] = await workspace.holdfasts(2);
    const held = await holder!.mutex('m').acquire();
    const [entry] = await workspace.entries('m');
    await until('its node to be watched', async () => (await workspace.watchedPaths()).length > 0);
    const reason = firing(held);
    const waiting = other!.mutex('m').acquire();
    await workspace.untilEntries('m', 2);
    await workspace.admin.delete(`/locks/m/${entry}`);
    expect(await reason).toMatchObject({ code: 'LOCK_LOST', lockName: 'm' });
    expect(() => held.assertHeld()).toThrow(/removed by someone else/);
    const next = await waiting;
    await held.release();
    next.assertHeld();
    await next.release();
  });

  onEveryLockBackend('while waiting: that wait ends, and only that', async (workspace) => {
    const clients = await workspace.holdfasts(3);
    const held = await clients[0]!.mutex('m').acquire();
    const first = clients[1]!.mutex('m').acquire();
    const caught = expect(first).rejects.toBeInstanceOf(ContenderEvictedError);
    const [, entry] = await workspace.untilEntries('m', 2);
    const second = clients[2]!.mutex('m').acquire();
    await workspace.untilEntries('m', 3);
    await workspace.admin.delete(`/locks/m/${entry}`);
    await caught;
    await held.release();
    await (await second).release();
  });

  // The baton of the holder is for whoever stands behind it, and not for one who stood there once
  onEveryLockBackend(
    'while waiting, unnoticed until the baton comes: the next in line holds alone',
    async (workspace) => {
      const holder = await workspace.holdfast();
      const { holdfast: removed, proxy } = await workspace.faulty();
      const next = await workspace.holdfast();
      const held = await holder.mutex('m').acquire();
      const granted: string[] = [];
      const first = removed
        .mutex('m')
        .acquire()
        .then(
          (lease) => {
            granted.push('removed');
            return lease.release();
          },
          (error) => expect(error).toBeInstanceOf(ContenderEvictedError),
        );
      const [holderEntry, entry] = await workspace.untilEntries('m', 2);
      const second = next.mutex('m').acquire();
      await workspace.untilEntries('m', 3);
      await until('all watches', async () => (await workspace.watchedPaths()).length >= 5);
      proxy.delay({ toClientMs: 400 }); // It hears of its removal and of the baton at the same time.
      await workspace.admin.delete(`/locks/m/${entry}`);
      await until(
        'the next to stand behind the holder',
        async () =>
          (await holder.inspect('m')).queue.length === 1 &&
          !(await workspace.watchedPaths()).includes(`/locks/m/${entry}`) &&
          (await workspace.watchedPaths()).includes(`/locks/m/${holderEntry}`),
      );
      await held.release();
      const lease = await second;
      await first;
      expect(granted).toEqual([]);
      lease.assertHeld();
      await lease.release();
    },
    everyBackend,
  );

  onEveryLockBackend('before the wait has begun: it does not begin', async (workspace) => {
    const held = await (await workspace.holdfast()).mutex('m').acquire();
    const { holdfast, proxy } = await workspace.faulty();
    await holdfast.zk.sync('/');
    proxy.delay({ toServerMs: 500 }); // The watches are half a second behind the entry.
    const caught = expect(holdfast.mutex('m').acquire()).rejects.toBeInstanceOf(ContenderEvictedError);
    const [, entry] = await workspace.untilEntries('m', 2);
    await workspace.admin.delete(`/locks/m/${entry}`);
    await held.release();
    await caught;
    proxy.heal();
  });

  onEveryLockBackend('of a multi-lock: the whole of it is lost, or given up', async (workspace) => {
    const [holder, other] = await workspace.holdfasts(2);
    const held = await holder!.multiLock(['a', 'b']).acquire();
    const caught = expect(other!.multiLock(['b', 'a']).acquire()).rejects.toBeInstanceOf(
      ContenderEvictedError,
    );
    const [, entry] = await workspace.untilEntries('a', 2);
    await workspace.admin.delete(`/locks/a/${entry}`);
    await caught;
    await workspace.untilEntries('b', 1);
    const reason = firing(held);
    await until('its nodes to be watched', async () => (await workspace.watchedPaths()).length === 2);
    await workspace.admin.delete(`/locks/b/${(await workspace.entries('b'))[0]}`);
    expect(await reason).toMatchObject({ code: 'LOCK_LOST' });
    await workspace.untilEntries('a', 0);
  });
});

describe('a stall of the event loop', () => {
  onEveryLockBackend('past the lease is seen in the first line after it', async (workspace) => {
    const holdfast = await workspace.holdfast({ sessionTimeoutMs: 1_000 });
    const held = await holdfast.mutex('m').acquire();
    const reason = firing(held);
    expect(held.remainingMs()).toBeGreaterThan(0);
    const untilMs = performance.now() + 1_200;
    while (performance.now() < untilMs);
    expect(held.remainingMs()).toBe(0);
    expect(held.signal.aborted).toBe(false); // Nothing could have run yet.
    expect(() => held.assertHeld()).toThrow(LockLostError);
    expect(await reason).toMatchObject({ code: 'LOCK_LOST' });
    await held.release();
    await (await holdfast.mutex('m').acquire({ timeoutMs: 10_000 })).release();
  });
});

describe('a client that is closed', () => {
  onEveryLockBackend('loses what it holds, ends its waits, and leaves nothing', async (workspace) => {
    const [holder, other] = await workspace.holdfasts(2);
    const held = await holder!.mutex('m').acquire();
    // The server tells of the removal of the session's own nodes before it hangs up: no removal by hand.
    const waiting = expect(holder!.mutex('m').acquire()).rejects.toMatchObject({ code: 'ZK_CLOSED' });
    await workspace.untilEntries('m', 2);
    const reason = firing(held);
    await holder!.close();
    await waiting;
    expect(await reason).toMatchObject({ code: 'LOCK_LOST' });
    await held.release();
    await (await other!.mutex('m').acquire({ timeoutMs: 5_000 })).release();
    await expect(holder!.mutex('m').acquire()).rejects.toMatchObject({ code: 'ZK_CLOSED' });
  });
});
