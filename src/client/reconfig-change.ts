/** A change of the ensemble's membership. */
export interface ReconfigChange {
  /** Servers to add, as lines of the configuration: `server.4=host:2888:3888:participant;2181`. */
  readonly joining?: string;
  /** Ids of servers to remove, separated by commas. */
  readonly leaving?: string;
  /** The whole new membership, instead of joining and leaving. */
  readonly newMembers?: string;
  /** Only if the configuration still has this version. */
  readonly fromConfig?: bigint;
}
