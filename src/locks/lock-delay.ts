import { orAbort } from '../base/abort.ts';
import type { Clock } from '../base/clock.ts';
import { deferred } from '../base/deferred.ts';

/**
 * Holding back after a holder that vanished, as Chubby and Consul do: it may not have noticed yet. For resources that
 * check no tokens.
 *
 * Everybody who has such a delay announces every release, so that who waits can tell one from a crash.
 */
export interface LockDelay {
  readonly clock: Clock;
  readonly delayMs: number;
}

/** The delay of a context, if there is one. */
export function lockDelayOf(context: {
  readonly clock: Clock;
  readonly lockDelayMs: number;
}): LockDelay | undefined {
  const { clock, lockDelayMs: delayMs } = context;
  return delayMs > 0 ? { clock, delayMs } : undefined;
}

/** Resolves when the time is over; rejects with the reason of a signal that fires before. */
export async function holdBack(
  { clock, delayMs }: LockDelay,
  signals: readonly (AbortSignal | undefined)[],
): Promise<void> {
  const over = deferred();
  const cancel = clock.at(clock.nowMs() + delayMs, () => over.resolve());
  try {
    await signals.reduce<Promise<void>>((waiting, signal) => orAbort(waiting, signal), over.promise);
  } finally {
    cancel();
  }
}
