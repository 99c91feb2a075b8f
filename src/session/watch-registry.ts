import { type AddWatchMode, type NodeEventType, type WatchType, watchTypes } from '../protocol/constants.ts';
import { errorCodes } from '../protocol/error-codes.ts';
import type { SessionLostError } from '../protocol/errors.ts';

/** What a watcher is told. Paths are the server's; the client takes the chroot off. */
export type WatchEvent =
  | { readonly type: NodeEventType; readonly path: string; readonly zxid: bigint | undefined }
  /** The watch was taken away by `removeWatches`. */
  | { readonly type: 'watch-removed'; readonly path: string }
  /** A persistent watch was set anew after a reconnect: changes in between were not reported. */
  | { readonly type: 'watch-gap'; readonly path: string }
  /** The session is over, and the watch with it. */
  | { readonly type: 'session-lost'; readonly path: string; readonly error: SessionLostError };

/** Who is told. The session never calls it: it only says, as an effect, that it is to be called. */
export type Watcher = (event: WatchEvent) => void;

/** A watch that a request asks for. */
export interface WatchIntent {
  readonly kind: 'data' | 'exists' | 'children' | AddWatchMode;
  readonly path: string;
  readonly watcher: Watcher;
}

/** A request for watches that may fire before it is answered. */
export interface WatchesAsked {
  readonly watches: readonly WatchIntent[];
  readonly attemptCount: number;
  /** On which attempt the watches were registered last. */
  watchedAttempt: number;
}

/** What a removeWatches request says. */
export interface WatchRemoval {
  readonly path: string;
  readonly type: number;
}

interface WatcherTold {
  readonly kind: 'watcher-told';
  readonly watcher: Watcher;
  readonly event: WatchEvent;
}

/** Most paths have one watcher, which then needs no set of its own: it halves the memory of a watch. */
type Watchers = Watcher | Set<Watcher>;

class WatchTable {
  readonly #watchers = new Map<string, Watchers>();

  get pathCount(): number {
    return this.#watchers.size;
  }

  has(path: string): boolean {
    return this.#watchers.has(path);
  }

  paths(): IterableIterator<string> {
    return this.#watchers.keys();
  }

  add(path: string, watcher: Watcher): void {
    const present = this.#watchers.get(path);
    if (present === undefined) this.#watchers.set(path, watcher);
    else if (present instanceof Set) present.add(watcher);
    else if (present !== watcher) this.#watchers.set(path, new Set([present, watcher]));
  }

  remove(path: string, watcher: Watcher): boolean {
    const present = this.#watchers.get(path);
    if (present === watcher) return this.#watchers.delete(path);
    if (!(present instanceof Set) || !present.delete(watcher)) return false;
    if (present.size === 0) this.#watchers.delete(path);
    return true;
  }

  collect(path: string, into: Set<Watcher>): void {
    const present = this.#watchers.get(path);
    if (present instanceof Set) for (const watcher of present) into.add(watcher);
    else if (present !== undefined) into.add(present);
  }

  take(path: string, into: Set<Watcher>): void {
    this.collect(path, into);
    this.#watchers.delete(path);
  }
}

/** The five lists of a setWatches2 request. */
export interface WatchPaths {
  dataWatches: string[];
  existWatches: string[];
  childWatches: string[];
  persistentWatches: string[];
  persistentRecursiveWatches: string[];
}

/** Far below the 1 MB a server accepts, as the Java client has it. */
const BATCH_BYTES = 128 * 1024;

/**
 * Who watches what, as the server has it for this session.
 *
 * One-shot watches are in three tables because a reconnect restores them differently: `data` for a node that
 * was there (getData, exists), `exists` for one that was not, `children`.
 */
export class WatchRegistry {
  readonly #tables = {
    data: new WatchTable(),
    exists: new WatchTable(),
    children: new WatchTable(),
    persistent: new WatchTable(),
    'persistent-recursive': new WatchTable(),
  };

  get pathCount(): number {
    return Object.values(this.#tables).reduce((sum, table) => sum + table.pathCount, 0);
  }

  /**
   * What to have removed at the server when a watcher of this kind has been forgotten; undefined if others of that kind
   * need it. It has one watch for all of a kind, and a persistent one goes with any that is removed on its path.
   */
  removable(kind: WatchIntent['kind'], path: string): WatchType | undefined {
    const { data, exists, children, persistent, 'persistent-recursive': recursive } = this.#tables;
    const hasChildren = children.has(path);
    const hasData = data.has(path) || exists.has(path);
    if (persistent.has(path) || recursive.has(path)) return undefined;
    if (kind === 'children') return hasChildren ? undefined : 'children';
    if (kind === 'data' || kind === 'exists') return hasData ? undefined : 'data';
    return hasChildren || hasData ? undefined : 'any';
  }

  /** Registers what the answer to a request says that the server has set. */
  answered(intent: WatchIntent, serverCode: number): void {
    if (serverCode === 0) this.add(intent, true);
    else if (serverCode === errorCodes['no-node'] && intent.kind === 'exists') this.add(intent, false);
  }

  /** Registers what the server has set: `nodePresent` is false after an exists that found nothing. */
  add(intent: WatchIntent, nodePresent: boolean): void {
    const kind = intent.kind === 'exists' && nodePresent ? 'data' : intent.kind;
    this.#tables[kind].add(intent.path, intent.watcher);
  }

  /** The next answer is for this request: from now on, what is told of its watches may be what they have missed. */
  expect(request: WatchesAsked | undefined): void {
    if (!request || request.watches.length === 0 || request.watchedAttempt === request.attemptCount) return;
    request.watchedAttempt = request.attemptCount;
    for (const { kind, path, watcher } of request.watches) this.#tables[kind].add(path, watcher);
  }

  /** Forgets one watcher without telling it; false if it was not there, or not any more. */
  forget(kind: WatchIntent['kind'], path: string, watcher: Watcher): boolean {
    if (kind === 'exists') {
      const { data, exists } = this.#tables;
      return data.remove(path, watcher) || exists.remove(path, watcher);
    }
    return this.#tables[kind].remove(path, watcher);
  }

  /** Who is told of an event; one-shot registrations are used up by it. */
  fire(type: NodeEventType, path: string): Set<Watcher> {
    const told = new Set<Watcher>();
    const { data, exists, children, persistent, 'persistent-recursive': recursive } = this.#tables;
    if (type === 'node-children-changed') {
      children.take(path, told);
      persistent.collect(path, told);
      return told;
    }
    data.take(path, told);
    exists.take(path, told);
    if (type === 'node-deleted') children.take(path, told);
    persistent.collect(path, told);
    if (recursive.pathCount > 0) {
      for (const ancestor of pathAndAncestors(path)) recursive.collect(ancestor, told);
    }
    return told;
  }

  /** Takes out everything that a successful removeWatches of this type took out at the server. */
  removeAll(path: string, type: WatchType): Set<Watcher> {
    const removed = new Set<Watcher>();
    const tables = this.#tables;
    if (type === 'children' || type === 'any') tables.children.take(path, removed);
    if (type === 'data' || type === 'any') {
      tables.data.take(path, removed);
      tables.exists.take(path, removed);
    }
    if (type === 'persistent' || type === 'any') tables.persistent.take(path, removed);
    if (type === 'persistent-recursive' || type === 'any') tables['persistent-recursive'].take(path, removed);
    return removed;
  }

  /** The same, from the request's own record: whom to tell what. */
  removedBy({ path, type }: WatchRemoval): WatcherTold[] {
    const [name] = (Object.entries(watchTypes) as [WatchType, number][]).find(([, each]) => each === type)!;
    const event = { type: 'watch-removed', path } as const;
    return [...this.removeAll(path, name)].map((watcher) => ({ kind: 'watcher-told', watcher, event }));
  }

  /** Every watcher with its path, taken out: the session is over. */
  drain(): [path: string, watcher: Watcher][] {
    const drained: [string, Watcher][] = [];
    for (const table of Object.values(this.#tables)) {
      for (const path of [...table.paths()]) {
        const watchers = new Set<Watcher>();
        table.take(path, watchers);
        for (const watcher of watchers) drained.push([path, watcher]);
      }
    }
    return drained;
  }

  /** Persistent watchers, which are not told what they missed while the connection was down. */
  persistentWatchers(): [path: string, watcher: Watcher][] {
    const found: [string, Watcher][] = [];
    for (const kind of ['persistent', 'persistent-recursive'] as const) {
      for (const path of this.#tables[kind].paths()) {
        const watchers = new Set<Watcher>();
        this.#tables[kind].collect(path, watchers);
        for (const watcher of watchers) found.push([path, watcher]);
      }
    }
    return found;
  }

  /** Everything to set again on a new connection, in pieces small enough for one frame each. */
  *batches(bytesMax = BATCH_BYTES): Generator<WatchPaths> {
    const limitBytes = Math.min(bytesMax, BATCH_BYTES);
    const lists = {
      data: 'dataWatches',
      exists: 'existWatches',
      children: 'childWatches',
      persistent: 'persistentWatches',
      'persistent-recursive': 'persistentRecursiveWatches',
    } as const;
    let batch = emptyBatch();
    let bytes = 0;
    for (const [kind, table] of Object.entries(this.#tables) as [keyof typeof lists, WatchTable][]) {
      for (const path of table.paths()) {
        const pathBytes = 4 + Buffer.byteLength(path);
        if (bytes > 0 && bytes + pathBytes > limitBytes) {
          yield batch;
          batch = emptyBatch();
          bytes = 0;
        }
        batch[lists[kind]].push(path);
        bytes += pathBytes;
      }
    }
    if (bytes > 0) yield batch;
  }
}

function emptyBatch(): WatchPaths {
  return {
    dataWatches: [],
    existWatches: [],
    childWatches: [],
    persistentWatches: [],
    persistentRecursiveWatches: [],
  };
}

function* pathAndAncestors(path: string): Generator<string> {
  let current = path;
  while (current.length > 1) {
    yield current;
    current = current.slice(0, Math.max(1, current.lastIndexOf('/')));
  }
  yield '/';
}
