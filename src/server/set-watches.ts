import type { operations } from '../protocol/operations.ts';
import type { ValueOf } from '../protocol/record.ts';
import type { DataTree } from './data-tree.ts';
import type { ServerConnection } from './server-connection.ts';
import { ITEMS_PER_STEP, type SlicedResult } from './sliced-work.ts';
import type { NodeChange, WatchTable } from './watch-table.ts';

interface Watched {
  readonly tree: DataTree;
  readonly watches: WatchTable<ServerConnection>;
}

type Lists = ValueOf<(typeof operations)['setWatches2']['request']>;

/**
 * Sets a client's watches again on a new connection, and returns what it has missed: a watch whose node changed
 * since `relativeZxid` fires instead of being set. Persistent ones do not say what they missed. Each path is looked at
 * by itself, so that others may have their turn in between.
 */
export function* restoreWatches(
  { tree, watches }: Watched,
  connection: ServerConnection,
  lists: Lists,
): SlicedResult<NodeChange[]> {
  const missed: NodeChange[] = [];
  const { relativeZxid } = lists;
  const restore: { readonly [K in Exclude<keyof Lists, 'relativeZxid'>]: (path: string) => void } = {
    dataWatches(path) {
      const node = tree.get(path);
      if (!node) missed.push({ type: 'node-deleted', path });
      else if (node.mzxid > relativeZxid) missed.push({ type: 'node-data-changed', path });
      else watches.watchData(path, connection);
    },
    existWatches(path) {
      if (tree.get(path)) missed.push({ type: 'node-created', path });
      else watches.watchData(path, connection);
    },
    childWatches(path) {
      const node = tree.get(path);
      if (!node) missed.push({ type: 'node-deleted', path });
      else if (node.pzxid > relativeZxid) missed.push({ type: 'node-children-changed', path });
      else watches.watchChildren(path, connection);
    },
    persistentWatches: (path) => watches.watchPersistently(path, connection),
    persistentRecursiveWatches: (path) => watches.watchRecursively(path, connection),
  };
  for (const [name, restoreOne] of Object.entries(restore)) {
    for (const [index, path] of lists[name as keyof typeof restore].entries()) {
      if (index % ITEMS_PER_STEP === ITEMS_PER_STEP - 1) yield;
      restoreOne(path);
    }
  }
  return missed;
}

/** How many watches that is, and how long their paths are together. */
export function sizeOf({ relativeZxid: _, ...lists }: Lists): {
  readonly count: number;
  readonly pathBytes: number;
} {
  let count = 0;
  let pathBytes = 0;
  for (const paths of Object.values(lists)) {
    count += paths.length;
    for (const path of paths) pathBytes += path.length;
  }
  return { count, pathBytes };
}
