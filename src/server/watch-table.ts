import { Fifo } from '../base/fifo.ts';
import type { NodeEventType } from '../protocol/constants.ts';
import type { Children } from './children.ts';
import { PathMap } from './path-map.ts';

/** One change that may concern a watcher: what happened, where. */
export interface NodeChange {
  readonly type: NodeEventType;
  readonly path: string;
  /** Those the node is one of, which leads to the nodes above; cut out of the path if left out, as for a short one. */
  readonly above?: Children | undefined;
}

// Modes are independent bits, as in 3.9: each behaves as if it were alone.
const ONE_SHOT = 1;
const PERSISTENT = 2;
const RECURSIVE = 4;

/** Little enough to be removed between two requests. */
const SWEPT_AT_ONCE = 256;

/** Which watches on a path are meant, by the numbers of removeWatches. */
export const watchKinds = { children: 1, data: 2, any: 3, persistent: 4, recursive: 5 } as const;

/** Most paths have one watcher, and a map for one takes three times the memory. */
interface OnlyWatcher<W> {
  readonly watcher: W;
  modes: number;
}

class Table<W> {
  readonly #byPath = new PathMap<OnlyWatcher<W> | Map<W, number>>();
  count = 0;
  /** How many paths each watcher watches here. */
  readonly #counts = new Map<W, number>();

  get pathCount(): number {
    return this.#byPath.size;
  }

  watchers(): IterableIterator<W> {
    return this.#counts.keys();
  }

  get watcherCount(): number {
    return this.#counts.size;
  }

  modes(path: string, watcher: W): number {
    const watchers = this.#byPath.get(path);
    if (watchers instanceof Map) return watchers.get(watcher) ?? 0;
    return watchers?.watcher === watcher ? watchers.modes : 0;
  }

  add(path: string, watcher: W, mode: number): void {
    const before = this.modes(path, watcher);
    if (before === 0) this.#count(watcher, 1);
    const watchers = this.#byPath.get(path);
    if (!watchers) this.#byPath.set(path, { watcher, modes: mode });
    else if (watchers instanceof Map) watchers.set(watcher, before | mode);
    else if (watchers.watcher === watcher) watchers.modes |= mode;
    else this.#byPath.set(path, mapOf(watchers).set(watcher, mode));
  }

  /** False if the watcher had none of these modes here. */
  remove(path: string, watcher: W, mode: number): boolean {
    const before = this.modes(path, watcher);
    if ((before & mode) === 0) return false;
    const after = before & ~mode;
    const watchers = this.#byPath.get(path)!;
    if (after === 0) this.#count(watcher, -1);
    if (!(watchers instanceof Map)) {
      if (after === 0) this.#byPath.delete(path);
      else watchers.modes = after;
    } else if (after !== 0) watchers.set(watcher, after);
    else if (watchers.delete(watcher) && watchers.size === 0) this.#byPath.delete(path);
    return true;
  }

  /** Who watches this very path by one of the modes, with those before them; one-shot watches are used up. */
  fire(path: string, mode: number, toldBefore: Set<W> | undefined): Set<W> | undefined {
    const watchers = this.#byPath.get(path);
    let told = toldBefore;
    if (!watchers) return told;
    if (!(watchers instanceof Map)) {
      const { watcher, modes } = watchers;
      if ((modes & mode) === 0) return told;
      if ((modes & mode & ONE_SHOT) !== 0) this.remove(path, watcher, ONE_SHOT);
      return (told ?? new Set()).add(watcher);
    }
    for (const [watcher, modes] of [...watchers]) {
      if ((modes & mode) === 0) continue;
      told ??= new Set();
      told.add(watcher);
      if ((modes & mode & ONE_SHOT) !== 0) this.remove(path, watcher, ONE_SHOT);
    }
    return told;
  }

  #count(watcher: W, change: 1 | -1): void {
    this.count += change;
    const count = (this.#counts.get(watcher) ?? 0) + change;
    if (count === 0) this.#counts.delete(watcher);
    else this.#counts.set(watcher, count);
  }

  *paths(): IterableIterator<[string, ReadonlyMap<W, number>]> {
    for (const [path, watchers] of this.#byPath) yield [path, mapOf(watchers)];
  }
}

function mapOf<W>(watchers: OnlyWatcher<W> | Map<W, number>): Map<W, number> {
  return watchers instanceof Map ? watchers : new Map([[watchers.watcher, watchers.modes]]);
}

/**
 * Who watches what. Watches belong to connections: they go when the connection does, and the session knows nothing
 * of them. Two tables, as clients rely on: the data table (getData, exists, and everything that is recursive) and the
 * child table.
 */
export class WatchTable<W> {
  readonly #data = new Table<W>();
  readonly #children = new Table<W>();
  readonly #pathsOf = new Map<W, Set<string>>();
  /** Watchers that are gone, with what is still to be removed. */
  readonly #left = new Fifo<{ readonly watcher: W; readonly paths: IterableIterator<string> }>();
  #recursiveCount = 0;
  #pathBytes = 0;

  /** How long all watched paths are together, each once for each watcher. */
  get pathBytes(): number {
    return this.#pathBytes;
  }

  pathBytesOf(watcher: W): number {
    let bytes = 0;
    for (const path of this.#pathsOf.get(watcher) ?? []) bytes += path.length;
    return bytes;
  }

  get count(): number {
    return this.#data.count + this.#children.count;
  }

  /** How many paths this watcher watches. */
  countOf(watcher: W): number {
    return this.#pathsOf.get(watcher)?.size ?? 0;
  }

  watchData(path: string, watcher: W): void {
    this.#add(this.#data, path, watcher, ONE_SHOT);
  }

  watchChildren(path: string, watcher: W): void {
    this.#add(this.#children, path, watcher, ONE_SHOT);
  }

  watchPersistently(path: string, watcher: W): void {
    this.#add(this.#data, path, watcher, PERSISTENT);
    this.#add(this.#children, path, watcher, PERSISTENT);
  }

  watchRecursively(path: string, watcher: W): void {
    if ((this.#data.modes(path, watcher) & RECURSIVE) === 0) this.#recursiveCount++;
    this.#add(this.#data, path, watcher, RECURSIVE);
  }

  /** Who is told of a change, each once; undefined if nobody is, which is so for nearly every change. */
  fire({ type, path, above }: NodeChange): ReadonlySet<W> | undefined {
    if (type === 'node-children-changed') {
      const told = this.#children.fire(path, ONE_SHOT | PERSISTENT, undefined);
      if (told) this.#forgetUsedUp(path, told);
      return told;
    }
    let told = this.#data.fire(path, ONE_SHOT | PERSISTENT | RECURSIVE, undefined);
    if (this.#recursiveCount > 0) told = this.#fireAbove(path, above, told);
    // A deletion serves both tables with one event, and uses up both.
    if (type === 'node-deleted') told = this.#children.fire(path, ONE_SHOT | PERSISTENT, told);
    if (told) this.#forgetUsedUp(path, told);
    return told;
  }

  #fireAbove(path: string, above: Children | undefined, toldBefore: Set<W> | undefined): Set<W> | undefined {
    let told = toldBefore;
    if (above) {
      for (let at: Children | undefined = above; at; at = at.parent)
        told = this.#data.fire(at.path, RECURSIVE, told);
      return told;
    }
    for (let at = path; at !== '/'; ) {
      at = at.slice(0, Math.max(1, at.lastIndexOf('/')));
      told = this.#data.fire(at, RECURSIVE, told);
    }
    return told;
  }

  /** Whether the watcher has a watch of this kind on the path. Undefined for a kind there is none of. */
  has(path: string, watcher: W, kind: number): boolean | undefined {
    const data = this.#data.modes(path, watcher);
    const children = this.#children.modes(path, watcher);
    switch (kind) {
      case watchKinds.children:
        return (children & ONE_SHOT) !== 0;
      case watchKinds.data:
        return (data & ONE_SHOT) !== 0;
      case watchKinds.any:
        return (data | children) !== 0;
      case watchKinds.persistent:
        return (data & PERSISTENT) !== 0;
      case watchKinds.recursive:
        return (data & RECURSIVE) !== 0;
      default:
        return undefined;
    }
  }

  remove(path: string, watcher: W, kind: number): void {
    const all = ONE_SHOT | PERSISTENT | RECURSIVE;
    const recursive = (this.#data.modes(path, watcher) & RECURSIVE) !== 0;
    if (kind === watchKinds.children) this.#children.remove(path, watcher, ONE_SHOT);
    if (kind === watchKinds.data) this.#data.remove(path, watcher, ONE_SHOT);
    if (kind === watchKinds.persistent) {
      this.#data.remove(path, watcher, PERSISTENT);
      this.#children.remove(path, watcher, PERSISTENT);
    }
    if (kind === watchKinds.recursive) this.#data.remove(path, watcher, RECURSIVE);
    if (kind === watchKinds.any) {
      this.#data.remove(path, watcher, all);
      this.#children.remove(path, watcher, all);
    }
    if (recursive && (this.#data.modes(path, watcher) & RECURSIVE) === 0) this.#recursiveCount--;
    this.#forgetUsedUp(path, [watcher]);
  }

  /**
   * The connection is gone: it counts no more, and no event is meant for it. A few watches go at once, the others bit
   * by bit with `sweep`; until then they are among those of their paths.
   */
  forget(watcher: W): void {
    const paths = this.#pathsOf.get(watcher);
    if (!paths) return;
    this.#pathsOf.delete(watcher);
    this.#left.push({ watcher, paths: paths.values() });
    if (this.#left.length === 1 && paths.size <= SWEPT_AT_ONCE) this.sweep();
  }

  /** Whether there are watches left of connections that are gone. */
  get hasLeft(): boolean {
    return this.#left.length > 0;
  }

  /** Removes some of them. */
  sweep(): void {
    for (let count = 0; count <= SWEPT_AT_ONCE; count++) {
      const gone = this.#left.first();
      if (!gone) return;
      const { value: path } = gone.paths.next();
      if (path === undefined) {
        this.#left.shift();
        continue;
      }
      this.#pathBytes -= path.length;
      this.remove(path, gone.watcher, watchKinds.any);
    }
  }

  /** The data table, which is what the four-letter words show. */
  dataWatches(): IterableIterator<[string, ReadonlyMap<W, number>]> {
    return this.#data.paths();
  }

  /** Those who watch anything in the data table. */
  dataWatchers(): IterableIterator<W> {
    return this.#data.watchers();
  }

  /** The paths that one watcher watches in the data table. */
  *dataPathsOf(watcher: W): IterableIterator<string> {
    for (const path of this.#pathsOf.get(watcher) ?? [])
      if (this.#data.modes(path, watcher) !== 0) yield path;
  }

  /** How many watch how many paths, in the data table. */
  dataSummary(): { readonly watcherCount: number; readonly pathCount: number; readonly watchCount: number } {
    const { watcherCount, pathCount, count: watchCount } = this.#data;
    return { watcherCount, pathCount, watchCount };
  }

  /** Without this, a connection that lives long would remember every path it ever watched. */
  #forgetUsedUp(path: string, watchers: Iterable<W>): void {
    for (const watcher of watchers) {
      if (this.#data.modes(path, watcher) !== 0 || this.#children.modes(path, watcher) !== 0) continue;
      const paths = this.#pathsOf.get(watcher);
      if (!paths?.delete(path)) continue;
      this.#pathBytes -= path.length;
      if (paths.size === 0) this.#pathsOf.delete(watcher);
    }
  }

  #add(table: Table<W>, path: string, watcher: W, mode: number): void {
    table.add(path, watcher, mode);
    const paths = this.#pathsOf.get(watcher) ?? new Set();
    if (!paths.has(path)) this.#pathBytes += path.length;
    this.#pathsOf.set(watcher, paths.add(path));
  }
}
