/** Takes a scheduled call back. Calling it twice, or after the call was made, does nothing. */
export type Cancel = () => void;

/** The only door to time: everything above `base` runs as well under a virtual clock. */
export interface Clock {
  /** Milliseconds since an arbitrary origin; never goes backwards, never wall time. */
  nowMs(): number;
  /** Whole milliseconds since 1970, for people to read. Jumps when someone sets the clock: nothing is decided by it. */
  wallMs(): number;
  /** Calls `run` once, no earlier than `atMs` on this clock. */
  at(atMs: number, run: () => void): Cancel;
  /** Calls `run` when the code now running, and every promise reaction it set off, has finished. */
  endOfTick(run: () => void): void;
  /** Calls `run` behind all who wait for the end of this tick, those included who begin to when it has come. */
  afterTick(run: () => void): void;
  /** Calls `run` when all input that is there by now, on any socket or file, has been handed out. */
  afterInput(run: () => void): void;
}

/** A timer set further ahead than this fires at once in Node, so longer waits are split. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/**
 * The end of the tick of now. A tick callback queued from a microtask runs once the microtask queue is empty; queued
 * from plain code it would run before the first promise reaction, and the requests those make would miss the batch.
 */
class TickEnd {
  #first: (() => void)[] = [];
  #last: (() => void)[] = [];
  #awaited = false;

  first(run: () => void): void {
    this.#first.push(run);
    this.#await();
  }

  last(run: () => void): void {
    this.#last.push(run);
    this.#await();
  }

  #await(): void {
    if (this.#awaited) return;
    this.#awaited = true;
    void SETTLED.then(this.#reach); // As `queueMicrotask`, which makes an asynchronous resource of each.
  }

  readonly #reach = () => process.nextTick(this.#come);

  readonly #come = () => {
    const first = this.#first;
    this.#first = [];
    runAll(first);
    if (this.#first.length === 0) {
      const last = this.#last;
      this.#last = [];
      runAll(last);
    }
    this.#awaited = false;
    if (this.#first.length + this.#last.length > 0) this.#await();
  };
}

/** What one of them throws is nobody's fault but its own. */
function runAll(runs: readonly (() => void)[]): void {
  for (const run of runs) {
    try {
      run();
    } catch (error) {
      process.nextTick(() => {
        throw error;
      });
    }
  }
}

const SETTLED = Promise.resolve();
const tickEnd = new TickEnd();

/** The machine's monotonic clock and Node's timers. */
export const systemClock: Clock = {
  nowMs: () => performance.now(),
  wallMs: () => Date.now(),
  at(atMs, run) {
    let timer: NodeJS.Timeout | undefined;
    const arm = () => {
      const delayMs = Math.max(0, Math.ceil(atMs - performance.now()));
      // Node may fire a timer up to a millisecond early by this clock; looking again keeps "no earlier than".
      timer =
        delayMs === 0
          ? setTimeout(run, 0)
          : setTimeout(() => (performance.now() >= atMs ? run() : arm()), Math.min(delayMs, TIMER_MS_MAX));
    };
    arm();
    return () => clearTimeout(timer);
  },
  endOfTick: (run) => tickEnd.first(run),
  afterTick: (run) => tickEnd.last(run),
  // Immediates come behind the phase of the event loop in which sockets are read.
  afterInput: (run) => void setImmediate(run),
};

/** A point in time that a wait must not outlive. Built once, at the edge of the API. */
export class Deadline {
  readonly #clock: Clock;
  readonly atMs: number;

  constructor(clock: Clock, timeoutMs: number) {
    this.#clock = clock;
    this.atMs = clock.nowMs() + timeoutMs;
  }

  /** Never negative. */
  remainingMs(): number {
    return Math.max(0, this.atMs - this.#clock.nowMs());
  }
}
