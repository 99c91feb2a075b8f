import { addWatchModes, permissions } from '../protocol/constants.ts';
import type { operations } from '../protocol/operations.ts';
import type { ValueOf } from '../protocol/record.ts';
import { isAllowed, prepareAccess, Refusal } from './access.ts';
import type { TreeNode } from './data-tree.ts';
import type { ServerConnection } from './server-connection.ts';
import type { ServerState } from './server-state.ts';
import { ITEMS_PER_STEP, type SlicedResult } from './sliced-work.ts';
import type { NodeChange } from './watch-table.ts';

type Req<O extends keyof typeof operations> = ValueOf<(typeof operations)[O]['request']>;
type Lists = Req<'setWatches2'>;

/** Sets, finds and removes the watches of a connection, as far as there is room for them. */
export class WatchRequests {
  readonly #state: ServerState;
  /** Watches that are being set in steps: there is to be room for all of them. */
  #comingCount = 0;

  constructor(state: ServerState) {
    this.#state = state;
  }

  watchData(connection: ServerConnection, path: string): void {
    this.#makeRoom(connection, 1, path.length);
    this.#state.watches.watchData(path, connection);
  }

  watchChildren(connection: ServerConnection, path: string): void {
    this.#makeRoom(connection, 1, path.length);
    this.#state.watches.watchChildren(path, connection);
  }

  add(connection: ServerConnection, { path, mode }: Req<'addWatch'>): void {
    const recursive = mode === addWatchModes['persistent-recursive'];
    if (!recursive && mode !== addWatchModes.persistent) throw new Refusal('marshalling-error');
    this.#makeRoom(connection, 1, path.length);
    if (recursive) this.#state.watches.watchRecursively(path, connection);
    else this.#state.watches.watchPersistently(path, connection);
  }

  check(connection: ServerConnection, { path, type }: Req<'checkWatches'>): void {
    const has = this.#state.watches.has(path, connection, type);
    if (has === undefined) throw new Refusal('marshalling-error');
    if (!has) throw new Refusal('no-watcher');
  }

  remove(connection: ServerConnection, request: Req<'removeWatches'>): void {
    this.check(connection, request);
    this.#state.watches.remove(request.path, connection, request.type);
  }

  /**
   * Sets a client's watches again on a new connection, and returns the events that it missed: a watch whose node
   * changed since `relativeZxid` fires instead of being set. Persistent ones do not say what they missed. Each path is
   * looked at by itself, so that others may have their turn in between.
   *
   * As with live events, nothing is reported of a node that the connection may not read: its watch is set, whatever has
   * happened, so that `relativeZxid` cannot be used to search for the time of a write. That a node is absent is reported
   * whoever asks, since its access list is gone with it, and every `exists` is told as much.
   */
  *restore(connection: ServerConnection, lists: Lists): SlicedResult<NodeChange[]> {
    const { tree, watches } = this.#state;
    const missed: NodeChange[] = [];
    const { relativeZxid, ...pathLists } = lists;
    const mayRead = ({ acl }: TreeNode) => isAllowed(acl, permissions.read, connection.identities);
    const restore: { readonly [K in keyof typeof pathLists]: (path: string) => void } = {
      dataWatches(path) {
        const node = tree.get(path);
        if (!node) missed.push({ type: 'node-deleted', path });
        else if (node.mzxid > relativeZxid && mayRead(node)) missed.push({ type: 'node-data-changed', path });
        else watches.watchData(path, connection);
      },
      existWatches(path) {
        const node = tree.get(path);
        if (node && mayRead(node)) missed.push({ type: 'node-created', path });
        else watches.watchData(path, connection);
      },
      childWatches(path) {
        const node = tree.get(path);
        if (!node) missed.push({ type: 'node-deleted', path });
        else if (node.pzxid > relativeZxid && mayRead(node))
          missed.push({ type: 'node-children-changed', path });
        else watches.watchChildren(path, connection);
      },
      persistentWatches: (path) => watches.watchPersistently(path, connection),
      persistentRecursiveWatches: (path) => watches.watchRecursively(path, connection),
    };
    let count = 0;
    let pathBytes = 0;
    for (const paths of Object.values(pathLists)) {
      count += paths.length;
      for (const path of paths) pathBytes += path.length;
    }
    this.#makeRoom(connection, count, pathBytes);
    this.#comingCount += count;
    try {
      for (const [name, restoreOne] of Object.entries(restore)) {
        for (const [index, path] of lists[name as keyof typeof restore].entries()) {
          const acl = tree.get(path)?.acl;
          const isSlow = acl !== undefined && prepareAccess(acl, connection.identities);
          if (isSlow || index % ITEMS_PER_STEP === ITEMS_PER_STEP - 1) yield;
          restoreOne(path);
        }
      }
    } finally {
      this.#comingCount -= count;
    }
    return missed;
  }

  #makeRoom(connection: ServerConnection, count: number, pathBytes: number): void {
    const { watches, limits } = this.#state;
    if (
      watches.count + this.#comingCount + count > limits.watchesMax ||
      watches.countOf(connection) + count > limits.watchesPerConnectionMax ||
      watches.pathBytes + pathBytes > limits.watchBytesMax
    ) {
      throw new Refusal('throttled-op');
    }
  }
}
