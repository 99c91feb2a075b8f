import { orAbort } from '../base/abort.ts';
import { type Deferred, deferred } from '../base/deferred.ts';
import { SessionLostError } from '../protocol/errors.ts';
import { entryNameAt, entryNameBefore, entryPrefix, inOrder, parseEntry } from '../queue/entry-name.ts';
import type {
  Departure,
  EntryRole,
  HoldOnPlace,
  Joined,
  JoinRequest,
  LeaveOptions,
  LockQueue,
  Place,
  PlaceEvents,
  QueueEntry,
  QueueView,
} from '../queue/lock-queue.ts';

/** Someone who listens to an entry, or to a whole queue. */
interface Ear {
  readonly told: Deferred<Departure>;
  readonly baton: boolean;
}

interface Stored {
  readonly entry: QueueEntry;
  readonly place: MemoryPlace;
  readonly ears: Set<Ear>;
}

/** The queues of one imaginary store, for tests of what is built on them: no server, no time, no network. */
export class MemoryQueues {
  readonly #folders = new Map<string, Map<string, Stored>>();
  readonly #changes = new Map<string, Set<Deferred<void>>>();
  #transaction = 0n;
  readonly #sequences = new Map<string, number>();

  /** Someone who joins; what it has in queues goes when it ends. */
  session(): MemorySession {
    return new MemorySession(this);
  }

  /** Removes an entry as an administrator would. */
  remove(path: string, name: string): void {
    this.depart(path, name, 'gone');
  }

  /** Asks for a lock, as anyone may. */
  revoke(path: string, name: string): void {
    this.#folder(path).get(name)?.place.revoke();
  }

  /** @internal */
  view(path: string): QueueView {
    return { entries: [...this.#folder(path).values()].map(({ entry }) => entry).sort(inOrder), foreign: [] };
  }

  /** @internal */
  enter(session: MemorySession, path: string, role: EntryRole, count: number): MemoryPlace[] {
    const czxid = ++this.#transaction;
    return Array.from({ length: count }, (_, index) => {
      const sequence = this.#sequences.get(path) ?? 0;
      this.#sequences.set(path, sequence + 1);
      const name = `${entryPrefix(`${czxid}.${index}`, role)}${String(sequence).padStart(10, '0')}`;
      return this.add(session, path, { ...parseEntry(name)!, czxid }, czxid);
    });
  }

  /** @internal */
  add(session: MemorySession, path: string, entry: QueueEntry, token: bigint): MemoryPlace {
    const place = new MemoryPlace(this, session, path, entry, token);
    this.#folder(path).set(entry.name, { entry, place, ears: new Set() });
    session.places.add(place);
    this.#changed(path);
    return place;
  }

  /** @internal */
  nextTransaction(): bigint {
    return ++this.#transaction;
  }

  /** @internal Undefined if there is no such entry. */
  listen(path: string, name: string, ear: Ear): (() => void) | undefined {
    const ears = this.#folder(path).get(name)?.ears;
    ears?.add(ear);
    return ears && (() => void ears.delete(ear));
  }

  /** @internal */
  changeOf(path: string): Promise<void> {
    const changed = deferred();
    const waiting = this.#changes.get(path) ?? new Set();
    this.#changes.set(path, waiting.add(changed));
    return changed.promise;
  }

  /** @internal */
  depart(path: string, name: string, how: Departure): void {
    const folder = this.#folder(path);
    const stored = folder.get(name);
    if (!stored) return;
    folder.delete(name);
    this.#transaction++;
    stored.place.departed();
    for (const { told, baton } of stored.ears) told.resolve(baton ? how : 'gone');
    this.#changed(path);
  }

  #folder(path: string): Map<string, Stored> {
    const folder = this.#folders.get(path) ?? new Map<string, Stored>();
    this.#folders.set(path, folder);
    return folder;
  }

  #changed(path: string): void {
    const waiting = this.#changes.get(path);
    this.#changes.delete(path);
    for (const changed of waiting ?? []) changed.resolve();
  }
}

/** One participant's presence in a `MemoryQueues`. */
export class MemorySession {
  readonly #store: MemoryQueues;
  readonly #lost = new AbortController();
  readonly #holds = new Set<MemoryHold>();
  /** @internal */
  readonly places = new Set<MemoryPlace>();

  /** @internal */
  constructor(store: MemoryQueues) {
    this.#store = store;
  }

  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  queue(path: string): LockQueue {
    const store = this.#store;
    return {
      path,
      join: async ({ role, count = 1, signal }: JoinRequest): Promise<Joined> => {
        signal?.throwIfAborted();
        this.lost.throwIfAborted();
        const [place, ...others] = store.enter(this, path, role, count);
        return { place: place!, others, view: store.view(path) };
      },
      view: async ({ signal } = {}) => {
        signal?.throwIfAborted();
        return store.view(path);
      },
    };
  }

  /** Ends the session: everything it has in queues is gone at once. */
  end(): void {
    const error = new SessionLostError('the session is over', 'expired-by-server');
    for (const hold of [...this.#holds]) {
      hold.release();
      hold.listener?.(error);
    }
    for (const place of [...this.places]) this.#store.depart(place.folder, place.entry.name, 'gone');
    this.#lost.abort(error);
  }

  /** @internal */
  hold(): HoldOnPlace {
    const hold: MemoryHold = {
      listener: undefined,
      onEnded: (listener) => {
        hold.listener = listener;
      },
      remainingMs: () => (this.#holds.has(hold) ? Number.MAX_SAFE_INTEGER : 0),
      release: () => void this.#holds.delete(hold),
    };
    this.#holds.add(hold);
    return hold;
  }
}

interface MemoryHold extends HoldOnPlace {
  listener: ((error: Error) => void) | undefined;
}

class MemoryPlace implements Place {
  readonly folder: string;
  readonly path: string;
  readonly entry: QueueEntry;
  readonly token: bigint;
  readonly bound = {};
  readonly #store: MemoryQueues;
  readonly #session: MemorySession;
  #events: PlaceEvents | undefined;
  #evicted = false;
  #revoked = false;
  #leaving = false;
  #accompanied = false;
  #listening: Deferred<Departure> | undefined;

  constructor(store: MemoryQueues, session: MemorySession, folder: string, entry: QueueEntry, token: bigint) {
    this.#store = store;
    this.#session = session;
    this.folder = folder;
    this.path = `${folder}/${entry.name}`;
    this.entry = entry;
    this.token = token;
  }

  get lost(): AbortSignal {
    return this.#session.lost;
  }
  get evicted(): boolean {
    return this.#evicted;
  }

  async view(): Promise<QueueView> {
    this.lost.throwIfAborted();
    return this.#store.view(this.folder);
  }

  async listen(
    to: QueueEntry,
    { baton, signal }: { readonly baton: boolean; readonly signal?: AbortSignal },
  ): Promise<Departure> {
    const told = deferred<Departure>();
    this.#listening = told;
    const stop = this.#store.listen(this.folder, to.name, { told, baton });
    if (!stop) return this.#evicted || this.#leaving ? 'gone' : 'absent';
    try {
      return await orAbort(told.promise, this.lost, signal);
    } finally {
      stop();
    }
  }

  async awaitView(accept: (view: QueueView) => boolean, signal?: AbortSignal): Promise<QueueView> {
    for (;;) {
      const changed = this.#store.changeOf(this.folder);
      const view = await this.view();
      if (accept(view)) return view;
      await orAbort(changed, this.lost, signal);
    }
  }

  async beside(role: EntryRole): Promise<Place | undefined> {
    this.#accompanied = true;
    if (!this.#store.view(this.folder).entries.some(({ name }) => name === this.entry.name)) return undefined;
    const czxid = this.#store.nextTransaction();
    const name = entryNameAt(`${czxid}`, role, this.entry);
    return this.#store.add(this.#session, this.folder, { ...parseEntry(name)!, czxid }, this.token);
  }

  async before(other: QueueEntry, role: EntryRole): Promise<Place | undefined> {
    if (!this.#store.view(this.folder).entries.some(({ name }) => name === other.name)) return undefined;
    const czxid = this.#store.nextTransaction();
    const name = entryNameBefore(`${czxid}`, role, other);
    if (name === undefined) return undefined;
    return this.#store.add(this.#session, this.folder, { ...parseEntry(name)!, czxid }, this.token);
  }

  attend(events: PlaceEvents): void {
    this.#events = events;
    if (this.#evicted) events.evicted();
    if (this.#revoked) events.revoked();
  }

  async watchSelf(): Promise<boolean> {
    return this.#store.view(this.folder).entries.length > 1;
  }

  async watchForOthers(told: () => void): Promise<void> {
    const changed = this.#store.changeOf(this.folder);
    if ((await this.watchSelf()) || this.#leaving) return told();
    void changed.then(told);
  }

  async hold(): Promise<HoldOnPlace> {
    this.lost.throwIfAborted();
    return this.#session.hold();
  }

  async leave({ baton = false }: LeaveOptions = {}): Promise<void> {
    if (this.#leaving) return;
    this.#leaving = true;
    this.#listening?.resolve('gone');
    const how = baton && !this.#accompanied ? 'released' : 'gone';
    this.#store.depart(this.folder, this.entry.name, how);
  }

  revoke(): void {
    this.#revoked = true;
    this.#events?.revoked();
  }

  departed(): void {
    this.#session.places.delete(this);
    if (this.#leaving) return;
    this.#evicted = true;
    this.#listening?.resolve('gone');
    this.#events?.evicted();
  }
}
