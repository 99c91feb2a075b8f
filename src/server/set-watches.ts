import type { operations } from '../protocol/operations.ts';
import type { ValueOf } from '../protocol/record.ts';
import type { DataTree } from './data-tree.ts';
import type { ServerConnection } from './server-connection.ts';
import type { NodeChange, WatchTable } from './watch-table.ts';

interface Watched {
  readonly tree: DataTree;
  readonly watches: WatchTable<ServerConnection>;
}

/**
 * Sets a client's watches again on a new connection, and returns what it has missed: a watch whose node changed
 * since `relativeZxid` fires instead of being set. Persistent ones do not say what they missed.
 */
export function restoreWatches(
  { tree, watches }: Watched,
  connection: ServerConnection,
  lists: ValueOf<(typeof operations)['setWatches2']['request']>,
): NodeChange[] {
  const missed: NodeChange[] = [];
  const { relativeZxid } = lists;
  for (const path of lists.dataWatches) {
    const node = tree.get(path);
    if (!node) missed.push({ type: 'node-deleted', path });
    else if (node.mzxid > relativeZxid) missed.push({ type: 'node-data-changed', path });
    else watches.watchData(path, connection);
  }
  for (const path of lists.existWatches) {
    if (tree.get(path)) missed.push({ type: 'node-created', path });
    else watches.watchData(path, connection);
  }
  for (const path of lists.childWatches) {
    const node = tree.get(path);
    if (!node) missed.push({ type: 'node-deleted', path });
    else if (node.pzxid > relativeZxid) missed.push({ type: 'node-children-changed', path });
    else watches.watchChildren(path, connection);
  }
  for (const path of lists.persistentWatches) watches.watchPersistently(path, connection);
  for (const path of lists.persistentRecursiveWatches) watches.watchRecursively(path, connection);
  return missed;
}
