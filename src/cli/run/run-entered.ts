import { machineNowMs } from '../../base/machine-clock.ts';
import type { LockLease } from '../../locks/lock-lease.ts';
import { CommandError } from '../command-error.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { ownerText } from '../owner-text.ts';
import type { OwnHold } from './ancestors.ts';
import { hold, type Running } from './hold.ts';
import { namesOf } from './run-plan.ts';
import { enterDoor } from './tcp-reentry.ts';

const NEVER = new AbortController().signal;

/** Runs the command under the hold of the nearest ancestor that has all that is wanted. */
export async function runEntered(own: readonly OwnHold[], running: Running): Promise<ExitCode> {
  const { plan } = running;
  const names = namesOf(plan.lock);
  const [first] = own;
  const { ancestor } = first!;
  const same = own.length === names.length && own.every((hold) => hold.ancestor === ancestor && hold.covers);
  if (!same) {
    const message = `--reenter: the run that started this one (${ownerText(first!.holder)}) holds ${own.map(({ lockName }) => lockName).join(', ')}, which is not all that is wanted`;
    throw new CommandError(message, EXIT.heldByAncestor);
  }
  const guest = ancestor.door === undefined ? undefined : await enterDoor(ancestor.door, running.giveUp);
  if (!guest) {
    const message = `--reenter: the run that holds ${plan.lockText} (${ownerText(first!.holder)}) lets nobody in: it is ending, is another user's, or runs elsewhere`;
    throw new CommandError(message, EXIT.heldByAncestor);
  }
  const over = new AbortController();
  let { leaseEndMs, endByMs } = guest.state;
  let ending = (_forMs: number) => {};
  const tellEnding = () => {
    if (endByMs !== undefined) ending(Math.max(1, endByMs - machineNowMs()));
  };
  guest.onChange((state) => {
    leaseEndMs = state?.leaseEndMs ?? 0;
    if (!state) return over.abort(new Error('the hold is over'));
    const isNews = state.endByMs !== endByMs;
    endByMs = state.endByMs;
    if (isNews) tellEnding();
  });
  const onEnding = (listener: (forMs: number) => void) => {
    ending = listener;
    tellEnding();
  };
  const lease = {
    token: ancestor.token as LockLease['token'],
    signal: over.signal,
    revocation: NEVER, // The run above is asked, and ends this one.
    remainingMs: () => Math.max(0, leaseEndMs - machineNowMs()),
  };
  const session = { id: ancestor.session, timeoutMs: guest.state.sessionTimeoutMs };
  // In the process group of the ancestor's command: what pauses or ends that one, pauses or ends this.
  const inGroup = { ...plan, flags: { ...plan.flags, foreground: true } };
  running.words.tell({ event: 'entered', lock: plan.lockText, token: lease.token });
  try {
    return await hold({ lease, session, connection: undefined, onEnding }, { ...running, plan: inGroup });
  } finally {
    guest.leave();
  }
}
