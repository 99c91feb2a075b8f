import { orAbort } from '../../base/abort.ts';
import { systemClock } from '../../base/clock.ts';
import { describeDuration, durationText } from '../../base/duration.ts';
import type { Holdfast } from '../../locks/holdfast.ts';
import type { Lock } from '../../locks/lock.ts';
import { LockTimeoutError } from '../../locks/lock-errors.ts';
import type { LockLease } from '../../locks/lock-lease.ts';
import { parentLabel } from '../../locks/owner.ts';
import type { SemaphoreOptions } from '../../locks/semaphore.ts';
import { CommandError } from '../command-error.ts';
import { connectWith } from '../connection.ts';
import type { Console } from '../console.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { asCommandError } from '../failures.ts';
import { checkVariables } from '../original-bytes.ts';
import { ownerText } from '../owner-text.ts';
import { isDebug } from '../report-failure.ts';
import { judgeOwnHolds, namesToLookAt, type OwnHold } from './ancestors.ts';
import { type AncestorHold, ancestorsFrom, HELD_VARIABLE } from './held-variable.ts';
import { hold, holdReal, type Running, waitForRelease } from './hold.ts';
import { QueueReport } from './queue-report.ts';
import { runEntered } from './run-entered.ts';
import { commandLabel, namesOf, type RunPlan, type WantedLock } from './run-plan.ts';
import { exitCodeOfSignal, SignalInbox, SignalledError } from './signal-inbox.ts';
import { whyTaken } from './taken.ts';
import { Words } from './words.ts';

const CONNECT_MS = 15_000;
/** A wait that is shorter bounds the wait for the lock: a connection that is at hand takes a part of this. */
const CONNECT_MS_MIN = 1_000;
/** Where it is not to be waited: a server that is there answers within this. A local one may have to be started. */
const TRY_CONNECT_MS = 3_000;
/** How long an ancestor's locks are looked for before the wait begins without knowing. */
const LOOK_MS_MAX = 2_000;

/**
 * Waits for the lock, runs the command under it, lets go, and says how it ended.
 *
 * Until the command is started, a signal ends the run. While the command runs, signals are the command's. A process
 * that runs several, one after the other, has one inbox for all of them.
 */
export async function runUnderLock(
  plan: RunPlan,
  console: Console,
  inbox = new SignalInbox(),
): Promise<ExitCode> {
  const { flags } = plan;
  const words = new Words({ json: flags.json ?? false, quiet: flags.quiet ?? false });
  inbox.open();
  const giveUp = new AbortController();
  inbox.deliverTo((signal) => {
    if (signal === 'SIGTSTP') process.kill(process.pid, 'SIGSTOP');
    else if (signal !== 'SIGCONT' && signal !== 'SIGWINCH') giveUp.abort(new SignalledError(signal));
  });
  let holdfast: Holdfast | undefined;
  try {
    checkVariables(console.env);
    const startedAtMs = systemClock.nowMs();
    const isTry = flags.try || flags.wait === 0;
    const ancestors = ancestorsFrom(console.env[HELD_VARIABLE]);
    const running: Running = { plan, words, inbox, giveUp: giveUp.signal, env: console.env, ancestors };
    const parent = ancestors.at(-1);
    holdfast = await connectWith(flags, {
      timeoutMs:
        isTry && !isLocal(flags, console.env)
          ? TRY_CONNECT_MS
          : Math.max(flags.wait || CONNECT_MS, CONNECT_MS_MIN),
      signal: giveUp.signal,
      // Of the command not its arguments, which may hold secrets.
      labels: { command: commandLabel(plan.command[0]), ...(parent && parentLabel(parent)) },
    });
    const leftMs = () =>
      flags.wait === undefined ? undefined : startedAtMs + flags.wait - systemClock.nowMs();
    const own = await ownHolds(holdfast, plan, ancestors, { signal: giveUp.signal, timeoutMs: leftMs() });
    if (own.length > 0 && flags.reenter) {
      return await runEntered(own, running);
    }
    const stuck = own.find((hold) => hold.stuck === 'certain');
    if (stuck && !isTry) throw waitsForItself(stuck);
    const shared = own.find((hold) => hold.stuck === 'if-it-waits');
    const tryOnly = isTry || shared !== undefined;
    const timeoutMs = tryOnly ? TRY_CONNECT_MS : leftMs();
    const waiting = { signal: giveUp.signal, timeoutMs, tryOnly };
    const lease = await acquire(holdfast, plan, words, waiting);
    if (!lease) {
      if (shared && !isTry) throw waitsForItself(shared);
      const { text, json } = await whyTaken(holdfast, namesOf(plan.lock), giveUp.signal);
      const line = `${plan.lockText} is taken${text === '' ? '' : `: ${text}`}`;
      words.tell({ event: 'busy', lock: plan.lockText, ...json }, line);
      return plan.busyExit;
    }
    return await hold(holdReal(holdfast, lease), running);
  } catch (error) {
    if (error instanceof SignalledError) {
      words.tell({ event: 'signalled', signal: error.signal });
      return exitCodeOfSignal(error.signal);
    }
    const known = asCommandError(error);
    words.fail(error, isDebug(console.env));
    return error instanceof LockTimeoutError ? plan.busyExit : known.exitCode;
  } finally {
    if (holdfast) await waitForRelease(holdfast.close());
  }
}

interface Bounds {
  readonly signal: AbortSignal;
  readonly timeoutMs: number | undefined;
}

/** What is wanted and an ancestor holds already, as the servers say it; nothing where they cannot be asked in time. */
async function ownHolds(
  holdfast: Holdfast,
  { lock }: RunPlan,
  ancestors: readonly AncestorHold[],
  { signal, timeoutMs }: Bounds,
): Promise<OwnHold[]> {
  const names = namesToLookAt(lock, ancestors);
  if (names.length === 0) return [];
  const bound = AbortSignal.timeout(Math.ceil(Math.max(0, Math.min(timeoutMs ?? LOOK_MS_MAX, LOOK_MS_MAX))));
  try {
    const looking = Promise.all(names.map((name) => holdfast.inspect(name)));
    return judgeOwnHolds(lock, await orAbort(looking, AbortSignal.any([signal, bound])), ancestors);
  } catch {
    signal.throwIfAborted();
    return []; // Not readable, or not reachable: acquiring says that better.
  }
}

function waitsForItself({ lockName, holder }: OwnHold): CommandError {
  const hint = holder.role === 'leader' ? '' : '; --reenter runs the command under that hold';
  const message = `lock ${lockName} is held by a run that started this one (${ownerText(holder)}): waiting for it would never end${hint}`;
  return new CommandError(message, EXIT.heldByAncestor);
}

async function acquire(
  holdfast: Holdfast,
  { lock: wanted, lockText, flags, busyExit }: RunPlan,
  words: Words,
  { signal, timeoutMs, tryOnly }: Bounds & { readonly tryOnly: boolean },
): Promise<LockLease | null> {
  const lock = lockOf(holdfast, wanted);
  const options = {
    signal,
    ...(flags.reason !== undefined && { reason: flags.reason }),
    ...(wanted.kind === 'semaphore' && { permits: wanted.permits }),
  };
  const bound = timeoutMs === undefined ? {} : { timeoutMs: Math.max(0, Math.floor(timeoutMs)) };
  if (tryOnly) return lock.tryAcquire({ ...options, ...bound });
  const startedAtMs = systemClock.nowMs();
  const report = new QueueReport(holdfast, lock, { wanted, text: lockText, words });
  try {
    const lease = await lock.acquire({ ...options, ...bound });
    report.end();
    const waitedMs = Math.round(systemClock.nowMs() - startedAtMs);
    words.tell(
      { event: 'granted', lock: lockText, token: lease.token, waitedMs },
      report.waited ? `${lockText} granted after ${describeDuration(waitedMs)}` : undefined,
    );
    return lease;
  } catch (error) {
    report.end();
    if (!(error instanceof LockTimeoutError)) throw error;
    const { text, json } = await whyTaken(holdfast, namesOf(wanted), signal);
    // As it was asked for: reaching the servers took some of the time.
    const message = `lock ${lockText}: not granted within ${durationText(flags.wait ?? 0)}${text === '' ? '' : `; ${text}`}`;
    throw new CommandError(message, busyExit, { cause: error, facts: json });
  } finally {
    report.end();
  }
}

/** Whether what is meant is the local server. */
function isLocal({ servers }: RunPlan['flags'], env: Console['env']): boolean {
  const said = servers ?? env['HOLDFAST_SERVERS'];
  return !said || said === 'local';
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
