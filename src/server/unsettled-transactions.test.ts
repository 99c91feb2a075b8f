import { describe, expect, test } from 'vitest';
import type { TreeChange } from './data-tree.ts';
import type { Transaction } from './transaction.ts';
import { UnsettledTransactions } from './unsettled-transactions.ts';

const tree = (zxid: bigint, ...changes: TreeChange[]): Transaction => ({
  kind: 'tree',
  zxid,
  timeMs: 0,
  changes,
});
const create = (path: string): TreeChange => ({ kind: 'create', path, data: null, acl: [], owner: 0n });
const setData = (path: string): TreeChange => ({ kind: 'set-data', path, data: null, version: 1 });

describe('transactions that are not on disk', () => {
  test('show in the nodes they changed, and in those above where one came or went', () => {
    const unsettled = new UnsettledTransactions();
    unsettled.add(tree(5n, create('/a/b'), setData('/c/d')), () => {});
    expect(['/a/b', '/a', '/c/d'].every((path) => unsettled.changed(path))).toBe(true);
    expect(['/', '/c', '/a/b/x'].some((path) => unsettled.changed(path))).toBe(false);
    unsettled.add(
      {
        kind: 'close-session',
        zxid: 6n,
        timeMs: 0,
        sessionId: 1n,
        changes: [{ kind: 'delete', path: '/e' }],
      },
      () => {},
    );
    expect(unsettled.changed('/')).toBe(true);
  });

  test('show until the last that changed a node is on disk', () => {
    const unsettled = new UnsettledTransactions();
    unsettled.add(tree(5n, setData('/a')), () => {});
    unsettled.add(tree(7n, setData('/a')), () => {});
    expect(unsettled.settledZxid(9n)).toBe(4n);
    unsettled.settle(6n);
    expect(unsettled.changed('/a')).toBe(true);
    expect(unsettled.settledZxid(9n)).toBe(6n);
    unsettled.settle(7n);
    expect(unsettled.changed('/a')).toBe(false);
    expect(unsettled.settledZxid(9n)).toBe(9n);
    expect(unsettled.newestZxid).toBeUndefined();
  });

  test('are taken back newest first', () => {
    const unsettled = new UnsettledTransactions();
    const undone: number[] = [];
    unsettled.add(tree(1n, setData('/a')), () => undone.push(1));
    unsettled.add(tree(2n, setData('/a')), () => undone.push(2));
    unsettled.takeBack();
    expect(undone).toEqual([2, 1]);
    expect(unsettled.changed('/a')).toBe(false);
    expect(unsettled.newestZxid).toBeUndefined();
  });
});
