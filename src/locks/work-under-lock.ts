import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { checkDuration } from '../client/arguments.ts';
import { boundedWait } from '../client/bounded-wait.ts';
import { RequestTimeoutError } from '../protocol/errors.ts';
import { LockLostError, type WorkEnd } from './lock-errors.ts';
import type { LockLease } from './lock-lease.ts';

/** How long the end of `use` waits for the release. */
export interface ReleaseBound {
  /**
   * How long the release is waited for when the work has ended; 5 000 if left out. After that the release goes on
   * behind, and what the work returned or threw is handed on.
   */
  readonly releaseTimeoutMs?: number;
}

const RELEASE_TIMEOUT_MS = 5_000;
const RELEASE_TIMEOUT_MS_MAX = 2 ** 31 - 1;

/** @throws RangeError for what is no time. */
export function checkReleaseBound({ releaseTimeoutMs }: ReleaseBound): void {
  if (releaseTimeoutMs === undefined) return;
  checkDuration('releaseTimeoutMs', releaseTimeoutMs, { min: 0, max: RELEASE_TIMEOUT_MS_MAX });
}

/** What waiting for a release needs. */
export interface Facilities {
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Ends the work under a lock: lets go, and gives what the work returned or throws what it threw.
 *
 * @throws LOCK_LOST, with the result or what was thrown, if the lock was lost before the work had ended, and was not
 * released by the work itself before that.
 */
export async function endWork<T>(
  facilities: Facilities,
  lease: LockLease,
  work: { readonly result: T } | { readonly thrown: unknown },
  bound: ReleaseBound,
): Promise<T> {
  const loss = lease.lossNow();
  if (loss) {
    lease.release().catch(() => {}); // Nothing is left that could be waited for.
    throw lossWith(loss, work);
  }
  try {
    await releaseWithin(facilities, lease, bound);
  } catch (error) {
    if ('result' in work) throw error;
  }
  if ('thrown' in work) throw work.thrown;
  return work.result;
}

/** Waits for a release no longer than the bound says. It goes on behind. */
export async function releaseWithin(
  { clock, log }: Facilities,
  lease: LockLease,
  { releaseTimeoutMs: timeoutMs = RELEASE_TIMEOUT_MS }: ReleaseBound,
): Promise<void> {
  try {
    await boundedWait(clock, 'release', lease.release(), { timeoutMs });
  } catch (error) {
    if (!(error instanceof RequestTimeoutError)) throw error;
    log('warn', 'a release goes on behind', { lock: lease.lockName, waitedMs: timeoutMs });
  }
}

/**
 * The loss, with how the work ended. What the work threw because of the loss may be anything: an `AbortError` of what it
 * had given the signal to, or an error of what it found. It is the loss that the caller has to know of.
 */
function lossWith(loss: LockLostError, work: WorkEnd): LockLostError {
  if ('thrown' in work && isLossOf(loss, work.thrown)) return work.thrown;
  return new LockLostError(loss.lockName, 'lost while the work under it ran', { cause: loss, ...work });
}

function isLossOf({ lockName }: LockLostError, error: unknown): error is LockLostError {
  return error instanceof LockLostError && error.lockName === lockName;
}
