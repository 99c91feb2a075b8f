import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { Random } from '../base/random.ts';
import type { AclEntry } from '../client/acl.ts';
import type { ZooKeeper } from '../client/zookeeper.ts';
import type { Neighbours } from './neighbours.ts';

/** What the queues of one client share. */
export interface QueueStore {
  readonly zk: ZooKeeper;
  readonly clock: Clock;
  readonly random: Random;
  readonly log?: Log | undefined;
  /** All places of this process in this ensemble, whatever client they are of. */
  readonly neighbours: Neighbours;
  /** Whether the program has declared that this client carries all that it writes under locks. */
  readonly carriesAllWrites?: boolean | undefined;
  /**
   * Where batons appear for a moment: outside every lock's folder, so that no number moves there. Made on demand with
   * `folderAcl`: who can write there can forge a release.
   */
  readonly batonFolder: string;
  /** Who may do what with entries, and with the folders made for them; anyone anything if left out. */
  readonly entryAcl?: readonly AclEntry[] | undefined;
  readonly folderAcl?: readonly AclEntry[] | undefined;
}
