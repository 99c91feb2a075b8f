import { checkOptionNames, type OptionNames } from '../base/option-names.ts';
import { checkFunction } from '../client/arguments.ts';
import type { ZooKeeperQueue } from '../queue/zookeeper-queue.ts';
import type { AcquireOptions, Lock } from './lock.ts';
import type { LockContext } from './lock-context.ts';
import { LockUpgradeError } from './lock-errors.ts';
import { type Holding, LockLease } from './lock-lease.ts';
import { QueueLock } from './queue-lock.ts';
import { readingUpgradably } from './turn.ts';
import type { ReleaseBound } from './work-under-lock.ts';

/** What an upgrade may be told: as an acquire. */
export type UpgradeOptions = Pick<AcquireOptions, 'signal' | 'timeoutMs' | 'reason'>;

const upgradeNames: OptionNames<UpgradeOptions> = { signal: true, timeoutMs: true, reason: true };

/** The writing side, as far as an upgrade needs it. */
type Writing = () => Lock<AcquireOptions> & { upgradedFrom(lease: LockLease): LockLease | undefined };

/** A lease on reading that can become one on writing. */
export class UpgradableLease extends LockLease {
  readonly #writing: Writing;

  /** @internal */
  constructor(holding: Holding, writing: Writing) {
    super(holding);
    this.#writing = writing;
  }

  /**
   * Waits until all other readers have gone, letting no new ones in, and gives a lease on writing, with the same
   * token. Releasing that one goes back to reading, with nobody in between. Given up, it reads on as before. While it is
   * upgraded, or about to be, another call re-enters: it writes until the last of these leases is released.
   *
   * @throws as `acquire`; LOCK_LOST if this lease is lost meanwhile, LOCK_UPGRADE where it cannot be.
   */
  async upgrade(options: UpgradeOptions = {}): Promise<LockLease> {
    checkOptionNames('upgrade', options, upgradeNames);
    return this.#writing().acquire({ ...options, within: this });
  }
}

/**
 * The upgradable side of a `ReadWriteLock`: reads beside readers, one at a time, and may become the writer. Two plain
 * readers who both want to write would wait for each other for ever; of these there is only one.
 */
export class UpgradableLock extends QueueLock {
  readonly #writing: Writing;

  /** @internal */
  protected readonly usedAs = 'upgradable';

  /** @internal */
  constructor(context: LockContext, name: string, queue: ZooKeeperQueue, writing: Writing) {
    super(context, name, { queue, role: 'upgradable', rule: readingUpgradably });
    this.#writing = writing;
  }

  override acquire(options: AcquireOptions = {}): Promise<UpgradableLease> {
    return super.acquire(options) as Promise<UpgradableLease>;
  }

  override tryAcquire(options: AcquireOptions = {}): Promise<UpgradableLease | null> {
    return super.tryAcquire(options) as Promise<UpgradableLease | null>;
  }

  /** Inside `use` of the writing side it would wait for its own writer, which is no reader until it is downgraded. */
  protected override enteredWith(
    leaseOf: (lock: Lock<never>) => LockLease | undefined,
  ): LockLease | undefined {
    const upgradable = super.enteredWith(leaseOf);
    if (upgradable) return upgradable;
    const writing = this.#writing();
    const lease = leaseOf(writing as never);
    if (!lease) return undefined;
    const upgraded = writing.upgradedFrom(lease);
    if (upgraded) return upgraded;
    const advice = 'read by read there, or begin with upgradable.use';
    throw new LockUpgradeError(this.name, `upgradable.use inside write.use would wait for itself: ${advice}`);
  }

  override async use<T>(
    run: (lease: UpgradableLease) => Promise<T> | T,
    options: AcquireOptions & ReleaseBound = {},
  ): Promise<T> {
    // Checked here as well: what is handed on is always a function.
    checkFunction('use', run);
    return super.use((lease) => run(lease as UpgradableLease), options);
  }

  protected override makeLease(holding: Holding): UpgradableLease {
    return new UpgradableLease(holding, this.#writing);
  }
}
