import { orAbort } from '../base/abort.ts';
import type { Grant } from './grant.ts';
import type { AcquireOptions } from './lock.ts';
import type { LockContext } from './lock-context.ts';
import { traceWait } from './lock-diagnostics.ts';
import { Mutex } from './mutex.ts';
import type { SharingPolicy } from './mutex-options.ts';
import { SharedPlace } from './shared-place.ts';
import { TaskQueue } from './task-queue.ts';

const DONE = Promise.resolve();

/**
 * A mutex whose tasks in this process share one place in the queue: `cache` keeps it when nobody here wants it,
 * `handOff` passes it on from one task to the next.
 *
 *   1. A task waits in the process, in order of arrival. The first to wait contends for a place, as any mutex does; when
 *      all have given up, the place is given up too.
 *   2. Granted: the first task enters. When it leaves, the next one does, unless others wait and have waited for
 *      `grantsMax` such grants, or for `ms`: then the place is theirs, and go to 1, behind them.
 *   3. Nobody here wants it: leave. With `cache`, keep it until anybody else comes.
 *
 * Others see one contender, Curator's too. Each grant is looked at anew: what cannot be promised is left, and go to 1.
 *
 * Tokens: all sections of one place have its token. What orders them is (`token`, `section`).
 */
export class SharedMutex extends Mutex {
  readonly #policy: SharingPolicy;
  readonly #tasks = new TaskQueue<AcquireOptions, Grant>();
  #place: SharedPlace | undefined;
  /** The server has refused to remove its node: the next place would wait behind it. */
  #refused: SharedPlace | undefined;
  /** Under way for a place: to wait for one, or to try. Settles when that is over, and never fails. */
  #contending: Promise<void> | undefined;
  /** Calls the wait for a place off. */
  #giveUp: AbortController | undefined;

  /** @internal */
  constructor(context: LockContext, name: string, policy: SharingPolicy) {
    super(context, name, policy);
    this.#policy = policy;
  }

  protected override contend(options: AcquireOptions, giveUp: AbortSignal | undefined): Promise<Grant> {
    const place = this.#place;
    if (place && !place.isEntered && this.#tasks.length === 0 && place.next() === 'enter') {
      return Promise.resolve(place.enter());
    }
    this.#tellOfTasksAhead(options);
    const granted = this.#tasks.wait(options, giveUp, () => void this.#pump());
    void this.#pump();
    return granted;
  }

  protected override async tryContend(
    options: AcquireOptions,
    giveUp: AbortSignal | undefined,
  ): Promise<Grant | undefined> {
    for (;;) {
      const place = this.#place;
      if (place?.isEntered || this.#tasks.length > 0) return undefined; // Known here, without a read.
      if (this.#contending !== undefined) {
        await orAbort(this.#contending, giveUp);
      } else if (!place) {
        const tried = await this.#tryForPlace(options, giveUp);
        if (tried !== 'again') return tried;
      } else {
        const next = place.next();
        if (next === 'enter') return place.enter();
        await orAbort(next === 'wait' ? place.known() : this.#leave(place), giveUp);
      }
    }
  }

  /** Does what is to be done next; resolves when what was let go of for it is gone for sure. */
  #pump(options: { readonly baton?: boolean } = {}): Promise<void> {
    const place = this.#place;
    if (place?.isEntered) {
      if (this.#tasks.length > 0) void place.watch();
      return DONE;
    }
    let leaving = DONE;
    if (place) {
      const next = this.#tasks.length > 0 ? place.next() : place.isKept ? 'keep' : 'leave';
      if (next === 'keep') return place.keep();
      if (next === 'wait') {
        void place.known();
        return DONE;
      }
      if (next === 'enter') {
        this.#tasks.shift()!.grant(place.enter());
        return this.#pump();
      }
      leaving = this.#leave(place, options);
    }
    if (this.#tasks.length === 0) this.#giveUp?.abort();
    else if (this.#contending === undefined) void this.#contendForPlace();
    return leaving;
  }

  async #contendForPlace(): Promise<void> {
    const controller = new AbortController();
    this.#giveUp = controller;
    await this.#whileContending(async () => {
      try {
        if (this.#refused) await orAbort(this.#leaveRefused(), controller.signal);
        this.#take(await super.contend(this.#tasks.first()!.wish, controller.signal));
      } catch (error) {
        if (controller.signal.aborted) return; // Nobody waited any more; who has come since is served by another.
        for (const task of this.#tasks.drain()) task.fail(error);
      } finally {
        this.#giveUp = undefined;
      }
    });
    void this.#pump();
  }

  /** What was granted, or undefined if others have it. */
  async #tryForPlace(
    options: AcquireOptions,
    giveUp: AbortSignal | undefined,
  ): Promise<Grant | undefined | 'again'> {
    let tried: Grant | undefined | 'again';
    try {
      await this.#whileContending(async () => {
        if (this.#refused) await orAbort(this.#leaveRefused(), giveUp);
        const grant = await super.tryContend(options, giveUp);
        if (!grant) return;
        const place = this.#take(grant);
        tried = place.next() === 'enter' ? place.enter() : 'again';
      });
    } finally {
      void this.#pump(); // Whoever has come meanwhile waits for a place.
    }
    return tried;
  }

  /** A place is there, if there is to be one, before others can think that nobody contends. */
  async #whileContending(contend: () => Promise<void>): Promise<void> {
    const contending = contend();
    this.#contending = contending.catch(() => {});
    try {
      await contending;
    } finally {
      this.#contending = undefined;
    }
  }

  #take(grant: Grant): SharedPlace {
    const place = new SharedPlace(this.context, grant, this.#policy, {
      changed: () => void this.#pump(),
      freed: (options) => this.#pump(options),
    });
    this.#place = place;
    place.open();
    return place;
  }

  #leave(place: SharedPlace, options: { readonly baton?: boolean } = {}): Promise<void> {
    this.#place = undefined;
    const leaving = place.leave(options);
    leaving.catch((error) => {
      this.#refused = place;
      this.context.log('warn', 'a shared place could not be left', { lock: this.name, error });
    });
    return leaving;
  }

  /** Tries once more; what is refused again is in the way of the next place until it is removed. */
  async #leaveRefused(): Promise<void> {
    const refused = this.#refused!;
    this.#refused = undefined;
    await refused.leave().catch(() => {
      this.#refused = refused;
    });
  }

  #tellOfTasksAhead(options: AcquireOptions): void {
    const ahead = this.#tasks.length + (this.#place?.isEntered ? 1 : 0);
    if (ahead === 0) return;
    traceWait(options.trace, ahead);
    this.waitsForHolder(options);
    this.events.emit('waiting', { ahead, behind: this.#place?.name ?? this.name });
    this.events.emit('position', { ahead });
  }
}
