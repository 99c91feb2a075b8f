/** How the end of a lease is reckoned; the defaults fit a stock ensemble (tickTime 2000 ms). */
export interface LeaseOptions {
  /** How much faster than ours the server's clock may run, as a fraction. */
  readonly clockRateTolerance: number;
  /** How long a touch may take from the server we talk to, to its leader: half a tick. */
  readonly touchLagMs: number;
  /**
   * The smallest session timeout that any of the servers may grant: their smallest `maxSessionTimeout`, where that is
   * below what is asked for. By default two thirds of the timeout that was granted.
   */
  readonly grantedTimeoutMsMin?: number | undefined;
}

/** See docs/adr/0005-lease-end-by-the-local-clock.md for what other shares cost. */
const GRANTED_SHARE_MIN = 2 / 3;

/**
 * When the session was last heard of, and what follows from it. Times of one session on one monotonic clock.
 *
 *   sent ──────────► arrives: the server's countdown restarts here, somewhere right of `sent`
 *   sent ───────────────────────► answered: only now do we know; we count from `sent` all the same
 *
 * Counting from the answer would trust a lease that the server may have dropped already.
 */
export class Contact {
  readonly #lease: LeaseOptions;
  /** The session timeout: the one asked for, then the one that the server of now has granted. */
  #timeoutMs: number;
  /** The smallest timeout that was ever granted to this session. */
  #smallestTimeoutMs = Number.POSITIVE_INFINITY;
  /** When the oldest handshake was sent that may have resumed the session and has not been answered. */
  #resumingSinceMs: number | undefined;
  /** When bytes last went out, on this connection. */
  sentAtMs = Number.NEGATIVE_INFINITY;
  /** When bytes last came in, on this connection. */
  receivedAtMs = Number.NEGATIVE_INFINITY;
  /** When the newest answered request was sent: the server had the session alive then. */
  provenAtMs = Number.NEGATIVE_INFINITY;
  /** When the newest answered request that the leader must have seen was sent. */
  confirmedAtMs = Number.NEGATIVE_INFINITY;
  /** When the newest request that the leader will confirm was sent, answered or not. */
  confirmingSentAtMs = Number.NEGATIVE_INFINITY;

  constructor(timeoutMs: number, lease: LeaseOptions) {
    this.#timeoutMs = timeoutMs;
    this.#lease = lease;
  }

  get timeoutMs(): number {
    return this.#timeoutMs;
  }

  answered(sentAtMs: number, byLeader: boolean): void {
    this.provenAtMs = Math.max(this.provenAtMs, sentAtMs);
    if (byLeader) this.confirmedAtMs = Math.max(this.confirmedAtMs, sentAtMs);
  }

  /** A handshake that resumes the session leaves: its server may apply it and grant less, unheard. */
  resuming(nowMs: number): void {
    this.#resumingSinceMs ??= nowMs;
  }

  /** A handshake was answered by a server that counts. A read-only one has not asked any leader. */
  granted(timeoutMs: number, sentAtMs: number, readOnly: boolean): void {
    this.#timeoutMs = timeoutMs;
    this.answered(sentAtMs, !readOnly);
    this.confirmingSentAtMs = sentAtMs;
    if (readOnly) return;
    this.#smallestTimeoutMs = Math.min(this.#smallestTimeoutMs, timeoutMs);
    this.#resumingSinceMs = undefined;
  }

  /** The next ping, by what we sent: what we receive keeps nobody's session alive. */
  get pingAtMs(): number {
    return this.sentAtMs + this.timeoutMs / 3;
  }

  /** The next leader-confirmed heartbeat while something is held. */
  get heartbeatAtMs(): number {
    return this.confirmingSentAtMs + this.heartbeatPeriodMs;
  }

  get heartbeatPeriodMs(): number {
    return this.#leaseTimeoutMs / 5;
  }

  /**
   * When to give the connection up: after 2/3 of the timeout with nothing received, or 5/6 with nothing of
   * ours answered (events may still come in over a link that carries nothing out). What is left of the
   * timeout is for reaching another server.
   */
  get linkDeadMs(): number {
    return Math.min(this.receivedAtMs + (this.timeoutMs * 2) / 3, this.provenAtMs + (this.timeoutMs * 5) / 6);
  }

  /** When the session must be taken for over, without waiting for any server to say so. */
  get lostAtMs(): number {
    return this.provenAtMs + this.timeoutMs;
  }

  /**
   * When whatever this session's nodes protect may be given to another (design: "Safety, said exactly").
   *
   * A server tells its leader of touches only every half tick, and a touch that was not passed on before the
   * two were cut apart leaves the leader with the one before it: hence the lag and one heartbeat period.
   */
  get leaseEndMs(): number {
    const { clockRateTolerance, touchLagMs } = this.#lease;
    const timeoutMs = this.#leaseTimeoutMs;
    const lagMs = Math.min(touchLagMs, timeoutMs / 4);
    const endMs = this.confirmedAtMs + timeoutMs * (1 - clockRateTolerance) - lagMs - this.heartbeatPeriodMs;
    if (this.#resumingSinceMs === undefined) return endMs;
    return Math.min(endMs, this.#resumingSinceMs + this.#grantedTimeoutMsMin * (1 - clockRateTolerance));
  }

  /**
   * A new leader, and a server that starts again, count with the timeout that the session was first granted, whatever a
   * later handshake has made of it (measured: docs/adr/0005-lease-end-by-the-local-clock.md).
   */
  get #leaseTimeoutMs(): number {
    return Math.min(this.#timeoutMs, this.#smallestTimeoutMs);
  }

  get #grantedTimeoutMsMin(): number {
    const timeoutMs = this.#leaseTimeoutMs;
    return Math.min(timeoutMs, this.#lease.grantedTimeoutMsMin ?? timeoutMs * GRANTED_SHARE_MIN);
  }
}
