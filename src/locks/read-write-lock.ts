import { SessionLostError } from '../protocol/errors.ts';
import type { Place } from '../queue/lock-queue.ts';
import { ZooKeeperQueue } from '../queue/zookeeper-queue.ts';
import { holdOf } from './contest.ts';
import { type Grant, grantOf } from './grant.ts';
import type { AcquireOptions, Lock } from './lock.ts';
import type { LockContext } from './lock-context.ts';
import { LockLostError } from './lock-errors.ts';
import type { LockLease } from './lock-lease.ts';
import { QueueLock } from './queue-lock.ts';
import { reading, writing } from './turn.ts';

/**
 * Readers share, writers exclude; both in order of arrival. Shared with Curator's `InterProcessReadWriteLock`.
 *
 * A reader waits for the nearest writer ahead of it, a writer for whoever is just ahead. A writer goes on as a reader
 * by `downgrade`, keeping its turn. A reader cannot become a writer: it would wait for itself.
 *
 * Tokens: a writer's is larger than those of all writers before it. A reader's says which writes it can have seen; it
 * is not to be compared with other readers'.
 */
export class ReadWriteLock {
  readonly name: string;
  readonly read: ReadLock;
  readonly write: WriteLock;

  /** @internal */
  constructor(context: LockContext, name: string) {
    const queue = new ZooKeeperQueue(context.store, `${context.root}/${name}`);
    this.name = name;
    this.write = new WriteLock(context, name, queue);
    this.read = new ReadLock(context, name, queue, this.write);
  }

  /** Gives the write lock up for the read lock, without letting a writer in between. The given lease is released. */
  async downgrade(lease: LockLease): Promise<LockLease> {
    const read = await this.read.acquire({ within: lease });
    await lease.release();
    return read;
  }
}

/** The writing side of a `ReadWriteLock`. */
export class WriteLock extends QueueLock {
  /** @internal */
  constructor(context: LockContext, name: string, queue: ZooKeeperQueue) {
    super(context, name, { queue, role: 'write', rule: writing });
  }
}

/** The reading side of a `ReadWriteLock`. `within` takes leases of the writing side too. */
export class ReadLock extends QueueLock {
  readonly #write: WriteLock;

  /** @internal */
  constructor(context: LockContext, name: string, queue: ZooKeeperQueue, write: WriteLock) {
    super(context, name, { queue, role: 'read', rule: reading });
    this.#write = write;
  }

  override async acquire(options: AcquireOptions = {}): Promise<LockLease> {
    const { within } = options;
    if (!within || !this.#write.isHeldAs(within)) return super.acquire(options);
    within.assertHeld();
    const { beside } = within.holding.grant;
    // Where nobody can stand beside the writer, it stays until its readers are done: they have it to themselves.
    if (!beside) return this.makeLease(within.holding);
    return this.leaseOf(await this.#besideWriter(beside, options), 0);
  }

  /** Inside `use` of the writing side a reader goes beside the writer: behind it, it would wait for itself. */
  protected override enteredWith(
    leaseOf: (lock: Lock<never>) => LockLease | undefined,
  ): LockLease | undefined {
    return super.enteredWith(leaseOf) ?? leaseOf(this.#write);
  }

  /** A reader at the writer's own spot: nobody can come in between, and none of those ahead of it is left. */
  async #besideWriter(beside: NonNullable<Grant['beside']>, options: AcquireOptions): Promise<Grant> {
    let place: Place | undefined;
    try {
      place = await beside('read', this.describe(options));
      return grantOf(place, await holdOf(place, options.signal), false);
    } catch (error) {
      void place?.leave().catch(() => {});
      if (!(error instanceof SessionLostError)) throw error;
      throw new LockLostError(this.name, 'its session has ended', { cause: error }); // The writer's, with its spot.
    }
  }
}
