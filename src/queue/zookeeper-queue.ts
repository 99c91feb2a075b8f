import type { RequestOptions } from '../client/request-options.ts';
import { isServerError } from '../protocol/errors.ts';
import { inOrder, parseEntry, SEQUENCE_LAST, tied } from './entry-name.ts';
import { JoinAttempt } from './join-attempt.ts';
import type { Joined, JoinRequest, LockQueue, QueueEntry, QueueView } from './lock-queue.ts';
import { LoneJoins } from './lone-joins.ts';
import { untilAnswered } from './settled-writes.ts';
import type { StoreSession } from './store-session.ts';
import type { ZooKeeperStore } from './zookeeper-store.ts';

/** A queue of ephemeral sequential nodes in one container, laid out as Curator lays it out. */
export class ZooKeeperQueue implements LockQueue {
  readonly path: string;
  readonly #store: ZooKeeperStore;
  /** An entry was made in it, and nothing has shown since that it has gone. */
  folderSeen = false;
  readonly lone: LoneJoins;
  /** Not asked for yet. */
  #viewSoon: { readonly shared: StoreSession; readonly view: Promise<QueueView> } | undefined;

  constructor(store: ZooKeeperStore, path: string) {
    this.#store = store;
    this.path = path;
    this.lone = new LoneJoins((shared) => shared.folderWatches.watch(path));
  }

  join(request: JoinRequest): Promise<Joined> {
    return new JoinAttempt(this.#store.current, [this], request).run().then(onlyOf);
  }

  /** The queue as it is now, for one who is not in it; an absent folder is an empty queue. */
  async view(options: { readonly signal?: AbortSignal } = {}): Promise<QueueView> {
    try {
      return await untilAnswered(async () =>
        this.read(await this.#store.facts.zk.children(this.path, options), options),
      );
    } catch (error) {
      if (isServerError(error, 'no-node')) return EMPTY;
      throw error;
    }
  }

  /**
   * The queue after everything that the session asks for in this tick: one list, for all who want one in it. Fails
   * without a folder.
   */
  viewSoon(shared: StoreSession): Promise<QueueView> {
    if (this.#viewSoon?.shared === shared) return this.#viewSoon.view;
    const { session } = shared;
    const view = new Promise<QueueView>((resolve, reject) => {
      shared.writes.afterwards(() => {
        if (this.#viewSoon?.view === view) this.#viewSoon = undefined;
        const listing = this.#store.facts.zk.children(this.path, { session });
        listing.then((names) => this.read(names, { session })).then(resolve, reject);
      });
    });
    view.catch(() => {}); // Of no interest if there is no entry.
    this.#viewSoon = { shared, view };
    return view;
  }

  /** Makes a view of names. Only entries with the same number cost a request for each of them. */
  read(names: readonly string[], asking: RequestOptions): QueueView | Promise<QueueView> {
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
    return unordered.length === 0 ? { entries, foreign } : this.#order(entries, unordered, foreign, asking);
  }

  async #order(
    entries: readonly QueueEntry[],
    unordered: readonly QueueEntry[],
    foreign: readonly string[],
    asking: RequestOptions,
  ): Promise<QueueView> {
    const looks = await Promise.all(unordered.map((entry) => this.#czxidOf(entry, asking)));
    const czxids = new Map(unordered.map(({ name }, index) => [name, looks[index]]));
    const ordered = entries.flatMap((entry) => {
      const czxid = czxids.get(entry.name);
      if (czxid === 'unreadable' || !czxids.has(entry.name)) return [entry];
      return czxid === undefined ? [] : [{ ...entry, czxid }];
    });
    return { entries: ordered.sort(inOrder), foreign };
  }

  /** The transaction that made an entry; undefined if it has gone. */
  async #czxidOf(
    { name, sequence }: QueueEntry,
    asking: RequestOptions,
  ): Promise<bigint | 'unreadable' | undefined> {
    try {
      return (await this.#store.facts.zk.exists(`${this.path}/${name}`, asking))?.czxid;
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
}

const onlyOf = (joined: readonly Joined[]) => joined[0]!;
const EMPTY: QueueView = { entries: [], foreign: [] };
