import { Deadline } from '../base/clock.ts';
import { type CallOptions, callOptionNames, checkCallOptions } from '../client/call-options.ts';
import { isServerError, RequestTimeoutError, SessionLostError } from '../protocol/errors.ts';
import type { Place } from '../queue/lock-queue.ts';
import { ZooKeeperQueue } from '../queue/zookeeper-queue.ts';
import { holdOf } from './contest.ts';
import { GiveUpOrLoss } from './give-up.ts';
import { type Grant, PlaceGrant } from './grant.ts';
import { type AcquireOptions, type Lock, type LockOptionNames, lockOptionNames } from './lock.ts';
import type { LockContext } from './lock-context.ts';
import { LockLostError } from './lock-errors.ts';
import type { LockLease } from './lock-lease.ts';
import { QueueLock } from './queue-lock.ts';
import { reading, writing } from './turn.ts';
import { UpgradableLock } from './upgradable-lock.ts';
import { contendForUpgrade, grantOfUpgrade, upgradeIfFree } from './upgrade.ts';

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
    this.upgradable = new UpgradableLock(context, name, queue, (lease, options) =>
      this.write.acquire({ ...options, within: lease }),
    );
    this.write = new WriteLock(context, name, queue, this.upgradable);
    this.read = new ReadLock(context, name, queue, [this.write, this.upgradable]);
  }

  /**
   * Gives the write lock, or the upgradable one, up for the read lock, without letting a writer in between. The given
   * lease is released; once the reader holds, a bound is one of the wait for that, and the release goes on behind.
   *
   * @throws as `acquire`, and then the given lease is held as before. Where the release is refused, reading is given up too.
   */
  async downgrade(lease: LockLease, options: CallOptions = {}): Promise<LockLease> {
    checkCallOptions('downgrade', options, callOptionNames);
    const { signal, timeoutMs } = options;
    const { clock, log } = this.#context;
    const deadline = timeoutMs === undefined ? undefined : new Deadline(clock, timeoutMs);
    const bounds = { ...(signal && { signal }), ...(timeoutMs !== undefined && { timeoutMs }) };
    const read = await this.read.acquire({ ...bounds, within: lease });
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
}

const writeNames = lockOptionNames({}, ['upgrading'] satisfies (keyof WriteOptions)[]);

/** The writing side of a `ReadWriteLock`. `within` takes upgradable leases too: that is to upgrade. */
export class WriteLock extends QueueLock<WriteOptions> {
  readonly #upgradable: UpgradableLock;

  /** @internal */
  protected readonly usedAs = 'write';

  /** @internal */
  constructor(context: LockContext, name: string, queue: ZooKeeperQueue, upgradable: UpgradableLock) {
    super(context, name, { queue, role: 'write', rule: writing });
    this.#upgradable = upgradable;
  }

  /** @internal */
  protected override get optionNames(): LockOptionNames {
    return writeNames;
  }

  override async acquire(options: WriteOptions = {}): Promise<LockLease> {
    this.checkNames('acquire', options);
    return super.acquire(this.#asUpgrade(options));
  }

  override async tryAcquire(options: WriteOptions = {}): Promise<LockLease | null> {
    this.checkNames('tryAcquire', options);
    return super.tryAcquire(this.#asUpgrade(options));
  }

  protected override async contend(options: WriteOptions, giveUp: AbortSignal | undefined): Promise<Grant> {
    const { upgrading } = options;
    if (!upgrading) return super.contend(options, giveUp);
    return this.#on(upgrading, giveUp, (standing, orLoss) =>
      contendForUpgrade(this.contest(options, orLoss), standing),
    );
  }

  protected override async tryContend(
    options: WriteOptions,
    giveUp: AbortSignal | undefined,
  ): Promise<Grant | undefined> {
    const { upgrading } = options;
    if (!upgrading) return super.tryContend(options, giveUp);
    return this.#on(upgrading, giveUp, (standing, orLoss) =>
      upgradeIfFree(this.contest(options, orLoss), standing),
    );
  }

  /** Inside `use` of the upgradable side a writer upgrades: behind it, it would wait for itself. */
  protected override enteredWith(
    leaseOf: (lock: Lock<never>) => LockLease | undefined,
  ): LockLease | undefined {
    return super.enteredWith(leaseOf) ?? leaseOf(this.#upgradable);
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
      return (grant && grantOfUpgrade(grant, standing)) as G;
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
    return { ...options, upgrading: within };
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
    this.checkNames('acquire', options);
    return this.#sharedWith(options.within) ?? super.acquire(this.#asBeside(options));
  }

  override async tryAcquire(options: ReadLockOptions = {}): Promise<LockLease | null> {
    this.checkNames('tryAcquire', options);
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
