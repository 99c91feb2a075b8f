import { describe, expect, test } from 'vitest';
import { systemClock } from '../base/clock.ts';
import { deferred } from '../base/deferred.ts';
import { Emitter } from '../base/emitter.ts';
import { ConnectionLossError, MultiError } from '../protocol/errors.ts';
import type { Grant } from './grant.ts';
import type { LockContext } from './lock-context.ts';
import { Holding, type LockEvents, LockLease } from './lock-lease.ts';

/** A lease whose guarded writes are answered by the test, and how it was left. */
function leaseToWatch({ remainingMs = 1_000 } = {}) {
  const written = deferred<unknown[]>();
  const left: Parameters<Grant['leave']>[0][] = [];
  const hold = { onEnded: () => {}, remainingMs: () => remainingMs, release: () => {} };
  const grant = {
    token: 1n,
    hold,
    paths: ['/locks/m/1'],
    bound: {},
    contended: true,
    openWriteCount: 0,
    watched: true,
    attend: () => {},
    watchSelf: async () => false,
    leave: async (options) => void left.push(options),
  } satisfies Grant;
  const zk = { multi: () => written.promise };
  const context = { zk, clock: systemClock, lockDelayMs: 0, listenerFailed: () => {}, log: () => {} };
  const events = new Emitter<LockEvents>(() => {});
  const holding = new Holding(context as never as LockContext, grant, { name: 'm', use: 'mutex', events });
  return { lease: new LockLease(holding), written, left };
}

describe('letting go', () => {
  test('is told at once where no guarded write is open', async () => {
    const { lease, written, left } = leaseToWatch();
    written.resolve([undefined, undefined]);
    await lease.guard([]);
    await lease.release();
    expect(left).toEqual([expect.objectContaining({ released: true, baton: true, byServer: false })]);
  });

  test('is told by the server alone while a guarded write is on its way', async () => {
    const { lease, written, left } = leaseToWatch();
    const writing = lease.guard([]);
    await lease.release();
    expect(left).toEqual([expect.objectContaining({ released: true, byServer: true })]);
    written.resolve([undefined]);
    await writing;
  });

  test.each([
    ['of which nobody knows whether it happened', new ConnectionLossError('multi', 'unknown'), true],
    ['that did not happen', new MultiError(-103, 'set', '/a', 1), false],
  ])('after a guarded write %s', async (_what, error, byServer) => {
    const { lease, written, left } = leaseToWatch();
    written.reject(error);
    await expect(lease.guard([])).rejects.toThrow();
    await lease.release();
    expect(left).toEqual([expect.objectContaining({ byServer })]);
  });

  test('of what has ended by the clock is no release', async () => {
    const { lease, left } = leaseToWatch({ remainingMs: 0 });
    await lease.release();
    expect(left).toEqual([expect.objectContaining({ released: false, baton: false })]);
  });
});
