import { ZooKeeperQueue } from '../queue/zookeeper-queue.ts';
import type { LockContext } from './lock-context.ts';
import type { SharingPolicy } from './mutex-options.ts';
import { QueueLock } from './queue-lock.ts';
import { exclusive } from './turn.ts';

/**
 * A fair, exclusive lock, shared with Curator's `InterProcessMutex` on the same path.
 *
 *   1. Join the queue: an ephemeral sequential node in the lock's folder.
 *   2. Await the turn: be first, or listen to the node just ahead.
 *   3. Hold: the node's existence is the lock, its czxid the fencing token.
 *   4. Leave: delete the node; if others have been seen, pass the baton with it.
 *
 * Not promised: that a plain second `acquire` re-enters. It is another contender; `use` and `within` re-enter.
 */
export class Mutex extends QueueLock {
  /** @internal */
  protected readonly usedAs = 'mutex';

  /** How tasks of this process share their place in the queue, if they do. @internal */
  readonly policy: SharingPolicy | undefined;

  /** @internal */
  constructor(context: LockContext, name: string, policy?: SharingPolicy) {
    const queue = new ZooKeeperQueue(context.store, `${context.root}/${name}`);
    super(context, name, { queue, role: 'exclusive', rule: exclusive });
    this.policy = policy;
  }
}
