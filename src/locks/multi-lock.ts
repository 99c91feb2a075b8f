import { orAbort } from '../base/abort.ts';
import { deferred } from '../base/deferred.ts';
import { JoinAttempt } from '../queue/join-attempt.ts';
import type { Joined, Place } from '../queue/lock-queue.ts';
import { firstMissing } from '../queue/settled-writes.ts';
import { ZooKeeperQueue } from '../queue/zookeeper-queue.ts';
import {
  type Contest,
  checkView,
  evictedFrom,
  holdOfAll,
  rejoinOnSessionLoss,
  waitForTurn,
} from './contention.ts';
import { type Grant, grantOfAll } from './grant.ts';
import { type AcquireOptions, Lock } from './lock.ts';
import type { LockContext } from './lock-context.ts';
import { lockDelayOf } from './lock-delay.ts';
import { decideTurn, exclusive, isFree } from './turn.ts';

/**
 * Several mutexes as one, all or nothing.
 *
 *   1. Join all queues in one transaction. It is one point of the global order, so any two who do this stand in the
 *      same order in every queue they share: they cannot wait for each other, in whatever order the names were given.
 *   2. Await the turn in each. Every node is watched until the last turn has come, those that are first too: one that is
 *      removed by hand ends the whole wait.
 *   3. Waited for one of them? Confirm all nodes by one transaction: the last turn may have been told within the process,
 *      where it overtakes what a server has to tell of the others.
 *   4. Leave all.
 *
 * Not promised: that someone who takes the same mutexes one after another, here or with Curator, cannot deadlock.
 */
export class MultiLock extends Lock {
  readonly names: readonly string[];
  readonly #queues: readonly ZooKeeperQueue[];

  /** @internal */
  protected readonly usedAs = 'multi';

  /** @internal */
  constructor(context: LockContext, names: readonly string[]) {
    super(context, names.join('+'));
    this.names = names;
    this.#queues = names.map((name) => new ZooKeeperQueue(context.store, `${context.root}/${name}`));
  }

  protected contend(options: AcquireOptions, giveUp: AbortSignal | undefined): Promise<Grant> {
    return rejoinOnSessionLoss(giveUp, async () => {
      const joined = await this.#join(options, giveUp);
      try {
        return await this.#awaitTurns(joined, options, giveUp);
      } catch (error) {
        for (const { place } of joined) void place.leave().catch(() => {});
        throw error;
      }
    });
  }

  protected async tryContend(
    options: AcquireOptions,
    giveUp: AbortSignal | undefined,
  ): Promise<Grant | undefined> {
    const views = await Promise.all(
      this.#queues.map((queue) => queue.view(giveUp ? { signal: giveUp } : {})),
    );
    for (const [index, view] of views.entries()) {
      checkView(view, { lockName: this.names[index]!, rule: exclusive });
      if (!isFree(view.entries, exclusive)) return undefined;
    }
    const joined = await this.#join(options, giveUp);
    const places = joined.map(({ place }) => place);
    try {
      const granted = joined.every(
        ({ place, view }) => decideTurn(place.entry, view.entries, exclusive).kind === 'granted',
      );
      if (granted) return grantOfAll(places, await holdOfAll(places, giveUp), false);
    } catch (error) {
      for (const place of places) void place.leave().catch(() => {});
      throw error;
    }
    await orAbort(Promise.all(places.map((place) => place.leave())), giveUp); // Goes on behind the call.
    return undefined;
  }

  async #awaitTurns(
    joined: readonly Joined[],
    options: AcquireOptions,
    giveUp: AbortSignal | undefined,
  ): Promise<Grant> {
    const places = joined.map(({ place }) => place);
    const isFirst = ({ place, view }: Joined) =>
      decideTurn(place.entry, view.entries, exclusive).kind === 'granted';
    const isWaiting = !joined.every(isFirst);
    const removed = deferred<never>();
    removed.promise.catch(() => {});
    if (isWaiting) this.#attend(places, removed.reject);
    const turns = joined.map(async (each, index) => {
      const { place } = each;
      const grant = await waitForTurn(this.#contest(index, options, giveUp), each);
      options.look?.granted(this.names[index]!);
      // Its turn has come and others are waited for: nothing else would tell that its node is gone.
      if (isWaiting) void place.watchSelf().catch(() => {});
      return grant;
    });
    const grants = await Promise.race([Promise.all(turns), removed.promise]).catch((error) => {
      // The others are called off by their places' leaving; what they have come to hold is let go of.
      for (const turn of turns) turn.then(({ hold }) => hold.release()).catch(() => {});
      throw error;
    });
    for (const { hold } of grants) hold.release(); // The first may have ended while the others were waited for.
    if (isWaiting) await this.#confirm(places, giveUp);
    // They are of one session: one hold speaks for all.
    const hold = await holdOfAll(places, giveUp);
    return grantOfAll(
      places,
      hold,
      grants.some(({ contended }) => contended),
    );
  }

  /** What happens to the places until all of them are granted; the lease attends to them then. */
  #attend(places: readonly Place[], removed: (error: Error) => void): void {
    for (const [index, place] of places.entries()) {
      // A server that ends the session says first that its nodes are gone: looking tells that from a removal by hand.
      const evicted = () => void place.view().then(() => removed(evictedFrom(this.names[index]!)), removed);
      place.attend({ evicted, revoked: () => {} });
    }
  }

  async #confirm(places: readonly Place[], giveUp: AbortSignal | undefined): Promise<void> {
    const { zk, clock } = this.context;
    const { session } = places[0]!.bound;
    const bounds = { clock, session: session! };
    const paths = places.map(({ path }) => path);
    const missing = await orAbort(firstMissing(zk, paths, bounds, giveUp), giveUp);
    if (missing !== undefined) throw evictedFrom(this.names[missing]!);
  }

  #join(options: AcquireOptions, giveUp: AbortSignal | undefined): Promise<readonly Joined[]> {
    const request = {
      role: 'exclusive',
      data: this.describe(options),
      ...(giveUp && { signal: giveUp }),
    } as const;
    return new JoinAttempt(this.context.store.current, this.#queues, request).run();
  }

  #contest(index: number, options: AcquireOptions, giveUp: AbortSignal | undefined): Contest {
    return {
      lockName: this.names[index]!,
      queue: this.#queues[index]!,
      role: 'exclusive',
      rule: exclusive,
      data: this.describe(options),
      signal: giveUp,
      onWait: this.tellOfWaiting(options, this.names[index]),
      lockDelay: lockDelayOf(this.context),
      trace: options.trace,
    };
  }
}
