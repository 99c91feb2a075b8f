import type { Clock } from '../base/clock.ts';

/** What bounds a wait for a lock. */
export interface WaitOptions {
  /** Gives up with the signal's own reason. */
  readonly signal?: AbortSignal;
  /** Gives up after this long, connection trouble included. For ever if left out. */
  readonly timeoutMs?: number;
}

/** The reasons to stop waiting as one signal, whose `reason` says which; none if there is nothing to bound. */
export class GiveUp {
  readonly signal: AbortSignal | undefined;
  readonly #end: () => void;

  constructor(clock: Clock, { signal, timeoutMs }: WaitOptions, timedOut: () => unknown) {
    signal?.throwIfAborted();
    if (timeoutMs === undefined) {
      this.signal = signal;
      this.#end = () => {};
      return;
    }
    const controller = new AbortController();
    const onAbort = () => controller.abort(signal!.reason);
    const cancel = clock.at(clock.nowMs() + timeoutMs, () => controller.abort(timedOut()));
    signal?.addEventListener('abort', onAbort, { once: true });
    this.signal = controller.signal;
    this.#end = () => {
      cancel();
      signal?.removeEventListener('abort', onAbort);
    };
  }

  /** Nobody waits any more: takes the timer and the listener back. */
  end(): void {
    this.#end();
  }
}
