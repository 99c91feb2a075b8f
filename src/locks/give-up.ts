import { ifAborted } from '../base/abort.ts';
import type { Cancel, Clock } from '../base/clock.ts';

/** What bounds a wait for a lock. */
export interface WaitOptions {
  /** Gives up with the signal's own reason. */
  readonly signal?: AbortSignal;
  /**
   * Gives up after this long, connection trouble included. For ever if left out. 0 does not wait for others, and for an
   * answer as long as `tryAcquire`.
   */
  readonly timeoutMs?: number;
}

/** The reasons to stop waiting as one signal, whose `reason` says which; none if there is nothing to bound. */
export class GiveUp {
  readonly signal: AbortSignal | undefined;
  readonly #bound: Bound | undefined;

  constructor(clock: Clock, { signal, timeoutMs }: WaitOptions, timedOut: (timeoutMs: number) => unknown) {
    signal?.throwIfAborted();
    this.#bound = timeoutMs === undefined ? undefined : new Bound(clock, timeoutMs, signal, timedOut);
    this.signal = this.#bound?.signal ?? signal;
  }

  /** Whether the time is up, by the clock: after a stall an answer may be heard before the timer. */
  get isDue(): boolean {
    return this.#bound?.isDue ?? false;
  }

  /** Nobody waits any more: takes the timer and the listener back. */
  end(): void {
    this.#bound?.end();
  }
}

/** The reasons to stop waiting, or that what the wait stands on is lost: one signal, whose `reason` says which. */
export class GiveUpOrLoss {
  readonly #controller = new AbortController();
  readonly #stopListening: readonly (() => void)[];

  /** `onLost` tells of a loss, and gives the function that takes that back. */
  constructor(giveUp: AbortSignal | undefined, onLost: (listener: (error: Error) => void) => () => void) {
    const onAbort = () => this.#controller.abort(giveUp!.reason);
    if (giveUp?.aborted) onAbort();
    this.#stopListening = [onLost((error) => this.#controller.abort(error)), ifAborted(giveUp, onAbort)];
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Nobody waits any more: takes the listeners back. */
  end(): void {
    for (const stop of this.#stopListening) stop();
  }
}

/** A signal of its own: that of the caller, or the end of the time. */
class Bound {
  readonly #clock: Clock;
  readonly #deadlineMs: number;
  readonly #controller = new AbortController();
  readonly #cancel: Cancel;
  readonly #stopListening: () => void;

  constructor(
    clock: Clock,
    timeoutMs: number,
    outer: AbortSignal | undefined,
    timedOut: (timeoutMs: number) => unknown,
  ) {
    this.#clock = clock;
    this.#deadlineMs = clock.nowMs() + timeoutMs;
    this.#cancel = clock.at(this.#deadlineMs, () => this.#controller.abort(timedOut(timeoutMs)));
    this.#stopListening = ifAborted(outer, () => this.#controller.abort(outer!.reason));
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }
  get isDue(): boolean {
    return this.#clock.nowMs() > this.#deadlineMs;
  }

  end(): void {
    this.#cancel();
    this.#stopListening();
  }
}
