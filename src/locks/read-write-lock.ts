import { orAbort } from '../base/abort.ts';
import { Deadline } from '../base/clock.ts';
import { checkOptionNames } from '../base/option-names.ts';
import { type CallOptions, callOptionNames, checkCallOptions } from '../client/call-options.ts';
import { isServerError, RequestTimeoutError, SessionLostError } from '../protocol/errors.ts';
import type { Place } from '../queue/lock-queue.ts';
import { ZooKeeperQueue } from '../queue/zookeeper-queue.ts';
import { holdOf } from './contention.ts';
import { GiveUpOrLoss } from './give-up.ts';
import { type Grant, PlaceGrant } from './grant.ts';
import { type AcquireOptions, type Lock, type LockOptionNames, lockOptionNames } from './lock.ts';
import type { LockContext } from './lock-context.ts';
import { LockLostError, LockUpgradeError } from './lock-errors.ts';
import type { Holding, LockLease } from './lock-lease.ts';
import { QueueLock } from './queue-lock.ts';
import { reading, writing } from './turn.ts';
import { UpgradableLock } from './upgradable-lock.ts';
import { contendForUpgrade, grantOfUpgrade, grantWithin, upgradeIfFree } from './upgrade.ts';
import type { ReleaseBound } from './work-under-lock.ts';

/**
 * Readers share, writers exclude; both in order of arrival. Shared with Curator's `InterProcessReadWriteLock`.
 *
 * A reader waits for the nearest writer ahead of it, a writer for whoever is just ahead. A writer goes on as a reader
 * by `downgrade`, keeping its turn. A reader cannot become a writer, since two who tried would wait for each other: one
 * that may want to write reads by `upgradable`, of which there is one at a time.
 *
 * Tokens: a writer's is larger than those of all writers before it. A reader's says which writes it can have seen; it
 * is not to be compared with other readers'.
 */
export class ReadWriteLock {
  readonly name: string;
  readonly read: ReadLock;
  readonly write: WriteLock;
  readonly upgradable: UpgradableLock;
  readonly #context: LockContext;

  /** @internal */
  constructor(context: LockContext, name: string) {
    const queue = new ZooKeeperQueue(context.store, `${context.root}/${name}`);
    this.name = name;
    this.#context = context;
    this.upgradable = new UpgradableLock(context, name, queue, () => this.write);
    this.write = new WriteLock(context, name, queue, { upgradable: this.upgradable, read: () => this.read });
    this.read = new ReadLock(context, name, queue, [this.write, this.upgradable]);
  }

  /**
   * Gives the write lock, or the upgradable one, up for the read lock, without letting a writer in between. The given
   * lease is released; once the reader holds, a bound is one of the wait for that, and the release goes on behind. Other
   * readers get in then. Of an upgrade the write lock is given up; the lease that was upgraded is held on.
   *
   * @throws as `acquire`, and then the given lease is held as before. Where the release is refused, reading is given up too.
   */
  async downgrade(lease: LockLease, options: CallOptions = {}): Promise<LockLease> {
    checkCallOptions('downgrade', options, callOptionNames);
    const { signal, timeoutMs } = options;
    const { clock, log } = this.#context;
    const deadline = timeoutMs === undefined ? undefined : new Deadline(clock, timeoutMs);
    const bounds = { ...(signal && { signal }), ...(timeoutMs !== undefined && { timeoutMs }) };
    lease.assertHeld();
    // Beside the upgraded entry a reader would wait; beside the one that was upgraded it holds.
    const within = this.write.upgradedFrom(lease) ?? lease;
    const read = await this.read.acquire({ ...bounds, within });
    const rest = { ...(signal && { signal }), ...(deadline && { timeoutMs: deadline.remainingMs() }) };
    try {
      await lease.holding.awaitWithin('release', lease.release(), rest);
    } catch (error) {
      if (!signal?.aborted && !(error instanceof RequestTimeoutError)) {
        void read.release().catch(() => {}); // The caller is given no lease to let go of.
        throw error;
      }
      log('warn', 'a release goes on behind', { lock: this.name });
    }
    return read;
  }
}

/** How to acquire for writing. */
export interface WriteOptions extends AcquireOptions {
  /** @internal */
  readonly upgrading?: LockLease;
  /** Settles when earlier calls on that lease have upgraded it, or have failed to. @internal */
  readonly after?: Promise<void> | undefined;
  /** It is a call of `use`. @internal */
  readonly inUse?: true;
}

const writeNames = lockOptionNames({}, ['upgrading', 'after', 'inUse'] satisfies (keyof WriteOptions)[]);

/**
 * The writing side of a `ReadWriteLock`. `within` takes upgradable leases too: that is to upgrade, and to re-enter the
 * upgrade if that lease is upgraded already.
 */
export class WriteLock extends QueueLock<WriteOptions> {
  readonly #upgradable: UpgradableLock;
  readonly #read: () => ReadLock;
  /** What an upgrade stands on, and the other way round. */
  readonly #standingOf = new WeakMap<Grant, LockLease>();
  readonly #upgrades = new WeakMap<Holding, Holding>();
  /** Upgrades that `use` has made. */
  readonly #inUse = new WeakSet<Grant>();
  /** Upgrades that are waited for, by what they stand on; settle when the upgrade is there, or will not be. */
  readonly #pending = new WeakMap<Holding, Promise<void>>();

  /** @internal */
  protected readonly usedAs = 'write';

  /** @internal */
  constructor(
    context: LockContext,
    name: string,
    queue: ZooKeeperQueue,
    sides: { readonly upgradable: UpgradableLock; readonly read: () => ReadLock },
  ) {
    super(context, name, { queue, role: 'write', rule: writing });
    this.#upgradable = sides.upgradable;
    this.#read = sides.read;
  }

  /** @internal */
  protected override get optionNames(): LockOptionNames {
    return writeNames;
  }

  override async acquire(options: WriteOptions = {}): Promise<LockLease> {
    this.checkOptions('acquire', options);
    const wish = this.#asUpgrade(options);
    const upgraded = this.#reenterable(wish);
    if (upgraded) return this.makeLease(upgraded);
    const acquiring = super.acquire(wish);
    this.#await(wish, acquiring);
    return acquiring;
  }

  override async tryAcquire(options: WriteOptions = {}): Promise<LockLease | null> {
    this.checkOptions('tryAcquire', options);
    const wish = this.#asUpgrade(options);
    const upgraded = this.#reenterable(wish);
    return upgraded ? this.makeLease(upgraded) : super.tryAcquire(wish);
  }

  override async use<T>(
    run: (lease: LockLease) => Promise<T> | T,
    options: WriteOptions & ReleaseBound = {},
  ): Promise<T> {
    checkOptionNames<object>('use', options, writeNames.using);
    return super.use(run, { ...options, inUse: true });
  }

  /** What an upgrade stands on; undefined if the lease is none of an upgrade. @internal */
  upgradedFrom({ holding }: LockLease): LockLease | undefined {
    return this.#standingOf.get(holding.grant);
  }

  protected override async contend(options: WriteOptions, giveUp: AbortSignal | undefined): Promise<Grant> {
    const { upgrading } = options;
    if (!upgrading) return super.contend(options, giveUp);
    if (options.after !== undefined) {
      // An entry of its own would wait for that of the earlier call.
      await orAbort(options.after, giveUp);
      const upgraded = this.#reenterable(options);
      if (upgraded) {
        return this.#noted(grantWithin(this.makeLease(upgraded)), this.#standingOf.get(upgraded.grant)!);
      }
    }
    for (const path of upgrading.holding.paths) options.look?.own.add(path.slice(path.lastIndexOf('/') + 1));
    const grant = await this.#on(upgrading, giveUp, (standing, orLoss) =>
      contendForUpgrade(this.contest(options, orLoss), standing),
    );
    if (options.inUse) this.#inUse.add(grant);
    return grant;
  }

  protected override async tryContend(
    options: WriteOptions,
    giveUp: AbortSignal | undefined,
  ): Promise<Grant | undefined> {
    const { upgrading } = options;
    if (!upgrading) return super.tryContend(options, giveUp);
    const grant = await this.#on(upgrading, giveUp, (standing, orLoss) =>
      upgradeIfFree(this.contest(options, orLoss), standing),
    );
    if (grant && options.inUse) this.#inUse.add(grant);
    return grant;
  }

  /** Inside `use` of the upgradable side a writer upgrades: behind it, it would wait for itself. */
  protected override enteredWith(
    leaseOf: (lock: Lock<never>) => LockLease | undefined,
  ): LockLease | undefined {
    const writing = super.enteredWith(leaseOf);
    if (writing) return writing;
    const upgradable = leaseOf(this.#upgradable);
    if (leaseOf(this.#read()) && !(upgradable && this.#reenterable({ upgrading: upgradable, inUse: true }))) {
      const advice = 'release the read lease first, and read by upgradable where writing may follow';
      throw new LockUpgradeError(this.name, `write.use inside read.use would wait for itself: ${advice}`);
    }
    return upgradable;
  }

  protected override leaseOf(grant: Grant, waitedMs: number): LockLease {
    const lease = super.leaseOf(grant, waitedMs);
    const standing = this.#standingOf.get(grant);
    if (standing && !this.#upgradeOf(standing)) this.#upgrades.set(standing.holding, lease.holding);
    return lease;
  }

  /** The hold that an upgradable lease has been upgraded to, if it is held. */
  #upgradeOf(upgradable: LockLease | undefined): Holding | undefined {
    const upgraded = upgradable && this.#upgrades.get(upgradable.holding);
    return upgraded?.isHoldOf(this) && upgraded.remainingMs() > 0 ? upgraded : undefined;
  }

  /**
   * The upgrade that a call re-enters. One `use` does not re-enter what another has made: had it run inside that one, it
   * would have re-entered by its context. The two run beside each other, and exclude each other.
   */
  #reenterable({ upgrading, inUse }: WriteOptions): Holding | undefined {
    const upgraded = this.#upgradeOf(upgrading);
    return upgraded && inUse && this.#inUse.has(upgraded.grant) ? undefined : upgraded;
  }

  /** Later calls on the same lease wait for this one, and for those before it. */
  #await({ upgrading, after }: WriteOptions, acquiring: Promise<LockLease>): void {
    if (!upgrading) return;
    const { holding } = upgrading;
    const settled: Promise<void> = Promise.allSettled([after, acquiring]).then(() => {
      if (this.#pending.get(holding) === settled) this.#pending.delete(holding);
    });
    this.#pending.set(holding, settled);
  }

  #noted<G extends Grant>(grant: G, standing: LockLease): G {
    this.#standingOf.set(grant, standing);
    return grant;
  }

  /**
   * Contends with the upgradable place entered once more, so that it stays for as long as the upgrade does. Its loss ends
   * the wait: the door that the upgrade has shut would keep out everybody else.
   */
  async #on<G extends Grant | undefined>(
    upgradable: LockLease,
    giveUp: AbortSignal | undefined,
    contend: (standing: LockLease, orLoss: AbortSignal) => Promise<G>,
  ): Promise<G> {
    const standing = await this.#upgradable.acquire({ within: upgradable });
    const orLoss = new GiveUpOrLoss(giveUp, (listener) => standing.holding.onLost(listener));
    let grant: G | undefined;
    try {
      grant = await contend(standing, orLoss.signal);
      return (grant && this.#noted(grantOfUpgrade(grant, standing), standing)) as G;
    } finally {
      orLoss.end();
      // Goes on behind the call: it is the last lease if the caller has released its own meanwhile.
      if (!grant) void standing.release().catch((error) => this.#couldNotLeave(error));
    }
  }

  #couldNotLeave(error: unknown): void {
    this.context.log('warn', 'an upgradable lock could not be left', { lock: this.name, error });
  }

  #asUpgrade({ within, ...options }: WriteOptions): WriteOptions {
    if (!within) return options;
    if (!this.#upgradable.isHeldAs(within)) return { ...options, within };
    within.assertHeld();
    return { ...options, upgrading: within, after: this.#pending.get(within.holding) };
  }
}

/** How to acquire for reading. */
export interface ReadLockOptions extends AcquireOptions {
  /** @internal */
  readonly besides?: LockLease;
}

const readNames = lockOptionNames({}, ['besides'] satisfies (keyof ReadLockOptions)[]);

/** The reading side of a `ReadWriteLock`. `within` takes leases of the other sides too. */
export class ReadLock extends QueueLock<ReadLockOptions> {
  readonly #others: readonly Lock<never>[];

  /** @internal */
  protected readonly usedAs = 'read';

  /** @internal */
  constructor(context: LockContext, name: string, queue: ZooKeeperQueue, others: readonly Lock<never>[]) {
    super(context, name, { queue, role: 'read', rule: reading });
    this.#others = others;
  }

  /** @internal */
  protected override get optionNames(): LockOptionNames {
    return readNames;
  }

  override async acquire(options: ReadLockOptions = {}): Promise<LockLease> {
    this.checkOptions('acquire', options);
    return this.#sharedWith(options.within) ?? super.acquire(this.#asBeside(options));
  }

  override async tryAcquire(options: ReadLockOptions = {}): Promise<LockLease | null> {
    this.checkOptions('tryAcquire', options);
    return this.#sharedWith(options.within) ?? super.tryAcquire(this.#asBeside(options));
  }

  protected override contend(options: ReadLockOptions, giveUp: AbortSignal | undefined): Promise<Grant> {
    const { besides } = options;
    if (!besides) return super.contend(options, giveUp);
    if (options.timeoutMs !== undefined) return this.#besideOf(besides, options, giveUp);
    // It waits in no queue: without a bound of its own it is given up when no server answers.
    const signal = giveUp && { signal: giveUp };
    return this.context.zk.bounded(`read beside the writer of ${this.name}`, { ...signal }, (bound) =>
      this.#besideOf(besides, options, bound),
    );
  }

  protected override tryContend(
    options: ReadLockOptions,
    giveUp: AbortSignal | undefined,
  ): Promise<Grant | undefined> {
    const { besides } = options;
    return besides ? this.#besideOf(besides, options, giveUp) : super.tryContend(options, giveUp);
  }

  /** Where nobody can stand beside the given lease, it stays until its readers are done. */
  #sharedWith(within: LockLease | undefined): LockLease | undefined {
    if (!within || !this.#isOfOthers(within)) return undefined;
    within.assertHeld();
    return within.holding.grant.beside ? undefined : this.makeLease(within.holding);
  }

  #asBeside({ within, ...options }: ReadLockOptions): ReadLockOptions {
    if (!within) return options;
    return this.#isOfOthers(within) ? { ...options, besides: within } : { ...options, within };
  }

  #isOfOthers(lease: LockLease): boolean {
    return this.#others.some((lock) => lock.isHeldAs(lease));
  }

  /** Inside `use` of the other sides a reader goes beside: behind a writer, it would wait for itself. */
  protected override enteredWith(
    leaseOf: (lock: Lock<never>) => LockLease | undefined,
  ): LockLease | undefined {
    return super.enteredWith(leaseOf) ?? this.#others.map(leaseOf).find(Boolean);
  }

  /** A reader at the other's own spot: nobody can come in between, and none of those ahead of it is left. */
  async #besideOf(
    { holding: writer }: LockLease,
    options: ReadLockOptions,
    giveUp: AbortSignal | undefined,
  ): Promise<Grant> {
    let place: Place | undefined;
    try {
      place = await writer.grant.beside!('read', this.describe(options), giveUp);
      if (!place) throw new LockLostError(this.name, 'its node is gone');
      const hold = await holdOf(place, giveUp);
      try {
        writer.assertNotLost(); // Whoever was told that it is lost goes on as nobody.
      } catch (error) {
        hold.release();
        throw error;
      }
      return new PlaceGrant(place, hold, false);
    } catch (error) {
      void place?.leave().catch(() => {});
      if (error instanceof SessionLostError)
        throw new LockLostError(this.name, 'its session has ended', { cause: error }); // The writer's, with its spot.
      if (isServerError(error, 'no-node'))
        throw new LockLostError(this.name, 'its node was removed by someone else', { cause: error }); // And the folder.
      throw error;
    }
  }
}
