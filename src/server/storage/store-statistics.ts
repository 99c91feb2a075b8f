/** An fsync that takes longer is worth a line in the log: every write waits for it. As ZooKeeper's threshold. */
export const SLOW_SYNC_MS = 1_000;

/** A snapshot that was finished. */
export interface TakenSnapshot {
  readonly zxid: bigint;
  readonly wallMs: number;
  readonly bytes: number;
}

/** What a store has asked of its disk since it was opened. */
export class StoreStatistics {
  syncCount = 0;
  syncMsSum = 0;
  syncMsMax = 0;
  slowSyncCount = 0;
  /** Bytes of transactions, over all logs. */
  logBytes = 0;
  snapshotCount = 0;
  snapshotMsSum = 0;
  lastSnapshot: TakenSnapshot | undefined;

  synced(tookMs: number): void {
    this.syncCount++;
    this.syncMsSum += tookMs;
    this.syncMsMax = Math.max(this.syncMsMax, tookMs);
    if (tookMs >= SLOW_SYNC_MS) this.slowSyncCount++;
  }

  snapshotTaken(snapshot: TakenSnapshot, tookMs: number): void {
    this.snapshotCount++;
    this.snapshotMsSum += tookMs;
    this.lastSnapshot = snapshot;
  }
}
