import { orAbort } from '../base/abort.ts';
import { invariant } from '../base/assert.ts';
import type { Cancel } from '../base/clock.ts';
import { type Deferred, deferred } from '../base/deferred.ts';
import { type MultiWrite, ops } from '../client/operations-of-multi.ts';
import type { WatchListener } from '../client/request-options.ts';
import type { Session } from '../client/session.ts';
import type { ZooKeeper } from '../client/zookeeper.ts';
import { isServerError } from '../protocol/errors.ts';
import type { WatchEvent } from '../session/watch-registry.ts';
import { catchUpOf } from './catch-up.ts';
import { type ConnectionGate, connectionGateOf } from './connection-gate.ts';
import { makeEntryBeside } from './entry-beside.ts';
import { entryNameAt, entryNameBefore, parseEntry, uuidOf } from './entry-name.ts';
import { type GatheredWatches, gatheredWatchesOf } from './gathered-watches.ts';
import { type GatheredWrites, gatheredWritesOf } from './gathered-writes.ts';
import type {
  Departure,
  EntryRole,
  HoldOnPlace,
  LeaveOptions,
  Place,
  PlaceEvents,
  QueueEntry,
  QueueView,
} from './lock-queue.ts';
import type { Follower, LeavingConnection } from './neighbours.ts';
import { watchForOthers } from './others-watch.ts';
import { passOn } from './pass-on.ts';
import type { QueueStore } from './queue-store.ts';
import { repeatRefusedRemoval } from './refused-removals.ts';
import { secondOpinionOf } from './second-opinion.ts';
import { tokensOf } from './session-tokens.ts';
import { deleteForSure, isInterrupted, isSessionOver, untilAnswered } from './settled-writes.ts';
import { Succession } from './succession.ts';

/** What anyone may write into a holder's node to ask for the lock, as Curator's `Revoker` does. */
export const REVOKE_MARK = '__REVOKE__';

/** A wait for a neighbour that lasts this long is watched over by the server too; a shorter one pays nothing for it. */
const LASTING_MS = 1_000;

interface PlaceFacts {
  readonly queue: SessionQueue;
  readonly entry: QueueEntry;
  /** The transaction that made the node. */
  readonly czxid: bigint;
  /** The token, where it is another entry's; otherwise what the session makes of the czxid. */
  readonly token?: bigint;
  readonly session: Session;
  /** A transaction after which anything done to the node is news; the one that made it if left out. */
  readonly since?: bigint;
  /** What the node says of its owner. */
  readonly data: string;
  /** Others make nodes of this name too, when it is free. */
  readonly nameIsShared?: boolean;
}

/** What a place needs of its queue. */
interface SessionQueue {
  readonly path: string;
  read(names: readonly string[], session: Session): QueueView | Promise<QueueView>;
  /** One look for all who ask for it in this tick, behind all that the session sends in it. Fails without a folder. */
  viewSoon(session: Session): Promise<QueueView>;
  /** The entry was removed by its owner, for certain, and no other of the owner's stands at its spot. */
  left(entry: QueueEntry): void;
}

/**
 * One's own node in a queue.
 *
 * The baton: a waiter behind `p` watches `p`, and a path named after `p` where nothing ever stays. A holder lets go by
 * one multi that creates a node there, deletes it, and deletes `p`. The waiter is told of the creation first, and only
 * a holder can have made it. Watches of a dead connection are replayed without it: that falls back to looking.
 *
 * A waiter watches its own node as well, and all of them are set by one request, at one moment. Otherwise one that was
 * removed by hand would hear the baton and hold beside the next in the queue, who hears the same one.
 *
 * Where the one ahead is of the same process it says itself that it lets go, and there is no baton. Its transaction
 * checks then that the node of the one it told is there. A successor of another session catches up before it holds.
 */
export class ZooKeeperPlace implements Place {
  readonly entry: QueueEntry;
  readonly path: string;
  readonly #store: QueueStore;
  readonly #facts: PlaceFacts;
  /** What clients with other chroots know it by. */
  readonly #serverPath: string;
  #token: bigint | undefined;
  #events: PlaceEvents | undefined;
  #evicted = false;
  #revoked = false;
  #selfWatch: Promise<void> | undefined;
  #leaving: Promise<void> | undefined;
  /** The server has refused to remove the node. */
  #isRefused = false;
  /** Of those of this process; made when there are others. */
  #succession: Succession | undefined;
  /** Another entry of ours stands at the same spot. */
  #accompanied = false;
  #listening: Deferred<Departure | LeavingConnection> | undefined;
  /** Its watch was set together with those of younger ones: somebody may have written to it before. */
  #changedUnseen = false;
  /** Set while waiting, so that the heartbeat is one the leader confirms and a baton can be a grant by itself. */
  #hold: HoldOnPlace | undefined;
  /** Which of its session's connections it was taken on, or held on since. */
  #connection: number;
  #stopDoubtingSelf: Cancel | undefined;

  constructor(store: QueueStore, facts: PlaceFacts) {
    this.#store = store;
    this.#facts = facts;
    this.entry = facts.entry;
    this.#token = facts.token;
    this.#connection = facts.session.connectionCount;
    this.path = `${facts.queue.path}/${facts.entry.name}`;
    this.#serverPath = store.zk.serverPath(this.path);
    if (!facts.nameIsShared) store.neighbours.arrive(this.#serverPath, facts.session);
  }

  get token(): bigint {
    invariant(this.#token !== undefined, 'the token of a place was asked for before it was settled');
    return this.#token;
  }
  get lost(): AbortSignal {
    return this.#facts.session.lost;
  }
  get bound(): { readonly session: Session } {
    return { session: this.#facts.session };
  }
  get evicted(): boolean {
    return this.#evicted;
  }

  /** Finds out the token, for once and all; undefined if that takes no time. Nobody is granted a place without it. */
  settleToken(): Promise<void> | undefined {
    if (this.#token !== undefined) return undefined;
    const { session, czxid } = this.#facts;
    const tokens = tokensOf(this.#store, session);
    this.#token = tokens.of(czxid);
    if (this.#token !== undefined) return undefined;
    return tokens.whenKnown(czxid).then((token) => {
      this.#token = token;
    });
  }

  view(signal?: AbortSignal): Promise<QueueView> {
    const look = () =>
      untilAnswered(() => this.#facts.queue.viewSoon(this.#facts.session)).catch(emptyIfMissing);
    return orAbort(this.#gate.isOpen ? look() : this.#gate.pass(signal).then(look), signal);
  }

  attend(events: PlaceEvents): void {
    this.#events = events;
    if (this.#evicted) events.evicted();
    if (this.#revoked) events.revoked();
  }

  async listen(
    to: QueueEntry,
    { baton, signal }: { readonly baton: boolean; readonly signal?: AbortSignal },
  ): Promise<Departure> {
    if (this.#leaving !== undefined || this.#evicted) return 'gone'; // Whoever left has nobody to wait for, and nothing to leave behind.
    const { queue, session } = this.#facts;
    const told = deferred<Departure | LeavingConnection>();
    told.promise.catch(() => {});
    this.#listening = told;
    const aheadPath = `${queue.path}/${to.name}`;
    const batonPath = this.#batonOf(to);
    let watched = false;
    let absent = false;
    const onAhead = ({ type }: WatchEvent) => {
      // Told before the answer, by the very request that would have told of the own node first: what that says is known then.
      if (type === 'node-deleted' && !watched) absent = true;
      else if (type !== 'session-lost') told.resolve('gone');
    };
    let strayed = false;
    const onBaton = ({ type }: WatchEvent) => {
      if (type !== 'node-created') return;
      // Before our own watches are set, this came by somebody else's, and the own node may have gone unnoticed.
      strayed = !watched;
      told.resolve(watched ? 'released' : 'gone');
    };
    this.#hold ??= session.hold();
    let watching: Promise<void> | undefined;
    let stopDoubting: Cancel | undefined;
    const watch = () => {
      if (watching !== undefined) return;
      if (!this.#gate.isOpen) {
        // Nothing is left of it if the wait is given up before.
        stopDoubting ??= this.#gate.whenOpened(watch);
        return;
      }
      stopDoubting = this.#doubt(aheadPath, () => told.resolve('gone'));
      const watches = [
        { kind: 'data', path: aheadPath, listener: onAhead } as const,
        ...(baton && !following ? [{ kind: 'exists', path: batonPath, listener: onBaton } as const] : []),
      ];
      watching = this.#watch(watches, () => {
        watched = true;
        if (absent) told.resolve(this.#evicted ? 'gone' : 'absent');
      });
      watching.catch((error) => {
        if (isInterrupted(error)) told.resolve('gone');
        else told.reject(error);
      });
    };
    const following = baton ? this.#follow(to, told, watch) : undefined;
    if (!following) watch();
    let departure: Departure | undefined;
    let releasedBy: LeavingConnection | undefined;
    try {
      const heard = await orAbort(told.promise, this.lost, signal);
      if (typeof heard === 'object') releasedBy = heard;
      departure = typeof heard === 'object' ? 'released' : heard;
    } finally {
      following?.stop();
      stopDoubting?.();
      // Who was released is deleted, in the baton's transaction or soon: that watch is used up, or about to be.
      if (watching !== undefined && departure !== 'released') {
        const hasStrayed = () => strayed;
        this.#stopListening(watching, { aheadPath, onAhead, batonPath, onBaton, hasStrayed });
      }
    }
    const catchingUp = releasedBy && catchUpOf(this.#store, session).after(releasedBy);
    if (catchingUp) await orAbort(catchingUp, this.lost, signal);
    return departure;
  }

  /**
   * Where the one ahead is of this process it is heard without a server, and the server is asked to watch only if the
   * wait lasts, or if it has ended otherwise than by a release. Undefined if it is not of this process.
   */
  #follow(
    to: QueueEntry,
    told: Deferred<Departure | LeavingConnection>,
    watch: () => void,
  ): { stop(): void } | undefined {
    const { neighbours, clock, zk } = this.#store;
    const { session, queue } = this.#facts;
    const aheadPath = zk.serverPath(`${queue.path}/${to.name}`);
    this.#succession ??= new Succession();
    const succession = this.#succession;
    const stopFollowing = neighbours.follow(aheadPath, {
      name: this.entry.name,
      departed: (departure, by) => {
        if (departure !== 'released') return watch();
        succession.begin();
        told.resolve(by);
      },
      evict: () => this.#evict(),
      heirs: () => succession.heirs,
      aheadSettled: () => succession.aheadSettled(),
    });
    if (!stopFollowing) return undefined;
    if (neighbours.sessionOf(aheadPath) !== session) catchUpOf(this.#store, session).prepare();
    const cancelWatch = clock.at(clock.nowMs() + LASTING_MS, watch);
    return {
      stop: () => {
        stopFollowing();
        cancelWatch();
      },
    };
  }

  /** What is still on its way would be set after it was taken away: wait for it. No listener is left behind. */
  #stopListening(
    watching: Promise<unknown>,
    ears: {
      readonly aheadPath: string;
      readonly onAhead: WatchListener;
      readonly batonPath: string;
      readonly onBaton: WatchListener;
      hasStrayed(): boolean;
    },
  ): void {
    const { zk } = this.#store;
    const { session } = this.#facts;
    void Promise.allSettled([watching]).then(() => {
      void zk.unwatch(ears.aheadPath, 'data', ears.onAhead);
      const stopBaton = () => void zk.unwatch(ears.batonPath, 'exists', ears.onBaton);
      if (!ears.hasStrayed()) return stopBaton();
      // The server has set a watch that nobody here knows of any more: known again, it can be taken away.
      zk.exists(ears.batonPath, { watch: ears.onBaton, session }).then(stopBaton, () => {});
    });
  }

  async awaitView(accept: (view: QueueView) => boolean, signal?: AbortSignal): Promise<QueueView> {
    const { zk } = this.#store;
    const { queue, session } = this.#facts;
    this.#hold ??= session.hold();
    for (;;) {
      const changed = deferred();
      const onChange = ({ type }: WatchEvent) => {
        if (type !== 'session-lost') changed.resolve();
      };
      const listing = zk.children(queue.path, { watch: onChange, session, ...(signal && { signal }) });
      let doubts: readonly Cancel[] = [];
      try {
        const view = await orAbort(
          listing.then((names) => queue.read(names, session), emptyIfMissing),
          signal,
        );
        if (accept(view)) return view;
        doubts = view.entries.map(({ name }) => this.#doubt(`${queue.path}/${name}`, changed.resolve));
        await orAbort(changed.promise, this.lost, signal);
      } catch (error) {
        if (!isInterrupted(error)) throw error;
      } finally {
        for (const stop of doubts) stop();
        void listing.then(
          () => zk.unwatch(queue.path, 'children', onChange),
          () => {},
        );
      }
    }
  }

  #doubt(path: string, look: () => void): Cancel {
    return secondOpinionOf(this.#store, this.#facts.session).about(path, look);
  }

  beside(role: EntryRole, data: string, signal?: AbortSignal): Promise<Place | undefined> {
    const name = entryNameAt(uuidOf(this.#store.random.bytes(16)), role, this.entry);
    this.#accompanied = true;
    return this.#makeBeside(this.entry, name, data, signal);
  }

  async before(
    other: QueueEntry,
    role: EntryRole,
    data: string,
    signal?: AbortSignal,
  ): Promise<Place | undefined> {
    const name = entryNameBefore(uuidOf(this.#store.random.bytes(16)), role, other);
    return name === undefined ? undefined : this.#makeBeside(other, name, data, signal);
  }

  async #makeBeside(
    { name: other }: QueueEntry,
    name: string,
    data: string,
    signal: AbortSignal | undefined,
  ): Promise<Place | undefined> {
    const { session, queue } = this.#facts;
    const entry = { folder: queue.path, session, other, name, data };
    const making = makeEntryBeside(this.#store, entry, signal);
    try {
      return (await orAbort(making, signal)) ? this.#another(name, data) : undefined;
    } catch (error) {
      // Made after the wait for it was given up: it is left.
      if (signal?.aborted)
        making.then((isMade) => (isMade ? this.#another(name, data).leave() : undefined)).catch(() => {});
      throw error;
    }
  }

  /** A place of the same session and token, made by a transaction that has been answered. */
  #another(name: string, data: string): ZooKeeperPlace {
    const since = this.#facts.session.lastZxid;
    const { token } = this;
    return new ZooKeeperPlace(this.#store, { ...this.#facts, entry: parseEntry(name)!, token, since, data });
  }

  async watchSelf(): Promise<boolean> {
    const { zk } = this.#store;
    const { queue, session } = this.#facts;
    const [stat] = await Promise.all([zk.exists(queue.path, { session }), this.#watchSelf()]);
    if (this.#changedUnseen) await this.#readSelf();
    return (stat?.numChildren ?? 0) > 1;
  }

  async watchForOthers(told: () => void): Promise<void> {
    const { queue, session } = this.#facts;
    const isLeft = () => this.#leaving !== undefined;
    const watching = { folder: queue.path, self: this.entry.name, session, isLeft, told };
    await Promise.all([watchForOthers(this.#store.zk, watching), this.#watchSelf()]);
  }

  hold(): HoldOnPlace | Promise<HoldOnPlace> {
    return this.#holdNow() ?? this.#holdOnceConfirmed();
  }

  #holdNow(): HoldOnPlace | undefined {
    const { session } = this.#facts;
    this.lost.throwIfAborted();
    const hold = this.#hold ?? session.hold();
    this.#hold = undefined;
    if (hold.remainingMs() > 0 && session.state === 'connected' && !session.readOnly) {
      this.#connection = session.connectionCount;
      return hold;
    }
    hold.release();
    return undefined;
  }

  /** The connection was lost: the own node may have been removed meanwhile, which is known before the hold is. */
  async #holdOnceConfirmed(): Promise<HoldOnPlace> {
    const { zk } = this.#store;
    const { session } = this.#facts;
    for (;;) {
      await untilAnswered(() => Promise.all([zk.sync('/', { session }), this.#watchSelf()]));
      const hold = this.#holdNow();
      if (hold) return hold;
    }
  }

  leave(options: LeaveOptions = {}): Promise<void> {
    const before = this.#leaving;
    this.#leaving = before === undefined ? this.#leave(options) : before.catch(() => this.#delete());
    return this.#leaving;
  }

  #leave({ baton = false, released = baton, byServer = false }: LeaveOptions): Promise<void> {
    this.#hold?.release();
    this.#hold = undefined;
    this.#stopDoubtingSelf?.();
    this.#listening?.resolve('gone'); // Nobody is to wait at a place that is given up.
    const { neighbours, clock } = this.#store;
    const pause = released ? neighbours.pause(this.#serverPath, clock) : undefined;
    const departing = { released, baton, byServer };
    return pause === undefined ? this.#depart(departing) : pause.then(() => this.#depart(departing));
  }

  #depart({ released, baton, byServer }: Required<LeaveOptions>): Promise<void> {
    const isFree = released && !this.#accompanied && !this.lost.aborted;
    const tells = isFree && !byServer && !this.#mayHaveWritesOnTheWay;
    const told = this.#leaveNeighbours(tells);
    const followers = tells ? told : [];
    if (this.lost.aborted) return Promise.resolve();
    if (!isFree || !(baton || followers.length > 0)) return this.#delete();
    return this.#handOn(followers);
  }

  /**
   * Whether something that the holder has sent, and has been told to be of unknown outcome, may yet be done: what an
   * ended connection has left at its server, until the session is at another one, and what was given up. A release by the
   * server comes behind it, or keeps it from being done.
   */
  get #mayHaveWritesOnTheWay(): boolean {
    const { session } = this.#facts;
    if (session.state !== 'connected' || session.connectionCount !== this.#connection) return true;
    return session.isWriteLeftOpen;
  }

  async #handOn(followers: readonly Follower[]): Promise<void> {
    try {
      // Whatever kept it from being handed on, the node must go: a release that is lost blocks everyone behind it.
      const isGone = await this.#passOn(followers).catch(() => false);
      if (!isGone) await this.#delete();
    } finally {
      this.#succession?.settle();
    }
  }

  /** Tells those of this process who wait behind it; returns them. */
  #leaveNeighbours(isFree: boolean): readonly Follower[] {
    const { nameIsShared, session } = this.#facts;
    if (nameIsShared) return [];
    const { neighbours, carriesAllWrites = false } = this.#store;
    const by = { session, lastZxid: session.lastZxid, carriesAllWrites };
    const followers = neighbours.leave(this.#serverPath, isFree ? 'released' : 'gone', by);
    if (followers.length > 0) this.#succession ??= new Succession();
    this.#succession?.passTo(isFree ? followers : []);
    return followers;
  }

  #delete(): Promise<void> {
    const { zk } = this.#store;
    if (this.#facts.nameIsShared) {
      // What is there after it was removed by someone else is not ours.
      return this.#evicted
        ? Promise.resolve()
        : deleteForSure(zk, this.path, this.#bounds, this.#madeBy).catch(this.#onRefused);
    }
    return this.#writes.delete(this.path).then(
      () => {
        if (!this.#accompanied) this.#facts.queue.left(this.entry);
      },
      (error) => {
        if (isServerError(error, 'no-node') || isSessionOver(error)) return;
        return deleteForSure(zk, this.path, this.#bounds).catch(this.#onRefused);
      },
    );
  }

  /** What tells the own node from a later one of the same name, and whether one may be there. */
  get #madeBy(): Parameters<typeof deleteForSure>[3] {
    return { czxid: this.#facts.czxid, mayBeAnother: this.#isRefused };
  }

  readonly #onRefused = (error: unknown): never => {
    if (!this.#isRefused) {
      this.#isRefused = true;
      const entry = { path: this.path, session: this.#facts.session, refusedWith: error };
      void repeatRefusedRemoval(this.#store, entry, () => this.leave());
    }
    throw error;
  };

  #passOn(followers: readonly Follower[]): Promise<boolean> {
    const isHeard = followers.length > 0 && hasOneFollower(this.entry.role);
    return passOn(followers, {
      ...{ folder: this.#facts.queue.path, path: this.path, bounds: this.#bounds, writes: this.#writes },
      baton: isHeard ? [] : this.#makeBaton(),
      makeBatonFolder: () => this.#makeBatonFolder(),
    });
  }

  /** Leaves nothing behind: those who watch the path are told, in the order of the transaction. */
  #makeBaton(): MultiWrite<unknown>[] {
    const path = this.#batonOf(this.entry);
    return [ops.create(path), ops.delete(path)];
  }

  #makeBatonFolder(): void {
    const { zk, batonFolder, folderAcl } = this.#store;
    // Who may write here can make a waiter believe in a release: no wider than the folder of the lock.
    zk.ensurePath(batonFolder, folderAcl ? { acl: folderAcl } : {}).catch(() => {});
  }

  get #bounds() {
    return { clock: this.#store.clock, session: this.#facts.session };
  }

  get #gate(): ConnectionGate {
    return connectionGateOf(this.#store, this.#facts.session);
  }
  get #writes(): GatheredWrites {
    return gatheredWritesOf(this.#store, this.#facts.session);
  }
  get #watches(): GatheredWatches {
    return gatheredWatchesOf(this.#store, this.#facts.session);
  }

  #batonOf({ name }: QueueEntry): string {
    return `${this.#store.batonFolder}/${name}`;
  }

  /**
   * Sets watches by one request, and with the first of them the one on the own node: that it is gone is told at once.
   * What was done to another node before now is not of interest.
   */
  #watch(watches: Parameters<ZooKeeper['watchSince']>[1], onSet: () => void): Promise<void> {
    const { session, czxid, since = czxid } = this.#facts;
    if (this.#selfWatch !== undefined) {
      return this.#watches.set(session.lastZxid, watches, onSet).then(() => {});
    }
    const self = { kind: 'data', path: this.path, listener: this.#onSelf } as const;
    const watching = this.#watches.set(since, [self, ...watches], onSet).then((from) => {
      this.#changedUnseen = from > since;
    });
    this.#selfWatch = watching.catch((error) => {
      if (!isInterrupted(error)) throw error;
      return this.#readSelf();
    });
    this.#selfWatch.catch(() => {});
    return watching;
  }

  #watchSelf(): Promise<void> {
    this.#selfWatch ??= this.#readSelf();
    return this.#selfWatch;
  }

  async #readSelf(): Promise<void> {
    this.#changedUnseen = false;
    const { zk } = this.#store;
    const { session } = this.#facts;
    try {
      const watch = this.#onSelf;
      const { data, stat } = await untilAnswered(() => zk.get(this.path, { watch, session }));
      if (this.#facts.nameIsShared && stat.czxid !== this.#facts.czxid) return this.#evict(); // Another's, made since.
      if (data?.toString('latin1') !== REVOKE_MARK) return;
      // Who asks for a lock wants to see who has it: the mark has been read, what it covered is put back.
      const { version } = stat;
      zk.set(this.path, this.#facts.data, { version, session }).catch(() => {});
      if (this.#revoked) return;
      this.#revoked = true;
      this.#events?.revoked();
    } catch (error) {
      if (isServerError(error, 'no-node')) this.#evict();
      else if (isServerError(error, 'no-auth')) await this.#watchUnreadableSelf();
      else if (!isSessionOver(error)) throw error;
    }
  }

  /**
   * The access list of entries lets nobody read them, their owner included. Older servers tell all the same whether one is
   * there, and of its end; newer ones do neither, but that they refuse is said only of what is there.
   */
  async #watchUnreadableSelf(): Promise<void> {
    const { zk } = this.#store;
    const { session } = this.#facts;
    const watch = this.#onSelf;
    const isThere = await untilAnswered(() => zk.exists(this.path, { watch, session })).catch((error) => {
      if (isServerError(error, 'no-auth')) return true;
      throw error;
    });
    if (!isThere) return this.#evict();
    if (this.#leaving === undefined) this.#stopDoubtingSelf ??= this.#doubt(this.path, () => this.#evict());
  }

  readonly #onSelf = ({ type }: WatchEvent): void => {
    if (type === 'node-deleted') this.#evict();
    else if (type !== 'session-lost' && !this.#leaving) this.#readSelf().catch(() => {});
  };

  #evict(): void {
    if (this.#leaving || this.#evicted || isEnding(this.#facts.session)) return;
    this.#evicted = true;
    this.#listening?.resolve('gone');
    this.#events?.evicted();
  }
}

/** A folder that is gone has taken all entries along, the own one too. */
function emptyIfMissing(error: unknown): QueueView {
  if (isServerError(error, 'no-node')) return { entries: [], foreign: [] };
  throw error;
}

/** Where all exclude all, only the next one waits for one: if that has been told, nobody is left who has to be. */
function hasOneFollower(role: EntryRole): boolean {
  return role === 'exclusive' || role === 'leader';
}

/** A session that ends takes its nodes along, and is told of it by its own watches: nobody has removed them. */
function isEnding({ state }: Session): boolean {
  return state === 'closing' || state === 'closed' || state === 'lost';
}
