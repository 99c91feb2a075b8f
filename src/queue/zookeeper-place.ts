import { orAbort } from '../base/abort.ts';
import type { Cancel } from '../base/clock.ts';
import { type Deferred, deferred } from '../base/deferred.ts';
import { type MultiWrite, ops } from '../client/operations-of-multi.ts';
import type { Session } from '../client/session.ts';
import { isServerError } from '../protocol/errors.ts';
import type { WatchEvent } from '../session/watch-registry.ts';
import { makeEntryBeside } from './entry-beside.ts';
import { entryNameAt, entryNameBefore, parseEntry, uuidOf } from './entry-name.ts';
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
import { OwnNode, type OwnNodeFacts } from './own-node.ts';
import { passOn } from './pass-on.ts';
import { type PredecessorListener, PredecessorWatch } from './predecessor-watch.ts';
import { repeatRefusedRemoval } from './refused-removals.ts';
import { deleteForSure, isInterrupted, isSessionOver, untilAnswered } from './settled-writes.ts';
import type { StoreSession } from './store-session.ts';
import { Succession } from './succession.ts';

/** A wait for a neighbour that lasts this long is watched over by the server too; a shorter one pays nothing for it. */
const LASTING_MS = 1_000;

interface PlaceFacts extends Omit<OwnNodeFacts, 'path'> {
  readonly queue: SessionQueue;
  readonly entry: QueueEntry;
  readonly token: bigint;
}

/** What a place needs of its queue. */
export interface SessionQueue {
  readonly path: string;
  read(names: readonly string[], asking: { readonly session: Session }): QueueView | Promise<QueueView>;
  /** One look for all who ask for it in this tick, behind all that the session sends in it. Fails without a folder. */
  viewSoon(shared: StoreSession): Promise<QueueView>;
  /** The entry was removed by its owner, for certain, and no other of the owner's stands at its spot. */
  left(entry: QueueEntry): void;
}

/**
 * One's own entry in a queue: waits for entries ahead of it, is held, and is left.
 *
 * Where the predecessor is of the same process, it notifies its successor itself, and there is no baton; its transaction
 * checks then that the successor's node is there. A successor of another session catches up before it holds.
 */
export class ZooKeeperPlace implements Place {
  readonly entry: QueueEntry;
  readonly path: string;
  readonly token: bigint;
  readonly #shared: StoreSession;
  readonly #facts: PlaceFacts;
  /** What clients with other chroots know it by. */
  readonly #serverPath: string;
  #events: PlaceEvents | undefined;
  #ownNode: OwnNode | undefined;
  #leaving: Promise<void> | undefined;
  /** The server has refused to remove the node. */
  #isRefused = false;
  /** Of those of this process; made when there are others. */
  #succession: Succession | undefined;
  /** Another entry of ours stands at the same spot. */
  #accompanied = false;
  #listening: Deferred<Departure | LeavingConnection> | undefined;
  /** Set while waiting, so that the heartbeat is one the leader confirms and a baton can be a grant by itself. */
  #hold: HoldOnPlace | undefined;
  /** Which of its session's connections it was taken on, or held on since. */
  #connection: number;

  constructor(shared: StoreSession, facts: PlaceFacts) {
    const { store, session } = shared;
    this.#shared = shared;
    this.#facts = facts;
    this.entry = facts.entry;
    this.token = facts.token;
    this.#connection = session.connectionCount;
    this.path = `${facts.queue.path}/${facts.entry.name}`;
    this.#serverPath = store.zk.serverPath(this.path);
    if (!facts.nameIsShared) store.neighbours.arrive(this.#serverPath, session);
  }

  get lost(): AbortSignal {
    return this.#shared.session.lost;
  }
  get bound(): { readonly session: Session } {
    return { session: this.#shared.session };
  }
  get evicted(): boolean {
    return this.#ownNode?.isEvicted ?? false;
  }

  view(signal?: AbortSignal): Promise<QueueView> {
    const look = () => untilAnswered(() => this.#facts.queue.viewSoon(this.#shared)).catch(emptyIfMissing);
    return orAbort(this.#shared.gate.isOpen ? look() : this.#shared.gate.pass(signal).then(look), signal);
  }

  attend(events: PlaceEvents): void {
    this.#events = events;
    if (this.#ownNode?.isEvicted) events.evicted();
    if (this.#ownNode?.isRevoked) events.revoked();
  }

  async listen(
    to: QueueEntry,
    { baton, signal }: { readonly baton: boolean; readonly signal?: AbortSignal },
  ): Promise<Departure> {
    if (this.#leaving !== undefined || this.evicted) return 'gone'; // A place that was left waits for nothing.
    const settled = deferred<Departure | LeavingConnection>();
    settled.promise.catch(() => {});
    this.#listening = settled;
    this.#hold ??= this.#shared.session.hold();
    let watch: PredecessorWatch | undefined;
    const begin = (batonPath?: string) => {
      watch ??= this.#watchOf(to, batonPath, settled);
      watch.begin();
    };
    const stopFollowing = baton ? this.#follow(to, settled, begin) : undefined;
    if (!stopFollowing) begin(baton ? this.#batonOf(to) : undefined);
    let departure: Departure | undefined;
    let releasedBy: LeavingConnection | undefined;
    try {
      const end = await orAbort(settled.promise, this.lost, signal);
      if (typeof end === 'object') releasedBy = end;
      departure = typeof end === 'object' ? 'released' : end;
    } finally {
      stopFollowing?.();
      watch?.end(departure);
    }
    const catchingUp = releasedBy && this.#shared.catchUp.after(releasedBy);
    if (catchingUp) await orAbort(catchingUp, this.lost, signal);
    return departure;
  }

  #watchOf(
    { name }: QueueEntry,
    batonPath: string | undefined,
    listener: PredecessorListener,
  ): PredecessorWatch {
    const path = `${this.#facts.queue.path}/${name}`;
    return new PredecessorWatch(this.#shared, { path, batonPath, ownNode: this.#own }, listener);
  }

  /**
   * Where the predecessor is of this process, it notifies without a server, and the server is asked to watch only if the
   * wait lasts, or if the predecessor left otherwise than by a release. Undefined if it is not of this process.
   */
  #follow(
    to: QueueEntry,
    settled: Deferred<Departure | LeavingConnection>,
    watch: () => void,
  ): (() => void) | undefined {
    const { session, store, catchUp } = this.#shared;
    const { neighbours, clock, zk } = store;
    const aheadPath = zk.serverPath(`${this.#facts.queue.path}/${to.name}`);
    this.#succession ??= new Succession();
    const succession = this.#succession;
    const stopFollowing = neighbours.follow(aheadPath, {
      name: this.entry.name,
      departed: (departure, by) => {
        if (departure !== 'released') return watch();
        succession.begin();
        settled.resolve(by);
      },
      evict: () => this.#own.evict(),
      heirs: () => succession.heirs,
      aheadSettled: () => succession.aheadSettled(),
    });
    if (!stopFollowing) return undefined;
    if (neighbours.sessionOf(aheadPath) !== session) catchUp.prepare();
    const cancelWatch = clock.at(clock.nowMs() + LASTING_MS, watch);
    return () => {
      stopFollowing();
      cancelWatch();
    };
  }

  async awaitView(accept: (view: QueueView) => boolean, signal?: AbortSignal): Promise<QueueView> {
    const { zk } = this.#shared.store;
    const { queue } = this.#facts;
    const { session } = this.#shared;
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
          listing.then((names) => queue.read(names, { session }), emptyIfMissing),
          signal,
        );
        if (accept(view)) return view;
        doubts = view.entries.map(({ name }) =>
          this.#shared.secondOpinion.about(`${queue.path}/${name}`, changed.resolve),
        );
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

  beside(role: EntryRole, data: string, signal?: AbortSignal): Promise<Place | undefined> {
    const name = entryNameAt(uuidOf(this.#shared.store.random.bytes(16)), role, this.entry);
    this.#accompanied = true;
    return this.#makeBeside(this.entry, name, data, signal);
  }

  async before(
    other: QueueEntry,
    role: EntryRole,
    data: string,
    signal?: AbortSignal,
  ): Promise<Place | undefined> {
    const name = entryNameBefore(uuidOf(this.#shared.store.random.bytes(16)), role, other);
    return name === undefined ? undefined : this.#makeBeside(other, name, data, signal);
  }

  async #makeBeside(
    { name: other }: QueueEntry,
    name: string,
    data: string,
    signal: AbortSignal | undefined,
  ): Promise<Place | undefined> {
    const entry = { folder: this.#facts.queue.path, other, name, data };
    const making = makeEntryBeside(this.#shared, entry, signal);
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
    const since = this.#shared.session.lastZxid;
    const { token } = this;
    return new ZooKeeperPlace(this.#shared, { ...this.#facts, entry: parseEntry(name)!, token, since, data });
  }

  async watchSelf(): Promise<boolean> {
    const { store, session } = this.#shared;
    const looking = store.zk.exists(this.#facts.queue.path, { session });
    const [stat] = await Promise.all([looking, this.#own.watchAndRead()]);
    return (stat?.numChildren ?? 0) > 1;
  }

  async watchForOthers(told: () => void): Promise<void> {
    const { queue } = this.#facts;
    const { session } = this.#shared;
    const isLeft = () => this.#leaving !== undefined;
    const watching = { folder: queue.path, self: this.entry.name, session, isLeft, told };
    await Promise.all([watchForOthers(this.#shared.store.zk, watching), this.#own.watch()]);
  }

  async hold(): Promise<HoldOnPlace> {
    return this.#holdNow() ?? this.#holdOnceConfirmed();
  }

  #holdNow(): HoldOnPlace | undefined {
    const { session } = this.#shared;
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
    const { zk } = this.#shared.store;
    const { session } = this.#shared;
    for (;;) {
      await untilAnswered(() => Promise.all([zk.sync('/', { session }), this.#own.watch()]));
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
    this.#ownNode?.leave();
    this.#listening?.resolve('gone'); // Nobody is to wait at a place that is given up.
    const { neighbours, clock } = this.#shared.store;
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
    const { session } = this.#shared;
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
    const { nameIsShared } = this.#facts;
    const { session } = this.#shared;
    if (nameIsShared) return [];
    const { neighbours, carriesAllWrites = false } = this.#shared.store;
    const by = { session, lastZxid: session.lastZxid, carriesAllWrites };
    const followers = neighbours.leave(this.#serverPath, isFree ? 'released' : 'gone', by);
    if (followers.length > 0) this.#succession ??= new Succession();
    this.#succession?.passTo(isFree ? followers : []);
    return followers;
  }

  #delete(): Promise<void> {
    const { zk } = this.#shared.store;
    if (this.#facts.nameIsShared) {
      // What is there after it was removed by someone else is not ours.
      return this.evicted
        ? Promise.resolve()
        : deleteForSure(zk, this.path, this.#bounds, this.#madeBy).catch(this.#onRefused);
    }
    return this.#shared.writes.delete(this.path).then(
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
      const { store, session } = this.#shared;
      const entry = { path: this.path, session, refusedWith: error };
      void repeatRefusedRemoval(store, entry, () => this.leave());
    }
    throw error;
  };

  #passOn(followers: readonly Follower[]): Promise<boolean> {
    const isHeard = followers.length > 0 && hasOneFollower(this.entry.role);
    return passOn(followers, {
      ...{
        folder: this.#facts.queue.path,
        path: this.path,
        bounds: this.#bounds,
        writes: this.#shared.writes,
      },
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
    const { zk, batonFolder, folderAcl } = this.#shared.store;
    // Who may write here can make a waiter believe in a release: no wider than the folder of the lock.
    zk.ensurePath(batonFolder, folderAcl ? { acl: folderAcl } : {}).catch(() => {});
  }

  get #bounds() {
    return { clock: this.#shared.store.clock, session: this.#shared.session };
  }

  #batonOf({ name }: QueueEntry): string {
    return `${this.#shared.store.batonFolder}/${name}`;
  }

  get #own(): OwnNode {
    if (this.#ownNode) return this.#ownNode;
    const evicted = () => {
      this.#listening?.resolve('gone');
      this.#events?.evicted();
    };
    const events = { evicted, revoked: () => this.#events?.revoked() };
    this.#ownNode = new OwnNode(this.#shared, { ...this.#facts, path: this.path }, events);
    if (this.#leaving !== undefined) this.#ownNode.leave();
    return this.#ownNode;
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
