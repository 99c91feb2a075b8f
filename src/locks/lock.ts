import { AsyncLocalStorage } from 'node:async_hooks';
import { Emitter } from '../base/emitter.ts';
import { checkOptionNames, givenOf, type OptionNames, withInternalNames } from '../base/option-names.ts';
import { checkChoice, checkFunction } from '../client/arguments.ts';
import { checkBounds } from '../client/call-options.ts';
import { isServerError, UnreachableError } from '../protocol/errors.ts';
import { rejoinOnSessionLoss } from './contention.ts';
import { GiveUp, type WaitOptions } from './give-up.ts';
import type { Grant } from './grant.ts';
import { HolderLook } from './holder-look.ts';
import type { LockContext } from './lock-context.ts';
import {
  type AcquireMessage,
  type LockUse,
  traceAcquire,
  traceAcquired,
  traceWait,
} from './lock-diagnostics.ts';
import {
  ContenderEvictedError,
  LockLostError,
  LockTimeoutError,
  LockUnreachableError,
  WrongKindError,
} from './lock-errors.ts';
import { Holding, type LockEvents, LockLease } from './lock-lease.ts';
import { checkPeopleText } from './owner.ts';
import type { Turn } from './turn.ts';
import { checkReleaseBound, endWork, type ReleaseBound } from './work-under-lock.ts';

/** How a lock is to be acquired. */
export interface AcquireOptions extends WaitOptions {
  /** Re-enters: a lease that is held already. The same token; let go with the last release. */
  readonly within?: LockLease;
  /** Why, for people who look at the queue. */
  readonly reason?: string;
  /** @internal */
  readonly trace?: AcquireMessage;
  /** What is seen of the queue, for the error of a wait that ends. @internal */
  readonly look?: HolderLook;
}

/** What `attempt` answers: it does not throw for what is to be expected. */
export type Attempt =
  | { readonly ok: true; readonly lease: LockLease }
  | { readonly ok: false; readonly reason: 'busy' | 'timeout' | 'aborted' | 'unreachable' };

/** How a recipe is contended for, told to those who listen or to nobody. */
type Contending = (
  trace: AcquireMessage | undefined,
  giveUp: AbortSignal | undefined,
) => Promise<Grant | undefined>;

/** The options that a lock's calls take, by name. */
export interface LockOptionNames {
  readonly acquiring: Readonly<Record<string, true>>;
  /** Those of `use`. */
  readonly using: Readonly<Record<string, true>>;
}

const commonNames: OptionNames<Omit<AcquireOptions, 'trace' | 'look'>> = {
  ...{ signal: true, timeoutMs: true, within: true, reason: true },
};
const releaseNames: OptionNames<ReleaseBound> = { releaseTimeoutMs: true };

/** The names for a lock that has options of its own; the internal ones only its own code gives. @internal */
export function lockOptionNames(
  own: Readonly<Record<string, true>>,
  internal: readonly string[] = [],
): LockOptionNames {
  const names = { ...commonNames, ...own };
  return {
    acquiring: withInternalNames(names, internal),
    using: withInternalNames({ ...names, ...releaseNames }, internal),
  };
}

const plainNames = lockOptionNames({});

const WAITING = { trying: false } as const;
const TRYING = { trying: true } as const;

/** Which leases the code that runs now has been entered with. */
const entered = new AsyncLocalStorage<ReadonlyMap<Lock, LockLease>>();

const eventNames: OptionNames<LockEvents> = {
  lockAcquired: true,
  lockReleased: true,
  waiting: true,
  position: true,
  lost: true,
  revoked: true,
};

/** @throws TypeError for an event that does not exist: its listener would never be called. */
function checkEvent(name: keyof LockEvents): void {
  checkChoice('event', name, eventNames);
}

/** What every lock offers. A recipe says how it is contended for. */
export abstract class Lock<Options extends AcquireOptions = AcquireOptions> {
  readonly name: string;
  /** @internal */
  protected readonly context: LockContext;
  /** @internal */
  protected readonly events: Emitter<LockEvents>;

  /** @internal */
  constructor(context: LockContext, name: string) {
    this.context = context;
    this.name = name;
    this.events = new Emitter<LockEvents>((error) => context.listenerFailed(error));
  }

  /** As what it is taken, for those who listen. @internal */
  protected abstract readonly usedAs: LockUse;
  /** Waits for the turn; undefined comes only from `tryContend`. */
  protected abstract contend(options: Options, giveUp: AbortSignal | undefined): Promise<Grant>;
  protected abstract tryContend(
    options: Options,
    giveUp: AbortSignal | undefined,
  ): Promise<Grant | undefined>;
  /** Refuses options that cannot be, before anything is done. */
  protected check(_options: Options): void {}
  /** The options that there are. @internal */
  protected get optionNames(): LockOptionNames {
    return plainNames;
  }

  /**
   * Waits until the lock is granted, in order of arrival.
   *
   * @throws TypeError, RangeError for a bad option, or one that does not exist, before anything is sent; LOCK_TIMEOUT, LOCK_UNREACHABLE, the signal's own reason; LOCK_CONTENDER_EVICTED,
   * LOCK_WRONG_KIND, LOCK_FOREIGN_NODE, ZK_NO_AUTH. In each case nothing is left behind.
   */
  acquire(options: Options = {} as Options): Promise<LockLease> {
    try {
      this.checkOptions('acquire', options);
      if (options.within) return Promise.resolve(this.#reenter(options.within));
      if (options.timeoutMs === 0) return this.#acquireNow(options);
      const wish = options.timeoutMs === undefined ? options : { ...options, look: new HolderLook() };
      const waiting: Contending = (trace, giveUp) => this.contend(trace ? { ...wish, trace } : wish, giveUp);
      return this.#run(wish, WAITING, waiting) as Promise<LockLease>;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Not to wait for others is not to wait for the answer: a lock that is free is granted. */
  async #acquireNow({ timeoutMs: _, ...options }: Options): Promise<LockLease> {
    const lease = await this.tryAcquire(options as Options);
    if (!lease) throw new LockTimeoutError(this.name, 0);
    return lease;
  }

  /** The lease if the lock is free, `null` if it is not: never queues. One read if it is taken. */
  async tryAcquire(options: Options = {} as Options): Promise<LockLease | null> {
    this.checkOptions('tryAcquire', options);
    if (options.within) return this.#reenter(options.within);
    const bounded = { timeoutMs: this.context.zk.session.timeoutMs, ...givenOf(options) };
    const looking: Contending = (trace, giveUp) =>
      rejoinOnSessionLoss(giveUp, () => this.tryContend(trace ? { ...options, trace } : options, giveUp));
    return (await this.#run(bounded, TRYING, looking)) ?? null;
  }

  /** As `acquire` with a `timeoutMs`, as `tryAcquire` without: what is to be expected comes as a result. */
  async attempt(options: Options = {} as Options): Promise<Attempt> {
    this.checkNames('attempt', options);
    try {
      const lease =
        options.timeoutMs === undefined ? await this.tryAcquire(options) : await this.acquire(options);
      return lease ? { ok: true, lease } : { ok: false, reason: 'busy' };
    } catch (error) {
      if (options.signal?.aborted && error === options.signal.reason) return { ok: false, reason: 'aborted' };
      if (error instanceof LockTimeoutError) return { ok: false, reason: 'timeout' };
      if (error instanceof LockUnreachableError) return { ok: false, reason: 'unreachable' };
      throw error;
    }
  }

  /**
   * Acquires, runs, releases. Inside `run`, and whatever it calls and awaits, another `use` of this lock re-enters.
   * `run` is not stopped when the lock is lost: it has the lease's signal for that.
   *
   * @throws what `run` throws; as `acquire`; LOCK_LOST if the lock was lost before `run` had ended, whatever `run`
   * returned (`result`) or threw (`thrown`).
   */
  async use<T>(
    run: (lease: LockLease) => Promise<T> | T,
    options: Options & ReleaseBound = {} as Options,
  ): Promise<T> {
    checkFunction('use', run);
    checkOptionNames<object>('use', options, this.optionNames.using);
    checkReleaseBound(options);
    const { releaseTimeoutMs: _, ...acquiring } = options;
    const within = options.within ?? this.enteredWith(heldInContext);
    const lease = await this.acquire({ ...acquiring, ...(within && { within }) } as Options);
    const leases = new Map(entered.getStore());
    leases.set(this as never, lease);
    let work: { readonly result: T } | { readonly thrown: unknown };
    try {
      work = { result: await entered.run(leases, () => run(lease)) };
    } catch (thrown) {
      work = { thrown };
    }
    return endWork(this.context, lease, work, options);
  }

  /** Adds a listener for one of the lock's events and returns the function that removes it. */
  on<K extends keyof LockEvents>(name: K, listener: (event: LockEvents[K]) => unknown): () => void {
    checkEvent(name);
    checkFunction('listener', listener);
    this.events.on(name, listener);
    this.context.registry.setListenedTo(this, true);
    return () => this.off(name, listener);
  }

  off<K extends keyof LockEvents>(name: K, listener: (event: LockEvents[K]) => unknown): void {
    checkEvent(name);
    this.events.off(name, listener);
    this.context.registry.setListenedTo(this, this.events.hasListeners);
  }

  /** The lease that a nested `use` re-enters. @throws where it would wait for itself. @internal */
  protected enteredWith(leaseOf: (lock: Lock<never>) => LockLease | undefined): LockLease | undefined {
    return leaseOf(this as never);
  }

  /** What others are to know of the contender. @internal */
  protected describe({ reason }: Options): string {
    return this.context.describeOwner({ reason, wallMs: this.context.clock.wallMs() });
  }

  /** Tells listeners of one wait: once that it is one, and each time where it stands. @internal */
  protected tellOfWaiting(
    options: Options,
    lockName: string = this.name,
  ): (turn: Extract<Turn, { kind: 'wait' }>, own: string) => void {
    const { trace, look } = options;
    let waiting = false;
    return ({ ahead, for: { name } }, own) => {
      traceWait(trace, ahead);
      if (look) {
        look.ahead = ahead;
        look.behind = name;
        look.own.add(own);
        this.waitsForHolder(options, lockName);
      }
      if (!waiting) this.events.emit('waiting', { ahead, behind: name });
      waiting = true;
      this.events.emit('position', { ahead });
    };
  }

  /** It has to wait: before its time runs out it asks for whom. @internal */
  protected waitsForHolder({ look, timeoutMs }: Options, lockName: string = this.name): void {
    if (timeoutMs !== undefined) look?.waitsFor(lockName, timeoutMs, this.context);
  }

  /** @internal */
  protected leaseOf(grant: Grant, waitedMs: number): LockLease {
    const { context, name, events } = this;
    if (grant.hold.remainingMs() <= 0) {
      // It has ended before anyone could be told: nobody would leave.
      grant.hold.release();
      void grant.leave({ baton: false }).catch(() => {});
      throw new LockLostError(name, 'its lease has ended');
    }
    const holding = new Holding(context, grant, { name, use: this.usedAs, events, owner: this });
    const lease = this.makeLease(holding);
    holding.assertNotLost(); // Never hand out what is lost already.
    events.emit('lockAcquired', { lease, waitedMs });
    holding.granted();
    return lease;
  }

  /** @internal */
  protected makeLease(holding: Holding): LockLease {
    return new LockLease(holding);
  }

  /** So that `within` can be told from a lease of another lock. @internal */
  isHeldAs(lease: LockLease): boolean {
    return lease.holding.isHoldOf(this);
  }

  /** Not async: where nobody listens, nothing comes between the caller and the contest. */
  #run(
    options: Options,
    manner: { readonly trying: boolean },
    contend: Contending,
  ): Promise<LockLease | undefined> {
    const startedAtMs = this.context.clock.nowMs();
    const trace = traceAcquire(this.name, this.usedAs, manner);
    if (trace) return this.#traced(trace, options, startedAtMs, contend);
    return this.#bounded(options, startedAtMs, undefined, contend);
  }

  async #traced(
    trace: AcquireMessage,
    options: Options,
    startedAtMs: number,
    contend: Contending,
  ): Promise<LockLease | undefined> {
    const { clock } = this.context;
    try {
      const lease = await this.#bounded(options, startedAtMs, trace, contend);
      const durationMs = clock.nowMs() - startedAtMs;
      if (lease) traceAcquired(trace, { outcome: 'granted', durationMs, token: lease.token });
      else traceAcquired(trace, { outcome: 'busy', durationMs });
      return lease;
    } catch (error) {
      traceAcquired(trace, { outcome: 'failed', durationMs: clock.nowMs() - startedAtMs, error });
      throw error;
    }
  }

  /** Within the time and the signal that were given, and with errors that say what they mean for a lock. */
  async #bounded(
    options: Options,
    startedAtMs: number,
    trace: AcquireMessage | undefined,
    contend: Contending,
  ): Promise<LockLease | undefined> {
    const { clock } = this.context;
    const { look, timeoutMs: boundMs } = options;
    if (look && boundMs !== undefined) look.deadlineMs = startedAtMs + boundMs;
    const timedOut = (timeoutMs: number) => this.#timedOut(timeoutMs, look);
    const giveUp = new GiveUp(clock, options, timedOut);
    try {
      for (;;) {
        const grant = await contend(trace, giveUp.signal);
        if (!grant) return undefined;
        const over = grant.hold.remainingMs() === 0;
        if (!over && !giveUp.isDue) {
          const lease = this.#handOut(grant, clock.nowMs() - startedAtMs);
          if (lease) return lease;
        } else {
          grant.hold.release();
          void grant.leave({ baton: false }).catch(() => {});
        }
        if (giveUp.isDue) throw timedOut(options.timeoutMs!);
        // Granted, and lost to a stall before anyone was told: as with a session that is lost while waiting, once more.
      }
    } catch (error) {
      throw this.#explained(error);
    } finally {
      giveUp.end();
      look?.end();
    }
  }

  /** Undefined if the lease has ended meanwhile: nobody has held anything that could be lost. */
  #handOut(grant: Grant, waitedMs: number): LockLease | undefined {
    try {
      return this.leaseOf(grant, waitedMs);
    } catch (error) {
      if (!(error instanceof LockLostError)) throw error;
      if (error.cause instanceof ContenderEvictedError) throw error.cause; // Removed in the moment of its grant.
      return undefined;
    }
  }

  #timedOut(timeoutMs: number, look: HolderLook | undefined): Error {
    const { zk } = this.context;
    const { state, readOnly } = zk.session;
    if (state === 'connected' && !readOnly) return new LockTimeoutError(this.name, timeoutMs, look);
    const cause = readOnly ? undefined : zk.unreachable(timeoutMs);
    const why = cause?.message ?? `only one that takes no writes, within ${timeoutMs} ms`;
    return new LockUnreachableError(this.name, `no server to ask (${state}): ${why}`, { cause });
  }

  #explained(error: unknown): unknown {
    if (isServerError(error, 'no-children-for-ephemerals')) {
      return new WrongKindError(this.name, 'there is a simple lock under this name', { cause: error });
    }
    if (error instanceof UnreachableError || isServerError(error, 'not-read-only')) {
      return new LockUnreachableError(this.name, (error as Error).message, { cause: error });
    }
    return error;
  }

  #reenter(within: LockLease): LockLease {
    within.assertHeld();
    if (!this.isHeldAs(within)) {
      throw new TypeError(
        `within: a lease of lock ${within.lockName} given; one of this ${this.name} is needed`,
      );
    }
    return this.makeLease(within.holding);
  }

  /** @throws TypeError for an option that does not exist. @internal */
  protected checkNames(call: string, options: Options): void {
    checkOptionNames<object>(call, options, this.optionNames.acquiring);
  }

  /** Refuses bad options before anything is done. @internal */
  protected checkOptions(call: string, options: Options): void {
    this.checkNames(call, options);
    checkBounds(options);
    if (options.within !== undefined && !((options.within as unknown) instanceof LockLease)) {
      throw new TypeError('within: a lease is needed');
    }
    if (options.reason !== undefined) checkPeopleText('reason', options.reason);
    this.check(options);
  }
}

/** The lease of a lock that the code which runs now has been entered with, if it is held still. */
function heldInContext(lock: Lock<never>): LockLease | undefined {
  const lease = entered.getStore()?.get(lock as never);
  return lease && lease.remainingMs() > 0 ? lease : undefined;
}
