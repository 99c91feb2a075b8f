import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { getEventListeners } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect } from 'vitest';
import {
  type AcquireMessage,
  Fence,
  type Holdfast,
  type LockLease,
  type Mutex,
  ZooKeeperFence,
} from '../../src/holdfast.ts';
import { CountingTransport } from '../support/counting-transport.ts';
import { everyBackend, type LockWorkspace, onEveryLockBackend } from '../support/lock-backends.ts';
import { until } from '../support/until.ts';

const CACHED = { cache: true } as const;

/** Takes a lock and lets it go: whoever has kept it gives it up. */
async function passThrough(holdfast: Holdfast, name = 'm'): Promise<void> {
  await (await holdfast.mutex(name).acquire()).release();
}

/** Kept by this process, with nobody in it. */
async function kept(lock: Mutex): Promise<LockLease> {
  const lease = await lock.acquire();
  await lease.release();
  return lease;
}

function isLater(a: LockLease, b: LockLease): boolean {
  return a.token > b.token || (a.token === b.token && a.section > b.section);
}

/** Waits until somebody queues up, and whoever holds has been told. */
async function untilQueued(workspace: LockWorkspace, holder: Holdfast, count: number): Promise<void> {
  await workspace.untilEntries('m', count);
  await holder.zk.sync(); // Events of what was there before come first.
}

describe('a cached mutex', () => {
  onEveryLockBackend('is taken again without a request, until somebody else comes', async (workspace) => {
    const transport = new CountingTransport();
    const holdfast = await workspace.holdfast({ transport });
    const other = await workspace.holdfast();
    const lock = holdfast.mutex('m', CACHED);
    await kept(holdfast.mutex('folders'));
    transport.reset();
    let last = await lock.acquire();
    expect(transport.traffic.requests.slice(-2)).toEqual(['create2', 'getChildren']);
    transport.reset();
    await last.release();
    expect(transport.traffic.requests).toEqual(['getChildren', 'getData']); // Once: the watches.
    transport.reset();
    for (let round = 1; round <= 100; round++) {
      const lease = await lock.acquire();
      expect(isLater(lease, last)).toBe(true);
      expect(lease.section).toBe(round);
      await lease.release();
      expect(() => lease.assertHeld()).toThrow(/released/);
      last = lease;
    }
    const tried = await lock.tryAcquire();
    expect(await lock.tryAcquire()).toBeNull();
    expect(await lock.attempt()).toEqual({ ok: false, reason: 'busy' });
    await tried!.release();
    expect(transport.traffic).toMatchObject({ requests: [], writeCount: 0 });
    expect(await workspace.entries('m')).toHaveLength(1);
    const theirs = await other.mutex('m').acquire();
    expect(theirs.token).toBeGreaterThan(last.token);
    expect(await workspace.entries('m')).toHaveLength(1);
    await theirs.release();
  });

  onEveryLockBackend('is had by a newcomer within two round trips', async (workspace) => {
    const [holdfast, other] = await workspace.holdfasts(2);
    await passThrough(other!); // The folders are there.
    await holdfast!.zk.ensurePath('/holdfast/batons');
    const lock = holdfast!.mutex('m', CACHED);
    const roundTrips: number[] = [];
    const onEnd = (message: unknown) => {
      const { lockName, use, roundTrips: count, token } = message as AcquireMessage;
      if (lockName === 'm' && use === 'mutex' && token !== undefined) roundTrips.push(count);
    };
    for (let round = 0; round < 20; round++) {
      await kept(lock);
      subscribe('holdfast:lock:acquire:end', onEnd);
      try {
        await passThrough(other!);
      } finally {
        unsubscribe('holdfast:lock:acquire:end', onEnd);
      }
    }
    expect(roundTrips).toHaveLength(20);
    // One, if it had given way before the newcomer's look behind its creation: two requests, and others may come between.
    expect(roundTrips.filter((count) => count > 2)).toEqual([]);
    expect(roundTrips).toContain(2);
  });

  onEveryLockBackend('is given up at the end of a section, and tasks here go behind', async (workspace) => {
    const [holdfast, other] = await workspace.holdfasts(2);
    const lock = holdfast!.mutex('m', CACHED);
    const order: string[] = [];
    await kept(lock);
    const held = await lock.acquire();
    const tasks = ['first', 'second'].map((name) => lock.use(() => void order.push(name)));
    const theirs = other!.mutex('m').use(async () => {
      await until('the task here to wait behind', async () => (await workspace.entries('m')).length === 2);
      order.push('theirs');
    });
    await untilQueued(workspace, holdfast!, 2);
    held.assertHeld();
    expect(order).toEqual([]);
    await held.release();
    await Promise.all([theirs, ...tasks]);
    expect(order).toEqual(['theirs', 'first', 'second']);
    await passThrough(other!);
  });

  onEveryLockBackend(
    'is joined anew after its session has expired unused',
    async (workspace) => {
      const { holdfast, expire } = await workspace.faulty();
      const lock = holdfast.mutex('m', CACHED);
      const lost: unknown[] = [];
      lock.on('lost', (event) => lost.push(event));
      const before = await kept(lock);
      await expire();
      await workspace.untilEntries('m', 0);
      const lease = await lock.acquire();
      expect(lease.token).toBeGreaterThan(before.token);
      expect(lease.section).toBe(0);
      await lease.release();
      expect(lost).toEqual([]); // Nobody held it.
      await passThrough(await workspace.holdfast());
    },
    everyBackend,
  );

  onEveryLockBackend('is lost in a section as any other, and joined anew by the next', async (workspace) => {
    const { holdfast, expire } = await workspace.faulty();
    const lock = holdfast.mutex('m', CACHED);
    await kept(lock);
    const held = await lock.acquire();
    const waiting = lock.acquire();
    const told = new Promise((resolve) => lock.on('lost', resolve));
    await expire();
    expect(await told).toMatchObject({ token: held.token, error: { code: 'LOCK_LOST' } });
    expect(held.remainingMs()).toBe(0);
    const next = await waiting;
    expect(isLater(next, held)).toBe(true);
    await held.release();
    next.assertHeld();
    await next.release();
    await passThrough(await workspace.holdfast());
  });

  onEveryLockBackend('is joined anew after its node was removed by hand', async (workspace) => {
    const [holdfast, other] = await workspace.holdfasts(2);
    const lock = holdfast!.mutex('m', CACHED);
    const before = await kept(lock);
    const [entry] = await workspace.entries('m');
    await workspace.admin.delete(`/locks/m/${entry}`);
    await holdfast!.zk.sync();
    const lease = await lock.acquire();
    expect(lease.token).toBeGreaterThan(before.token);
    await workspace.admin.delete(`/locks/m/${(await workspace.entries('m'))[0]}`);
    await lease.release();
    expect(await workspace.entries('m')).toEqual([]);
    await kept(lock);
    const held = await lock.acquire();
    const [holder] = (await other!.inspect('m')).holders;
    const told = new Promise((resolve) => held.signal.addEventListener('abort', resolve, { once: true }));
    await other!.forceRelease('m', { holder: holder!.id, reason: 'test' });
    await told;
    expect(() => held.assertHeld()).toThrow(/removed by someone else/);
    await passThrough(other!);
  });

  onEveryLockBackend('is granted to nobody while the connection is down, and left', async (workspace) => {
    const { holdfast, proxy, isolate } = await workspace.faulty();
    const lock = holdfast.mutex('m', CACHED);
    const before = await kept(lock);
    isolate();
    await until('the connection to be down', () => holdfast.zk.session.state === 'suspended');
    expect(await lock.attempt({ timeoutMs: 200 })).toEqual({ ok: false, reason: 'unreachable' });
    expect(await workspace.entries('m')).toHaveLength(1);
    const waiting = lock.acquire();
    proxy.heal();
    const lease = await waiting;
    expect(lease.token).toBeGreaterThan(before.token);
    await lease.release();
    await passThrough(await workspace.holdfast());
  });

  onEveryLockBackend('is given back when it is asked for, or was idle for long', async (workspace) => {
    const [holdfast, other] = await workspace.holdfasts(2);
    const lock = holdfast!.mutex('m', CACHED);
    await kept(lock);
    expect(await other!.revoke('m')).toBe(1);
    await workspace.untilEntries('m', 0);
    const held = await lock.acquire();
    await held.release();
    const again = await lock.acquire();
    await other!.revoke('m');
    await until('it to be asked', () => again.revocation.aborted);
    expect(again.signal.aborted).toBe(false);
    again.assertHeld();
    await again.release();
    expect(await workspace.entries('m')).toEqual([]);
    const short = holdfast!.mutex('short', { cache: { idleMs: 50 } });
    await kept(short);
    await workspace.untilEntries('short', 0);
    await kept(short);
    await workspace.untilEntries('short', 0);
  });

  onEveryLockBackend('goes with its client, which leaves no timer', async (workspace) => {
    const holdfast = await workspace.holdfast();
    const lock = holdfast.mutex('m', CACHED);
    await kept(lock);
    const held = await lock.acquire();
    const waiting = expect(lock.acquire()).rejects.toMatchObject({ code: 'ZK_CLOSED' });
    await holdfast.close();
    await waiting;
    expect(held.remainingMs()).toBe(0);
    await held.release();
    await expect(lock.acquire()).rejects.toMatchObject({ code: 'ZK_CLOSED' });
  });

  onEveryLockBackend('does not keep others from being heard by never waiting', async (workspace) => {
    const [holdfast, other] = await workspace.holdfasts(2);
    const lock = holdfast!.mutex('m', CACHED);
    let done = false;
    const theirs = passThrough(other!).then(() => {
      done = true;
    });
    let rounds = 0;
    // Nothing in here waits for anything but promises.
    while (!done && rounds < 10_000_000) {
      await kept(lock);
      rounds++;
    }
    await theirs;
    expect(done).toBe(true);
    await passThrough(other!);
  });
});

describe('a mutex that is handed off', () => {
  onEveryLockBackend('is passed on in the order of arrival, by one contender', async (workspace) => {
    const transport = new CountingTransport();
    const holdfast = await workspace.holdfast({ transport });
    const lock = holdfast.mutex('m', { handOff: true });
    await kept(lock);
    await workspace.untilEntries('m', 0); // Nothing is kept.
    const held = await lock.acquire();
    const order: number[] = [];
    const leases: LockLease[] = [held];
    const tasks = Array.from({ length: 100 }, (_, index) =>
      lock.use(async (lease) => {
        leases.push(lease);
        order.push(index);
        await turn();
      }),
    );
    await until('others to be looked out for', () => transport.traffic.requests.at(-1) === 'getData');
    expect(await lock.tryAcquire()).toBeNull();
    await holdfast.zk.sync();
    transport.reset();
    await held.release();
    await Promise.all(tasks);
    expect(order).toEqual(Array.from({ length: 100 }, (_, index) => index));
    expect(leases.every((lease, index) => index === 0 || isLater(lease, leases[index - 1]!))).toBe(true);
    expect(new Set(leases.map(({ token }) => token)).size).toBe(1);
    expect(transport.traffic.requests).toEqual(['delete']);
  });

  onEveryLockBackend('goes to another process after exactly so many grants', async (workspace) => {
    const [holdfast, other] = await workspace.holdfasts(2);
    const lock = holdfast!.mutex('m', { handOff: { grantsMax: 3, ms: 60_000 } });
    const order: string[] = [];
    const held = await lock.acquire();
    const tasks = Array.from({ length: 8 }, (_, index) => lock.use(() => void order.push(`${index}`)));
    await holdfast!.zk.sync();
    const theirs = other!.mutex('m');
    const waiting = theirs.use(async () => {
      order.push('theirs');
      await until(
        'those here to be back in the queue',
        async () => (await workspace.entries('m')).length === 2,
      );
    });
    await untilQueued(workspace, holdfast!, 2);
    await held.release();
    await Promise.all([...tasks, waiting]);
    expect(order).toEqual(['0', '1', '2', 'theirs', '3', '4', '5', '6', '7']);
  });

  onEveryLockBackend('goes to another process after so long', async (workspace) => {
    const [holdfast, other] = await workspace.holdfasts(2);
    const lock = holdfast!.mutex('m', { handOff: { grantsMax: 1_000, ms: 30 } });
    const order: string[] = [];
    const held = await lock.acquire();
    const waiting = other!.mutex('m').use(() => void order.push('theirs'));
    await workspace.untilEntries('m', 2);
    const tasks = ['a', 'b'].map((name) => lock.use(() => void order.push(name)));
    const sinceMs = performance.now();
    await until('the time to be up', () => performance.now() > sinceMs + 100);
    await held.release();
    await Promise.all([...tasks, waiting]);
    expect(order).toEqual(['theirs', 'a', 'b']);
  });

  onEveryLockBackend('has waits that end by themselves, and no node for them', async (workspace) => {
    const [holdfast, other] = await workspace.holdfasts(2);
    const lock = holdfast!.mutex('m', { handOff: true });
    const theirs = await other!.mutex('m').acquire();
    const controller = new AbortController();
    const reason = new Error('no time');
    const first = lock.acquire({ signal: controller.signal });
    const second = lock.acquire({ timeoutMs: 60_000 });
    await workspace.untilEntries('m', 2);
    controller.abort(reason);
    await expect(first).rejects.toBe(reason);
    expect(await lock.attempt({ timeoutMs: 20 })).toEqual({ ok: false, reason: 'timeout' });
    expect(await lock.tryAcquire()).toBeNull();
    expect(await workspace.entries('m')).toHaveLength(2);
    await theirs.release();
    const held = await second;
    await expect(lock.acquire({ timeoutMs: 20 })).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
    await held.release();
    const again = await other!.mutex('m').acquire();
    const late = new AbortController();
    const alone = lock.acquire({ signal: late.signal });
    await workspace.untilEntries('m', 2);
    late.abort(reason);
    await expect(alone).rejects.toBe(reason);
    await workspace.untilEntries('m', 1); // Nobody wants it any more.
    expect(getEventListeners(late.signal, 'abort')).toEqual([]);
    await again.release();
  });

  onEveryLockBackend('tells all who wait of what ends their wait', async (workspace) => {
    const [holdfast, other] = await workspace.holdfasts(2);
    const lock = holdfast!.mutex('m', { handOff: true });
    const theirs = await other!.mutex('m').acquire();
    const waits = [lock.acquire(), lock.acquire()].map((wait) =>
      expect(wait).rejects.toMatchObject({ code: 'LOCK_CONTENDER_EVICTED' }),
    );
    const [, entry] = await workspace.untilEntries('m', 2);
    await workspace.admin.delete(`/locks/m/${entry}`);
    await Promise.all(waits);
    await theirs.release();
    await (await lock.acquire()).release();
  });

  onEveryLockBackend('is re-entered, and says who waits', async (workspace) => {
    const holdfast = await workspace.holdfast();
    const lock = holdfast.mutex('m', { handOff: true, cache: { idleMs: 20 } });
    const events: string[] = [];
    lock.on('waiting', ({ ahead }) => events.push(`waiting ${ahead}`));
    lock.on('lockAcquired', ({ lease }) => events.push(`acquired ${lease.section}`));
    lock.on('lockReleased', () => events.push('released'));
    let second: Promise<void> | undefined;
    await lock.use(async (outer) => {
      await lock.use((inner) => expect([inner.token, inner.section]).toEqual([outer.token, outer.section]));
      const within = await lock.acquire({ within: outer });
      second = lock.acquire().then((lease) => lease.release()); // Another contender.
      await within.release();
      outer.assertHeld();
      const { holders, queue } = await holdfast.inspect('m');
      expect([holders.length, queue.length]).toEqual([1, 0]);
    });
    await second;
    expect(events).toEqual(['acquired 0', 'waiting 1', 'released', 'acquired 1', 'released']);
    await workspace.untilEntries('m', 0);
  });
});

describe('tasks of several processes', () => {
  const options = [
    { cache: true },
    { handOff: true },
    { cache: { idleMs: 20 }, handOff: { grantsMax: 4, ms: 50 } },
  ] as const;
  for (const option of options) {
    onEveryLockBackend(
      `exclude each other, and every grant is later than the one before: ${JSON.stringify(option)}`,
      async (workspace) => {
        const clients = await workspace.holdfasts(2);
        const fence = new Fence();
        let inside = 0;
        let last: LockLease | undefined;
        const task = async (lock: Mutex) => {
          await lock.use(async (lease) => {
            expect(++inside).toBe(1);
            if (last) expect(isLater(lease, last)).toBe(true);
            last = lease;
            fence.admit(lease.token, lease.section);
            await turn();
            inside--;
          });
        };
        const tasks = clients.flatMap((client) =>
          Array.from({ length: 100 }, () => task(client.mutex('m', option))),
        );
        await Promise.all(tasks);
        expect(fence.highest).toBe(last!.token);
        await passThrough(await workspace.holdfast());
        await workspace.untilEntries('m', 0);
      },
    );
  }

  onEveryLockBackend('a fence refuses the section before', async (workspace) => {
    const [holdfast, other] = await workspace.holdfasts(2);
    const lock = holdfast!.mutex('m', CACHED);
    const first = await kept(lock);
    const second = await kept(lock);
    const fences = [new Fence(), new ZooKeeperFence(holdfast!.zk, '/fences/m')];
    for (const fence of fences) {
      await fence.admit(first.token, first.section);
      await fence.admit(second.token, second.section);
      await fence.admit(second.token, second.section);
      const late = async () => fence.admit(first.token, first.section);
      await expect(late()).rejects.toMatchObject({ code: 'LOCK_STALE_TOKEN', section: 0, highestSection: 1 });
    }
    const theirs = await other!.mutex('m').acquire();
    for (const fence of fences) {
      await fence.admit(theirs.token);
      const late = async () => fence.admit(second.token, second.section);
      await expect(late()).rejects.toMatchObject({ code: 'LOCK_STALE_TOKEN' });
    }
    await theirs.release();
  });
});
