import { type Cancel, systemClock } from '../../base/clock.ts';
import { machineNowMs } from '../../base/machine-clock.ts';

/** What the end of a lease asks for. */
export interface LeaseWatcher {
  /** The lease ends at that time on the machine's clock, unless it is renewed. */
  endsAt(leaseEndMs: number): void;
  /** It has not been renewed, and `remainingMs` are left. */
  runsOut(remainingMs: number): void;
  /** Now. */
  ended(): void;
}

/** Killing takes a moment: it begins this long before the end. */
const KILL_AHEAD_MS = 50;
const LOOKS_PER_TIMEOUT = 20;

/**
 * How long before the end of a lease its holder is asked to finish. A lease in good health is renewed every fifth of the
 * session's timeout: it must not be taken for one that runs out when one renewal is late.
 */
export function lossGraceMs(graceMs: number, sessionTimeoutMs: number): number {
  const leaseMs = sessionTimeoutMs * 0.99 - Math.min(1_000, sessionTimeoutMs / 4) - sessionTimeoutMs / 5;
  return Math.min(graceMs, Math.max(0, leaseMs - (sessionTimeoutMs * 2) / 5));
}

/** Looks at a lease, often enough to be in time for its end. Returns the function that stops looking. */
export function watchLease(
  lease: { remainingMs(): number },
  watcher: LeaseWatcher,
  times: { readonly graceMs: number; readonly sessionTimeoutMs: number },
): Cancel {
  const { graceMs, sessionTimeoutMs } = times;
  let cancel: Cancel = () => {};
  let runningOut = false;
  let toldMs = Number.NEGATIVE_INFINITY;
  const look = () => {
    const remainingMs = lease.remainingMs();
    if (remainingMs <= KILL_AHEAD_MS) return watcher.ended();
    const leaseEndMs = machineNowMs() + remainingMs;
    if (Math.abs(leaseEndMs - toldMs) >= 1) {
      toldMs = leaseEndMs;
      watcher.endsAt(leaseEndMs);
    }
    if (remainingMs <= graceMs && !runningOut) {
      runningOut = true;
      watcher.runsOut(remainingMs);
    }
    const nextMs = remainingMs > graceMs ? remainingMs - graceMs : remainingMs - KILL_AHEAD_MS;
    cancel = systemClock.at(
      systemClock.nowMs() + Math.min(nextMs, sessionTimeoutMs / LOOKS_PER_TIMEOUT),
      look,
    );
  };
  look();
  return () => cancel();
}
