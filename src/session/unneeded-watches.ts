import type { AddWatchMode, WatchType } from '../protocol/constants.ts';

/** The kinds of watches that a server tells apart. */
export type ServerWatch = 'data' | 'children' | AddWatchMode;

/** What still needs the server's watches on one path. */
export interface WatchNeeds {
  /** A listener is registered for this kind. */
  hasListener(kind: ServerWatch, path: string): boolean;
  /** A request under way asks for this kind, whether its listener is still wanted or not. */
  isRequested(kind: ServerWatch, path: string): boolean;
}

/**
 * Watches that the server has on this connection, or may have, although no listener needs them any more.
 *
 * A server removes what it has when it handles the removal, including what a request ahead of it has just set, and
 * servers before 3.9 remove a persistent watch together with any other watch on its path. So a watch is removed only
 * when no listener needs what would be removed with it, and no request under way asks for that. Until then it is
 * remembered here.
 */
export class UnneededWatches {
  readonly #needs: WatchNeeds;
  readonly #kindsOf = new Map<string, Set<ServerWatch>>();
  /** Paths of unneeded watches where something has changed that may have kept them from being removed. */
  readonly #changed = new Set<string>();

  constructor(needs: WatchNeeds) {
    this.#needs = needs;
  }

  /** The server may have a watch of this kind that no listener needs. */
  add(kind: ServerWatch, path: string): void {
    const present = this.#kindsOf.get(path);
    if (present) present.add(kind);
    else this.#kindsOf.set(path, new Set([kind]));
    this.#changed.add(path);
  }

  /** A listener or a request of this path is gone. */
  changed(path: string): void {
    if (this.#kindsOf.has(path)) this.#changed.add(path);
  }

  /** The connection is over, and every watch of the server with it. */
  clear(): void {
    this.#kindsOf.clear();
    this.#changed.clear();
  }

  /** What can be removed by now; each is returned once. */
  *removable(): Generator<{ readonly path: string; readonly type: WatchType }> {
    for (const path of this.#changed) {
      for (let type = this.take(path); type !== undefined; type = this.take(path)) yield { path, type };
    }
  }

  /** What one request can remove on this path by now. */
  take(path: string): WatchType | undefined {
    this.#changed.delete(path);
    const unneeded = this.#kindsOf.get(path);
    if (!unneeded) return undefined;
    for (const kind of unneeded) if (this.#needs.hasListener(kind, path)) unneeded.delete(kind);
    const type = this.#typeOf(path, unneeded);
    if (type === 'any') unneeded.clear();
    else if (type !== undefined) unneeded.delete(type);
    if (unneeded.size === 0) this.#kindsOf.delete(path);
    return type;
  }

  #typeOf(path: string, unneeded: ReadonlySet<ServerWatch>): 'data' | 'children' | 'any' | undefined {
    const isNeeded = (kind: ServerWatch) =>
      this.#needs.hasListener(kind, path) || this.#needs.isRequested(kind, path);
    if (unneeded.size === 0 || isNeeded('persistent') || isNeeded('persistent-recursive')) return undefined;
    const isOneShot = !unneeded.has('persistent') && !unneeded.has('persistent-recursive');
    const mayBeAny = !isOneShot || unneeded.size > 1;
    if (mayBeAny && !isNeeded('data') && !isNeeded('children')) return 'any';
    return (['data', 'children'] as const).find((kind) => unneeded.has(kind) && !isNeeded(kind));
  }
}
