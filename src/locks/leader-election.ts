import { onceAborted, orAbort } from '../base/abort.ts';
import { deferred } from '../base/deferred.ts';
import { endableGenerator } from '../base/endable-generator.ts';
import { checkOptionNames, type OptionNames } from '../base/option-names.ts';
import { checkFunction } from '../client/arguments.ts';
import { type CallOptions, callOptionNames, checkCallOptions } from '../client/call-options.ts';
import { isServerError, SessionLostError, UnreachableError } from '../protocol/errors.ts';
import { isInterrupted } from '../queue/settled-writes.ts';
import { ZooKeeperQueue } from '../queue/zookeeper-queue.ts';
import type { WatchEvent } from '../session/watch-registry.ts';
import type { AcquireOptions } from './lock.ts';
import type { LockContext } from './lock-context.ts';
import { type FencingToken, type Holding, LockLease } from './lock-lease.ts';
import { QueueLock } from './queue-lock.ts';
import { leading } from './turn.ts';
import { checkReleaseBound, type ReleaseBound, releaseWithin } from './work-under-lock.ts';

/** Who leads. */
export interface Leader {
  /** What the leader calls itself. */
  readonly id: string;
  /** Larger for each later leader. */
  readonly epoch: bigint;
}

/** A lease on leading: for as long as it is held, nobody else leads. */
export class Leadership extends LockLease {
  /** The fencing token of this term: larger than that of every leader before. */
  get epoch(): FencingToken {
    return this.token;
  }

  /** Lets the next candidate lead. */
  resign(options: CallOptions = {}): Promise<void> {
    return this.release(options);
  }
}

const observeNames: OptionNames<{ readonly signal?: AbortSignal }> = { signal: true };

/**
 * One leader among many candidates, the first who came. Shared with Curator's `LeaderLatch`.
 *
 *   campaign   waits for leadership; a session lost while waiting is replaced, and the queue joined again
 *   lead       campaigns, runs, and campaigns again when leadership was lost, until it is told to stop
 *   observe    who leads, now and after each change
 */
export class LeaderElection extends QueueLock {
  /** What this candidate calls itself. */
  readonly id: string;
  readonly #folder: string;

  /** @internal */
  protected readonly usedAs = 'election';

  /** @internal */
  constructor(context: LockContext, name: string, options: { readonly id?: string } = {}) {
    const folder = `${context.root}/${name}`;
    super(context, name, { queue: new ZooKeeperQueue(context.store, folder), role: 'leader', rule: leading });
    this.#folder = folder;
    this.id = options.id ?? `${context.owner.host}:${context.owner.pid}`;
  }

  /** Waits until this candidate leads. @throws as `acquire`. */
  async campaign(options: AcquireOptions = {}): Promise<Leadership> {
    this.checkNames('campaign', options);
    return this.acquire(options) as Promise<Leadership>;
  }

  /**
   * Runs `run` whenever this candidate leads, until the signal fires. What `run` is given as its second argument fires
   * when it is to end: leadership was lost or asked for, or the signal has fired. The next term begins when `run` has
   * ended, also where it ends by throwing because of that signal, or after a loss. A release that the server refuses at
   * the end of a term is repeated, and the next campaign waits for it.
   *
   * @throws the signal's own reason; what `run` throws for other reasons; as `campaign`, LOCK_CONTENDER_EVICTED
   * included: an operator who removes a candidate decides that it is none.
   */
  async lead(
    run: (leadership: Leadership, signal: AbortSignal) => Promise<unknown>,
    options: AcquireOptions & ReleaseBound & { readonly signal: AbortSignal },
  ): Promise<never> {
    checkFunction('lead', run);
    checkOptionNames<object>('lead', options, this.optionNames.using);
    if (options.signal === undefined)
      throw new TypeError('signal: none given; an AbortSignal is needed to end it');
    checkReleaseBound(options);
    const { releaseTimeoutMs: _, ...campaigning } = options;
    for (;;) {
      const leadership = await this.campaign(campaigning);
      using ending = eitherOf(leadership.signal, leadership.revocation, options.signal);
      try {
        await run(leadership, ending.signal);
      } catch (error) {
        options.signal.throwIfAborted();
        this.#passOver(error, leadership, ending.signal);
      } finally {
        await this.#endTerm(leadership, options);
      }
    }
  }

  /** Throws what ended the work of a leader, unless that was the end of its leadership, or a request for it. */
  #passOver(error: unknown, leadership: Leadership, ending: AbortSignal): void {
    if (ending.aborted && isBecauseOf(ending.reason, error)) return;
    // The signal may have fired for a request for the leadership, which was lost after that.
    if (!leadership.lossNow()) throw error;
    const failure = { election: this.name, epoch: leadership.epoch, error };
    this.context.log('warn', 'the work of a leader failed after its leadership was lost', failure);
  }

  /** A refused release is repeated until the entry is gone, and does not hide what ended the term. */
  async #endTerm(leadership: Leadership, bound: ReleaseBound): Promise<void> {
    if (leadership.lossNow()) {
      leadership.release().catch(() => {});
      return;
    }
    try {
      await releaseWithin(this.context, leadership, bound);
    } catch (error) {
      const refusal = { election: this.name, epoch: leadership.epoch, error };
      this.context.log('warn', 'the release at the end of a term was refused, and is repeated', refusal);
    }
  }

  /** Who leads now; undefined if nobody does. Without a bound it ends as `inspect` does. */
  async leader(options: CallOptions = {}): Promise<Leader | undefined> {
    checkCallOptions('leader', options, callOptionNames);
    const looking = (signal: AbortSignal) => this.#look(undefined, { signal });
    return (await this.context.zk.bounded(`leader of ${this.name}`, options, looking)).leader;
  }

  /**
   * Who leads, now and after each change, undefined while nobody does. Goes on over lost sessions; leaders that lasted
   * less than a round trip may be skipped.
   */
  observe(options: { readonly signal?: AbortSignal } = {}): AsyncGenerator<Leader | undefined, void, void> {
    checkOptionNames('observe', options, observeNames);
    return endableGenerator((ended) => this.#observe([options.signal, ended]));
  }

  async *#observe(
    ends: readonly (AbortSignal | undefined)[],
  ): AsyncGenerator<Leader | undefined, void, void> {
    let last: Leader | undefined | null = null;
    for (;;) {
      for (const end of ends) end?.throwIfAborted();
      const changed = deferred();
      const onChange = (_event: WatchEvent) => changed.resolve();
      let seen: Awaited<ReturnType<LeaderElection['leader']>>;
      let stop: () => void;
      const looking = this.#look(onChange);
      try {
        const looked = await orAbort(looking, ...ends);
        seen = looked.leader;
        stop = looked.stop;
      } catch (error) {
        if (ends.some((end) => end?.aborted)) looking.then((late) => late.stop()).catch(() => {}); // Its watch is still to come.
        if (isPassing(error)) continue;
        throw error;
      }
      try {
        if (last === null || last?.epoch !== seen?.epoch) {
          last = seen;
          yield seen;
        }
        await orAbort(changed.promise, ...ends);
      } finally {
        stop();
      }
    }
  }

  protected override describe(): string {
    return this.id;
  }

  protected override makeLease(holding: Holding): Leadership {
    return new Leadership(holding);
  }

  /** The first candidate, whose node is watched then; the folder only while there is none. */
  async #look(
    onChange: ((event: WatchEvent) => void) | undefined,
    bounds: CallOptions = {},
  ): Promise<{ readonly leader: Leader | undefined; stop(): void }> {
    const { zk } = this.context;
    const watch = onChange && { watch: onChange };
    for (;;) {
      const view = await this.queue.view(bounds);
      const first = view.entries[0];
      if (first) {
        const path = `${this.#folder}/${first.name}`;
        try {
          const { data, stat } = await zk.get(path, { ...bounds, ...watch });
          const stop = () => void (onChange && zk.unwatch(path, 'data', onChange));
          const { tokens } = this.context.store.current;
          const epoch = tokens.of(stat.czxid) ?? (await tokens.whenKnown(stat.czxid));
          return { leader: { id: data?.toString('utf8') ?? '', epoch }, stop };
        } catch (error) {
          if (!isServerError(error, 'no-node')) throw error;
          continue; // Gone between the two: look again.
        }
      }
      if (!onChange) return { leader: undefined, stop: () => {} };
      const stop = await this.#watchForFirst(onChange);
      if (stop) return { leader: undefined, stop };
    }
  }

  /** Undefined if someone has come meanwhile. */
  async #watchForFirst(onChange: (event: WatchEvent) => void): Promise<(() => void) | undefined> {
    const { zk } = this.context;
    try {
      const names = await zk.children(this.#folder, { watch: onChange });
      const stop = () => void zk.unwatch(this.#folder, 'children', onChange);
      if (names.length === 0) return stop;
      stop();
      return undefined;
    } catch (error) {
      if (!isServerError(error, 'no-node')) throw error;
      const stat = await zk.exists(this.#folder, { watch: onChange });
      const stop = () => void zk.unwatch(this.#folder, 'exists', onChange);
      if (!stat) return stop;
      stop();
      return undefined;
    }
  }
}

/** Over when there is a server and a session again: an observation goes on then. */
function isPassing(error: unknown): boolean {
  return error instanceof SessionLostError || error instanceof UnreachableError || isInterrupted(error);
}

const CAUSES_MAX = 16;

/** Whether an error says that work was given up because a signal had fired for this reason. */
function isBecauseOf(reason: unknown, error: unknown): boolean {
  let cause = error;
  for (let depth = 0; depth < CAUSES_MAX && cause !== undefined; depth++) {
    if (cause === reason) return true;
    if (!(cause instanceof Error)) return false;
    if (cause.name === 'AbortError') return true;
    cause = cause.cause;
  }
  return false;
}

/** Fires with the first of them. (`AbortSignal.any` keeps a signal for as long as its sources live, in Node 20.) */
function eitherOf(...sources: readonly AbortSignal[]): Disposable & { readonly signal: AbortSignal } {
  const controller = new AbortController();
  const listeners = sources.map((source) => {
    const onAbort = () => controller.abort(source.reason);
    if (source.aborted) onAbort();
    return onceAborted(source, onAbort);
  });
  return {
    signal: controller.signal,
    [Symbol.dispose]: () => {
      for (const stop of listeners) stop();
    },
  };
}
