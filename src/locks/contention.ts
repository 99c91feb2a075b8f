import { orAbort } from '../base/abort.ts';
import { SessionLostError } from '../protocol/errors.ts';
import { describeForeign } from '../queue/entry-name.ts';
import type { HoldOnPlace, Joined, JoinRequest, LockQueue, Place, QueueView } from '../queue/lock-queue.ts';
import { type Grant, PlaceGrant } from './grant.ts';
import { lockTextOf } from './inspection.ts';
import { holdBack, type LockDelay } from './lock-delay.ts';
import { ContenderEvictedError, ForeignNodeError, WrongKindError } from './lock-errors.ts';
import { decideTurn, isFree, type Turn, type TurnRule } from './turn.ts';

/** What one contender wants: how it joins the queue, and by which rule its turn comes. */
export interface Contest extends JoinRequest {
  readonly lockName: string;
  readonly queue: LockQueue;
  readonly rule: TurnRule;
  /** Whether the last contender of this lock object saw others: then this one passes the baton too. */
  readonly seen?: { others: boolean } | undefined;
  /** Left out if a predecessor that vanished is followed at once. */
  readonly lockDelay?: LockDelay | undefined;
  /** Counts round trips, where there is a listener for them. */
  readonly trace?: { roundTrips: number } | undefined;
  /** Called each time it turns out that others go first, with the name of the own entry. */
  onWait?(turn: Extract<Turn, { kind: 'wait' }>, own: string): void;
}

/**
 * Joins the queue and waits for the turn. Every lock with a queue waits here, and only here.
 *
 *   1. Join: an entry at the end, and the queue as it was then.
 *   2. First among those in the way? Granted.
 *   3. Watch the nearest of those in the way. Released: granted. Gone, or the own entry: look again, go to 2.
 *   Whatever goes wrong after 1, leave. Each attempt belongs to one session: when that is lost, begin again.
 */
export function contend(contest: Contest): Promise<Grant> {
  return rejoinOnSessionLoss(contest.signal, async () => {
    const joined = await contest.queue.join(contest);
    if (contest.trace) contest.trace.roundTrips++;
    return waitForTurn(contest, joined);
  });
}

/** Makes an attempt that belongs to one session, and another one whenever that session is lost before it has ended. */
export async function rejoinOnSessionLoss<T>(
  signal: AbortSignal | undefined,
  attempt: () => Promise<T>,
): Promise<T> {
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof SessionLostError)) throw error;
      signal?.throwIfAborted(); // The caller waits no more, and hears of that.
    }
  }
}

/** Takes the lock if it is free, without waiting; undefined if it is not. Looks before it writes anything. */
export async function contendIfFree(contest: Contest): Promise<Grant | undefined> {
  const { queue, rule, signal, trace } = contest;
  const before = await queue.view(signal ? { signal } : {});
  if (trace) trace.roundTrips++;
  checkView(before, contest);
  if (!isFree(before.entries, rule)) return undefined;
  const { place, view } = await queue.join(contest);
  if (trace) trace.roundTrips++;
  try {
    checkView(view, contest);
    if (decideTurn(place.entry, view.entries, rule).kind === 'granted') {
      const hold = await holdOf(place, signal);
      return new PlaceGrant(place, hold, expectsOthers(contest, view.entries.length > 1));
    }
  } catch (error) {
    void place.leave().catch(() => {});
    throw error;
  }
  await orAbort(place.leave(), signal); // Goes on behind the call.
  return undefined;
}

/** Whether others are to be expected behind a place: they were seen by this contender, or by the one before it. */
function expectsOthers({ seen }: Contest, contended: boolean): boolean {
  if (!seen) return contended;
  const before = seen.others;
  seen.others = contended;
  return before || contended;
}

/** Waits for the turn of a place that has been taken; leaves it if the turn does not come. */
export async function waitForTurn(contest: Contest, { place, view: joinedView }: Joined): Promise<Grant> {
  const { rule, signal, lockDelay } = contest;
  let view = joinedView;
  let contended = view.entries.length > 1;
  let vanished = false;
  try {
    for (;;) {
      signal?.throwIfAborted();
      checkView(view, contest);
      const turn = decideTurn(place.entry, view.entries, rule);
      if (turn.kind === 'evicted') throw evictedFrom(contest.lockName);
      if (turn.kind === 'granted') break;
      contended = true;
      contest.onWait?.(turn, place.entry.name);
      if (contest.trace) contest.trace.roundTrips++;
      const baton = turn.baton || lockDelay !== undefined;
      const departure = await place.listen(turn.for, { baton, ...(signal && { signal }) });
      vanished = departure !== 'released';
      // A server that ends the session says first that the node is gone: looking tells that from a removal by hand.
      if (departure === 'released' && turn.baton && !place.evicted) break;
      // The only one ahead had gone while the own entry was there: the look has been taken.
      if (departure === 'absent' && turn.ahead === 1 && rule.lastInLast && !place.evicted) break;
      view = await place.view(signal);
      if (contest.trace) contest.trace.roundTrips++;
    }
    if (vanished && lockDelay) {
      await holdBack(lockDelay, [place.lost, signal]);
      if (place.evicted) throw evictedFrom(contest.lockName);
    }
    const hold = await (signal ? holdOf(place, signal) : place.hold());
    return new PlaceGrant(place, hold, expectsOthers(contest, contended));
  } catch (error) {
    void place.leave().catch(() => {}); // The first error is the one to tell.
    throw error;
  }
}

/**
 * One hold for several places of one session, each of which is known to be there. Every place confirms its own node
 * where the connection was lost meanwhile: a node that was removed by hand is noticed by its own place only.
 */
export async function holdOfAll(
  places: readonly Place[],
  signal: AbortSignal | undefined,
): Promise<HoldOnPlace> {
  const holding = places.map((place) => holdOf(place, signal));
  try {
    const [hold, ...others] = await Promise.all(holding);
    for (const other of others) other.release();
    return hold!;
  } catch (error) {
    for (const each of holding) each.then((hold) => hold.release()).catch(() => {});
    throw error;
  }
}

/** A hold, or no hold at all: one that comes after the wait was given up is let go of. */
export async function holdOf(place: Place, signal: AbortSignal | undefined): Promise<HoldOnPlace> {
  signal?.throwIfAborted();
  const holding = place.hold();
  if (!signal) return holding;
  try {
    return await orAbort(holding, signal);
  } catch (error) {
    holding.then((hold) => hold.release()).catch(() => {});
    throw error;
  }
}

/** Nobody can say who holds a lock in whose folder others keep their own things. */
export function checkView(view: QueueView, { lockName, rule }: Pick<Contest, 'lockName' | 'rule'>): void {
  const stranger = view.foreign[0];
  if (stranger === 'locks' || stranger === 'leases') {
    throw new WrongKindError(lockName, 'there is a semaphore under this name');
  }
  if (stranger !== undefined) {
    throw new ForeignNodeError(lockName, `${describeForeign(stranger)} is in its folder`);
  }
  const other = view.entries.find(({ role }) => !rule.roles.includes(role));
  if (other)
    throw new WrongKindError(lockName, `there is ${lockTextOf(other.role)} under this name (${other.name})`);
}

/** What a contender ends with whose node was removed by hand. */
export function evictedFrom(lockName: string): ContenderEvictedError {
  return new ContenderEvictedError(lockName, 'removed from the queue by someone else');
}
