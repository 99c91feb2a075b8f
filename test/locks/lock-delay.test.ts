import { describe, expect, test } from 'vitest';
import { connect, type LockLease } from '../../src/holdfast.ts';
import { onEveryLockBackend } from '../support/lock-backends.ts';
import { until } from '../support/until.ts';

/** Long enough to be told from everything else, also on a machine that stands still for a moment. */
const LOCK_DELAY_MS = 1_500;
const OPTIONS = { lockDelayMs: LOCK_DELAY_MS };

async function timeOf(granted: Promise<LockLease>): Promise<{ lease: LockLease; atMs: number }> {
  const lease = await granted;
  return { lease, atMs: performance.now() };
}

describe('with a lock-delay', () => {
  onEveryLockBackend('one who waited holds back after a holder that vanished', async (workspace) => {
    const { holdfast: holder, expire } = await workspace.faulty(OPTIONS);
    const other = await workspace.holdfast(OPTIONS);
    await holder.mutex('m').acquire();
    const waiting = timeOf(other.mutex('m').acquire());
    await workspace.untilEntries('m', 2);
    const vanishedAtMs = performance.now();
    await expire();
    const { lease, atMs } = await waiting;
    expect(atMs - vanishedAtMs).toBeGreaterThanOrEqual(LOCK_DELAY_MS);
    lease.assertHeld();
    await lease.release();
  });

  onEveryLockBackend('nobody holds back after a release, seen by the holder or not', async (workspace) => {
    const [one, two] = await workspace.holdfasts(2, { lockDelayMs: 25_000 });
    const rw = [one!.readWriteLock('rw'), two!.readWriteLock('rw')] as const;
    const pairs: [() => Promise<LockLease>, () => Promise<LockLease>, string][] = [
      [() => one!.mutex('m').acquire(), () => two!.mutex('m').acquire(), 'm'],
      [() => rw[0].read.acquire(), () => rw[1].write.acquire(), 'rw'],
      [() => rw[0].write.acquire(), () => rw[1].read.acquire(), 'rw'],
      [() => one!.election('e').campaign(), () => two!.election('e').campaign(), 'e'],
      [() => one!.multiLock(['a', 'b']).acquire(), () => two!.mutex('b').acquire(), 'b'],
    ];
    await workspace.admin.ensurePath('/holdfast/batons');
    const startedAtMs = performance.now();
    for (const [first, second, name] of pairs) {
      const held = await first();
      const waiting = second();
      await workspace.untilEntries(name, 2);
      // It waits by now, or it would have to look whether the other has vanished.
      await until('it waits', async () => (await workspace.watchedPaths()).length >= 3);
      await held.release();
      await (await waiting).release();
    }
    expect(performance.now() - startedAtMs).toBeLessThan(25_000);
  });

  onEveryLockBackend('holding back is given up like any wait', async (workspace) => {
    const { holdfast: holder, expire } = await workspace.faulty(OPTIONS);
    const other = await workspace.holdfast(OPTIONS);
    await holder.mutex('m').acquire();
    const controller = new AbortController();
    const waiting = other.mutex('m').acquire({ signal: controller.signal });
    const caught = expect(waiting).rejects.toThrow('enough');
    await workspace.untilEntries('m', 2);
    await expire();
    await workspace.untilEntries('m', 1);
    controller.abort(new Error('enough'));
    await caught;
    await workspace.untilEntries('m', 0);
  });

  test('a delay that cannot be is refused', async () => {
    for (const lockDelayMs of [-1, 0.5, 4e6, Number.NaN]) {
      await expect(connect({ servers: '127.0.0.1:1', lockDelayMs })).rejects.toThrow('lockDelayMs');
    }
  });
});
