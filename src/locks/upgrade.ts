import { orAbort } from '../base/abort.ts';
import type { Joined, Place, QueueEntry, QueueView } from '../queue/lock-queue.ts';
import { type Contest, checkView, waitForTurn } from './contention.ts';
import type { Grant } from './grant.ts';
import { ContenderEvictedError, LockUpgradeError } from './lock-errors.ts';
import type { LockLease } from './lock-lease.ts';
import { decideTurn, upgrading } from './turn.ts';

/**
 * Makes a writer of the one upgradable reader, beside its place.
 *
 *   1. Shut the door: a writer's entry behind all readers that may hold, so that none of them waits for it, and before
 *      everyone else. No writer waits: at the end of the queue, where the server's number puts it behind all who came
 *      before. One waits already: right before the first of them, in one step with the check that it still waits;
 *      until then it kept the door shut itself.
 *   2. Await the turn: all readers ahead have gone.
 *   3. Leave: take the entry away. The upgradable place stays.
 *
 * The token stays that of the upgradable place: larger than those of all writers before, smaller than those of all who
 * wait behind it, who would otherwise be taken for overtaken ones.
 */
export async function contendForUpgrade(contest: Contest, lease: LockLease): Promise<Grant> {
  const joined = await shutDoor(contest, placeOf(lease));
  return settled(joined.place, lease, () => waitForTurn({ ...contest, rule: upgrading }, joined));
}

/** The same if no reader is there; undefined, and as before, if there is one. */
export async function upgradeIfFree(contest: Contest, lease: LockLease): Promise<Grant | undefined> {
  const self = placeOf(lease);
  const before = await self.view(contest.signal);
  if (before.entries.some(({ role, name }) => role === 'read' && isAhead(before, name))) return undefined;
  const joined = await shutDoor(contest, self);
  const { place, view } = joined;
  if (decideTurn(place.entry, view.entries, upgrading).kind === 'wait') {
    await orAbort(place.leave(), contest.signal); // Goes on behind the call.
    return undefined;
  }
  return settled(place, lease, () => waitForTurn({ ...contest, rule: upgrading }, joined));
}

/** Ahead of every writer: such a reader holds. */
function isAhead({ entries }: QueueView, name: string): boolean {
  const writer = entries.findIndex(({ role }) => role === 'write');
  return writer < 0 || entries.findIndex((entry) => entry.name === name) < writer;
}

async function settled(place: Place, lease: LockLease, turn: () => Promise<Grant>): Promise<Grant> {
  try {
    const grant = await turn();
    lease.assertHeld(); // What it stands on may have been lost meanwhile.
    return grant;
  } catch (error) {
    void place.leave().catch(() => {});
    if (lease.remainingMs() === 0) lease.assertHeld();
    throw error;
  }
}

async function shutDoor(contest: Contest, self: Place): Promise<Joined> {
  const { lockName, queue, data, signal: giveUp } = contest;
  for (;;) {
    giveUp?.throwIfAborted();
    const before = await self.view(giveUp);
    checkView(before, contest);
    const writer = firstWriter(before, self, lockName);
    if (writer) {
      const place = await self.before(writer, 'upgraded', data, giveUp);
      if (place) return { place, others: [], view: await viewFrom(place, giveUp) };
      if (await isStill(self, writer, giveUp)) {
        throw new LockUpgradeError(lockName, 'its numbers have run out, and others wait to write');
      }
      continue;
    }
    const joined = await queue.join({ role: 'upgraded', data, ...(giveUp && { signal: giveUp }) });
    if (!firstWriter(joined.view, self, lockName)) return joined;
    // A writer came first, and with it nobody can be before us who holds. Goes on behind a call that is given up.
    await orAbort(joined.place.leave(), giveUp);
  }
}

async function viewFrom(place: Place, giveUp: AbortSignal | undefined): Promise<QueueView> {
  try {
    return await place.view(giveUp);
  } catch (error) {
    void place.leave().catch(() => {});
    throw error;
  }
}

async function isStill(self: Place, writer: QueueEntry, giveUp: AbortSignal | undefined): Promise<boolean> {
  const { entries } = await self.view(giveUp);
  return entries.some(({ name }) => name === writer.name);
}

/** The first who waits to write; everybody it waits for is ahead of it, and nobody else can hold. */
function firstWriter({ entries }: QueueView, self: Place, lockName: string): QueueEntry | undefined {
  const at = entries.findIndex(({ name }) => name === self.entry.name);
  if (at < 0) throw new ContenderEvictedError(lockName, 'removed from the queue by someone else');
  return entries.find(({ role }, index) => index > at && role === 'write');
}

function placeOf({ holding }: LockLease): Place {
  return holding.grant.place!;
}

/** One more hold of what is held already: it ends with that, and lets go of its own lease of it. */
export function grantWithin(lease: LockLease): Grant {
  const { holding } = lease;
  const { grant } = holding;
  let stop = () => {};
  return {
    bound: grant.bound,
    ...(grant.place && { place: grant.place }),
    contended: false,
    openWriteCount: 0,
    watched: true,
    attend: () => {},
    watchSelf: () => Promise.resolve(false),
    token: lease.token,
    paths: grant.paths,
    hold: {
      remainingMs: () => lease.remainingMs(),
      onEnded: (listener) => {
        stop = holding.onLost(listener);
      },
      release: () => stop(),
    },
    leave: () => lease.release(),
  };
}

/** What the upgrade holds together with the place it stands on: neither may be lost, and that one goes last. */
export function grantOfUpgrade(grant: Grant, standing: LockLease): Grant {
  const { hold } = grant;
  let stop = () => {};
  // Without `beside`: a reader at its spot would be one that waits.
  return {
    bound: grant.bound,
    ...(grant.place && { place: grant.place }),
    contended: false,
    openWriteCount: 0,
    attend: (events) => grant.attend(events),
    watchSelf: () => grant.watchSelf(),
    token: standing.token,
    paths: [...standing.holding.paths, ...grant.paths],
    hold: {
      remainingMs: () => Math.min(hold.remainingMs(), standing.remainingMs()),
      onEnded: (listener) => {
        hold.onEnded(listener);
        stop = standing.holding.onLost(listener);
      },
      release: () => {
        stop();
        hold.release();
      },
    },
    leave: async ({ announce = false }) => {
      try {
        await grant.leave({ baton: false, announce });
      } finally {
        await standing.release();
      }
    },
  };
}
