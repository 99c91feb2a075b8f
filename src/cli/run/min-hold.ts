import { systemClock } from '../../base/clock.ts';
import type { LockLease } from '../../locks/lock-lease.ts';
import { watchLease } from './lease-watch.ts';
import { asksToEnd, type SignalInbox } from './signal-inbox.ts';

/** What ended a hold that was kept behind its command. */
export type HoldEnd = 'over' | 'signalled' | 'lost' | 'revoked';

/** What is kept. */
export interface KeptHold {
  readonly lease: Pick<LockLease, 'signal' | 'revocation' | 'remainingMs'>;
  readonly sessionTimeoutMs: number;
  onEnding(listener: () => void): void;
}

/**
 * Holds until that time, with no command any more: for crontabs on several machines, whose clocks differ, so that a job
 * of no time at all does not run twice. Of the signals only those that ask a process to end do end it.
 */
export async function keepHold(
  { lease, sessionTimeoutMs, onEnding }: KeptHold,
  untilMs: number,
  inbox: SignalInbox,
): Promise<HoldEnd> {
  const cancels: (() => void)[] = [];
  try {
    return await new Promise<HoldEnd>((resolve) => {
      const lost = () => resolve('lost');
      const revoked = () => resolve('revoked');
      cancels.push(systemClock.at(untilMs, () => resolve('over')));
      inbox.deliverTo((signal) => {
        if (signal === 'SIGTSTP') process.kill(process.pid, 'SIGSTOP');
        else if (asksToEnd(signal)) resolve('signalled');
      });
      for (const [signal, listener] of [
        [lease.signal, lost],
        [lease.revocation, revoked],
      ] as const) {
        signal.addEventListener('abort', listener);
        cancels.push(() => signal.removeEventListener('abort', listener));
        if (signal.aborted) return listener();
      }
      onEnding(lost);
      const watcher = { endsAt() {}, runsOut() {}, ended: lost };
      cancels.push(watchLease(lease, watcher, { graceMs: 0, sessionTimeoutMs }));
    });
  } finally {
    for (const cancel of cancels) cancel();
  }
}
