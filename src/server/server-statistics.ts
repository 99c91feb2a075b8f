/** How long requests took, in whole milliseconds, as ZooKeeper reports it. */
export class Latencies {
  #count = 0;
  #sum = 0;
  #min = 0;
  #max = 0;
  #last = 0;

  add(latencyMs: number): void {
    const ms = Math.floor(latencyMs);
    this.#min = this.#count === 0 ? ms : Math.min(this.#min, ms);
    this.#max = Math.max(this.#max, ms);
    this.#sum += ms;
    this.#count++;
    this.#last = ms;
  }

  get minMs(): number {
    return this.#min;
  }
  get maxMs(): number {
    return this.#max;
  }
  get lastMs(): number {
    return this.#last;
  }
  /** Zero as long as there is nothing to average. */
  get averageMs(): number {
    return this.#count === 0 ? 0 : this.#sum / this.#count;
  }

  reset(): void {
    this.#count = 0;
    this.#sum = 0;
    this.#min = 0;
    this.#max = 0;
    this.#last = 0;
  }
}

/** Why a connection was cut off, for counting; the log has the whole reason. */
export type DropKind =
  | 'protocol'
  | 'handshake-time'
  | 'ahead'
  | 'session-moved'
  | 'session-over'
  | 'not-reading'
  | 'disk'
  | 'limit'
  | 'operator';

/** What has happened since the start. Never reset: a counter that goes back means a restart to whoever reads it. */
export class ServerCounts {
  connectRequestCount = 0;
  refusedConnectionCount = 0;
  openedSessionCount = 0;
  renewedSessionCount = 0;
  closedSessionCount = 0;
  expiredSessionCount = 0;
  readonly dropped: Record<DropKind, number> = {
    protocol: 0,
    'handshake-time': 0,
    ahead: 0,
    'session-moved': 0,
    'session-over': 0,
    'not-reading': 0,
    disk: 0,
    limit: 0,
    operator: 0,
  };
}

/** What the server as a whole has done since its start, or since it was told to count anew. */
export class ServerStatistics {
  receivedCount = 0;
  sentCount = 0;
  readonly latencies = new Latencies();
  readonly counts = new ServerCounts();

  reset(): void {
    this.receivedCount = 0;
    this.sentCount = 0;
    this.latencies.reset();
  }
}
