import { describe, expect } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import type { Holdfast, LockLease, LockTimeoutError } from '../../src/holdfast.ts';
import { onEveryLockBackend } from '../support/lock-backends.ts';
import { until } from '../support/until.ts';

type Bounds = { readonly signal?: AbortSignal; readonly timeoutMs?: number };
type Acquire = (holdfast: Holdfast, bounds: Bounds) => Promise<LockLease>;

const recipes: Readonly<Record<string, Acquire>> = {
  mutex: (holdfast, bounds) => holdfast.mutex('x').acquire(bounds),
  reader: (holdfast, bounds) => holdfast.readWriteLock('rw').read.acquire(bounds),
  writer: (holdfast, bounds) => holdfast.readWriteLock('rw').write.acquire(bounds),
  semaphore: (holdfast, bounds) => holdfast.semaphore('s', { permits: 2 }).acquire({ ...bounds, permits: 2 }),
  'multi-lock': (holdfast, bounds) => holdfast.multiLock(['x', 'y']).acquire(bounds),
  election: (holdfast, bounds) => holdfast.election('e').campaign(bounds),
  'simple lock': (holdfast, bounds) => holdfast.simpleLock('simple').acquire(bounds),
};

/** Holds everything that anyone could want. */
async function holdAll(holdfast: Holdfast): Promise<LockLease[]> {
  return Promise.all([
    holdfast.multiLock(['x', 'y']).acquire(),
    holdfast.readWriteLock('rw').write.acquire(),
    holdfast.semaphore('s', { permits: 2 }).acquire({ permits: 2 }),
    holdfast.election('e').campaign(),
    holdfast.simpleLock('simple').acquire(),
  ]);
}

// At every single step: every-step.test.ts.
describe('giving up', () => {
  for (const [recipe, acquire] of Object.entries(recipes)) {
    onEveryLockBackend(`by time, while the others are waited for: ${recipe}`, async (workspace) => {
      const [holdfast, holder] = await workspace.holdfasts(2);
      const held = await holdAll(holder!);
      for (const timeoutMs of [0, 1, 5, 30]) {
        await expect(acquire(holdfast!, { timeoutMs })).rejects.toMatchObject({
          code: 'LOCK_TIMEOUT',
          message: expect.stringContaining(`${timeoutMs} ms`),
        } satisfies Partial<LockTimeoutError>);
      }
      await until('only the holder to be left', async () => (await workspace.livingNodes()).length === 7);
      await Promise.all(held.map((lease) => lease.release()));
    });

    // Before anything could be sent, and with the answer on its way
    onEveryLockBackend(`with no connection, and with the answer on its way: ${recipe}`, async (workspace) => {
      const { holdfast, proxy, isolate } = await workspace.faulty();
      await expect(acquire(holdfast, { signal: AbortSignal.abort(new Error('before')) })).rejects.toThrow(
        'before',
      );
      expect(await workspace.livingNodes()).toEqual([]);
      isolate();
      await until('the connection to be down', () => holdfast.zk.session.state === 'suspended');
      await expect(acquire(holdfast, { timeoutMs: 50 })).rejects.toMatchObject({
        code: 'LOCK_UNREACHABLE',
      });
      proxy.heal();
      await holdfast.zk.sync('/');
      await until('nothing to be left', async () => (await workspace.livingNodes()).length === 0);

      proxy.delay({ toClientMs: 150 });
      const controller = new AbortController();
      const acquiring = acquire(holdfast, { signal: controller.signal });
      const caught = expect(acquiring).rejects.toThrow('on its way');
      await until('a node', async () => (await workspace.livingNodes()).length > 0);
      controller.abort(new Error('on its way'));
      await caught;
      proxy.heal();
      await until('nothing to be left', async () => (await workspace.livingNodes()).length === 0);
    });
  }

  onEveryLockBackend('after the grant changes nothing', async (workspace) => {
    const controller = new AbortController();
    const lease = await (await workspace.holdfast())
      .mutex('x')
      .acquire({ signal: controller.signal, timeoutMs: 1_000 });
    controller.abort();
    await new Promise((resolve) => setTimeout(resolve, 1_050)); // Past the deadline of the wait.
    lease.assertHeld();
    expect(lease.signal.aborted).toBe(false);
    await lease.release();
  });

  // Curator grants late; see recipes: the wait is over when the time is up, whatever is heard first after a stall
  onEveryLockBackend('by time comes before a grant that is heard too late', async (workspace) => {
    let aheadMs = 0;
    const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + aheadMs };
    const holder = await workspace.holdfast();
    const holdfast = await workspace.holdfast({ clock, sessionTimeoutMs: 30_000 });
    const held = await holder.mutex('x').acquire();
    const waiting = expect(holdfast.mutex('x').acquire({ timeoutMs: 3_000 })).rejects.toMatchObject({
      code: 'LOCK_TIMEOUT',
    });
    await workspace.untilEntries('x', 2);
    aheadMs = 3_100; // As after a stall: the clock has gone on, no timer has fired.
    await held.release();
    await waiting;
    await workspace.untilEntries('x', 0);
  });
});
