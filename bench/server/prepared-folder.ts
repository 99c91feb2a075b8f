import { systemClock } from '../../src/base/clock.ts';
import { silentLog } from '../../src/base/log.ts';
import { systemRandom } from '../../src/base/random.ts';
import { DataTree } from '../../src/server/data-tree.ts';
import { DiskFolder } from '../../src/server/storage/disk-folder.ts';
import { Store } from '../../src/server/storage/store.ts';
import type { Transaction } from '../../src/server/transaction.ts';

const CHILDREN = 100;
const DATA_BYTES = 100;
const ACL = [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }];

/** Fills a folder with `nodeCount` nodes of 100 bytes, 100 below each parent: in a log, or in a snapshot. */
export async function prepareFolder(
  path: string,
  nodeCount: number,
  kept: 'log' | 'snapshot',
): Promise<DataTree> {
  const folder = await DiskFolder.open(path);
  const tree = new DataTree();
  let zxid = 1n << 32n;
  const options = { clock: systemClock, random: systemRandom, log: silentLog, firstZxid: () => zxid };
  const { store } = await Store.open(folder, {
    ...options,
    logBytesMax: kept === 'log' ? Infinity : 1 << 26,
  });
  store.serve({
    durable: () => {},
    storeFailed: (error) => {
      throw error;
    },
    storeMended: () => {},
    takeZxid: () => ++zxid,
    state: () => ({ zxid, sessions: [], nodes: tree.freeze() }),
  });
  const perform = (path: string) => {
    zxid++;
    const changes = [
      { kind: 'create', path, data: Buffer.alloc(DATA_BYTES, 120), acl: ACL, owner: 0n },
    ] as const;
    const transaction: Transaction = { kind: 'tree', zxid, timeMs: 1_700_000_000_000, changes };
    tree.apply(changes[0], transaction);
    store.append(transaction);
  };
  while (tree.nodeCount < nodeCount) {
    const parent = `/node-${tree.nodeCount}`;
    perform(parent);
    for (let child = 0; child < CHILDREN && tree.nodeCount < nodeCount; child++)
      perform(`${parent}/child-${String(child).padStart(10, '0')}`);
    if (tree.nodeCount % 10 < 1) await store.settled();
  }
  await store.settled();
  await store.close();
  if (kept === 'snapshot') await keepAsSnapshot(folder, tree, zxid);
  return tree;
}

/** Two snapshots, as a server that has run for long has them; nothing but empty logs since. */
async function keepAsSnapshot(folder: DiskFolder, tree: DataTree, last: bigint): Promise<void> {
  for (let round = 1n; round <= 2n; round++) {
    let zxid = last + (round << 32n);
    const options = { clock: systemClock, random: systemRandom, log: silentLog, firstZxid: () => zxid };
    const { store } = await Store.open(folder, { ...options, logBytesMax: 1 });
    store.serve({
      durable: () => {},
      storeFailed: (error) => {
        throw error;
      },
      storeMended: () => {},
      takeZxid: () => ++zxid,
      state: () => ({ zxid, sessions: [], nodes: tree.freeze() }),
    });
    zxid++;
    store.append({ kind: 'tree', zxid, timeMs: 1, changes: [] });
    await store.settled();
    await store.close();
  }
}
