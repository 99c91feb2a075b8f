import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkBounds } from '../client/call-options.ts';
import type { ContenderInfo } from './inspection.ts';
import { LockManager, type LockRequestOptions } from './web-locks.ts';

/** A lock that is held by one, and what is done to that one. */
function scene() {
  const holder = { id: 'holder', role: 'write', session: 1n } as ContenderInfo;
  const putOut: string[] = [];
  const lease = {
    holding: { onLost: () => () => {} },
    release: async () => {},
  };
  const acquire = async (options: LockRequestOptions) => {
    checkBounds(options);
    options.signal?.throwIfAborted();
    return lease;
  };
  const lock = { acquire, tryAcquire: async () => null };
  const locks = new LockManager({
    readWriteLock: () => ({ read: lock, write: lock }),
    inspect: async () => ({ kind: 'read-write', holders: [holder] }),
    list: async () => [],
    forceRelease: async (_name: string, options: { readonly holder: string }) => {
      putOut.push(options.holder);
    },
  } as never);
  return { locks, putOut };
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
});
