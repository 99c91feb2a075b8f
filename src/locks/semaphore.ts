import { orAbort } from '../base/abort.ts';
import type { Joined, QueueView } from '../queue/lock-queue.ts';
import { ZooKeeperQueue } from '../queue/zookeeper-queue.ts';
import {
  type Contest,
  checkView,
  contend,
  contendIfFree,
  holdOfAll,
  rejoinOnSessionLoss,
} from './contention.ts';
import { type Grant, grantOfAll } from './grant.ts';
import { type AcquireOptions, Lock, type LockOptionNames, lockOptionNames } from './lock.ts';
import type { LockContext } from './lock-context.ts';
import { ContenderEvictedError } from './lock-errors.ts';
import { withFacts } from './semaphore-view.ts';
import { exclusive, type TurnRule } from './turn.ts';

/** What may stand in a semaphore's own folder: nobody. */
const none: TurnRule = { roles: [], blockedBy: () => true };

/** How permits of a semaphore are to be acquired. */
export interface SemaphoreOptions extends AcquireOptions {
  /** How many permits, all or none; 1 if left out. */
  readonly permits?: number;
}

const optionNames = lockOptionNames({ permits: true });

/**
 * Up to N holders at once, in order of arrival, each with one permit or several. The layout is that of Curator's
 * `InterProcessSemaphoreV2`; whoever shares one must say the same N.
 *
 *   1. Queue up at the turnstile, an exclusive queue of its own.
 *   2. First there: make a node for each permit, and look at all of them.
 *   3. Among the first N? Granted. Otherwise look again whenever one has gone: nobody else looks, so there is no herd.
 *      Curator asks whether there are no more than N, which comes to the same while only one is at the turnstile. If
 *      one was put out of it by hand there are two, and each would wait for the other.
 *   4. Let the next one to the turnstile.
 *
 * Tokens identify here and do not order: several hold at once.
 */
export class Semaphore extends Lock<SemaphoreOptions> {
  readonly permits: number;
  readonly #folder: ZooKeeperQueue;
  readonly #turnstile: ZooKeeperQueue;
  readonly #leases: ZooKeeperQueue;

  /** @internal */
  protected readonly usedAs = 'semaphore';

  /** @internal */
  constructor(context: LockContext, name: string, options: { readonly permits: number }) {
    super(context, name);
    this.permits = options.permits;
    this.#folder = new ZooKeeperQueue(context.store, `${context.root}/${name}`);
    this.#turnstile = new ZooKeeperQueue(context.store, `${context.root}/${name}/locks`);
    this.#leases = new ZooKeeperQueue(context.store, `${context.root}/${name}/leases`);
  }

  /** @internal */
  protected override describe(options: SemaphoreOptions): string {
    return withFacts(super.describe(options), { permits: this.permits });
  }

  /** @internal */
  protected override get optionNames(): LockOptionNames {
    return optionNames;
  }

  protected override check({ permits = 1 }: SemaphoreOptions): void {
    if (!Number.isInteger(permits) || permits < 1 || permits > this.permits) {
      throw new RangeError(
        `permits: ${String(permits)} given; an integer from 1 to ${this.permits} is needed`,
      );
    }
  }

  protected contend(options: SemaphoreOptions, giveUp: AbortSignal | undefined): Promise<Grant> {
    return rejoinOnSessionLoss(giveUp, () => this.#contendOnce(options, giveUp));
  }

  async #contendOnce(options: SemaphoreOptions, giveUp: AbortSignal | undefined): Promise<Grant> {
    const turn = await contend(this.#contest(options, giveUp));
    try {
      const joined = await this.#leases.join(this.#joining(turn, options, giveUp));
      return await this.#granted(joined, giveUp, async () => {
        if (this.#fits(joined, joined.view)) return;
        this.waitsForHolder(options);
        await joined.place.awaitView((view) => this.#fits(joined, view), giveUp);
      });
    } finally {
      turn.hold.release();
      void turn.leave({ released: true, baton: turn.contended }).catch(() => {});
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
      const joined = await this.#leases.join(this.#joining(turn, options, giveUp));
      if (this.#fits(joined, joined.view)) return await this.#granted(joined, giveUp, async () => {});
      const leaving = Promise.all([joined.place, ...joined.others].map((place) => place.leave()));
      await orAbort(leaving, giveUp); // Goes on behind the call.
      return undefined;
    } finally {
      turn.hold.release();
      void turn.leave({ released: true, baton: turn.contended }).catch(() => {});
    }
  }

  async #granted(joined: Joined, giveUp: AbortSignal | undefined, wait: () => Promise<void>): Promise<Grant> {
    const places = [joined.place, ...joined.others];
    try {
      await wait();
      const hold = await holdOfAll(places, giveUp);
      const grant = grantOfAll(places, hold, false);
      // Who waits at the turnstile looks at all leases: a lease passes no baton.
      return { ...grant, watchSelf: async () => (await grant.watchSelf()) && false };
    } catch (error) {
      for (const place of places) void place.leave().catch(() => {});
      throw error;
    }
  }

  /** Whether all of ours are among the first N. What is no lease takes a permit all the same, as for Curator. */
  #fits({ place, others }: Joined, { entries, foreign }: QueueView): boolean {
    const places = [place, ...others].map(({ entry }) =>
      entries.findIndex(({ name }) => name === entry.name),
    );
    if (places.includes(-1)) {
      throw new ContenderEvictedError(this.name, 'removed from the queue by someone else');
    }
    return foreign.length + Math.max(...places) < this.permits;
  }

  /** Nobody else looks into the folder of both queues: asked when they are about to be made. */
  async #checkKind(giveUp: AbortSignal | undefined): Promise<void> {
    const { entries, foreign } = await this.#folder.view(giveUp ? { signal: giveUp } : {});
    const strangers = foreign.filter((name) => name !== 'locks' && name !== 'leases');
    checkView({ entries, foreign: strangers }, { lockName: this.name, rule: none });
  }

  #joining(turn: Grant, options: SemaphoreOptions, giveUp: AbortSignal | undefined) {
    return {
      role: 'lease',
      data: withFacts(this.describe(options), { turnstile: turn.place!.entry.name }),
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
      signal: giveUp,
      beforeFolders: () => this.#checkKind(giveUp),
      onWait: this.tellOfWaiting(options),
      trace: options.trace,
    };
  }
}

/** As Curator counts: every child takes a permit, whatever its name. */
function countOf({ entries, foreign }: QueueView): number {
  return entries.length + foreign.length;
}
