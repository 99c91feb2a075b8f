import type { Clock } from './clock.ts';

/**
 * Settles with `promise`, or rejects with the own reason of the first of the signals that fires; leaves no listener
 * behind.
 */
export function orAbort<T>(
  promise: Promise<T>,
  ...signals: readonly (AbortSignal | undefined)[]
): Promise<T> {
  const given = signals.filter((signal) => signal !== undefined);
  if (given.length === 0) return promise;
  return new Promise((resolve, reject) => {
    // What settles after an abort is heard all the same: nothing may fail unheard.
    const stopListening = () => {
      for (const stop of stops) stop();
    };
    promise.then(
      (value) => {
        stopListening();
        resolve(value);
      },
      (error) => {
        stopListening();
        reject(error);
      },
    );
    const stops: (() => void)[] = [];
    for (const signal of given) {
      if (signal.aborted) {
        stopListening();
        return reject(signal.reason);
      }
      stops.push(
        onceAborted(signal, () => {
          stopListening();
          reject(signal.reason);
        }),
      );
    }
  });
}

/** Whom to tell that a signal has fired. */
interface Waiters {
  readonly calls: Set<() => void>;
  readonly listener: () => void;
}

/** One listener serves all who wait: a signal looks through those it has for each that is added. */
const waitersOf = new WeakMap<AbortSignal, Waiters>();

/** Calls `run` when the signal fires; the function that is returned takes it back. */
export function onceAborted(signal: AbortSignal, run: () => void): () => void {
  let waiters = waitersOf.get(signal);
  if (!waiters) {
    const calls = new Set<() => void>();
    const listener = () => {
      // Each is taken out first: one that another call takes back is not called any more.
      for (const call of [...calls]) if (calls.delete(call)) call();
    };
    waiters = { calls, listener };
    waitersOf.set(signal, waiters);
    signal.addEventListener('abort', listener, { once: true });
  }
  const { calls, listener } = waiters;
  calls.add(run);
  return () => {
    if (!calls.delete(run) || calls.size > 0) return;
    waitersOf.delete(signal);
    signal.removeEventListener('abort', listener);
  };
}

/** The same where there may be no signal. */
export function ifAborted(signal: AbortSignal | undefined, run: () => void): () => void {
  return signal ? onceAborted(signal, run) : () => {};
}

/** Waits on the given clock; rejects with the signal's own reason if it fires first. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const cancel = clock.at(clock.nowMs() + delayMs, () => {
      stopListening();
      resolve();
    });
    const stopListening = ifAborted(signal, () => {
      cancel();
      reject(signal!.reason);
    });
  });
}
