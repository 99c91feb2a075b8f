import { describe, expect, test } from 'vitest';
import { VirtualClock } from '../testing/virtual-clock.ts';
import type { Grant } from './grant.ts';
import { LastingHolds } from './lasting-holds.ts';
import { type AcquireOptions, Lock } from './lock.ts';
import type { LockContext } from './lock-context.ts';
import { ContenderEvictedError, LockTimeoutError } from './lock-errors.ts';

/** A lock that is granted again and again, each time with so much of the lease left when the grant is handed on. */
class GrantedLock extends Lock {
  protected readonly usedAs = 'mutex';
  readonly left: bigint[] = [];
  /** Whether its node is gone when the grant is handed on. */
  removed = false;
  /** How long each wait takes. */
  waitMs = 0;
  /** Looked at so often, the lease of the first grant is over. */
  looksMax = Number.POSITIVE_INFINITY;
  readonly #clock: VirtualClock;
  readonly #remainingMs: number[];
  #zxid = 0n;

  constructor(clock: VirtualClock, remainingMs: readonly number[]) {
    const zk = { session: { state: 'connected', readOnly: false, timeoutMs: 3_000 } };
    const young = new LastingHolds(clock, 100);
    super({ zk, clock, young, log: () => {}, listenerFailed: () => {} } as unknown as LockContext, 'x');
    this.#clock = clock;
    this.#remainingMs = [...remainingMs];
  }

  protected async contend(_options: AcquireOptions, giveUp: AbortSignal | undefined): Promise<Grant> {
    giveUp?.throwIfAborted();
    await this.#clock.advance(this.waitMs);
    const remainingMs = this.#remainingMs.shift()!;
    const token = ++this.#zxid;
    let looks = 0;
    const isOver = () => token === 1n && looks++ >= this.looksMax;
    return {
      token,
      hold: { onEnded: () => {}, remainingMs: () => (isOver() ? 0 : remainingMs), release: () => {} },
      paths: ['/locks/x/1'],
      bound: {},
      contended: false,
      openWriteCount: 0,
      attend: (events) => void (this.removed && events.evicted()),
      watchSelf: async () => false,
      leave: async () => void this.left.push(token),
    };
  }

  protected tryContend(options: AcquireOptions, giveUp: AbortSignal | undefined): Promise<Grant> {
    return this.contend(options, giveUp);
  }
}

describe('a grant whose lease is over when it is handed on', () => {
  // Found by the nemesis: acquire() rejected with LOCK_LOST, though nobody had had a lease to lose.
  test.each(['acquire', 'tryAcquire'] as const)('is left, and %s asks again', async (how) => {
    const lock = new GrantedLock(new VirtualClock(), [0, 0, 500]);
    const lease = await lock[how]();
    expect(lease!.token).toBe(3n);
    expect(lease!.remainingMs()).toBe(500);
    expect(lock.left).toEqual([1n, 2n]);
  });

  // Found by the nemesis: acquire() rejected as if the contender had been removed by someone.
  test('is left, and asked for again, if it ends between two looks', async () => {
    const lock = new GrantedLock(new VirtualClock(), [1, 500]);
    lock.looksMax = 1;
    const lease = await lock.acquire();
    expect({ token: lease.token, left: lock.left }).toEqual({ token: 2n, left: [1n] });
  });

  test('is not asked for again after the deadline', async () => {
    const lock = new GrantedLock(new VirtualClock(), [0, 500]);
    lock.waitMs = 101;
    await expect(lock.acquire({ timeoutMs: 100 })).rejects.toBeInstanceOf(LockTimeoutError);
    expect(lock.left).toEqual([1n]);
  });
});

describe('a grant whose node is removed in the moment it is handed on', () => {
  // Found by the simulation: acquire() rejected with LOCK_LOST, which says that somebody held it.
  test.each(['acquire', 'tryAcquire'] as const)('ends %s as a removal while it waited', async (how) => {
    const lock = new GrantedLock(new VirtualClock(), [500]);
    lock.removed = true;
    await expect(lock[how]()).rejects.toBeInstanceOf(ContenderEvictedError);
    expect(lock.left).toEqual([1n]);
  });
});

describe('a wait that timed out', () => {
  test('says what was seen of the queue when it was last looked at', () => {
    const seen = new LockTimeoutError('m', 1_000, { ahead: 3, behind: '_c_1-lock-0000000007' });
    expect(seen.message).toBe(
      'lock m: not granted within 1000 ms: 3 ahead when last looked at, waited for _c_1-lock-0000000007',
    );
    expect(seen).toMatchObject({ ahead: 3, behind: '_c_1-lock-0000000007' });
    const unseen = new LockTimeoutError('m', 1_000);
    expect(unseen.message).toBe('lock m: not granted within 1000 ms');
    expect('ahead' in unseen).toBe(false);
  });
});
