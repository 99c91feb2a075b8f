import { basename } from 'node:path';
import { orAbort } from '../../base/abort.ts';
import { systemClock } from '../../base/clock.ts';
import { describeDuration, durationText } from '../../base/duration.ts';
import { machineNowMs } from '../../base/machine-clock.ts';
import { fraction, systemRandom } from '../../base/random.ts';
import type { Holdfast } from '../../locks/holdfast.ts';
import type { Lock } from '../../locks/lock.ts';
import { LockRevokedError, LockTimeoutError } from '../../locks/lock-errors.ts';
import type { LockLease } from '../../locks/lock-lease.ts';
import { parentLabel } from '../../locks/owner.ts';
import type { SemaphoreOptions } from '../../locks/semaphore.ts';
import { CommandError } from '../command-error.ts';
import { connectWith, inheritedAuth } from '../connection.ts';
import type { Console } from '../console.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { asCommandError } from '../failures.ts';
import { sessionText } from '../lock-json.ts';
import { checkVariables } from '../original-bytes.ts';
import { ownerText } from '../owner-text.ts';
import { isDebug } from '../report-failure.ts';
import { judgeOwnHolds, namesToLookAt, type OwnHold } from './ancestors.ts';
import { AUTH_VARIABLE, childEnvironment } from './child-environment.ts';
import { Guardian } from './guardian.ts';
import { type AncestorHold, ancestorsFrom, ancestorsText, HELD_VARIABLE } from './held-variable.ts';
import { lossGraceMs, watchLease } from './lease-watch.ts';
import { QueueReport } from './queue-report.ts';
import type { RunPlan, WantedLock } from './run-plan.ts';
import { exitCodeOfSignal, SignalInbox, SignalledError } from './signal-inbox.ts';
import { SupervisedChild } from './supervised-child.ts';
import { whyTaken } from './taken.ts';
import { offerCredentials } from './tcp-credentials.ts';
import { enterDoor, ReentryDoor } from './tcp-reentry.ts';
import { Words } from './words.ts';

const CONNECT_MS = 15_000;
/** Where it is not to be waited: a server that is there answers within this. A local one may have to be started. */
const TRY_CONNECT_MS = 3_000;
const WHO_ASKS_MS_MAX = 1_000;
/** How long an ancestor's locks are looked for before the wait begins without knowing. */
const LOOK_MS_MAX = 2_000;
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
    checkVariables(console.env);
    const startedAtMs = systemClock.nowMs();
    const isTry = flags.try || flags.wait === 0;
    const ancestors = ancestorsFrom(console.env[HELD_VARIABLE]);
    const parent = ancestors.at(-1);
    holdfast = await connectWith(flags, {
      timeoutMs: isTry && !isLocal(flags, console.env) ? TRY_CONNECT_MS : flags.wait || CONNECT_MS,
      signal: giveUp.signal,
      // Of the command not its arguments, which may hold secrets.
      labels: { command: basename(plan.command[0]), ...(parent && parentLabel(parent)) },
    });
    const leftMs = () =>
      flags.wait === undefined ? undefined : startedAtMs + flags.wait - systemClock.nowMs();
    const own = await ownHolds(holdfast, plan, ancestors, { signal: giveUp.signal, timeoutMs: leftMs() });
    if (own.length > 0 && flags.reenter) {
      return await runEntered(own, { plan, words, inbox, env: console.env, ancestors });
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
    return await hold(holdReal(holdfast, lease), { plan, words, inbox, env: console.env, ancestors });
  } catch (error) {
    if (error instanceof SignalledError) {
      words.tell({ event: 'signalled', signal: error.signal });
      return exitCodeOfSignal(error.signal);
    }
    const known = asCommandError(error);
    words.fail(error, isDebug(console.env));
    return error instanceof LockTimeoutError ? plan.busyExit : known.exitCode;
  } finally {
    if (holdfast) await within(RELEASE_MS_MAX, holdfast.close());
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

/** Runs the command under the hold of the nearest ancestor that has all that is wanted. */
async function runEntered(own: readonly OwnHold[], running: Running): Promise<ExitCode> {
  const { plan } = running;
  const names = namesOf(plan.lock);
  const [first] = own;
  const { ancestor } = first!;
  const same = own.length === names.length && own.every((hold) => hold.ancestor === ancestor && hold.covers);
  if (!same) {
    const message = `--reenter: the run that started this one (${ownerText(first!.holder)}) holds ${own.map(({ lockName }) => lockName).join(', ')}, which is not all that is wanted`;
    throw new CommandError(message, EXIT.heldByAncestor);
  }
  const guest = ancestor.door === undefined ? undefined : await enterDoor(ancestor.door);
  if (!guest) {
    const message = `--reenter: the run that holds ${plan.lockText} (${ownerText(first!.holder)}) lets nobody in: it is ending, is another user's, or runs elsewhere`;
    throw new CommandError(message, EXIT.heldByAncestor);
  }
  const over = new AbortController();
  let { leaseEndMs } = guest.state;
  guest.onChange((state) => {
    leaseEndMs = state?.leaseEndMs ?? 0;
    if (!state) over.abort(new Error('the hold is over'));
  });
  const lease = {
    token: ancestor.token as LockLease['token'],
    signal: over.signal,
    remainingMs: () => Math.max(0, leaseEndMs - machineNowMs()),
  };
  const session = { id: ancestor.session, timeoutMs: guest.state.sessionTimeoutMs };
  // In the process group of the ancestor's command: what pauses or ends that one, pauses or ends this.
  const inGroup = { ...plan, flags: { ...plan.flags, foreground: true } };
  running.words.tell({ event: 'entered', lock: plan.lockText, token: lease.token });
  try {
    return await hold({ lease, session, connection: undefined }, { ...running, plan: inGroup });
  } finally {
    guest.leave();
  }
}

function namesOf(lock: WantedLock): readonly string[] {
  return lock.kind === 'multi' ? lock.names : [lock.name];
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

/** What is known of a hold, whoever's it is: of this run, or of the ancestor under whose hold it runs. */
interface Hold {
  readonly lease: Pick<LockLease, 'token' | 'signal' | 'remainingMs'>;
  readonly session: { readonly id: bigint; readonly timeoutMs: number };
  /** The connection by which it is held; undefined for an ancestor's, which looks after its own. */
  readonly connection: { readonly holdfast: Holdfast; readonly lease: LockLease } | undefined;
}

interface Running {
  readonly plan: RunPlan;
  readonly words: Words;
  readonly inbox: SignalInbox;
  readonly env: Console['env'];
  readonly ancestors: readonly AncestorHold[];
}

function holdReal(holdfast: Holdfast, lease: LockLease): Hold {
  const { id, timeoutMs } = holdfast.zk.session;
  return { lease, session: { id, timeoutMs }, connection: { holdfast, lease } };
}

/** Runs the command, and sees to it that nothing of it outlives the lease. */
async function hold(
  { lease, session, connection }: Hold,
  { plan, words, inbox, env, ancestors }: Running,
): Promise<ExitCode> {
  const { flags } = plan;
  const grantedAtMs = systemClock.nowMs();
  const acquiredAt = new Date(systemClock.wallMs()).toISOString();
  const mark = `${process.pid}-${Math.floor(fraction(systemRandom) * 2 ** 48).toString(36)}`;
  const graceMs = flags.grace;
  const leaseEndMs = machineNowMs() + lease.remainingMs();
  // What runs under an ancestor's hold is let in by the ancestor.
  const door = connection && (await ReentryDoor.open({ leaseEndMs, sessionTimeoutMs: session.timeoutMs }));
  const held: AncestorHold[] = connection
    ? [...ancestors, { session: session.id, token: lease.token, locks: namesOf(plan.lock), door: door?.path }]
    : [...ancestors];
  let unguarded = (_why: string) => {};
  const guardian = new Guardian(
    {
      tree: { mark, pid: undefined, ownGroup: !flags.foreground },
      leaseEndMs,
      graceMs,
      folder: door?.folder,
      done: false,
    },
    (why) => unguarded(why),
  );
  const cancels: (() => void)[] = [];
  const facts = {
    lockText: plan.lockText,
    token: lease.token.toString(),
    session: sessionText(session.id),
    held: ancestorsText(held),
    acquiredAt,
  };
  try {
    const auth = env[AUTH_VARIABLE] || (await inheritedAuth(env));
    const offered = door && auth ? await offerCredentials(door.folder, auth) : undefined;
    if (offered) cancels.push(() => offered.close());
    const child = await SupervisedChild.start(
      plan.command,
      {
        mark,
        foreground: flags.foreground ?? false,
        env: childEnvironment(env, facts, flags.passAuth ? auth : undefined),
      },
      (tree) => guardian.tell({ tree }),
    );
    words.tell({ event: 'started', pid: child.tree.pid });
    let endedWith: ExitCode | undefined;
    let asking: Promise<void> | undefined;
    const end = (code: ExitCode, forMs: number, why: string) => {
      if (endedWith === undefined)
        words.complain({ event: 'ending', exitCode: code }, `${plan.lockText}: ${why}`);
      endedWith ??= code;
      door?.expel();
      if (forMs > 0) child.end(forMs);
      else child.kill();
    };
    unguarded = (why) => end(EXIT.internal, graceMs, `${why}: nothing runs unguarded; ending the command`);
    if (guardian.failure !== undefined) unguarded(guardian.failure);
    const lost = () => end(EXIT.lost, 0, 'the lock is lost; the command was killed');

    const onAbort = () => {
      if (!(lease.signal.reason instanceof LockRevokedError)) return lost();
      end(EXIT.revoked, graceMs, 'asked to let go; ending the command');
      asking = connection && tellWhoAsks(connection.holdfast, plan, words);
    };
    lease.signal.addEventListener('abort', onAbort);
    cancels.push(() => lease.signal.removeEventListener('abort', onAbort));
    if (lease.signal.aborted) onAbort();
    const sessionTimeoutMs = session.timeoutMs;
    cancels.push(
      watchLease(
        lease,
        {
          endsAt: (leaseEndMs) => {
            guardian.tell({ leaseEndMs });
            door?.tell({ leaseEndMs });
          },
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
    if (connection) {
      const { holdfast, lease: own } = connection;
      const ended = () =>
        end(EXIT.lost, Math.max(1, lease.remainingMs()), 'the connection is down; ending the command');
      cancels.push(...watchConnection(holdfast, own, child, flags.onSuspend, ended));
    }
    inbox.deliverTo((signal) => deliver(signal, child, plan, words));

    const exitCode = await child.exitCode;
    if (lease.remainingMs() === 0) lost(); // Also if it was the guardian that noticed.
    // What the command has left running in its group goes before the lock does.
    if (endedWith === undefined && !flags.foreground && child.isGroupAlive) child.endGroup(graceMs);
    await child.gone();
    // Runs under this hold that have left the group: a hold is released with the last of those that use it.
    inbox.deliverTo(() => door?.expel());
    await door?.close();
    await asking;
    const code = endedWith ?? exitCode;
    for (const cancel of cancels.splice(0)) cancel();
    guardian.dismiss();
    words.tell({ event: 'ended', exitCode: code, commandExitCode: exitCode });
    await keepFor(flags.minHold, grantedAtMs, lease, inbox);
    return code;
  } finally {
    for (const cancel of cancels) cancel();
    door?.expel();
    await door?.close();
    guardian.dismiss();
    if (connection && connection.holdfast.zk.session.state !== 'connected') {
      await within(RELEASE_MS_MAX, connection.lease.release());
    }
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

/** After the command's end has begun, which does not wait for it: who asked, and why, if that was written down. */
async function tellWhoAsks(holdfast: Holdfast, { lock, lockText }: RunPlan, words: Words): Promise<void> {
  const { id } = holdfast.zk.session;
  const bound = AbortSignal.timeout(WHO_ASKS_MS_MAX);
  try {
    const looking = Promise.all(namesOf(lock).map((name) => holdfast.audit(name)));
    const records = (await orAbort(looking, bound)).flat();
    const record = records.findLast(({ action, session }) => action === 'asked' && session === id);
    if (!record) return;
    const { by, reason } = record;
    words.complain(
      { event: 'asked', lock: lockText, by, reason },
      `${lockText}: asked for by ${by}: ${reason}`,
    );
  } catch {
    // Not answered in time, or not readable: the command ends all the same.
  }
}

/** For crontabs on several machines, whose clocks differ: a job of no time at all must not run twice. */
async function keepFor(
  minHoldMs: number | undefined,
  grantedAtMs: number,
  lease: Hold['lease'],
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
