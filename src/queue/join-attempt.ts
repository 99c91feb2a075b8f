import { orAbort } from '../base/abort.ts';
import { ops } from '../client/operations-of-multi.ts';
import { isServerError } from '../protocol/errors.ts';
import { entryPrefix, parseEntry, uuidOf } from './entry-name.ts';
import type { Joined, JoinRequest, Place, QueueView } from './lock-queue.ts';
import type { Guess, LoneJoins } from './lone-joins.ts';
import type { EntryCreation, Made } from './queue-writes.ts';
import { removeInBackground } from './refused-removals.ts';
import { deleteForSure, isInterrupted, isUnsent, untilAnswered, untilWritable } from './settled-writes.ts';
import type { StoreSession } from './store-session.ts';
import { type SessionQueue, ZooKeeperPlace } from './zookeeper-place.ts';

/** A folder that is removed while it is being joined, again and again, is a mistake outside of this process. */
const FOLDER_ATTEMPTS_MAX = 5;
const NO_PLACES: readonly Place[] = [];
const NO_VIEWS: readonly Promise<QueueView>[] = [];
const NO_NAMES: readonly string[] = [];

/** What joining needs of a queue. */
export interface JoinableQueue extends SessionQueue {
  /** An entry was made in it, and nothing has shown since that its folder has gone. */
  folderSeen: boolean;
  readonly lone: LoneJoins;
}

/**
 * One attempt to join one or several queues, by one session.
 *
 *   1. Create the entries, and list the queues behind that: both leave in one write, and a session's requests are
 *      answered in order, so each list contains the entry, after one round trip. Where the entry's number alone can
 *      show that the queue was empty, there is no list: see `LoneJoins`.
 *   2. A folder is missing: create the folders and the entries again, in one write.
 *   3. The answer was lost: look for the entries by their ids before anything else is tried. They count only if they
 *      belong to this very session.
 *
 * Several queues are joined in one transaction: at one point of the global order, so that any two that do this stand in
 * the same order in each queue and cannot wait for each other.
 */
export class JoinAttempt {
  readonly #shared: StoreSession;
  readonly #queues: readonly JoinableQueue[];
  readonly #request: JoinRequest;
  /** One for each entry, each with an id of its own: where the number sticks, nothing else tells them apart. */
  readonly #prefixes: readonly string[];
  /** The newest that may leave in one batch with other writes. */
  #creation: EntryCreation | undefined;
  /** The lists of the queues, where they were asked for. */
  #views = NO_VIEWS;
  #foldersMissing = false;
  #folderAttemptCount = 0;

  constructor(shared: StoreSession, queues: readonly JoinableQueue[], request: JoinRequest) {
    this.#shared = shared;
    this.#queues = queues;
    this.#request = request;
    const prefixes: string[] = [];
    for (const { path } of queues) {
      for (let count = request.count ?? 1; count > 0; count--)
        prefixes.push(`${path}/${entryPrefix(uuidOf(shared.store.random.bytes(16)), request.role)}`);
    }
    this.#prefixes = prefixes;
    shared.tokens.prepare();
  }

  /** Rejects with the reason of the request's signal; what has been made by then, or is made later, is removed. */
  run(): Promise<readonly Joined[]> {
    const { signal } = this.#request;
    return signal ? this.#runUntil(signal) : this.#join(undefined);
  }

  async #runUntil(signal: AbortSignal): Promise<readonly Joined[]> {
    signal.throwIfAborted();
    const joining = this.#join(signal);
    try {
      return await orAbort(joining, signal);
    } catch (reason) {
      if (signal.aborted) {
        // What has not been sent is not sent any more.
        if (this.#creation) this.#shared.writes.withdraw(this.#creation, signal.reason);
        joining.then(leaveAll).catch(() => {});
      }
      throw reason;
    }
  }

  async #join(signal: AbortSignal | undefined): Promise<readonly Joined[]> {
    const { gate, tokens } = this.#shared;
    for (;;) {
      if (!gate.isOpen) await gate.pass(signal);
      signal?.throwIfAborted();
      const folders = this.#foldersMissing ? this.#makeFolders() : undefined;
      const guess = this.#isOne ? this.#queues[0]!.lone.guess(this.#shared) : undefined;
      this.#views = NO_VIEWS;
      let made: readonly Made[] | undefined;
      try {
        made = await this.#create(guess === undefined);
      } catch (error) {
        made = await this.#recover(error, folders);
        if (made) this.#listQueues();
      }
      if (!made) continue;
      const token = tokens.of(made[0]!.czxid) ?? (await this.#tokenOf(made));
      const places = this.#placesOf(made, token);
      try {
        return await this.#joined(places, guess);
      } catch (error) {
        for (const place of places) void place.leave().catch(() => {});
        if (!isServerError(error, 'no-node')) throw error;
        await this.#missFolders(error, undefined); // They have gone since, and the entries with them.
      }
    }
  }

  /** One entry in a folder that was there before: it may leave in one batch with other writes. */
  get #isOne(): boolean {
    return this.#prefixes.length === 1 && this.#queues[0]!.folderSeen;
  }

  /** Asks for the entries, and then for the queues behind them where `withViews` says so. */
  #create(withViews: boolean): Promise<readonly Made[]> {
    const { store, session, writes } = this.#shared;
    const { data } = this.#request;
    const { zk, entryAcl: acl } = store;
    const [prefix] = this.#prefixes as readonly [string, ...string[]];
    if (this.#isOne) {
      const onSent = withViews ? () => this.#listQueues() : doNothing;
      this.#creation = writes.create({ folder: this.#queues[0]!.path, prefix, data, acl, onSent });
      return this.#creation.answer.promise;
    }
    const options = { mode: 'ephemeral-sequential', acl } as const;
    const asking = { session, unqueued: true };
    const creating =
      this.#prefixes.length === 1
        ? zk.create(prefix, data, { ...options, ...asking }).then(madeOf)
        : zk.multi(
            this.#prefixes.map((each) => ops.create(each, data, options)),
            asking,
          );
    if (withViews) this.#listQueues();
    return creating;
  }

  /** Asks for a list of each queue, behind all that is sent in this tick. */
  #listQueues(): void {
    const views: Promise<QueueView>[] = [];
    for (const queue of this.#queues) views.push(queue.viewSoon(this.#shared));
    this.#views = views;
  }

  /** What is there although it seemed to fail; undefined if it is to be tried again. Throws if there is no use in that. */
  async #recover(error: unknown, folders: Promise<unknown> | undefined): Promise<Made[] | undefined> {
    if (isServerError(error, 'no-node')) return this.#missFolders(error, folders);
    if (isUnsent(error)) return undefined;
    if (!isInterrupted(error)) throw error;
    const { store, session } = this.#shared;
    return untilWritable({ clock: store.clock, session }, () => this.#find());
  }

  async #missFolders(error: unknown, folders: Promise<unknown> | undefined): Promise<undefined> {
    for (const queue of this.#queues) queue.folderSeen = false;
    const fault = await folders;
    if (fault || ++this.#folderAttemptCount >= FOLDER_ATTEMPTS_MAX) throw fault ?? error;
    if (!this.#foldersMissing) await this.#request.beforeFolders?.();
    this.#foldersMissing = true;
  }

  #placesOf(made: readonly Made[], token: bigint): readonly ZooKeeperPlace[] {
    const { count = 1, data } = this.#request;
    const places: ZooKeeperPlace[] = [];
    for (const { path, czxid } of made) {
      const queue = this.#queues[Math.floor(places.length / count)]!;
      queue.folderSeen = true;
      const entry = parseEntry(path.slice(queue.path.length + 1))!;
      places.push(new ZooKeeperPlace(this.#shared, { queue, entry, czxid, token, data }));
    }
    return places;
  }

  /** The places with the queues behind them. */
  async #joined(places: readonly ZooKeeperPlace[], guess: Guess | undefined): Promise<readonly Joined[]> {
    const { count = 1 } = this.#request;
    const joined: Joined[] = [];
    for (const queue of this.#queues) {
      const at = joined.length * count;
      const place = places[at]!;
      const others = count === 1 ? NO_PLACES : places.slice(at + 1, at + count);
      let view: QueueView;
      if (guess && queue.lone.isRight(guess, place.entry)) {
        view = { entries: [place.entry], foreign: NO_NAMES };
      } else {
        const asked = this.#views[joined.length];
        view =
          (await (asked?.catch(unlessInterrupted) ?? this.#viewAgain(queue))) ??
          (await this.#viewAgain(queue));
        if (this.#prefixes.length === 1) queue.lone.joined(place.entry, view, this.#shared);
      }
      joined.push({ place, others, view });
    }
    return joined;
  }

  #viewAgain(queue: JoinableQueue): Promise<QueueView> {
    return untilAnswered(() => queue.viewSoon(this.#shared));
  }

  /** The token of entries that were made by one transaction; they are removed if it cannot be known. */
  async #tokenOf(made: readonly Made[]): Promise<bigint> {
    try {
      return await this.#shared.tokens.whenKnown(made[0]!.czxid);
    } catch (error) {
      for (const { path } of made) removeInBackground(this.#shared, path);
      throw error;
    }
  }

  /**
   * Looks for entries whose creation was not answered: all of them are there, or none. A sync by a quorum comes first:
   * it is ordered behind the creation, if there was one, on whatever server this connection ends up.
   */
  async #find(): Promise<Made[] | undefined> {
    const { session } = this.#shared;
    const { zk } = this.#shared.store;
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
        await Promise.all(
          paths.map((path) => deleteForSure(zk, path, { clock: this.#shared.store.clock, session })),
        );
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
    const { zk, folderAcl } = this.#shared.store;
    const options = {
      mode: 'container',
      session: this.#shared.session,
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

const doNothing = () => {};

function madeOf({ path, stat }: { readonly path: string; readonly stat: { readonly czxid: bigint } }) {
  return [{ path, czxid: stat.czxid }];
}

function unlessInterrupted(error: unknown): undefined {
  if (!isInterrupted(error)) throw error;
}

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

async function leaveAll(joined: readonly Joined[]): Promise<void> {
  const places = joined.flatMap(({ place, others }) => [place, ...others]);
  await Promise.all(places.map((each) => each.leave()));
}
