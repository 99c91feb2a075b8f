import { SessionLostError } from '../protocol/errors.ts';
import type { Joined, QueueView } from '../queue/lock-queue.ts';
import { ZooKeeperQueue } from '../queue/zookeeper-queue.ts';
import { type Contest, contend, contendIfFree, holdOf } from './contest.ts';
import { type Grant, grantOfAll } from './grant.ts';
import { type AcquireOptions, Lock } from './lock.ts';
import type { LockContext } from './lock-context.ts';
import { ContenderEvictedError } from './lock-errors.ts';
import { exclusive } from './turn.ts';

/** How permits of a semaphore are to be acquired. */
export interface SemaphoreOptions extends AcquireOptions {
  /** How many permits, all or none; 1 if left out. */
  readonly permits?: number;
}

/**
 * Up to N holders at once, in order of arrival, each with one permit or several. The layout is that of Curator's
 * `InterProcessSemaphoreV2`; whoever shares one must say the same N.
 *
 *   1. Queue up at the turnstile, an exclusive queue of its own.
 *   2. First there: make a node for each permit, and look at all of them.
 *   3. No more than N? Granted. Otherwise look again whenever one has gone: nobody else looks, so there is no herd,
 *      and nobody else comes in, so no wake-up is lost.
 *   4. Let the next one to the turnstile.
 *
 * Tokens identify here and do not order: several hold at once.
 */
export class Semaphore extends Lock<SemaphoreOptions> {
  readonly permits: number;
  readonly #turnstile: ZooKeeperQueue;
  readonly #leases: ZooKeeperQueue;

  /** @internal */
  constructor(context: LockContext, name: string, options: { readonly permits: number }) {
    super(context, name);
    this.permits = options.permits;
    this.#turnstile = new ZooKeeperQueue(context.store, `${context.root}/${name}/locks`);
    this.#leases = new ZooKeeperQueue(context.store, `${context.root}/${name}/leases`);
  }

  protected override check({ permits = 1 }: SemaphoreOptions): void {
    if (!Number.isInteger(permits) || permits < 1 || permits > this.permits) {
      throw new RangeError(
        `permits: ${String(permits)} given; an integer from 1 to ${this.permits} is needed`,
      );
    }
  }

  protected async contend(options: SemaphoreOptions, giveUp: AbortSignal | undefined): Promise<Grant> {
    for (;;) {
      try {
        return await this.#contendOnce(options, giveUp);
      } catch (error) {
        if (!(error instanceof SessionLostError) || giveUp?.aborted) throw error;
      }
    }
  }

  async #contendOnce(options: SemaphoreOptions, giveUp: AbortSignal | undefined): Promise<Grant> {
    const turn = await contend(this.#contest(options, giveUp));
    try {
      const joined = await this.#leases.join(this.#joining(options, giveUp));
      return await this.#granted(joined, giveUp, async () => {
        if (this.#fits(joined.view)) return;
        await joined.place.awaitView((view) => {
          this.#checkStillThere(joined, view);
          return this.#fits(view);
        }, giveUp);
      });
    } finally {
      turn.hold.release();
      void turn.leave({ baton: turn.contended }).catch(() => {});
    }
  }

  protected async tryContend(
    options: SemaphoreOptions,
    giveUp: AbortSignal | undefined,
  ): Promise<Grant | undefined> {
    const looking = giveUp ? { signal: giveUp } : {};
    const [before, queue] = await Promise.all([this.#leases.view(looking), this.#turnstile.view(looking)]);
    const wanted = options.permits ?? 1;
    if (queue.entries.length > 0 || countOf(before) + wanted > this.permits) return undefined;
    const turn = await contendIfFree(this.#contest(options, giveUp));
    if (!turn) return undefined;
    try {
      const joined = await this.#leases.join(this.#joining(options, giveUp));
      if (this.#fits(joined.view)) return await this.#granted(joined, giveUp, async () => {});
      await Promise.all([joined.place, ...joined.others].map((place) => place.leave()));
      return undefined;
    } finally {
      turn.hold.release();
      void turn.leave({ baton: turn.contended }).catch(() => {});
    }
  }

  async #granted(joined: Joined, giveUp: AbortSignal | undefined, wait: () => Promise<void>): Promise<Grant> {
    const places = [joined.place, ...joined.others];
    try {
      await wait();
      const hold = await holdOf(joined.place, giveUp);
      const grant = grantOfAll(places, hold, false);
      // Who waits at the turnstile looks at all leases: a lease passes no baton.
      return { ...grant, watchSelf: async () => (await grant.watchSelf()) && false };
    } catch (error) {
      for (const place of places) void place.leave().catch(() => {});
      throw error;
    }
  }

  #fits(view: QueueView): boolean {
    return countOf(view) <= this.permits;
  }

  #checkStillThere({ place }: Joined, view: QueueView): void {
    if (!view.entries.some(({ name }) => name === place.entry.name)) {
      throw new ContenderEvictedError(this.name, 'removed from the queue by someone else');
    }
  }

  #joining(options: SemaphoreOptions, giveUp: AbortSignal | undefined) {
    return {
      role: 'lease',
      data: this.describe(options),
      count: options.permits ?? 1,
      ...(giveUp && { signal: giveUp }),
    } as const;
  }

  #contest(options: SemaphoreOptions, giveUp: AbortSignal | undefined): Contest {
    return {
      lockName: this.name,
      queue: this.#turnstile,
      role: 'exclusive',
      rule: exclusive,
      data: this.describe(options),
      giveUp,
      onWait: this.tellOfWaiting(),
    };
  }
}

/** As Curator counts: every child takes a permit, whatever its name. */
function countOf({ entries, foreign }: QueueView): number {
  return entries.length + foreign.length;
}
