import type { Emitter } from '../base/emitter.ts';
import type { Link } from '../base/linked-list.ts';
import { boundedWait } from '../client/bounded-wait.ts';
import { type CallOptions, callOptionNames, checkCallOptions } from '../client/call-options.ts';
import type { MultiResults, MultiWrite } from '../client/operations-of-multi.ts';
import { ops } from '../client/operations-of-multi.ts';
import { MultiError, ServerError, ZkError } from '../protocol/errors.ts';
import type { PlaceEvents } from '../queue/lock-queue.ts';
import type { Grant } from './grant.ts';
import type { LastingHold } from './lasting-holds.ts';
import type { LockContext } from './lock-context.ts';
import { type HoldMessage, type HoldStep, isHeard, type LockUse, traceHold } from './lock-diagnostics.ts';
import {
  ContenderEvictedError,
  type LockError,
  LockLostError,
  LockReleasedError,
  LockRevokedError,
} from './lock-errors.ts';

/** Larger means granted later. A resource that remembers the largest can refuse whoever was overtaken. */
export type FencingToken = bigint & { readonly __brand: 'FencingToken' };

/** What a lock tells its listeners. */
export interface LockEvents {
  /** Granted. */
  lockAcquired: { readonly lease: LockLease; readonly waitedMs: number };
  /** Let go by this program. */
  lockReleased: { readonly token: bigint; readonly heldMs: number };
  /** Not granted at once: in the queue, behind this many. */
  waiting: { readonly ahead: number; readonly behind: string };
  /** The queue has moved, or was looked at again. */
  position: { readonly ahead: number };
  /** Exclusivity can no longer be promised. */
  lost: { readonly token: bigint; readonly error: LockLostError };
  /** Someone asks for the lock. */
  revoked: { readonly token: bigint };
}

/** What all leases of one grant share. Re-entry makes another lease of the same holding. */
export class Holding implements PlaceEvents, LastingHold {
  readonly lockName: string;
  readonly token: FencingToken;
  readonly section: number;
  readonly #context: LockContext;
  readonly #grant: Grant;
  readonly #events: Emitter<LockEvents>;
  readonly grantedAtMs: number;
  readonly #owner: unknown;
  readonly #use: LockUse;
  /** Among the holds that have not lasted for long. */
  #young: Link<LastingHold> | undefined;
  #message: HoldMessage | undefined;
  #state: 'held' | 'lost' | 'released' = 'held';
  #leaseCount = 0;
  #contended: boolean;
  /** Made when they are asked for: most holds end without. */
  #lossController: AbortController | undefined;
  #revocationController: AbortController | undefined;
  #loss: LockLostError | undefined;
  #revocation: LockRevokedError | undefined;
  #left: Promise<void> | undefined;
  #lostListeners: Set<(error: LockLostError) => void> | undefined;

  constructor(
    context: LockContext,
    grant: Grant,
    lock: {
      readonly name: string;
      readonly use: LockUse;
      readonly events: Emitter<LockEvents>;
      /** The lock, if others are to know of it what it holds. */
      readonly owner?: unknown;
    },
  ) {
    this.#context = context;
    this.#grant = grant;
    this.#events = lock.events;
    this.#owner = lock.owner;
    this.lockName = lock.name;
    this.token = grant.token as FencingToken;
    this.section = grant.section ?? 0;
    this.#contended = grant.contended;
    this.#use = lock.use;
    this.grantedAtMs = context.clock.nowMs();
    grant.hold.onEnded((cause) => this.#lose(new LockLostError(this.lockName, cause.message, { cause })));
    if (!grant.watched) this.#young = context.young.add(this);
    grant.attend(this);
  }

  /** Whether it is held, as a hold of this lock. */
  isHoldOf(lock: unknown): boolean {
    return this.#state === 'held' && this.#owner === lock;
  }

  get signal(): AbortSignal {
    this.#lossController ??= new AbortController();
    return this.#madeLate(this.#lossController, this.#loss);
  }
  get revocation(): AbortSignal {
    this.#revocationController ??= new AbortController();
    return this.#madeLate(this.#revocationController, this.#revocation);
  }

  /** Made after its reason, a signal fires at once, unless the lock was simply released. */
  #madeLate(controller: AbortController, reason: LockError | undefined): AbortSignal {
    if (reason && this.#state !== 'released' && !controller.signal.aborted) controller.abort(reason);
    return controller.signal;
  }

  get paths(): readonly string[] {
    return this.#grant.paths;
  }
  get grant(): Grant {
    return this.#grant;
  }

  remainingMs(): number {
    return this.#state === 'held' ? this.#grant.hold.remainingMs() : 0;
  }

  assertHeld(): void {
    if (this.remainingMs() > 0) return;
    if (this.#state === 'released') throw new LockReleasedError(this.lockName, 'it was released');
    throw this.lossNow();
  }

  /** Why it is lost, if it is, by the clock too; undefined while it is held, and if it was released before. */
  lossNow(): LockLostError | undefined {
    if (this.#state === 'released' || this.remainingMs() > 0) return undefined;
    if (this.#loss) return this.#loss;
    return new LockLostError(this.lockName, 'its lease has ended');
  }

  /** Throws if it was told that it is lost: that it has left its place, too. The clock is not looked at. */
  assertNotLost(): void {
    if (this.#state === 'lost') throw this.#loss;
  }

  async guard<const Ops extends readonly MultiWrite<unknown>[]>(
    writes: Ops,
    options: CallOptions,
  ): Promise<MultiResults<Ops>> {
    this.assertHeld();
    checkCallOptions('guard', options, callOptionNames);
    options.signal?.throwIfAborted();
    const checks = this.#grant.paths.map((path) => ops.check(path));
    this.#grant.openWriteCount++;
    try {
      const results = await this.#context.zk.multi([...checks, ...writes], {
        ...options,
        ...this.#grant.bound,
      });
      this.#grant.openWriteCount--;
      return results.slice(checks.length) as MultiResults<Ops>;
    } catch (error) {
      // One that was given up by its signal may be on its way, too.
      if (!isOfUnknownOutcome(error) && !options.signal?.aborted) this.#grant.openWriteCount--;
      if (!(error instanceof MultiError)) throw error;
      if (error.index < checks.length) {
        throw new LockLostError(this.lockName, 'its node is gone; nothing was written', { cause: error });
      }
      throw new MultiError(error.serverCode, 'guarded', error.path, error.index - checks.length);
    }
  }

  /** Tells those who listen that it was granted. */
  granted(): void {
    this.#tell('grant');
  }

  /** Calls `listener` when it is lost; the function that is returned takes it back. */
  onLost(listener: (error: LockLostError) => void): () => void {
    this.#lostListeners ??= new Set();
    this.#lostListeners.add(listener);
    return () => void this.#lostListeners?.delete(listener);
  }

  /** One more lease of this holding. */
  enter(): void {
    this.#leaseCount++;
  }

  /** Waits within bounds for what goes on behind. */
  awaitWithin<T>(what: string, promise: Promise<T>, options: CallOptions): Promise<T> {
    return boundedWait(this.#context.clock, `${what} of lock ${this.lockName}`, promise, options);
  }

  /** One lease less; with the last one the lock is let go. */
  leave(): Promise<void> {
    if (--this.#leaseCount > 0) return Promise.resolve();
    return this.#release();
  }

  /** Tries once more to let go, after that was refused. */
  leaveAgain(): Promise<void> {
    return this.#grant.leave({ baton: false });
  }

  #release(): Promise<void> {
    if (this.#state === 'held') {
      // One that has ended by the clock, and was not heard of yet, is let go of as a lost one.
      const released = this.#grant.hold.remainingMs() > 0;
      this.#end('released');
      const announce = released && this.#context.lockDelayMs > 0;
      const baton = released && (this.#contended || announce);
      // On another connection the next holder's writes would overtake those.
      const byServer = this.#grant.openWriteCount > 0;
      this.#left = this.#grant.leave({ released, baton, announce, byServer });
      if (this.#events.isHeard('lockReleased') || isHeard('release')) {
        const heldMs = this.#context.clock.nowMs() - this.grantedAtMs;
        this.#events.emit('lockReleased', { token: this.token, heldMs });
        this.#tell('release', { heldMs });
      }
    }
    return this.#left ?? Promise.resolve();
  }

  #end(state: 'lost' | 'released'): void {
    this.#state = state;
    this.#young?.remove();
    this.#grant.hold.release();
  }

  /** Its node was removed by someone else. */
  evicted(): void {
    this.#lose(removedFrom(this.lockName));
  }

  #lose(error: LockLostError): void {
    if (this.#state !== 'held') return;
    this.#end('lost');
    this.#loss = error;
    this.#fire(this.#lossController, error);
    for (const listener of [...(this.#lostListeners ?? [])]) listener(error);
    this.#events.emit('lost', { token: this.token, error });
    this.#tell('lost', { heldMs: this.#context.clock.nowMs() - this.grantedAtMs, error });
    // The session may live on, and the node with it: nobody is to wait behind a lease that is no more.
    this.#left = this.#grant.leave({ baton: false }).catch((failure) => {
      this.#context.log('warn', 'a lost lock could not be left', { lock: this.lockName, error: failure });
    });
  }

  /** Someone asks for it. */
  revoked(): void {
    if (this.#state !== 'held' || this.#revocation) return;
    this.#revocation = new LockRevokedError(this.lockName, 'someone asks for it');
    this.#fire(this.#revocationController, this.#revocation);
    this.#events.emit('revoked', { token: this.token });
    this.#tell('revoked');
  }

  #tell(step: HoldStep, end?: Pick<HoldMessage, 'heldMs' | 'error'>): void {
    if (!isHeard(step)) return;
    this.#message ??= { lockName: this.lockName, use: this.#use, token: this.token };
    traceHold(step, Object.assign(this.#message, end));
  }

  #fire(controller: AbortController | undefined, reason: LockError): void {
    try {
      controller?.abort(reason);
    } catch (error) {
      this.#context.listenerFailed(error);
    }
  }

  /** It is watched from now on. */
  lasted(): void {
    this.#grant.watchSelf().then(
      (others) => {
        this.#contended ||= others;
      },
      (error) => {
        if (error instanceof ServerError) {
          this.#context.log('warn', 'a held lock cannot be watched', { lock: this.lockName, error });
        }
      },
    );
  }
}

/**
 * Proof that the lock was granted, for as long as `signal` has not fired and `remainingMs()` is not 0.
 *
 * Not promised: that code stops by itself. A process that stands still runs on past its lease; only a resource that
 * checks `token` is safe then.
 */
export class LockLease implements AsyncDisposable {
  readonly #holding: Holding;
  #released: Promise<void> | undefined;

  /** @internal */
  constructor(holding: Holding) {
    this.#holding = holding;
    holding.enter();
  }

  /** The fencing token: the number of the transaction that made this contender. The same when re-entered. */
  get token(): FencingToken {
    return this.#holding.token;
  }

  /**
   * Which of the holds of one token this is, from 0. Always 0, but for a mutex with `cache` or `handOff`, whose tasks
   * hold one node after the other: what orders all grants there is the token, and then this.
   */
  get section(): number {
    return this.#holding.section;
  }

  get lockName(): string {
    return this.#holding.lockName;
  }

  /** Fires when the lock is lost, with a `LockLostError` that says how; for nothing else. */
  get signal(): AbortSignal {
    return this.#holding.signal;
  }

  /**
   * Fires when someone asks for the lock, with a `LockRevokedError`. The lock is still held, until it is released;
   * `signal` still reports a loss that follows.
   */
  get revocation(): AbortSignal {
    return this.#holding.revocation;
  }

  /** From the clock, not from a flag: right even in the first line after a long stall of the event loop. */
  remainingMs(): number {
    return this.#released !== undefined ? 0 : this.#holding.remainingMs();
  }

  /** @throws LOCK_LOST, LOCK_RELEASED. */
  assertHeld(): void {
    if (this.#released !== undefined) throw new LockReleasedError(this.lockName, 'it was released');
    this.#holding.assertHeld();
  }

  /**
   * Writes to ZooKeeper only if the lock is still held: one transaction that also checks the contender's node.
   *
   * @throws LOCK_LOST if it is not, and MultiError as `multi` does; nothing was written in either case. Given up by
   * its signal or `timeoutMs`, it may have been written.
   */
  async guard<const Ops extends readonly MultiWrite<unknown>[]>(
    writes: Ops,
    options: CallOptions = {},
  ): Promise<MultiResults<Ops>> {
    this.assertHeld();
    return this.#holding.guard(writes, options);
  }

  /**
   * Lets go. Resolves when the server has confirmed it, or the session is over; repeats by itself while disconnected.
   * Idempotent, and no error if the lock is lost already. Where the server refused it, it rejects,
   * each further call tries again, and so does the library in the background. A bound is one of the wait for that: the
   * release goes on behind.
   *
   * @throws ZK_REQUEST_TIMEOUT after `timeoutMs`, the signal's own reason.
   */
  release(options?: CallOptions): Promise<void> {
    if (options) checkCallOptions('release', options, callOptionNames);
    const before = this.#released;
    this.#released =
      before === undefined ? this.#holding.leave() : before.catch(() => this.#holding.leaveAgain());
    return options ? this.#holding.awaitWithin('release', this.#released, options) : this.#released;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  /** Why it is lost, if it is, by the clock too; undefined while it is held, and if it was released before. @internal */
  lossNow(): LockLostError | undefined {
    return this.#released !== undefined ? undefined : this.#holding.lossNow();
  }

  /** @internal */
  get holding(): Holding {
    return this.#holding;
  }
}

function isOfUnknownOutcome(error: unknown): boolean {
  return error instanceof ZkError && error.outcome === 'unknown';
}

/** The cause tells it from the end of the lease. */
function removedFrom(lockName: string): LockLostError {
  const cause = new ContenderEvictedError(lockName, 'removed from the queue by someone else');
  return new LockLostError(lockName, 'its node was removed by someone else', { cause });
}
