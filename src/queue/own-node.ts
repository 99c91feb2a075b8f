import type { Cancel } from '../base/clock.ts';
import type { Session } from '../client/session.ts';
import type { ZooKeeper } from '../client/zookeeper.ts';
import { isServerError } from '../protocol/errors.ts';
import type { WatchEvent } from '../session/watch-registry.ts';
import type { PlaceEvents } from './lock-queue.ts';
import { isInterrupted, isSessionOver, untilAnswered } from './settled-writes.ts';
import type { StoreSession } from './store-session.ts';

/** What anyone may write into a holder's node to ask for the lock, as Curator's `Revoker` does. */
export const REVOKE_MARK = '__REVOKE__';

type Watches = Parameters<ZooKeeper['watchSince']>[1];

/** One's own node, as it was made. */
export interface OwnNodeFacts {
  readonly path: string;
  /** The transaction that made it. */
  readonly czxid: bigint;
  /** A transaction after which anything done to the node is news; the one that made it if left out. */
  readonly since?: bigint | undefined;
  /** What it says of its owner. */
  readonly data: string;
  /** Other sessions make nodes of this name too, when it is free. */
  readonly nameIsShared?: boolean | undefined;
}

/** One's own node while it is in the queue: that it is removed by someone else, and that it is asked for. */
export class OwnNode {
  readonly #shared: StoreSession;
  readonly #facts: OwnNodeFacts;
  readonly #events: PlaceEvents;
  #isEvicted = false;
  #isRevoked = false;
  /** Its owner removes it: what happens from then on is of no interest. */
  #isLeft = false;
  #watching: Promise<void> | undefined;
  /** Its watch was set together with those of later entries: it may have been written to before. */
  #maybeChanged = false;
  #stopChecking: Cancel | undefined;

  constructor(shared: StoreSession, facts: OwnNodeFacts, events: PlaceEvents) {
    this.#shared = shared;
    this.#facts = facts;
    this.#events = events;
  }

  get isEvicted(): boolean {
    return this.#isEvicted;
  }
  get isRevoked(): boolean {
    return this.#isRevoked;
  }

  leave(): void {
    this.#isLeft = true;
    this.#stopChecking?.();
  }

  /** It turned out to be gone, and its owner had not removed it. */
  evict(): void {
    if (this.#isLeft || this.#isEvicted || isEnding(this.#shared.session)) return;
    this.#isEvicted = true;
    this.#events.evicted();
  }

  /** Watches it, if that is not done yet. */
  watch(): Promise<void> {
    this.#watching ??= this.#read();
    return this.#watching;
  }

  /** The same, and reads it if it may have been written to before the watch was set. */
  async watchAndRead(): Promise<void> {
    await this.watch();
    if (this.#maybeChanged) await this.#read();
  }

  /**
   * Sets watches by one request, and with the first of them the one on this node: that it is gone is notified at once.
   * What was done to another node before now is not of interest.
   */
  watchWith(watches: Watches, onSet: () => void): Promise<void> {
    const { session, watches: batched } = this.#shared;
    const { path, czxid, since = czxid } = this.#facts;
    if (this.#watching !== undefined) return batched.set(session.lastZxid, watches, onSet).then(() => {});
    const self = { kind: 'data', path, listener: this.#onChange } as const;
    const setting = batched.set(since, [self, ...watches], onSet).then((from) => {
      this.#maybeChanged = from > since;
    });
    this.#watching = setting.catch((error) => {
      if (!isInterrupted(error)) throw error;
      return this.#read();
    });
    this.#watching.catch(() => {});
    return setting;
  }

  async #read(): Promise<void> {
    this.#maybeChanged = false;
    const { store, session } = this.#shared;
    const { path, czxid, data: written, nameIsShared } = this.#facts;
    try {
      const watch = this.#onChange;
      const { data, stat } = await untilAnswered(() => store.zk.get(path, { watch, session }));
      if (nameIsShared && stat.czxid !== czxid) return this.evict(); // Another session's, made since.
      if (data?.toString('latin1') !== REVOKE_MARK) return;
      // Those who ask for a lock need to see who holds it: the mark has been read, what it covered is put back.
      store.zk.set(path, written, { version: stat.version, session }).catch(() => {});
      if (this.#isRevoked) return;
      this.#isRevoked = true;
      this.#events.revoked();
    } catch (error) {
      if (isServerError(error, 'no-node')) this.evict();
      else if (isServerError(error, 'no-auth')) await this.#watchUnreadable();
      else if (!isSessionOver(error)) throw error;
    }
  }

  /**
   * The access list of entries lets no session read them, their owner's included. Older servers answer all the same
   * whether one is there, and notify of its end; newer ones do neither, but that they refuse is said only of what is there.
   */
  async #watchUnreadable(): Promise<void> {
    const { store, session, secondOpinion } = this.#shared;
    const { path } = this.#facts;
    const watch = this.#onChange;
    const isThere = await untilAnswered(() => store.zk.exists(path, { watch, session })).catch((error) => {
      if (isServerError(error, 'no-auth')) return true;
      throw error;
    });
    if (!isThere) return this.evict();
    if (!this.#isLeft) this.#stopChecking ??= secondOpinion.about(path, () => this.evict());
  }

  readonly #onChange = ({ type }: WatchEvent): void => {
    if (type === 'node-deleted') this.evict();
    else if (type !== 'session-lost' && !this.#isLeft) this.#read().catch(() => {});
  };
}

/** A session that ends takes its nodes along, and is notified of it by its own watches: they were not removed. */
function isEnding({ state }: Session): boolean {
  return state === 'closing' || state === 'closed' || state === 'lost';
}
