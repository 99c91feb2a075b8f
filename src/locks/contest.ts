import { orAbort } from '../base/abort.ts';
import { SessionLostError } from '../protocol/errors.ts';
import { describeForeign } from '../queue/entry-name.ts';
import type {
  EntryRole,
  HoldOnPlace,
  JoinRequest,
  LockQueue,
  Place,
  QueueView,
} from '../queue/lock-queue.ts';
import { type Grant, PlaceGrant } from './grant.ts';
import { lockTextOf } from './inspection.ts';
import { holdBack, type LockDelay } from './lock-delay.ts';
import { ContenderEvictedError, ForeignNodeError, WrongKindError } from './lock-errors.ts';
import { decideTurn, isFree, type Turn, type TurnRule } from './turn.ts';

/** One contender's wish. */
export interface Contest {
  readonly lockName: string;
  readonly queue: LockQueue;
  readonly role: EntryRole;
  readonly rule: TurnRule;
  readonly data: string;
  readonly giveUp: AbortSignal | undefined;
  /** See `JoinRequest`. */
  readonly beforeFolders?: (() => Promise<void>) | undefined;
  /** Left out if nobody is to hold back. */
  readonly lockDelay?: LockDelay | undefined;
  /** Counts round trips, where somebody wants to know. */
  readonly trace?: { roundTrips: number } | undefined;
  /** Called each time it turns out that others go first, with the name of the own entry. */
  onWait?(turn: Extract<Turn, { kind: 'wait' }>, own: string): void;
}

/**
 * Joins the queue and waits for the turn. Every lock with a queue waits here, and only here.
 *
 *   1. Join: an entry at the end, and the queue as it was then.
 *   2. First among those in the way? Granted.
 *   3. Listen to the nearest of those in the way. Released: granted. Gone, or the own entry: look again, go to 2.
 *   Whatever goes wrong after 1, leave. Each attempt belongs to one session: when that is lost, begin again.
 */
export async function contend(contest: Contest): Promise<Grant> {
  for (;;) {
    let place: Place | undefined;
    try {
      const joined = await contest.queue.join(joining(contest));
      countRoundTrip(contest);
      place = joined.place;
      const grant = takeTurn(contest, joined.place, joined.view);
      return grant instanceof Promise ? await grant : grant;
    } catch (error) {
      void place?.leave().catch(() => {}); // The first error is the one to tell.
      if (!(error instanceof SessionLostError)) throw error;
      contest.giveUp?.throwIfAborted(); // Why it ends is that nobody waits.
    }
  }
}

/** Takes the lock if it is free, without waiting; undefined if it is not. Looks before it writes anything. */
export async function contendIfFree(contest: Contest): Promise<Grant | undefined> {
  const { queue, rule, giveUp } = contest;
  const before = await queue.view(giveUp ? { signal: giveUp } : {});
  countRoundTrip(contest);
  checkView(before, contest);
  if (!isFree(before.entries, rule)) return undefined;
  const { place, view } = await queue.join(joining(contest));
  countRoundTrip(contest);
  try {
    checkView(view, contest);
    if (decideTurn(place.entry, view.entries, rule).kind === 'granted') {
      return new PlaceGrant(place, await holdOf(place, giveUp), view.entries.length > 1);
    }
  } catch (error) {
    void place.leave().catch(() => {});
    throw error;
  }
  await orAbort(place.leave(), giveUp); // Goes on behind the call.
  return undefined;
}

function joining({ role, data, giveUp, beforeFolders }: Contest): JoinRequest {
  return { role, data, signal: giveUp, beforeFolders };
}

/** The turn of a place that has been taken; at once for one who is alone, without a turn of the promise queue. */
function takeTurn(contest: Contest, place: Place, view: QueueView): Grant | Promise<Grant> {
  const { rule, giveUp } = contest;
  const { entries } = view;
  if (entries.length !== 1) return awaitTurn(contest, place, view);
  giveUp?.throwIfAborted();
  checkView(view, contest);
  if (decideTurn(place.entry, entries, rule).kind !== 'granted') return awaitTurn(contest, place, view);
  const holding = holdOf(place, giveUp);
  if (holding instanceof Promise) return holding.then((hold) => new PlaceGrant(place, hold, false));
  return new PlaceGrant(place, holding, false);
}

/** Waits for the turn of a place that has been taken. */
export async function awaitTurn(contest: Contest, place: Place, joinedView: QueueView): Promise<Grant> {
  const { lockName, rule, giveUp, lockDelay } = contest;
  let view = joinedView;
  let contended = view.entries.length > 1;
  let vanished = false;
  for (;;) {
    giveUp?.throwIfAborted();
    checkView(view, contest);
    const turn = decideTurn(place.entry, view.entries, rule);
    if (turn.kind === 'evicted') throw evictedFrom(lockName);
    if (turn.kind === 'granted') break;
    contended = true;
    contest.onWait?.(turn, place.entry.name);
    const baton = turn.baton || lockDelay !== undefined;
    countRoundTrip(contest);
    const departure = await place.listen(turn.for, { baton, ...(giveUp && { signal: giveUp }) });
    vanished = departure !== 'released';
    // A server that ends the session says first that the node is gone: looking tells that from a removal by hand.
    if (departure === 'released' && turn.baton && !place.evicted) break;
    // The only one ahead had gone while the own entry was there: the look has been taken.
    if (departure === 'absent' && turn.ahead === 1 && rule.lastInLast && !place.evicted) break;
    view = await place.view(giveUp);
    countRoundTrip(contest);
  }
  if (vanished && lockDelay) {
    await holdBack(lockDelay, [place.lost, giveUp]);
    if (place.evicted) throw evictedFrom(lockName);
  }
  return new PlaceGrant(place, await holdOf(place, giveUp), contended);
}

/**
 * One hold for several places of one session, each of which is known to be there. Every place confirms its own node
 * where the connection was lost meanwhile: a node that was removed by hand is noticed by its own place only.
 */
export async function holdOfAll(
  places: readonly Place[],
  giveUp: AbortSignal | undefined,
): Promise<HoldOnPlace> {
  const holding = places.map(async (place) => holdOf(place, giveUp));
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
export function holdOf(place: Place, giveUp: AbortSignal | undefined): HoldOnPlace | Promise<HoldOnPlace> {
  giveUp?.throwIfAborted();
  const holding = place.hold();
  return holding instanceof Promise ? unlessGivenUp(holding, giveUp) : holding;
}

async function unlessGivenUp(
  holding: Promise<HoldOnPlace>,
  giveUp: AbortSignal | undefined,
): Promise<HoldOnPlace> {
  try {
    return await orAbort(holding, giveUp);
  } catch (error) {
    holding.then(
      (hold) => hold.release(),
      () => {},
    );
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

function countRoundTrip({ trace }: Contest): void {
  if (trace) trace.roundTrips++;
}

/** What a contender ends with whose node was removed by hand. */
export function evictedFrom(lockName: string): ContenderEvictedError {
  return new ContenderEvictedError(lockName, 'removed from the queue by someone else');
}
