import { orAbort } from '../base/abort.ts';
import type { Clock } from '../base/clock.ts';
import { RequestTimeoutError } from '../protocol/errors.ts';
import type { CallOptions } from './call-options.ts';

/** Bounds the wait for something that goes on behind. @throws ZK_REQUEST_TIMEOUT, and the signal's own reason. */
export async function boundedWait<T>(
  clock: Clock,
  what: string,
  promise: Promise<T>,
  { signal, timeoutMs }: CallOptions,
): Promise<T> {
  if (timeoutMs === undefined) return orAbort(promise, signal);
  const timeout = new AbortController();
  const cancel = clock.at(clock.nowMs() + timeoutMs, () =>
    timeout.abort(new RequestTimeoutError(what, timeoutMs, 'unknown')),
  );
  try {
    return await orAbort(promise, signal, timeout.signal);
  } finally {
    cancel();
  }
}
