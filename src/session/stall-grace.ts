/** A timer that fires this late means that the process stood still, and that input may be waiting. */
const STALL_MS = 50;

/**
 * After the process stood still (a stopped machine, a blocked event loop), what the server sent meanwhile is waiting to
 * be read, and must be looked at before the silence is held against it: deadlines of the link wait for one more turn.
 * Leases do not wait: they have been ended by the clock already.
 */
export class StallGrace {
  /** Undefined unless a stall was found and input has not been looked at since. */
  untilMs: number | undefined;

  /** True once after a stall. `wakeAtMs` is when the machine wanted to be woken. */
  holds(nowMs: number, wakeAtMs: number | undefined): boolean {
    if (this.untilMs !== undefined) {
      if (nowMs < this.untilMs) return true;
      this.untilMs = undefined;
      return false;
    }
    if (wakeAtMs === undefined || nowMs - wakeAtMs < STALL_MS) return false;
    this.untilMs = nowMs + 1;
    return true;
  }
}
