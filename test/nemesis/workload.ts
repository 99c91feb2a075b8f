import { setTimeout as delay } from 'node:timers/promises';
import type { GaveUp } from '../../simulation/checker/history.ts';
import {
  ContenderEvictedError,
  type Holdfast,
  type LockLease,
  LockLostError,
  LockTimeoutError,
  LockUnreachableError,
  ZkError,
} from '../../src/holdfast.ts';
import type { Random } from '../../src/testing.ts';
import { ControlLock } from './control-lock.ts';
import { nowMs, type Recorder } from './recorder.ts';
import { useRegisters } from './registers.ts';
import type { ResourceClient } from './resource-client.ts';
import { CONTROL_LOCK, STRUCK_LOCK, WISHES, type Wish } from './scene.ts';

/** How often a holder of the fenced locks writes, at most, before it lets go. */
const WRITES_MAX = 3;
const LOOK_INTERVAL_MS = 200;
const REVOKE_ONE_IN = 50;
const REVOKED_LOCKS = ['a', 'rw', 's', 'x', 'l1'];
/** The control promises to hold until it lets go, which is what is wrong with it. */
const FOR_EVER_MS = 2 ** 52;

/** What the tasks of one worker share. */
export interface Workplace {
  readonly client: string;
  readonly random: Random;
  readonly recorder: Recorder;
  readonly control: Recorder;
  readonly resource: ResourceClient;
  /** Fires when no new attempt is to be made; those under way go on. */
  readonly drain: AbortSignal;
  granted(): void;
  holding(lock: string, held: boolean): void;
}

let attemptCount = 0;

/**
 * One task: wants something, waits for it in some manner, holds it for a while, writes to what it protects, lets go,
 * again and again. It is careless on purpose: it goes on writing after it has been told that the lock is lost, as a
 * program that was stopped in the middle does.
 */
export async function workOn(
  holdfast: Holdfast,
  place: Workplace,
  wishes: readonly Wish[] = WISHES,
  pauseMsMax = 60,
): Promise<void> {
  const task = new Task(holdfast, place, wishes);
  while (!place.drain.aborted) {
    await task.round();
    await delay(place.random.u32() % pauseMsMax);
  }
}

/** The same with the lock that is wrong. */
export async function workOnControl(holdfast: Holdfast, place: Workplace): Promise<void> {
  const lock = new ControlLock(holdfast.zk, `/${CONTROL_LOCK}`);
  const { client, control, resource, drain, random } = place;
  while (!drain.aborted) {
    const attempt = `${client}/${++attemptCount}`;
    const asked = { kind: 'asked', locks: [CONTROL_LOCK], mode: 'exclusive', client, attempt } as const;
    control.record({ ...asked, atMs: nowMs() });
    try {
      const token = await lock.acquire(drain);
      const atMs = nowMs();
      control.record({ kind: 'granted', atMs, attempt, token, leaseEndsAtMs: atMs + FOR_EVER_MS });
      place.holding(CONTROL_LOCK, true);
      await delay(20 + (random.u32() % 100));
      place.holding(CONTROL_LOCK, false);
      await resource.write(CONTROL_LOCK, token, 'write');
      control.record({ kind: 'release-started', atMs: nowMs(), attempt });
      await lock.release();
      control.record({ kind: 'released', atMs: nowMs(), attempt });
    } catch (error) {
      if (!drain.aborted) throw error;
    }
    await delay(random.u32() % 60);
  }
}

class Task {
  readonly #holdfast: Holdfast;
  readonly #place: Workplace;
  readonly #wishes: readonly Wish[];

  constructor(holdfast: Holdfast, place: Workplace, wishes: readonly Wish[]) {
    this.#holdfast = holdfast;
    this.#place = place;
    this.#wishes = wishes;
  }

  async round(): Promise<void> {
    const { random, recorder } = this.#place;
    if (random.u32() % REVOKE_ONE_IN === 0) await this.#revoke();
    const wish = this.#wishes[random.u32() % this.#wishes.length]!;
    const attempt = `${this.#place.client}/${++attemptCount}`;
    const lease = await this.#acquire(wish, attempt);
    if (!lease) return;
    const stop = this.#attend(attempt, lease);
    await this.#write(wish, attempt, lease);
    const read = wish.downgrade && (await this.#downgrade(wish, attempt, lease));
    recorder.record({ kind: 'release-started', atMs: nowMs(), attempt });
    await lease.release();
    recorder.record({ kind: 'released', atMs: nowMs(), attempt });
    stop();
    await read?.();
  }

  /** Asks whoever holds to let go. It tells nobody that it has lost anything. */
  async #revoke(): Promise<void> {
    const { random } = this.#place;
    const lock = REVOKED_LOCKS[random.u32() % REVOKED_LOCKS.length]!;
    await this.#holdfast.revoke(lock).catch((error: unknown) => {
      if (!(error instanceof ZkError)) throw error; // No server, for the moment.
    });
  }

  async #acquire(wish: Wish, attempt: string): Promise<LockLease | undefined> {
    const { recorder, client } = this.#place;
    const manner = this.#manner();
    const { locks, mode, weight } = wish;
    const askedAtMs = nowMs();
    const asked = { kind: 'asked', atMs: askedAtMs, attempt, client, locks, mode, weight } as const;
    const { timeoutMs, abortAfterMs } = manner;
    recorder.record(timeoutMs === undefined ? asked : { ...asked, deadlineAtMs: askedAtMs + timeoutMs });
    const lock = wish.lock(this.#holdfast);
    const signal = abortAfterMs === undefined ? undefined : AbortSignal.timeout(abortAfterMs);
    const options = {
      ...wish.options,
      ...(timeoutMs !== undefined && { timeoutMs }),
      ...(signal && { signal }),
    };
    try {
      const lease = await (manner.waits ? lock.acquire(options) : lock.tryAcquire(options));
      if (lease) this.#recordGrant(attempt, lease);
      else recorder.record({ kind: 'gave-up', atMs: nowMs(), attempt, reason: 'busy' });
      return lease ?? undefined;
    } catch (error) {
      const reason = signal?.aborted && error === signal.reason ? 'aborted' : reasonOf(error);
      recorder.record({ kind: 'gave-up', atMs: nowMs(), attempt, reason, detail: String(error) });
      return undefined;
    }
  }

  #manner(): { waits: boolean; timeoutMs?: number; abortAfterMs?: number } {
    const dice = this.#place.random.u32();
    const shortMs = 20 + ((dice >>> 8) % 400);
    switch (dice % 10) {
      case 0:
        return { waits: false };
      case 1:
      case 2:
        return { waits: true, timeoutMs: shortMs };
      case 3:
        return { waits: true, abortAfterMs: shortMs };
      default:
        return { waits: true };
    }
  }

  #recordGrant(attempt: string, lease: LockLease): void {
    const atMs = nowMs();
    const leaseEndsAtMs = atMs + lease.remainingMs();
    this.#place.recorder.record({ kind: 'granted', atMs, attempt, token: lease.token, leaseEndsAtMs });
    this.#place.granted();
  }

  /** Records what the holder is notified of, by its signals. */
  #attend(attempt: string, { signal, revocation }: LockLease): () => void {
    const { recorder } = this.#place;
    const onLost = () =>
      recorder.record({ kind: 'lost', atMs: nowMs(), attempt, reason: String(signal.reason) });
    const onRevoked = () => recorder.record({ kind: 'revoked', atMs: nowMs(), attempt });
    const stops = (
      [
        [signal, onLost],
        [revocation, onRevoked],
      ] as const
    ).map(([each, listener]) => {
      each.addEventListener('abort', listener, { once: true });
      if (each.aborted) listener(); // Made late, it has fired already.
      return () => each.removeEventListener('abort', listener);
    });
    return () => {
      for (const stop of stops) stop();
    };
  }

  /** Said to hold until just before its last write: who is stopped till then has one left to make when it wakes. */
  async #write(wish: Wish, attempt: string, lease: LockLease): Promise<void> {
    const { random, resource } = this.#place;
    await useRegisters(this.#holdfast, this.#place.recorder, { wish, attempt, lease });
    const struck = wish.locks.includes(STRUCK_LOCK);
    if (struck) this.#place.holding(STRUCK_LOCK, true);
    const writes = 1 + (random.u32() % WRITES_MAX);
    const holdMsMax = wish.holdMsMax ?? (random.u32() % 10 === 0 ? 150 : 12);
    for (let count = 0; count < writes; count++) {
      await this.#hold(attempt, lease, random.u32() % holdMsMax);
      if (struck && count === writes - 1) this.#place.holding(STRUCK_LOCK, false);
      if (!wish.fenced) continue;
      const mode = wish.mode === 'read' ? 'read' : 'write';
      await Promise.all(wish.locks.map((lock) => resource.write(lock, lease.token, mode)));
    }
  }

  /** Looks at the lease from time to time: heartbeats prolong it, and what is promised is to be on record. */
  async #hold(attempt: string, lease: LockLease, holdMs: number): Promise<void> {
    for (let leftMs = holdMs; leftMs >= 0; leftMs -= LOOK_INTERVAL_MS) {
      await delay(Math.min(leftMs, LOOK_INTERVAL_MS));
      const atMs = nowMs();
      const leaseEndsAtMs = atMs + lease.remainingMs();
      this.#place.recorder.record({ kind: 'looked', atMs, attempt, leaseEndsAtMs });
    }
  }

  /** Goes on as a reader; what comes back reads a little longer and lets go. Nothing if it was lost by then. */
  async #downgrade(wish: Wish, within: string, lease: LockLease): Promise<(() => Promise<void>) | undefined> {
    const { recorder, client } = this.#place;
    const attempt = `${client}/${++attemptCount}`;
    recorder.record({
      kind: 'asked',
      atMs: nowMs(),
      attempt,
      client,
      locks: wish.locks,
      mode: 'read',
      within,
    });
    let read: LockLease;
    try {
      read = await wish.downgrade!(this.#holdfast, lease);
    } catch (error) {
      recorder.record({
        kind: 'gave-up',
        atMs: nowMs(),
        attempt,
        reason: error instanceof LockLostError ? 'lost' : reasonOf(error),
        detail: String(error),
      });
      return undefined;
    }
    this.#recordGrant(attempt, read);
    const reading: Wish = { ...wish, mode: 'read', lock: (holdfast) => holdfast.readWriteLock('rw').read };
    const stop = this.#attend(attempt, read);
    return async () => {
      await this.#write(reading, attempt, read);
      recorder.record({ kind: 'release-started', atMs: nowMs(), attempt });
      await read.release();
      recorder.record({ kind: 'released', atMs: nowMs(), attempt });
      stop();
    };
  }
}

function reasonOf(error: unknown): GaveUp['reason'] {
  if (error instanceof LockTimeoutError) return 'timeout';
  if (error instanceof LockUnreachableError) return 'unreachable';
  if (error instanceof ContenderEvictedError) return 'evicted';
  return 'error';
}
