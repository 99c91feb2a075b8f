import {
  type AddWatchMode,
  eventTypes,
  type NodeEventType,
  type WatchType,
  watchTypes,
} from '../protocol/constants.ts';
import { errorCodes } from '../protocol/error-codes.ts';
import { ProtocolError, type SessionLostError } from '../protocol/errors.ts';
import { operations } from '../protocol/operations.ts';
import type { WatcherEvent } from '../protocol/records.ts';
import { PathTable } from './path-table.ts';
import { type ServerWatch, UnneededWatches } from './unneeded-watches.ts';

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

/** What a request says of watches. */
export interface WatchRequest {
  readonly operation: unknown;
  readonly record: unknown;
  /** Registered when the answer says that the server has set it. */
  readonly watch: WatchIntent | undefined;
  /** Registered when all requests before this one are answered: they may fire before it is. */
  readonly watches: readonly WatchIntent[];
}

/** A request on its way, whose watches may fire before it is answered. */
export interface WatchesAsked extends WatchRequest {
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

/** The five lists of a setWatches2 request. */
export interface WatchPaths {
  dataWatches: string[];
  existWatches: string[];
  childWatches: string[];
  persistentWatches: string[];
  persistentRecursiveWatches: string[];
}

const NONE_TOLD: readonly WatcherTold[] = [];

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
    data: new PathTable<Watcher>(),
    exists: new PathTable<Watcher>(),
    children: new PathTable<Watcher>(),
    persistent: new PathTable<Watcher>(),
    'persistent-recursive': new PathTable<Watcher>(),
  };
  /** What the requests ask for that are not answered yet, those that wait for a connection too. */
  readonly #requested = new PathTable<WatchIntent>();
  /** Of those: their listeners are gone. */
  readonly #unwanted = new WeakSet<WatchIntent>();
  /** Of those: registered before the answer, where no other request had registered the same. */
  readonly #registeredEarly = new WeakSet<WatchIntent>();
  /** Of those: the server may have had such a watch before the request that asks for it came. */
  readonly #watchedBefore = new WeakSet<WatchIntent>();
  readonly #unneeded = new UnneededWatches({
    hasListener: (kind, path) => this.#hasListener(kind, path),
    isRequested: (kind, path) => this.#isRequested(kind, path),
  });

  get pathCount(): number {
    return Object.values(this.#tables).reduce((sum, table) => sum + table.pathCount, 0);
  }

  /**
   * What to have removed at the server when a watcher of this kind has been forgotten. Undefined if something else needs
   * it, or would lose its own watch by the removal: what is left then is among the `removals` of later.
   */
  removable(kind: WatchIntent['kind'], path: string): WatchType | undefined {
    this.#unneeded.add(serverWatchOf(kind), path);
    return this.#unneeded.take(path);
  }

  /** Watches of the server that nothing needs any more, each returned once, to be removed by requests sent now. */
  *removals(): Generator<WatchRemoval> {
    for (const { path, type } of this.#unneeded.removable()) yield { path, type: watchTypes[type] };
  }

  /** A request that asks for watches was taken on. */
  requested(request: WatchRequest): void {
    for (const intent of intentsOf(request)) this.#requested.add(intent.path, intent);
  }

  /** Its caller has given it up; the server may set its watches all the same. */
  givenUp(request: WatchRequest): void {
    for (const intent of intentsOf(request)) this.#unwant(intent);
  }

  #unwant(intent: WatchIntent): void {
    this.#unwanted.add(intent);
    if (this.#registeredEarly.delete(intent)) this.#tables[intent.kind].remove(intent.path, intent.watcher);
  }

  /** It failed: its caller knows, and its listeners get nothing. */
  failed(request: WatchRequest): void {
    this.givenUp(request);
    this.ended(request);
  }

  /** It is over without an answer: on this connection, it sets nothing. */
  ended(request: WatchRequest): void {
    for (const intent of intentsOf(request)) {
      this.#requested.remove(intent.path, intent);
      this.#unneeded.changed(intent.path);
    }
  }

  /** It was answered: registers what the server has set, and says what to tell those whose watches it has removed. */
  answered(request: WatchRequest, serverCode: number): readonly WatcherTold[] {
    const { watch, watches } = request;
    if (watch) {
      const isAbsent = serverCode === errorCodes['no-node'] && watch.kind === 'exists';
      if (serverCode === 0 || isAbsent) this.#set(watch, !isAbsent);
    }
    for (const intent of watches) {
      const isNew = this.#registeredEarly.delete(intent);
      if (serverCode === 0) this.#setEarly(intent);
      else if (isNew) this.#tables[intent.kind].remove(intent.path, intent.watcher);
    }
    this.ended(request);
    if (serverCode !== 0 || request.operation !== operations.removeWatches) return NONE_TOLD;
    return this.removedBy(request.record as WatchRemoval);
  }

  #set(intent: WatchIntent, nodePresent: boolean): void {
    if (this.#unwanted.has(intent)) this.#unneeded.add(serverWatchOf(intent.kind), intent.path);
    else this.add(intent, nodePresent);
  }

  /**
   * Where it has fired before the answer, the server may have a watch that is without a listener now: one from before,
   * if the answer had it fire, or the one that is answered, if another watch did, whose event came first. A changed
   * node is reported to `data` in any case, and not watched.
   */
  #setEarly(intent: WatchIntent): void {
    const { kind, path } = intent;
    const mayBeLeft = this.#watchedBefore.delete(intent) || kind === 'exists';
    const isLeft = mayBeLeft && !this.#hasListener(serverWatchOf(kind), path);
    if (isLeft || this.#unwanted.has(intent)) this.#unneeded.add(serverWatchOf(kind), path);
  }

  /** The connection is over, and the server's watches with it. */
  disconnected(): void {
    this.#unneeded.clear();
  }

  #hasListener(kind: ServerWatch, path: string): boolean {
    return this.#tables[kind].has(path) || (kind === 'data' && this.#tables.exists.has(path));
  }

  #isRequested(kind: ServerWatch, path: string): boolean {
    if (!this.#requested.has(path)) return false;
    for (const intent of this.#requested.of(path)) if (serverWatchOf(intent.kind) === kind) return true;
    return false;
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
    for (const intent of request.watches) {
      const { kind, path, watcher } = intent;
      // One that was notified before the connection ended is not notified again by the repeated request.
      if (this.#registeredEarly.has(intent) && !this.#tables[kind].includes(path, watcher))
        this.#unwanted.add(intent);
      if (this.#unwanted.has(intent)) continue;
      if (this.#hasListener(serverWatchOf(kind), path)) this.#watchedBefore.add(intent);
      if (this.#tables[kind].add(path, watcher)) this.#registeredEarly.add(intent);
    }
  }

  /**
   * Forgets one watcher without telling it, and what it has asked for without an answer. False if it was not there, or
   * not any more.
   */
  forget(kind: WatchIntent['kind'], path: string, watcher: Watcher): boolean {
    if (this.#requested.has(path)) {
      for (const intent of this.#requested.of(path)) {
        if (intent.kind === kind && intent.watcher === watcher) this.#unwanted.add(intent);
      }
    }
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
    this.#unneeded.changed(path);
    if (type === 'node-children-changed') {
      children.take(path, told);
      persistent.collect(path, told);
      return told;
    }
    // Of two that are being restored, the server reports the one that has missed something, and sets the other.
    if (exists.has(path) && data.has(path)) this.#unneeded.add('data', path);
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
    this.#unneeded.changed(path);
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

  /** The server has reported an event: whom to tell what. @throws ProtocolError if there is no such event. */
  notified({ type: number, path }: WatcherEvent, zxid: bigint): WatcherTold[] {
    const type = eventTypes[number as keyof typeof eventTypes];
    if (type === undefined) throw new ProtocolError(`an event of type ${number}`);
    const event = { type, path, zxid: zxid > 0n ? zxid : undefined };
    return Array.from(this.fire(type, path), (watcher) => ({ kind: 'watcher-told', watcher, event }));
  }

  /** Everything is set again on a new connection: whom to tell that there may have been changes in between. */
  gaps(): WatcherTold[] {
    return this.persistentWatchers().map(([path, watcher]) => {
      return { kind: 'watcher-told', watcher, event: { type: 'watch-gap', path } };
    });
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
    for (const [kind, table] of Object.entries(this.#tables) as [keyof typeof lists, PathTable<Watcher>][]) {
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

function intentsOf({ watch, watches }: WatchRequest): readonly WatchIntent[] {
  return watch ? [watch, ...watches] : watches;
}

function serverWatchOf(kind: WatchIntent['kind']): ServerWatch {
  return kind === 'exists' ? 'data' : kind;
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
