import { describe, expect } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import type { Holdfast, LockLease, LockTimeoutError } from '../../src/holdfast.ts';
import { onEveryLockBackend } from '../support/lock-backends.ts';
import { until } from '../support/until.ts';
import { turns } from '../support/witness.ts';

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

/** Enough turns of the event loop for every step of an acquire on an idle machine; the steps are told apart below. */
const TURNS_MAX = 16;

describe('giving up', () => {
  for (const [recipe, acquire] of Object.entries(recipes)) {
    // Each turn of the event loop is a step of the protocol: nothing sent, sent, answered, watching, granted.
    onEveryLockBackend(
      `at any step of an acquire leaves nothing, free or not: ${recipe}`,
      async (workspace) => {
        const [holdfast, holder] = await workspace.holdfasts(2);
        const reason = new Error('given up');
        for (const busy of [false, true]) {
          const held = busy ? await holdAll(holder!) : [];
          for (let count = 0; count < TURNS_MAX; count++) {
            const controller = new AbortController();
            const acquiring = acquire(holdfast!, { signal: controller.signal }).then(
              async (lease) => {
                expect(busy).toBe(false);
                lease.assertHeld();
                await lease.release();
              },
              (error) => expect(error).toBe(reason),
            );
            await turns(count);
            controller.abort(reason);
            await acquiring;
          }
          await until('only the holder to be left', async () => {
            return (await workspace.livingNodes()).length === (busy ? 7 : 0);
          });
          for (const lease of held) lease.assertHeld();
          await Promise.all(held.map((lease) => lease.release()));
        }
        await (await acquire(holdfast!, { timeoutMs: 5_000 })).release();
      },
    );

    onEveryLockBackend(`by time, while the others are waited for: ${recipe}`, async (workspace) => {
      const [holdfast, holder] = await workspace.holdfasts(2);
      const held = await holdAll(holder!);
      for (const timeoutMs of [0, 1, 5, 30]) {
        await expect(acquire(holdfast!, { timeoutMs })).rejects.toMatchObject({
          code: 'ZK_LOCK_TIMEOUT',
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
        code: 'ZK_LOCK_UNREACHABLE',
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
      code: 'ZK_LOCK_TIMEOUT',
    });
    await workspace.untilEntries('x', 2);
    aheadMs = 3_100; // As after a stall: the clock has gone on, no timer has fired.
    await held.release();
    await waiting;
    await workspace.untilEntries('x', 0);
  });
});
