import { basename } from 'node:path';
import { systemClock } from '../../base/clock.ts';
import { describeDuration } from '../../base/duration.ts';
import { machineNowMs } from '../../base/machine-clock.ts';
import { fraction, systemRandom } from '../../base/random.ts';
import type { Holdfast } from '../../locks/holdfast.ts';
import type { Lock } from '../../locks/lock.ts';
import { LockRevokedError, LockTimeoutError } from '../../locks/lock-errors.ts';
import type { LockLease } from '../../locks/lock-lease.ts';
import type { SemaphoreOptions } from '../../locks/semaphore.ts';
import { connectWith } from '../connection.ts';
import type { Console } from '../console.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { asCommandError } from '../failures.ts';
import { Guardian } from './guardian.ts';
import { lossGraceMs, watchLease } from './lease-watch.ts';
import { QueueReport } from './queue-report.ts';
import type { RunPlan, WantedLock } from './run-plan.ts';
import { exitCodeOfSignal, SignalInbox, SignalledError } from './signal-inbox.ts';
import { SupervisedChild } from './supervised-child.ts';
import { Words } from './words.ts';

const CONNECT_MS = 15_000;
/** A lock that cannot be released, because no server is there, goes with its session; it is not waited for. */
const RELEASE_MS_MAX = 5_000;

/**
 * Waits for the lock, runs the command under it, lets go, and says how it ended.
 *
 * While it waits, a signal ends the wait. While the command runs, signals are the command's.
 */
export async function runUnderLock(plan: RunPlan, console: Console): Promise<ExitCode> {
  const { flags } = plan;
  const words = new Words({ json: flags.json ?? false, quiet: flags.quiet ?? false });
  const inbox = new SignalInbox();
  inbox.open();
  const giveUp = new AbortController();
  inbox.deliverTo((signal) => {
    if (signal === 'SIGTSTP') process.kill(process.pid, 'SIGSTOP');
    else if (signal !== 'SIGCONT' && signal !== 'SIGWINCH') giveUp.abort(new SignalledError(signal));
  });
  let holdfast: Holdfast | undefined;
  try {
    const startedAtMs = systemClock.nowMs();
    holdfast = await connectWith(flags, {
      timeoutMs: flags.wait || CONNECT_MS,
      signal: giveUp.signal,
      labels: { command: basename(plan.command[0]) }, // Not its arguments, which may hold secrets.
    });
    const leftMs = flags.wait === undefined ? undefined : startedAtMs + flags.wait - systemClock.nowMs();
    const lease = await acquire(holdfast, plan, words, { signal: giveUp.signal, timeoutMs: leftMs });
    if (!lease) {
      words.tell({ event: 'busy', lock: plan.lockText }, `${plan.lockText} is taken`);
      return plan.busyExit;
    }
    return await hold({ holdfast, lease, plan, words, inbox, env: console.env });
  } catch (error) {
    if (error instanceof SignalledError) {
      words.tell({ event: 'signalled', signal: error.signal });
      return exitCodeOfSignal(error.signal);
    }
    const known = asCommandError(error);
    if (!known) throw error;
    words.complain({ event: 'failed', exitCode: known.exitCode }, oneLine(known.message));
    return error instanceof LockTimeoutError ? plan.busyExit : known.exitCode;
  } finally {
    if (holdfast) await within(RELEASE_MS_MAX, holdfast.close());
  }
}

async function acquire(
  holdfast: Holdfast,
  { lock: wanted, lockText, flags }: RunPlan,
  words: Words,
  { signal, timeoutMs }: { readonly signal: AbortSignal; readonly timeoutMs: number | undefined },
): Promise<LockLease | null> {
  const lock = lockOf(holdfast, wanted);
  const options = {
    signal,
    ...(flags.reason !== undefined && { reason: flags.reason }),
    ...(wanted.kind === 'semaphore' && { permits: wanted.permits }),
  };
  if (flags.try || flags.wait === 0) return lock.tryAcquire(options);
  const startedAtMs = systemClock.nowMs();
  const report = new QueueReport(holdfast, lock, { wanted, text: lockText, words });
  try {
    const bound = timeoutMs === undefined ? {} : { timeoutMs: Math.max(0, Math.floor(timeoutMs)) };
    const lease = await lock.acquire({ ...options, ...bound });
    report.end();
    const waitedMs = Math.round(systemClock.nowMs() - startedAtMs);
    words.tell(
      { event: 'granted', lock: lockText, token: lease.token, waitedMs },
      report.waited ? `${lockText} granted after ${describeDuration(waitedMs)}` : undefined,
    );
    return lease;
  } finally {
    report.end();
  }
}

function lockOf(holdfast: Holdfast, wanted: WantedLock): Lock<SemaphoreOptions> {
  switch (wanted.kind) {
    case 'mutex':
      return holdfast.mutex(wanted.name);
    case 'read':
      return holdfast.readWriteLock(wanted.name).read;
    case 'write':
      return holdfast.readWriteLock(wanted.name).write;
    case 'semaphore':
      return holdfast.semaphore(wanted.name, { permits: wanted.of });
    case 'multi':
      return holdfast.multiLock(wanted.names);
    case 'leader':
      return holdfast.election(wanted.name, wanted.id === undefined ? {} : { id: wanted.id });
  }
}

interface Held {
  readonly holdfast: Holdfast;
  readonly lease: LockLease;
  readonly plan: RunPlan;
  readonly words: Words;
  readonly inbox: SignalInbox;
  readonly env: Console['env'];
}

/** Runs the command, and sees to it that nothing of it outlives the lease. */
async function hold({ holdfast, lease, plan, words, inbox, env }: Held): Promise<ExitCode> {
  const { flags } = plan;
  const { session } = holdfast.zk;
  const grantedAtMs = systemClock.nowMs();
  const acquiredAt = new Date(systemClock.wallMs()).toISOString();
  const mark = `${process.pid}-${Math.floor(fraction(systemRandom) * 2 ** 48).toString(36)}`;
  const graceMs = flags.grace;
  const guardian = new Guardian({
    tree: { mark, pid: undefined, ownGroup: !flags.foreground },
    leaseEndMs: machineNowMs() + lease.remainingMs(),
    graceMs,
    done: false,
  });
  const cancels: (() => void)[] = [];
  try {
    const child = await SupervisedChild.start(
      plan.command,
      {
        mark,
        foreground: flags.foreground ?? false,
        env: {
          ...env,
          HOLDFAST_LOCK: plan.lockText,
          HOLDFAST_TOKEN: lease.token.toString(),
          HOLDFAST_SESSION: `0x${session.id.toString(16)}`,
          HOLDFAST_ACQUIRED_AT: acquiredAt,
        },
      },
      (tree) => guardian.tell({ tree }),
    );
    words.tell({ event: 'started', pid: child.tree.pid });
    let endedWith: ExitCode | undefined;
    const end = (code: ExitCode, forMs: number, why: string) => {
      if (endedWith === undefined)
        words.complain({ event: 'ending', exitCode: code }, `${plan.lockText}: ${why}`);
      endedWith ??= code;
      if (forMs > 0) child.end(forMs);
      else child.kill();
    };
    const lost = () => end(EXIT.lost, 0, 'the lock is lost; the command was killed');

    const onAbort = () => {
      if (!(lease.signal.reason instanceof LockRevokedError)) return lost();
      end(EXIT.revoked, graceMs, 'asked to let go; ending the command');
    };
    lease.signal.addEventListener('abort', onAbort);
    cancels.push(() => lease.signal.removeEventListener('abort', onAbort));
    if (lease.signal.aborted) onAbort();
    const sessionTimeoutMs = session.timeoutMs;
    cancels.push(
      watchLease(
        lease,
        {
          endsAt: (leaseEndMs) => guardian.tell({ leaseEndMs }),
          runsOut: (remainingMs) =>
            end(
              EXIT.lost,
              remainingMs,
              'the servers are out of reach and the lease runs out; ending the command',
            ),
          ended: lost,
        },
        { graceMs: lossGraceMs(graceMs, sessionTimeoutMs), sessionTimeoutMs },
      ),
    );
    if (flags.maxHold !== undefined) {
      const why = `held for ${describeDuration(flags.maxHold)}, which is the most allowed; ending the command`;
      cancels.push(systemClock.at(grantedAtMs + flags.maxHold, () => end(EXIT.heldTooLong, graceMs, why)));
    }
    cancels.push(
      ...watchConnection(holdfast, lease, child, flags.onSuspend, () =>
        end(EXIT.lost, Math.max(1, lease.remainingMs()), 'the connection is down; ending the command'),
      ),
    );
    inbox.deliverTo((signal) => deliver(signal, child, plan, words));

    const exitCode = await child.exitCode;
    if (lease.remainingMs() === 0) lost(); // Also if it was the guardian that noticed.
    // What the command has left running in its group goes before the lock does.
    if (endedWith === undefined && !flags.foreground && child.isGroupAlive) child.endGroup(graceMs);
    await child.gone();
    const code = endedWith ?? exitCode;
    for (const cancel of cancels.splice(0)) cancel();
    guardian.dismiss();
    words.tell({ event: 'ended', exitCode: code, commandExitCode: exitCode });
    await keepFor(flags.minHold, grantedAtMs, lease, inbox);
    return code;
  } finally {
    for (const cancel of cancels) cancel();
    guardian.dismiss();
    if (session.state !== 'connected') await within(RELEASE_MS_MAX, lease.release());
  }
}

/** What a signal to the wrapper means to the command. */
function deliver(
  signal: NodeJS.Signals,
  child: SupervisedChild,
  { flags, lockText }: RunPlan,
  words: Words,
): void {
  // In the terminal's own group the command has had these from the terminal already.
  const fromTerminal = ['SIGINT', 'SIGQUIT', 'SIGTSTP', 'SIGCONT', 'SIGWINCH'].includes(signal);
  if (signal === 'SIGTSTP') {
    words.tell(
      { event: 'stopped' },
      `stopped: ${lockText} is lost, and the command killed, unless it goes on within seconds`,
    );
    if (!flags.foreground) child.pause('terminal');
    process.kill(process.pid, 'SIGSTOP');
  } else if (signal === 'SIGCONT') {
    if (!flags.foreground) child.resume('terminal');
  } else if (!flags.foreground || !fromTerminal) {
    child.passOn(signal);
  }
}

/** Pauses, ends or leaves alone what runs while the servers cannot be asked. */
function watchConnection(
  holdfast: Holdfast,
  lease: LockLease,
  child: SupervisedChild,
  onSuspend: 'pause' | 'term' | 'ignore',
  end: () => void,
): (() => void)[] {
  if (onSuspend === 'ignore') return [];
  const suspended = () => {
    if (onSuspend === 'term') end();
    else child.pause('suspended');
  };
  if (holdfast.zk.session.state === 'suspended') suspended();
  return [
    holdfast.zk.on('suspended', suspended),
    holdfast.zk.on('connected', async () => {
      try {
        await lease.guard([]); // The node is there, says a quorum; otherwise the lease's signal fires.
        child.resume('suspended');
      } catch {
        // Lost, or down again: the next connection asks anew.
      }
    }),
  ];
}

/** For crontabs on several machines, whose clocks differ: a job of no time at all must not run twice. */
async function keepFor(
  minHoldMs: number | undefined,
  grantedAtMs: number,
  lease: LockLease,
  inbox: SignalInbox,
): Promise<void> {
  if (minHoldMs === undefined || lease.remainingMs() === 0) return;
  await new Promise<void>((resolve) => {
    const cancel = systemClock.at(grantedAtMs + minHoldMs, resolve);
    const settle = () => {
      cancel();
      resolve();
    };
    lease.signal.addEventListener('abort', settle);
    inbox.deliverTo(settle);
  });
}

async function within(timeoutMs: number, promise: Promise<void>): Promise<void> {
  let cancel = () => {};
  const timeout = new Promise<void>((resolve) => {
    cancel = systemClock.at(systemClock.nowMs() + timeoutMs, resolve);
  });
  await Promise.race([promise.catch(() => {}), timeout]);
  cancel();
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ');
}
