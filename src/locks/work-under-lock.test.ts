import { describe, expect, test } from 'vitest';
import { type Deferred, deferred } from '../base/deferred.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';
import type { Grant } from './grant.ts';
import { LastingHolds } from './lasting-holds.ts';
import { Lock } from './lock.ts';
import type { LockContext } from './lock-context.ts';
import { LockLostError } from './lock-errors.ts';
import type { LockLease } from './lock-lease.ts';

/** A lock that is granted at once, whose hold ends and whose release is confirmed when the test says so. */
class ScriptedLock extends Lock {
  protected readonly usedAs = 'mutex';
  readonly clock: VirtualClock;
  readonly logged: string[];
  readonly confirmed: Deferred<void> = deferred();
  remainingMs = 1_000;
  leaveCount = 0;
  #onEnded: ((error: Error) => void) | undefined;

  constructor() {
    const clock = new VirtualClock();
    const logged: string[] = [];
    const young = new LastingHolds(clock, 100);
    const log = (_level: string, message: string) => void logged.push(message);
    super({ zk: {}, clock, young, log, listenerFailed: () => {} } as unknown as LockContext, 'm');
    this.clock = clock;
    this.logged = logged;
  }

  lose(): void {
    this.remainingMs = 0;
    this.#onEnded?.(new Error('its session has ended'));
  }

  /** The time is over and no timer has told of it yet. */
  stall(): void {
    this.remainingMs = 0;
  }

  protected async contend(): Promise<Grant> {
    return {
      token: 1n,
      hold: {
        onEnded: (listener) => {
          this.#onEnded = listener;
        },
        remainingMs: () => this.remainingMs,
        release: () => {},
      },
      paths: ['/locks/m/1'],
      bound: {},
      contended: false,
      openWriteCount: 0,
      attend: () => {},
      watchSelf: async () => false,
      leave: () => {
        this.leaveCount++;
        return this.confirmed.promise;
      },
    };
  }

  protected tryContend(): Promise<Grant> {
    return this.contend();
  }
}

/** Work that goes on after the loss of its lock, and ends as given. */
function workOf(lock: ScriptedLock, end: (lease: LockLease) => unknown, by: 'lose' | 'stall' = 'lose') {
  return async (lease: LockLease) => {
    lock[by]();
    return end(lease);
  };
}

async function rejectionOf(promise: Promise<unknown>): Promise<LockLostError> {
  return promise.then(
    (value) => Promise.reject(new Error(`resolved with ${String(value)}`)),
    (error) => error,
  );
}

describe('use of a lock that is lost while its work runs', () => {
  test.each(['lose', 'stall'] as const)('rejects with the loss and the result (%s)', async (by) => {
    const lock = new ScriptedLock();
    const error = await rejectionOf(lock.use(workOf(lock, () => 'charged', by)));
    expect(error).toBeInstanceOf(LockLostError);
    expect(error).toMatchObject({ lockName: 'm', result: 'charged', cause: { code: 'LOCK_LOST' } });
    expect('thrown' in error).toBe(false);
    expect(lock.leaveCount, 'let go of').toBe(1);
  });

  test('has a result, also where that is undefined', async () => {
    const lock = new ScriptedLock();
    const error = await rejectionOf(lock.use(workOf(lock, () => undefined)));
    expect(Object.hasOwn(error, 'result')).toBe(true);
  });

  test('reports the loss for what the work throws because of the signal', async () => {
    const lock = new ScriptedLock();
    const abort = new DOMException('This operation was aborted', 'AbortError');
    const error = await rejectionOf(
      lock.use(async ({ signal }) => {
        const aborted = new Promise<never>((_, reject) => {
          signal.addEventListener('abort', () => reject(abort), { once: true });
        });
        lock.lose();
        return aborted;
      }),
    );
    expect(error).toBeInstanceOf(LockLostError);
    expect(error.thrown).toBe(abort);
    expect((error.cause as Error).message).toBe('lock m: its session has ended');
  });

  test('reports the loss once: what the work throws of it is passed on', async () => {
    const lock = new ScriptedLock();
    let reason: unknown;
    const throwing = workOf(lock, (lease) => {
      reason = lease.signal.reason;
      lease.assertHeld();
    });
    expect(await rejectionOf(lock.use(throwing))).toBe(reason);
  });

  test('keeps an error of the work that has nothing to do with the loss', async () => {
    const lock = new ScriptedLock();
    const bug = new RangeError('a bug');
    const throwing = workOf(lock, () => {
      throw bug;
    });
    const error = await rejectionOf(lock.use(throwing));
    expect(error).toBeInstanceOf(LockLostError);
    expect(error.thrown).toBe(bug);
    expect('result' in error).toBe(false);
  });

  test('tells a nested use, and the outer one by the same error', async () => {
    const lock = new ScriptedLock();
    let inner: unknown;
    const error = await rejectionOf(
      lock.use(async () => {
        inner = await rejectionOf(lock.use(workOf(lock, () => 'inner')));
        throw inner;
      }),
    );
    expect(error).toBe(inner);
    expect(error.result).toBe('inner');
  });

  test('resolves if the lock was released before it was lost', async () => {
    const lock = new ScriptedLock();
    lock.confirmed.resolve();
    const used = lock.use(async (lease) => {
      await lease.release();
      lock.lose();
      return 'done';
    });
    expect(await used).toBe('done');
  });
});

describe('the release at the end of use', () => {
  test.each([
    ['5 s', {}, 5_000],
    ['as long as is said', { releaseTimeoutMs: 200 }, 200],
  ])('is waited for at most %s, and goes on behind', async (_how, options, waitedMs) => {
    const lock = new ScriptedLock();
    let outcome: unknown;
    void lock
      .use(() => 'done', options)
      .then((result) => {
        outcome = result;
      });
    await lock.clock.advance(waitedMs - 1);
    expect(outcome).toBeUndefined();
    await lock.clock.advance(1);
    expect(outcome).toBe('done');
    expect(lock.logged).toEqual(['a release goes on behind']);
    expect(lock.clock.alarmCount).toBe(0);
    lock.confirmed.resolve();
  });

  test('is not waited for at all with 0, and what the work threw is thrown', async () => {
    const lock = new ScriptedLock();
    const used = lock.use(() => Promise.reject(new Error('failed')), { releaseTimeoutMs: 0 });
    const caught = expect(used).rejects.toThrow('failed');
    await lock.clock.advance(0);
    await caught;
  });

  test('leaves no timer behind when it is confirmed', async () => {
    const lock = new ScriptedLock();
    lock.confirmed.resolve();
    await lock.use(() => {});
    expect(lock.clock.alarmCount, 'that of the hold').toBe(1);
  });

  test('that fails is what use rejects with', async () => {
    const lock = new ScriptedLock();
    lock.confirmed.reject(new Error('refused'));
    await expect(lock.use(() => 'done')).rejects.toThrow('refused');
  });

  test.each([-1, Number.NaN, 2 ** 31])('has a bound that is a time: not %s', async (releaseTimeoutMs) => {
    const lock = new ScriptedLock();
    await expect(lock.use(() => {}, { releaseTimeoutMs })).rejects.toThrow(RangeError);
    expect(lock.leaveCount).toBe(0);
  });
});
