import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { ZooKeeper } from '../client/zookeeper.ts';
import type { ZooKeeperStore } from '../queue/zookeeper-store.ts';
import type { Inspection } from './inspection.ts';
import type { LastingHolds } from './lasting-holds.ts';
import type { LockRegistry } from './lock-registry.ts';
import type { OwnerFacts, ownerEncoder } from './owner.ts';

/** What the locks of one connection share. */
export interface LockContext {
  readonly zk: ZooKeeper;
  readonly clock: Clock;
  /** How long to hold back after one who vanished; 0 is not at all. */
  readonly lockDelayMs: number;
  readonly log: Log;
  readonly store: ZooKeeperStore;
  readonly inspection: Inspection;
  /** Those of its holds that have not lasted for long. */
  readonly young: LastingHolds;
  /** The lock objects that there are. */
  readonly registry: LockRegistry;
  /** The folder of all locks. */
  readonly root: string;
  readonly owner: OwnerFacts;
  /** What others are to know of a contender, as its node has it. */
  readonly describeOwner: ReturnType<typeof ownerEncoder>;
  /** What a listener of the user's threw. */
  listenerFailed(error: unknown): void;
}
