import { checkOptionNames, type OptionNames } from '../base/option-names.ts';
import type { ZooKeeperQueue } from '../queue/zookeeper-queue.ts';
import type { AcquireOptions } from './lock.ts';
import type { LockContext } from './lock-context.ts';
import { type Holding, LockLease } from './lock-lease.ts';
import { QueueLock } from './queue-lock.ts';
import { readingUpgradably } from './turn.ts';
import type { ReleaseBound } from './work-under-lock.ts';

/** What an upgrade may be told: as an acquire. */
export type UpgradeOptions = Pick<AcquireOptions, 'signal' | 'timeoutMs' | 'reason'>;

const upgradeNames: OptionNames<UpgradeOptions> = { signal: true, timeoutMs: true, reason: true };

type Upgrade = (lease: UpgradableLease, options: UpgradeOptions) => Promise<LockLease>;

/** A lease on reading that can become one on writing. */
export class UpgradableLease extends LockLease {
  readonly #upgrade: Upgrade;

  /** @internal */
  constructor(holding: Holding, upgrade: Upgrade) {
    super(holding);
    this.#upgrade = upgrade;
  }

  /**
   * Waits until all other readers have gone, letting no new ones in, and gives a lease on writing, with the same
   * token. Releasing that one goes back to reading, with nobody in between. Given up, it reads on as before.
   *
   * @throws as `acquire`; ZK_LOCK_LOST if this lease is lost meanwhile, ZK_LOCK_UPGRADE where it cannot be.
   */
  async upgrade(options: UpgradeOptions = {}): Promise<LockLease> {
    checkOptionNames('upgrade', options, upgradeNames);
    return this.#upgrade(this, options);
  }
}

/**
 * The upgradable side of a `ReadWriteLock`: reads beside readers, one at a time, and may become the writer. Two plain
 * readers who both want to write would wait for each other for ever; of these there is only one.
 */
export class UpgradableLock extends QueueLock {
  readonly #upgrade: Upgrade;

  /** @internal */
  protected readonly usedAs = 'upgradable';

  /** @internal */
  constructor(context: LockContext, name: string, queue: ZooKeeperQueue, upgrade: Upgrade) {
    super(context, name, { queue, role: 'upgradable', rule: readingUpgradably });
    this.#upgrade = upgrade;
  }

  override acquire(options: AcquireOptions = {}): Promise<UpgradableLease> {
    return super.acquire(options) as Promise<UpgradableLease>;
  }

  override tryAcquire(options: AcquireOptions = {}): Promise<UpgradableLease | null> {
    return super.tryAcquire(options) as Promise<UpgradableLease | null>;
  }

  override use<T>(
    run: (lease: UpgradableLease) => Promise<T> | T,
    options: AcquireOptions & ReleaseBound = {},
  ): Promise<T> {
    return super.use((lease) => run(lease as UpgradableLease), options);
  }

  protected override makeLease(holding: Holding): UpgradableLease {
    return new UpgradableLease(holding, this.#upgrade);
  }
}
