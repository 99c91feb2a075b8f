import { orAbort } from '../../base/abort.ts';
import { systemClock } from '../../base/clock.ts';
import { describeDuration } from '../../base/duration.ts';
import { machineNowMs } from '../../base/machine-clock.ts';
import { fraction, systemRandom } from '../../base/random.ts';
import type { Holdfast } from '../../locks/holdfast.ts';
import type { LockLease } from '../../locks/lock-lease.ts';
import { inheritedAuth } from '../connection.ts';
import type { Console } from '../console.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { sessionText } from '../lock-json.ts';
import { AUTH_VARIABLE, childEnvironment } from './child-environment.ts';
import { Guardian } from './guardian.ts';
import { type AncestorHold, ancestorsText } from './held-variable.ts';
import { lossGraceMs, watchLease } from './lease-watch.ts';
import { keepHold } from './min-hold.ts';
import { namesOf, type RunPlan } from './run-plan.ts';
import { asksToEnd, type SignalInbox } from './signal-inbox.ts';
import { SupervisedChild } from './supervised-child.ts';
import { offerCredentials } from './tcp-credentials.ts';
import { ReentryDoor } from './tcp-reentry.ts';
import type { Words } from './words.ts';

const WHO_ASKS_MS_MAX = 1_000;
/** A lock that cannot be released, because no server is there, goes with its session; it is not waited for. */
const RELEASE_MS_MAX = 5_000;

/** What is known of a hold, whoever's it is: of this run, or of the ancestor under whose hold it runs. */
export interface Hold {
  readonly lease: Pick<LockLease, 'token' | 'signal' | 'revocation' | 'remainingMs'>;
  readonly session: { readonly id: bigint; readonly timeoutMs: number };
  /** The connection by which it is held; undefined for an ancestor's, which looks after its own. */
  readonly connection: { readonly holdfast: Holdfast; readonly lease: LockLease } | undefined;
  /** Calls when the run above ends the hold in an orderly way, with the time that is left for it. */
  onEnding(listener: (forMs: number) => void): void;
}

export interface Running {
  readonly plan: RunPlan;
  readonly words: Words;
  readonly inbox: SignalInbox;
  /** Fires with a `SignalledError` when a signal comes before there is a command that it can be passed on to. */
  readonly giveUp: AbortSignal;
  readonly env: Console['env'];
  readonly ancestors: readonly AncestorHold[];
}

export function holdReal(holdfast: Holdfast, lease: LockLease): Hold {
  const { id, timeoutMs } = holdfast.zk.session;
  return { lease, session: { id, timeoutMs }, connection: { holdfast, lease }, onEnding() {} };
}

/**
 * Runs the command, and sees to it that nothing of it outlives the lease.
 *
 * @throws SignalledError where a signal came before the command was started: it is not started then.
 */
export async function hold(held: Hold, running: Running): Promise<ExitCode> {
  const { lease, session, connection } = held;
  const { plan, words, inbox, giveUp, env, ancestors } = running;
  const { flags } = plan;
  const grantedAtMs = systemClock.nowMs();
  const acquiredAt = new Date(systemClock.wallMs()).toISOString();
  const mark = `${process.pid}-${Math.floor(fraction(systemRandom) * 2 ** 48).toString(36)}`;
  const graceMs = flags.grace;
  const leaseEndMs = machineNowMs() + lease.remainingMs();
  // What runs under an ancestor's hold is let in by the ancestor.
  const door = connection && (await ReentryDoor.open({ leaseEndMs, sessionTimeoutMs: session.timeoutMs }));
  const holds: AncestorHold[] = connection
    ? [...ancestors, { session: session.id, token: lease.token, locks: namesOf(plan.lock), door: door?.path }]
    : [...ancestors];
  let unguarded = (_why: string) => {};
  let guardian: Guardian | undefined;
  const cancels: (() => void)[] = [];
  const facts = {
    lockText: plan.lockText,
    token: lease.token.toString(),
    session: sessionText(session.id),
    held: ancestorsText(holds),
    acquiredAt,
  };
  try {
    guardian = new Guardian(
      {
        tree: { mark, pid: undefined, ownGroup: !flags.foreground },
        leaseEndMs,
        graceMs,
        folder: door?.folder,
        done: false,
      },
      (why) => unguarded(why),
    );
    const guard = guardian;
    const auth = env[AUTH_VARIABLE] || (await inheritedAuth(env, giveUp));
    const offered = door && auth ? await offerCredentials(door.folder, auth) : undefined;
    if (offered) cancels.push(() => offered.close());
    // From here to the command's start nothing is awaited: a signal that comes now is the command's.
    giveUp.throwIfAborted();
    const child = await SupervisedChild.start(
      plan.command,
      {
        mark,
        foreground: flags.foreground ?? false,
        env: childEnvironment(env, facts, flags.passAuth ? auth : undefined),
      },
      (started) => {
        guard.tell({ tree: started.tree });
        inbox.deliverTo((signal) => deliver(signal, started, plan, words));
      },
    );
    words.tell({ event: 'started', pid: child.tree.pid });
    let endedWith: ExitCode | undefined;
    let asking: Promise<void> | undefined;
    const end = (code: ExitCode, forMs: number, why: string) => {
      if (endedWith === undefined)
        words.complain({ event: 'ending', exitCode: code }, `${plan.lockText}: ${why}`);
      endedWith ??= code;
      if (forMs > 0) {
        door?.endWithin(forMs);
        child.end(forMs);
      } else {
        door?.expel();
        child.kill();
      }
    };
    unguarded = (why) => end(EXIT.internal, graceMs, `${why}: nothing runs unguarded; ending the command`);
    if (guardian.failure !== undefined) unguarded(guardian.failure);
    const lost = () => end(EXIT.lost, 0, 'the lock is lost; the command was killed');

    const revoked = () => {
      end(EXIT.revoked, graceMs, 'asked to let go; ending the command');
      asking = connection && tellWhoAsks(connection.holdfast, plan, words);
    };
    for (const [signal, listener] of [
      [lease.signal, lost],
      [lease.revocation, revoked],
    ] as const) {
      signal.addEventListener('abort', listener);
      cancels.push(() => signal.removeEventListener('abort', listener));
      if (signal.aborted) listener();
    }
    held.onEnding((forMs) =>
      end(EXIT.lost, Math.min(graceMs, forMs), 'the run that holds it ends; ending the command'),
    );
    cancels.push(() => held.onEnding(() => {}));
    const sessionTimeoutMs = session.timeoutMs;
    cancels.push(
      watchLease(
        lease,
        {
          endsAt: (leaseEndMs) => {
            guard.tell({ leaseEndMs });
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

    const exitCode = await child.exitCode;
    if (lease.remainingMs() === 0) lost(); // Also if it was the guardian that noticed.
    // What the command has left running in its group goes before the lock does.
    if (endedWith === undefined && !flags.foreground && child.isGroupAlive) child.endGroup(graceMs);
    await child.gone();
    // Runs under this hold that have left the group: a hold is released with the last of those that use it.
    inbox.deliverTo((signal) => {
      if (asksToEnd(signal)) door?.endWithin(graceMs);
    });
    await door?.close();
    await asking;
    for (const cancel of cancels.splice(0)) cancel();
    guardian.dismiss();
    const keptUntilMs = grantedAtMs + (flags.minHold ?? 0);
    const after = endedWith ?? (await keep(held, keptUntilMs, running)) ?? exitCode;
    words.tell({ event: 'ended', exitCode: after, commandExitCode: exitCode });
    return after;
  } finally {
    for (const cancel of cancels) cancel();
    door?.expel();
    await door?.close();
    guardian?.dismiss();
    if (connection && connection.holdfast.zk.session.state !== 'connected') {
      await waitForRelease(connection.lease.release());
    }
  }
}

/** Holds for the rest of `--min-hold`. Gives the exit code of what ended the hold before, unless it was a signal. */
async function keep(
  { lease, session, connection, onEnding }: Hold,
  untilMs: number,
  { plan, words, inbox }: Running,
): Promise<ExitCode | undefined> {
  if (untilMs <= systemClock.nowMs()) return undefined;
  const how = await keepHold({ lease, sessionTimeoutMs: session.timeoutMs, onEnding }, untilMs, inbox);
  if (how !== 'lost' && how !== 'revoked') return undefined;
  const [exitCode, what] =
    how === 'lost'
      ? ([EXIT.lost, 'the lock is lost'] as const)
      : ([EXIT.revoked, 'asked to let go'] as const);
  words.complain(
    { event: 'ending', exitCode },
    `${plan.lockText}: ${what} before --min-hold is over; the command had ended`,
  );
  if (how === 'revoked' && connection) await tellWhoAsks(connection.holdfast, plan, words);
  return exitCode;
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

/** Waits for a release, for a while: where no server answers, what is held goes with its session. */
export async function waitForRelease(release: Promise<void>): Promise<void> {
  let cancel = () => {};
  const timeout = new Promise<void>((resolve) => {
    cancel = systemClock.at(systemClock.nowMs() + RELEASE_MS_MAX, resolve);
  });
  await Promise.race([release.catch(() => {}), timeout]);
  cancel();
}
