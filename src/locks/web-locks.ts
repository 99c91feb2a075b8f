import { Deadline } from '../base/clock.ts';
import type { OptionNames } from '../base/option-names.ts';
import { checkChoice, checkFunction } from '../client/arguments.ts';
import { type CallOptions, callOptionNames, checkCallOptions } from '../client/call-options.ts';
import type { AuditRecord } from './audit-log.ts';
import type { ContenderInfo, LockInfo } from './inspection.ts';
import type { ForceReleaseOptions } from './intervention.ts';
import type { Lock } from './lock.ts';
import { NotHolderError } from './lock-errors.ts';
import type { LockLease } from './lock-lease.ts';
import type { ReadWriteLock } from './read-write-lock.ts';
import { checkReleaseBound, endWork, type Facilities, type ReleaseBound } from './work-under-lock.ts';

/** Alone, or together with others who share. */
export type LockMode = 'exclusive' | 'shared';

/** How a lock is requested: what the Web Locks API takes, and two of our own. */
export interface LockRequestOptions extends ReleaseBound {
  /** `exclusive` if left out. */
  readonly mode?: LockMode;
  /** Calls back with `null`, at once, if it is not free. */
  readonly ifAvailable?: boolean;
  /**
   * Takes it from whoever holds it now, by force, and then waits for its turn. Leaves an audit record of each. As in a
   * browser, not together with `signal`; `timeoutMs` bounds it.
   */
  readonly steal?: boolean;
  /** Gives up waiting, with the signal's own reason. Does nothing once the lock is granted. */
  readonly signal?: AbortSignal;
  /** Gives up waiting after this long. Not in the Web Locks API. */
  readonly timeoutMs?: number;
  /** Why, for people who look at the queue; of a theft, for its record. Not in the Web Locks API. */
  readonly reason?: string;
}

const requestNames: OptionNames<LockRequestOptions> = {
  mode: true,
  ifAvailable: true,
  steal: true,
  signal: true,
  timeoutMs: true,
  reason: true,
  releaseTimeoutMs: true,
};

/** A lock that has been granted, for as long as the callback runs. */
export interface GrantedLock {
  readonly name: string;
  readonly mode: LockMode;
  /** Not in the Web Locks API: its token, its signal, guarded writes. */
  readonly lease: LockLease;
}

/** A lock that somebody holds or waits for, anywhere. */
export interface LockSnapshot {
  readonly name: string;
  readonly mode: LockMode;
  /** The ZooKeeper session of whoever it is. */
  readonly clientId: string;
}

/** All requests of everyone, as they were a moment ago. */
export interface LocksSnapshot {
  readonly held: readonly LockSnapshot[];
  readonly pending: readonly LockSnapshot[];
}

/** What is called when the lock is granted; with `null` only if `ifAvailable` was asked for. */
export type LockGrantedCallback<T> = (lock: GrantedLock | null) => T | Promise<T>;

/** What this face needs of the locks behind it. */
interface LocksBehind {
  readWriteLock(name: string): ReadWriteLock;
  inspect(name: string, options: CallOptions): Promise<LockInfo>;
  list(options: CallOptions): Promise<LockInfo[]>;
  forceRelease(name: string, options: ForceReleaseOptions): Promise<AuditRecord>;
}

/**
 * The shape of the browser's `navigator.locks`, over all machines: `request` and `query`. A name's lock is
 * `readWriteLock(name)`: `shared` reads, `exclusive` writes.
 *
 * Different from the Web Locks API, because machines fail and resources are fenced: a lock can be lost while the
 * callback runs, and `request` rejects then; one that steals takes the lock from those who hold it, and not the turns
 * of those who wait, whose tokens would be overtaken by its own.
 */
export class LockManager {
  readonly #locks: LocksBehind;
  readonly #facilities: Facilities;

  /** @internal */
  constructor(locks: LocksBehind, facilities: Facilities) {
    this.#locks = locks;
    this.#facilities = facilities;
  }

  /**
   * Acquires, calls back, and releases when what the callback returned has settled; resolves with that.
   *
   * @throws TypeError for options that contradict each other; LOCK_LOST if the lock is lost or stolen meanwhile;
   * as `acquire` otherwise.
   */
  request<T>(name: string, callback: LockGrantedCallback<T>): Promise<T>;
  request<T>(name: string, options: LockRequestOptions, callback: LockGrantedCallback<T>): Promise<T>;
  async request<T>(
    name: string,
    given: LockRequestOptions | LockGrantedCallback<T>,
    last?: LockGrantedCallback<T>,
  ): Promise<T> {
    const [options, callback] = typeof given === 'function' ? [{}, given] : [given, last];
    checkFunction('callback', callback);
    checkOptions(options);
    const { mode = 'exclusive', ifAvailable = false, steal = false, signal, timeoutMs, reason } = options;
    const sides = this.#locks.readWriteLock(name);
    const lock: Lock<never> = mode === 'shared' ? sides.read : sides.write;
    signal?.throwIfAborted();
    const deadline = steal && timeoutMs ? new Deadline(this.#facilities.clock, timeoutMs) : undefined;
    if (steal) await this.#takeFromHolders(name, reason ?? 'stolen by locks.request', deadline);
    const waiting = {
      ...(signal && { signal }),
      ...(timeoutMs !== undefined && { timeoutMs }),
      ...restOf(deadline),
      ...(reason !== undefined && { reason }),
    };
    const lease = await (ifAvailable ? lock.tryAcquire(waiting as never) : lock.acquire(waiting as never));
    if (!lease) return callback!(null);
    let work: { readonly result: T } | { readonly thrown: unknown };
    try {
      work = { result: await unlessLost(lease, Promise.resolve(callback!({ name, mode, lease }))) };
    } catch (thrown) {
      work = { thrown };
    }
    return endWork(this.#facilities, lease, work, options);
  }

  /** Who holds and who waits, for every name that is locked this way, here and elsewhere. Two round trips for each. */
  async query(options: CallOptions = {}): Promise<LocksSnapshot> {
    checkCallOptions('locks.query', options, callOptionNames);
    const locks = (await this.#locks.list(options)).filter(({ kind }) => kind === 'read-write');
    const shown = (side: 'holders' | 'queue') =>
      locks.flatMap((lock) =>
        lock[side].filter(isRequest).map((contender) => snapshot(lock.name, contender)),
      );
    return { held: shown('holders'), pending: shown('queue') };
  }

  /** Exactly those who hold now; one that lets go meanwhile has done so by itself. */
  async #takeFromHolders(name: string, reason: string, deadline: Deadline | undefined): Promise<void> {
    const { kind, holders } = await this.#locks.inspect(name, restOf(deadline));
    if (kind !== 'read-write') return; // Free, or of another kind, which acquiring will say.
    for (const { id } of holders) {
      try {
        await this.#locks.forceRelease(name, { holder: id, reason, ...restOf(deadline) });
      } catch (error) {
        if (!(error instanceof NotHolderError)) throw error;
      }
    }
  }
}

/** What is left of the time; at least a moment, since none at all would mean not to wait for others. */
function restOf(deadline: Deadline | undefined): Pick<CallOptions, 'timeoutMs'> {
  return deadline ? { timeoutMs: Math.max(1, Math.ceil(deadline.remainingMs())) } : {};
}

/** Rejects as soon as the lock is lost. What was called runs on, as nobody can stop it; its outcome is of no interest. */
async function unlessLost<T>(lease: LockLease, running: Promise<T>): Promise<T> {
  let stop = () => {};
  const lost = new Promise<never>((_, reject) => {
    stop = lease.holding.onLost(reject);
  });
  lost.catch(() => {});
  try {
    return await Promise.race([running, lost]);
  } finally {
    stop();
    running.catch(() => {});
  }
}

/** Everything that can be wrong with a request is found before it puts anyone out. */
function checkOptions(options: LockRequestOptions): void {
  checkCallOptions('locks.request', options, requestNames);
  checkReleaseBound(options);
  const { mode, ifAvailable, steal, signal, timeoutMs, reason } = options;
  if (mode !== undefined) checkChoice('mode', mode, { exclusive: 0, shared: 0 });
  if (reason !== undefined && typeof reason !== 'string') {
    throw new TypeError(`reason: a ${typeof reason} given; a string is needed`);
  }
  if (steal && reason?.trim() === '') throw new TypeError('reason: a text is needed, for the record');
  const contradictions: readonly [string, unknown, unknown][] = [
    ['steal and ifAvailable', steal, ifAvailable],
    ["steal and mode 'shared'", steal, mode === 'shared'],
    ['steal and signal', steal, signal],
    ['ifAvailable and signal', ifAvailable, signal],
    ['ifAvailable and timeoutMs', ifAvailable, timeoutMs !== undefined],
  ];
  for (const [names, one, other] of contradictions) {
    if (one && other) throw new TypeError(`${names}: only one of them can be meant`);
  }
}

/** An upgrade is one contender with two nodes: shown once, by the node that says how it holds. */
function isRequest({ role, session }: ContenderInfo, _index: number, all: readonly ContenderInfo[]): boolean {
  return (
    role !== 'upgradable' || !all.some((other) => other.role === 'upgraded' && other.session === session)
  );
}

function snapshot(name: string, { role, session }: ContenderInfo): LockSnapshot {
  const mode = role === 'write' || role === 'upgraded' ? 'exclusive' : 'shared';
  return { name, mode, clientId: BigInt.asUintN(64, session).toString(16) };
}
