import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../base/clock.ts';
import { silentLog } from '../base/log.ts';
import { checkBounds } from '../client/call-options.ts';
import type { ContenderInfo } from './inspection.ts';
import { LockLostError } from './lock-errors.ts';
import { LockManager, type LockRequestOptions } from './web-locks.ts';

/** A lock that is held by one, and what is done to that one. */
function scene() {
  const holder = { id: 'holder', role: 'write', session: 1n } as ContenderInfo;
  const putOut: string[] = [];
  const lease = {
    lockName: 'x',
    holding: { onLost: (_listener: (error: LockLostError) => void) => () => {} },
    lossNow: (): LockLostError | undefined => undefined,
    release: async () => {},
  };
  const acquire = async (options: LockRequestOptions) => {
    checkBounds(options);
    options.signal?.throwIfAborted();
    return lease;
  };
  const lock = { acquire, tryAcquire: async () => null };
  const behind = {
    readWriteLock: () => ({ read: lock, write: lock }),
    inspect: async () => ({ kind: 'read-write', holders: [holder] }),
    list: async () => [],
    forceRelease: async (_name: string, options: { readonly holder: string }) => {
      putOut.push(options.holder);
    },
  };
  const locks = new LockManager(behind as never, { clock: systemClock, log: silentLog });
  return { locks, putOut, lease };
}

const timeouts = fc.oneof(
  fc.constantFrom<unknown>(undefined, 0, 5_000, -1, Number.NaN, 2 ** 31, '5', null, 1n),
  fc.double(),
);
const signals = fc.constantFrom<() => unknown>(
  () => undefined,
  () => AbortSignal.abort(new Error('not now')),
  () => new AbortController().signal,
  () => 'a signal',
);
const anyOptions = fc.record(
  {
    mode: fc.constantFrom<unknown>('exclusive', 'shared', 'other', null, undefined),
    ifAvailable: fc.boolean(),
    steal: fc.boolean(),
    timeoutMs: timeouts,
    reason: fc.constantFrom<unknown>('it hangs', '', 7, undefined),
    timeout: fc.constant(100),
  },
  { requiredKeys: [] },
);

describe('a request', () => {
  test('that is refused has put nobody out; one that is not has, if it steals', async () => {
    await fc.assert(
      fc.asyncProperty(anyOptions, signals, fc.boolean(), async (options, signalOf, hasCallback) => {
        const { locks, putOut } = scene();
        const signal = signalOf();
        const given = { ...options, ...(signal !== undefined && { signal }) } as LockRequestOptions;
        const callback = hasCallback ? () => 'done' : undefined;
        const outcome = await locks.request('x', given, callback as never).catch((error: Error) => error);
        const wasGranted = outcome === 'done';
        expect(putOut).toEqual(wasGranted && given.steal ? ['holder'] : []);
      }),
      { numRuns: 1_000 },
    );
  });

  test('rejects when its lock is lost, whether or not the release is ever confirmed', async () => {
    const loss = new LockLostError('x', 'its session has ended');
    const { locks, lease } = scene();
    let lose = (_error: LockLostError) => {};
    lease.holding.onLost = (listener: typeof lose) => {
      lose = listener;
      return () => {};
    };
    lease.release = () => new Promise(() => {});
    const requested = locks.request('x', () => {
      queueMicrotask(() => {
        lease.lossNow = () => loss;
        lose(loss);
      });
      return new Promise(() => {});
    });
    await expect(requested).rejects.toBe(loss);
  });

  test('rejects with the result when its lock is over and no timer has told so yet', async () => {
    const { locks, lease } = scene();
    lease.lossNow = () => new LockLostError('x', 'its lease has ended');
    await expect(locks.request('x', () => 'charged')).rejects.toMatchObject({
      code: 'LOCK_LOST',
      result: 'charged',
    });
  });
});
