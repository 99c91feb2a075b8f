import type { Clock } from '../base/clock.ts';

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
  readonly #end: () => void;
  readonly #isDue: () => boolean;

  constructor(clock: Clock, { signal, timeoutMs }: WaitOptions, timedOut: () => unknown) {
    signal?.throwIfAborted();
    if (timeoutMs === undefined) {
      this.signal = signal;
      this.#end = nothing;
      this.#isDue = never;
      return;
    }
    const deadlineMs = clock.nowMs() + timeoutMs;
    const controller = new AbortController();
    const onAbort = () => controller.abort(signal!.reason);
    const cancel = clock.at(deadlineMs, () => controller.abort(timedOut()));
    signal?.addEventListener('abort', onAbort, { once: true });
    this.signal = controller.signal;
    this.#isDue = () => clock.nowMs() > deadlineMs;
    this.#end = () => {
      cancel();
      signal?.removeEventListener('abort', onAbort);
    };
  }

  /** Whether the time is up, by the clock: after a stall an answer may be heard before the timer. */
  get isDue(): boolean {
    return this.#isDue();
  }

  /** Nobody waits any more: takes the timer and the listener back. */
  end(): void {
    this.#end();
  }
}

const nothing = () => {};
const never = () => false;
