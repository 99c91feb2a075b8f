import { orAbort } from '../base/abort.ts';
import { ops } from '../client/operations-of-multi.ts';
import type { RequestOptions } from '../client/request-options.ts';
import type { Session } from '../client/session.ts';
import { isServerError } from '../protocol/errors.ts';
import { type ConnectionGate, connectionGateOf } from './connection-gate.ts';
import { entryPrefix, inOrder, parseEntry, SEQUENCE_LAST, tied, uuidOf } from './entry-name.ts';
import { folderWatchesOf } from './folder-watches.ts';
import { type GatheredWrites, gatheredWritesOf } from './gathered-writes.ts';
import type { Joined, JoinRequest, LockQueue, Place, QueueEntry, QueueView } from './lock-queue.ts';
import { LoneJoins } from './lone-joins.ts';
import type { QueueStore } from './queue-store.ts';
import { EntryCreation, type Made } from './queue-write.ts';
import { tokensOf } from './session-tokens.ts';
import { deleteForSure, isInterrupted, isUnsent, untilAnswered, untilWritable } from './settled-writes.ts';
import { ZooKeeperPlace } from './zookeeper-place.ts';

const NOBODY: readonly Place[] = [];
const NONE: readonly string[] = [];
/** A folder that is removed while it is being joined, again and again, is somebody's mistake. */
const FOLDER_ATTEMPTS_MAX = 5;

/**
 * A queue of ephemeral sequential nodes in one container, laid out as Curator lays it out.
 *
 * Creating the entry and listing the folder leave in one write, and a session's requests are answered in order: the
 * list contains the entry, after one round trip. Where this session joins again and again with nobody in between, the
 * entry's number says so by itself, and there is no list: see `LoneJoins`. An entry whose creation was not answered is
 * looked for by its id before anything else is tried, and counts only if it belongs to this very session.
 */
export class ZooKeeperQueue implements LockQueue {
  readonly path: string;
  readonly #store: QueueStore;
  /** An entry was made in it, and nothing has shown since that it has gone. */
  folderSeen = false;
  readonly lone: LoneJoins;
  /** Not asked for yet. */
  #viewSoon: { readonly session: Session; readonly view: Promise<QueueView> } | undefined;

  constructor(store: QueueStore, path: string) {
    this.#store = store;
    this.path = path;
    this.lone = new LoneJoins((session) => folderWatchesOf(store, session).watch(path));
  }

  join(request: JoinRequest): Promise<Joined> {
    const { signal } = request;
    if (signal?.aborted) return Promise.reject(signal.reason);
    const entrance = new Entrance(this.#store, [this], request);
    return unlessGivenUp(entrance, entrance.enterAlone(), signal);
  }

  view(options: { readonly signal?: AbortSignal } = {}): Promise<QueueView> {
    return untilAnswered(() => this.viewIn(undefined, options));
  }

  /** The queue as this session sees it; an absent folder is an empty queue. */
  async viewIn(
    session: Session | undefined,
    options: { readonly signal?: AbortSignal } = {},
  ): Promise<QueueView> {
    const listing = this.#store.zk.children(this.path, { ...options, ...(session && { session }) });
    try {
      return await this.read(await listing, session, options.signal);
    } catch (error) {
      if (isServerError(error, 'no-node')) return { entries: [], foreign: [] };
      throw error;
    }
  }

  /**
   * The queue after everything that the session asks for in this tick: one look, for all who join in it. Fails without
   * a folder.
   */
  viewSoon(session: Session): Promise<QueueView> {
    if (this.#viewSoon?.session === session) return this.#viewSoon.view;
    const view = new Promise<QueueView>((resolve, reject) => {
      gatheredWritesOf(this.#store, session).afterwards(() => {
        if (this.#viewSoon?.view === view) this.#viewSoon = undefined;
        this.look(session).then(resolve, reject); // Also where it is refused before it is sent.
      });
    });
    view.catch(ignore); // Of no interest if there is no entry.
    this.#viewSoon = { session, view };
    return view;
  }

  /** The queue as it is now. Fails without a folder. */
  async look(session: Session): Promise<QueueView> {
    return this.read(await this.#store.zk.children(this.path, { session }), session);
  }

  /** Makes a view of names. Only entries with the same number cost a look at each of them. */
  read(
    names: readonly string[],
    session: Session | undefined,
    signal?: AbortSignal,
  ): QueueView | Promise<QueueView> {
    const entries: QueueEntry[] = [];
    const foreign: string[] = [];
    for (const name of names) {
      const entry = parseEntry(name);
      if (entry) entries.push(entry);
      else foreign.push(name);
    }
    if (entries.length < 2) return { entries, foreign };
    entries.sort(inOrder);
    const unordered = tied(entries);
    if (unordered.length === 0) return { entries, foreign };
    const asking = { ...(session && { session }), ...(signal && { signal }) };
    return this.#order(entries, unordered, foreign, asking);
  }

  async #order(
    entries: readonly QueueEntry[],
    unordered: readonly QueueEntry[],
    foreign: readonly string[],
    asking: RequestOptions,
  ): Promise<QueueView> {
    const looks = await Promise.all(unordered.map((entry) => this.#lookAt(entry, asking)));
    const czxids = new Map(unordered.map(({ name }, index) => [name, looks[index]]));
    const ordered = entries.flatMap((entry) => {
      const czxid = czxids.get(entry.name);
      if (czxid === 'unreadable' || !czxids.has(entry.name)) return [entry];
      return czxid === undefined ? [] : [{ ...entry, czxid }];
    });
    return { entries: ordered.sort(inOrder), foreign };
  }

  /** The transaction that made an entry; undefined if it has gone. */
  async #lookAt(
    { name, sequence }: QueueEntry,
    asking: RequestOptions,
  ): Promise<bigint | 'unreadable' | undefined> {
    try {
      return (await this.#store.zk.exists(`${this.path}/${name}`, asking))?.czxid;
    } catch (error) {
      // Those with a number that others have too are a writer and the reader it goes on as: whichever is first, none of
      // them lets anyone pass. Where the counter sticks, they are several's, and nothing else orders them.
      if (isServerError(error, 'no-auth') && sequence !== SEQUENCE_LAST) return 'unreadable';
      throw error;
    }
  }

  left(entry: QueueEntry): void {
    this.lone.left(entry);
  }

  place({ path, czxid }: Made, session: Session, data: string): ZooKeeperPlace {
    const entry = parseEntry(path.slice(this.path.length + 1))!;
    return new ZooKeeperPlace(this.#store, { queue: this, entry, czxid, session, data });
  }
}

/**
 * Joins several queues in one transaction: at one point of the global order, so that two who do this stand in the
 * same order in each of them and cannot wait for each other.
 */
export function joinTogether(
  store: QueueStore,
  queues: readonly ZooKeeperQueue[],
  request: JoinRequest,
): Promise<Joined[]> {
  const { signal } = request;
  if (signal?.aborted) return Promise.reject(signal.reason);
  const entrance = new Entrance(store, queues, request);
  return unlessGivenUp(entrance, entrance.enter(), signal);
}

function unlessGivenUp<T extends Joined | readonly Joined[]>(
  entrance: Entrance,
  entering: Promise<T>,
  signal: AbortSignal | undefined,
): Promise<T> {
  return signal ? orLeave(entrance, entering, signal) : entering;
}

async function orLeave<T extends Joined | readonly Joined[]>(
  entrance: Entrance,
  entering: Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  try {
    return await orAbort(entering, signal);
  } catch (reason) {
    if (signal.aborted) {
      entrance.withdraw(signal.reason);
      // Given up while the entries were on their way: nobody may be left waiting behind them.
      entering.then(leaveAll).catch(() => {});
    }
    throw reason;
  }
}

/** One attempt at joining, by one session. */
class Entrance {
  readonly #store: QueueStore;
  readonly #queues: readonly ZooKeeperQueue[];
  readonly #request: JoinRequest;
  readonly #session: Session;
  readonly #gate: ConnectionGate;
  /** The newest of those that may go with others. */
  #creation: EntryCreation | undefined;
  /** One for each entry, each with an id of its own: where the number sticks, nothing else tells them apart. */
  readonly #prefixes: readonly string[];
  #viewing: Promise<QueueView> | undefined;
  #foldersMissing = false;
  #folderAttemptCount = 0;

  constructor(store: QueueStore, queues: readonly ZooKeeperQueue[], request: JoinRequest) {
    this.#store = store;
    this.#queues = queues;
    this.#request = request;
    this.#session = store.zk.session;
    this.#gate = connectionGateOf(store, this.#session);
    const prefixes: string[] = [];
    for (const { path } of queues) {
      for (let count = request.count ?? 1; count > 0; count--)
        prefixes.push(`${path}/${entryPrefix(uuidOf(store.random.bytes(16)), request.role)}`);
    }
    this.#prefixes = prefixes;
    tokensOf(store, this.#session).prepare();
  }

  /** As `enter`, for one entry in a folder that is there: most joins by far, and nothing but two answers to wait for. */
  async enterAlone(): Promise<Joined> {
    const queue = this.#queues[0]!;
    if (this.#prefixes.length > 1 || !queue.folderSeen) return onlyOf(await this.enter());
    const guess = queue.lone.guess(this.#session);
    let place: ZooKeeperPlace | undefined;
    try {
      const made = await this.#createGathered(queue, guess ? ignore : this.#lookingSoon(queue));
      place = queue.place(made, this.#session, this.#request.data);
      const settling = place.settleToken();
      if (settling !== undefined) await settling;
      if (guess && queue.lone.isRight(guess, place.entry)) {
        return { place, others: NOBODY, view: { entries: [place.entry], foreign: NONE } };
      }
      const view = await this.#viewBehind(queue, this.#viewing);
      queue.lone.joined(place.entry, view, this.#session);
      return { place, others: NOBODY, view };
    } catch (error) {
      void place?.leave().catch(ignore);
      const found = await this.#recover(error, undefined);
      return onlyOf(await (found ? this.#entered(found, this.#viewsSoon()) : this.enter()));
    }
  }

  /** It was given up: what has not been sent is not sent. What has been is left when it is answered. */
  withdraw(reason: unknown): void {
    if (this.#creation) this.#writes.withdraw(this.#creation, reason);
  }

  async enter(): Promise<Joined[]> {
    for (;;) {
      const { signal } = this.#request;
      if (!this.#gate.isOpen) await this.#gate.pass(signal);
      signal?.throwIfAborted();
      const folders = this.#foldersMissing ? this.#makeFolders() : undefined;
      let views: Promise<QueueView>[] = [];
      const making = this.#create(() => {
        views = this.#viewsSoon();
      });
      try {
        return await this.#entered(await making, views);
      } catch (error) {
        const found = await this.#recover(error, folders);
        if (found) return this.#entered(found, this.#viewsSoon());
      }
    }
  }

  /** What is there although it seemed to fail; undefined if it is to be tried again. Throws if there is no use in that. */
  async #recover(error: unknown, folders: Promise<unknown> | undefined): Promise<Made[] | undefined> {
    if (isServerError(error, 'no-node')) {
      for (const queue of this.#queues) queue.folderSeen = false;
      const fault = await folders;
      if (fault || ++this.#folderAttemptCount >= FOLDER_ATTEMPTS_MAX) throw fault ?? error;
      if (!this.#foldersMissing) await this.#request.beforeFolders?.();
      this.#foldersMissing = true;
      return undefined;
    }
    if (isUnsent(error)) return undefined;
    if (!isInterrupted(error)) throw error;
    return untilWritable(this.#bounds, () => this.#find());
  }

  get #writes(): GatheredWrites {
    return gatheredWritesOf(this.#store, this.#session);
  }

  get #bounds() {
    return { clock: this.#store.clock, session: this.#session };
  }

  /** Calls `onSent` as soon as the entries have been asked for. */
  #create(onSent: () => void): Promise<readonly Made[]> {
    const queue = this.#queues[0]!;
    if (this.#prefixes.length > 1 || !queue.folderSeen) return this.#createUngathered(onSent);
    return this.#createGathered(queue, onSent).then(listOf);
  }

  #createGathered({ path: folder }: ZooKeeperQueue, onSent: () => void): Promise<Made> {
    const { data } = this.#request;
    const facts = { folder, prefix: this.#prefixes[0]!, data, acl: this.#store.entryAcl };
    this.#creation = new EntryCreation(facts, onSent);
    return this.#writes.create(this.#creation);
  }

  async #createUngathered(onSent: () => void): Promise<readonly Made[]> {
    const { zk, entryAcl } = this.#store;
    const session = this.#session;
    const { data } = this.#request;
    const [prefix, ...otherPrefixes] = this.#prefixes as [string, ...string[]];
    const options = { mode: 'ephemeral-sequential', acl: entryAcl } as const;
    if (otherPrefixes.length === 0) {
      const creating = zk.create(prefix, data, { ...options, session, unqueued: true });
      onSent();
      const { path, stat } = await creating;
      return [{ path, czxid: stat.czxid }];
    }
    const creating = zk.multi(
      this.#prefixes.map((each) => ops.create(each, data, options)),
      { session, unqueued: true },
    );
    onSent();
    return creating;
  }

  #viewsSoon(): Promise<QueueView>[] {
    return this.#queues.map((queue) => queue.viewSoon(this.#session));
  }

  async #entered(made: readonly Made[], asked: readonly Promise<QueueView>[]): Promise<Joined[]> {
    const { count = 1, data } = this.#request;
    const places: ZooKeeperPlace[] = [];
    for (const each of made) {
      const queue = this.#queues[Math.floor(places.length / count)]!;
      queue.folderSeen = true;
      places.push(queue.place(each, this.#session, data));
    }
    try {
      for (const place of places) {
        const settling = place.settleToken();
        if (settling !== undefined) await settling;
      }
      const joined: Joined[] = [];
      for (const [index, viewing] of asked.entries()) {
        const first = index * count;
        const others = count === 1 ? NOBODY : places.slice(first + 1, first + count);
        const view = await this.#viewBehind(this.#queues[index]!, viewing);
        joined.push({ place: places[first]!, others, view });
      }
      return joined;
    } catch (error) {
      for (const place of places) void place.leave().catch(() => {});
      throw error;
    }
  }

  /** Apart from where it is used: most entries need no look. */
  #lookingSoon(queue: ZooKeeperQueue): () => void {
    return () => {
      this.#viewing = queue.viewSoon(this.#session);
    };
  }

  /** What was asked for with the creation, or is asked for now. */
  async #viewBehind(queue: ZooKeeperQueue, asked: Promise<QueueView> | undefined): Promise<QueueView> {
    try {
      return await (asked ?? queue.look(this.#session));
    } catch (error) {
      return this.#viewAgain(queue, error);
    }
  }

  /** Looks again if a lost connection left open what was asked for with the creation. */
  async #viewAgain(queue: ZooKeeperQueue, error: unknown): Promise<QueueView> {
    if (!isInterrupted(error)) throw error;
    return untilAnswered(() => queue.look(this.#session));
  }

  /**
   * Looks for entries whose creation was not answered: all of them are there, or none. A sync by a quorum comes first:
   * it is ordered behind the creation, if there was one, on whatever server this connection ends up.
   */
  async #find(): Promise<Made[] | undefined> {
    const { zk } = this.#store;
    const session = this.#session;
    for (;;) {
      try {
        const syncing = zk.sync('/', { by: 'quorum', session });
        const listing = this.#queues.map(({ path }) => emptyIfMissing(zk.children(path, { session })));
        const [, ...lists] = await Promise.all([syncing, ...listing]);
        const paths = this.#queues.flatMap(({ path }, index) =>
          lists[index]!.map((name) => `${path}/${name}`).filter((each) =>
            this.#prefixes.some((prefix) => each.startsWith(prefix)),
          ),
        );
        const stats = await Promise.all(paths.map((path) => zk.exists(path, { session })));
        const mine = paths.flatMap((path, index) => {
          const stat = stats[index];
          return stat?.ephemeralOwner === session.id ? [{ path, czxid: stat.czxid }] : [];
        });
        if (mine.length === this.#prefixes.length) return inQueueOrder(mine, this.#prefixes);
        // A ghost of an older session, or what is left of ours: never to be won on.
        await Promise.all(paths.map((path) => deleteForSure(zk, path, this.#bounds)));
        return undefined;
      } catch (error) {
        if (!isInterrupted(error)) throw error;
      }
    }
  }

  /**
   * Sends what makes the folders; that they are there is seen by what is sent after it, in the same write. Resolves
   * with why one could not be made, if that is so: an upper one that may not be made may be there all the same.
   */
  async #makeFolders(): Promise<unknown> {
    const { zk, folderAcl } = this.#store;
    const options = {
      mode: 'container',
      session: this.#session,
      unqueued: true,
      ...(folderAcl && { acl: folderAcl }),
    } as const;
    const folders = new Set<string>();
    for (const { path } of this.#queues) {
      for (let at = path.indexOf('/', 1); at > 0; at = path.indexOf('/', at + 1))
        folders.add(path.slice(0, at));
      folders.add(path);
    }
    const creations = [...folders].map((folder) =>
      zk.create(folder, '', options).then(() => undefined, isFault),
    );
    return (await Promise.all(creations)).filter(Boolean).at(-1);
  }
}

const onlyOf = (joined: readonly Joined[]): Joined => joined[0]!;
const ignore = () => {};
const listOf = (made: Made): readonly Made[] => [made];

/** The error, if it says that a folder cannot be made; not if it is there, or the one above it is missing. */
function isFault(error: unknown): unknown {
  const expected =
    isServerError(error, 'node-exists') || isServerError(error, 'no-node') || isInterrupted(error);
  return expected ? undefined : error;
}

async function emptyIfMissing(listing: Promise<string[]>): Promise<string[]> {
  try {
    return await listing;
  } catch (error) {
    if (isServerError(error, 'no-node')) return [];
    throw error;
  }
}

/** In the order in which they were asked for. */
function inQueueOrder(made: readonly Made[], prefixes: readonly string[]): Made[] {
  const rest = [...made];
  return prefixes.map((prefix) => {
    const at = rest.findIndex(({ path }) => path.startsWith(prefix));
    return rest.splice(at, 1)[0]!;
  });
}

async function leaveAll(joined: Joined | readonly Joined[]): Promise<void> {
  const places = [joined].flat().flatMap(({ place, others }) => [place, ...others]);
  await Promise.all(places.map((each) => each.leave()));
}
