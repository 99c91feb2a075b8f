import { describe, expect, test } from 'vitest';
import { DataTree, type TreeChange, type TreeNode } from './data-tree.ts';
import { StillClock } from './memory-client.test-data.ts';
import { TransactionLog } from './transaction-log.ts';

const create = (path: string): TreeChange => ({ kind: 'create', path, data: null, acl: [], owner: 0n });
const setData = (path: string): TreeChange => ({ kind: 'set-data', path, data: null, version: 1 });
const setAcl = (path: string): TreeChange => ({ kind: 'set-acl', path, acl: [], aversion: 1 });
const remove = (path: string): TreeChange => ({ kind: 'delete', path });

const emptyLog = () => new TransactionLog(new StillClock(), 0n, { append: () => {} });
const transaction = (zxid: bigint) => ({ kind: 'tree', zxid, timeMs: 0, changes: [] }) as const;

/** A tree with /a, /c and /c/d, and whatever is done to it that is not on disk. */
function unsettledTree() {
  const tree = new DataTree();
  const log = emptyLog();
  for (const path of ['/a', '/c', '/c/d']) tree.apply(create(path), { zxid: 1n, timeMs: 0 });
  return {
    log,
    add(zxid: bigint, ...changes: TreeChange[]): void {
      const undos = changes.map((change) => tree.apply(change, { zxid, timeMs: 0 }));
      log.append(transaction(zxid), () => {
        for (const undo of undos.reverse()) undo();
      });
    },
    shownBy: (path: string) => log.lastToChange(tree.get(path) as TreeNode),
  };
}

describe('transactions that are not on disk', () => {
  test('show in the nodes they changed, and in those above where one came or went', () => {
    const { add, shownBy } = unsettledTree();
    add(5n, create('/a/b'), setData('/c/d'));
    expect(['/a/b', '/a', '/c/d'].map(shownBy)).toEqual([5n, 5n, 5n]);
    expect(['/', '/c'].map(shownBy)).toEqual([undefined, undefined]);
    add(6n, remove('/c/d'));
    add(7n, setAcl('/'));
    expect(['/c', '/', '/a'].map(shownBy)).toEqual([6n, 7n, 5n]);
  });

  test('show until the last that changed a node is on disk', () => {
    const { log, add, shownBy } = unsettledTree();
    add(5n, setData('/a'));
    add(7n, setData('/a'));
    add(8n, setData('/c'));
    expect(shownBy('/a')).toBe(7n);
    expect(log.settledZxid(9n)).toBe(4n);
    log.settle(6n);
    expect(shownBy('/a')).toBe(7n);
    expect(log.settledZxid(9n)).toBe(6n);
    log.settle(7n);
    expect(shownBy('/a')).toBeUndefined();
    expect(log.newestZxid).toBe(8n);
    log.settle(8n);
    expect(log.settledZxid(9n)).toBe(9n);
    expect(log.newestZxid).toBeUndefined();
  });

  test.each([
    ['create', create('/a/b'), '/a'],
    ['delete', remove('/c/d'), '/c'],
    ['set-data', setData('/a'), '/a'],
    ['set-acl', setAcl('/a'), '/a'],
  ])('a %s that is taken back shows no more, though others are not on disk', (_, change, path) => {
    const tree = new DataTree();
    const log = emptyLog();
    for (const each of ['/a', '/c', '/c/d']) tree.apply(create(each), { zxid: 1n, timeMs: 0 });
    log.append(transaction(2n), tree.apply(setData('/'), { zxid: 2n, timeMs: 0 }));
    // As of a multi whose second half is refused: nobody would ever be told that it is on disk.
    tree.apply(change, { zxid: 3n, timeMs: 0 })();
    expect(log.lastToChange(tree.get(path) as TreeNode)).toBeUndefined();
  });

  test('are taken back newest first', () => {
    const log = emptyLog();
    const undone: number[] = [];
    log.append(transaction(1n), () => undone.push(1));
    log.append(transaction(2n), () => undone.push(2));
    log.takeBack('no space left on device');
    expect(undone).toEqual([2, 1]);
    expect(log.newestZxid).toBeUndefined();
  });
});
