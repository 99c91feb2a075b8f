import type { Acl } from '../../src/protocol/records.ts';
import type { DataTree } from '../../src/server/data-tree.ts';

/** How large the tree is that requests are asked of. */
export interface TreeSize {
  /** Nodes below `/many`, by the thousand. */
  readonly thousands: number;
  /** Children of `/names`. */
  readonly nameCount: number;
}

/** Nodes whose access lists are as long as they may be, each another one: `/guarded/0` and on. */
export const GUARDED_COUNT = 600;
/** How deep `deepPath` is. */
const DEPTH = 4_000;
/** The path of a node that is very far down. */
export const deepPath = '/deep'.concat('/d'.repeat(DEPTH));
/** Nodes that are watched by many, and written often: `/watched/0` and on. */
export const WATCHED_COUNT = 1_000;
export const watchedPath = (index: number): string => `/watched/${index}-${'w'.repeat(40)}`;

const OPEN: readonly Acl[] = [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }];

/** As many entries as fit into 16 KiB; only the last of them lets anyone in. */
function longAcl(index: number): readonly Acl[] {
  const others = Array.from({ length: 640 }, (_, entry) => ({
    perms: 31,
    id: { scheme: 'ip', id: `${10 + (index >> 8)}.${index & 0xff}.${entry >> 8}.${entry & 0xff}` },
  }));
  return [...others, { perms: 31, id: { scheme: 'ip', id: '127.0.0.1' } }];
}

/** Straight into the tree, since a million requests would take longer than all that is measured. */
export function growTree(tree: DataTree, zxid: bigint, { thousands, nameCount }: TreeSize): void {
  const make = (path: string, acl = OPEN) =>
    tree.apply({ kind: 'create', path, data: null, acl, owner: 0n }, { zxid, timeMs: 0 });
  for (const path of ['/many', '/names', '/guarded', '/watched', '/deep', '/home']) make(path);
  for (let thousand = 0; thousand < thousands; thousand++) {
    make(`/many/${thousand}`);
    for (let index = 1; index < 1_000; index++) make(`/many/${thousand}/${index}`);
  }
  for (let index = 0; index < nameCount; index++) make(`/names/name-${index}`);
  for (let index = 0; index < GUARDED_COUNT; index++) make(`/guarded/${index}`, longAcl(index));
  for (let index = 0; index < WATCHED_COUNT; index++) make(watchedPath(index));
  for (let depth = 1; depth <= DEPTH; depth++) make('/deep'.concat('/d'.repeat(depth)));
}
