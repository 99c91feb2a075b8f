/** How long requests took, in whole milliseconds, as ZooKeeper reports it. */
export class Latencies {
  #count = 0;
  #sum = 0;
  minMs = 0;
  maxMs = 0;
  lastMs = 0;

  add(latencyMs: number): void {
    const ms = Math.floor(latencyMs);
    this.minMs = this.#count === 0 ? ms : Math.min(this.minMs, ms);
    this.maxMs = Math.max(this.maxMs, ms);
    this.#sum += ms;
    this.#count++;
    this.lastMs = ms;
  }

  /** Zero as long as there is nothing to average. */
  get averageMs(): number {
    return this.#count === 0 ? 0 : this.#sum / this.#count;
  }

  reset(): void {
    this.#count = 0;
    this.#sum = 0;
    this.minMs = 0;
    this.maxMs = 0;
    this.lastMs = 0;
  }
}

/** Why a connection was cut off, for counting; the log has the whole reason. */
export type DropKind = (typeof dropKinds)[number];
const dropKinds = [
  'protocol',
  'handshake-time',
  'ahead',
  'session-moved',
  'session-over',
  'not-reading',
  'disk',
  'limit',
  'operator',
] as const;

/** What has happened since the start. Never reset: a counter that goes back means a restart to whoever reads it. */
export class ServerCounts {
  connectRequestCount = 0;
  refusedConnectionCount = 0;
  openedSessionCount = 0;
  renewedSessionCount = 0;
  closedSessionCount = 0;
  expiredSessionCount = 0;
  readonly dropped = Object.fromEntries(dropKinds.map((kind) => [kind, 0])) as Record<DropKind, number>;
}

/** What the server as a whole has done since its start, or since it was told to count anew. */
export class ServerStatistics {
  receivedCount = 0;
  sentCount = 0;
  /** Answers that wait for the disk, of all connections. */
  outstandingCount = 0;
  readonly latencies = new Latencies();
  readonly counts = new ServerCounts();

  reset(): void {
    this.receivedCount = 0;
    this.sentCount = 0;
    this.latencies.reset();
  }
}
