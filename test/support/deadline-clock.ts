import { type Clock, systemClock } from '../../src/base/clock.ts';

/** Far from every other time in a client, so that its timer is known, and fires only when it is told to. */
export const TIMEOUT_MS = 1_234_567;

/** Time that runs as it should, but for deadlines of waits, which come on demand; no hold is long. */
export class DeadlineClock implements Clock {
  readonly #deadlines = new Set<() => void>();
  readonly nowMs = systemClock.nowMs;
  readonly wallMs = systemClock.wallMs;
  readonly endOfTick = systemClock.endOfTick;
  readonly afterTick = systemClock.afterTick;
  readonly afterInput = systemClock.afterInput;

  at(atMs: number, run: () => void): () => void {
    const delayMs = atMs - systemClock.nowMs();
    if (delayMs > 50 && delayMs < 200) return () => {};
    if (Math.abs(delayMs - TIMEOUT_MS) > 60_000) return systemClock.at(atMs, run);
    this.#deadlines.add(run);
    return () => void this.#deadlines.delete(run);
  }

  get deadlineCount(): number {
    return this.#deadlines.size;
  }

  /** All of them have passed. */
  pass(): void {
    const due = [...this.#deadlines];
    this.#deadlines.clear();
    for (const run of due) run();
  }
}
