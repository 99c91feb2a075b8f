import { describe, expect, test } from 'vitest';
import type { Acl } from '../protocol/records.ts';
import {
  CONTAINER_OWNER,
  DataTree,
  kindOf,
  type Moment,
  statOf,
  type TreeChange,
  type TreeNode,
  ttlOf,
  ttlOwner,
  type Undo,
} from './data-tree.ts';
import { PathMap } from './path-map.ts';

const OPEN: readonly Acl[] = [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }];
const SESSION = 0x0100000000000007n;
const COUNT_MAX = 2 ** 31 - 1;

const at = (zxid: number): Moment => ({ zxid: BigInt(zxid), timeMs: 1_000 + zxid });
const create = (path: string, owner = 0n): TreeChange => ({
  kind: 'create',
  path,
  data: Buffer.from('data'),
  acl: OPEN,
  owner,
});
const remove = (path: string): TreeChange => ({ kind: 'delete', path });

/** Everything that can be told from outside, so that nothing is forgotten when it is compared. */
function everything(tree: DataTree): unknown {
  const nodes = [...tree.entries()].map(([path, node]) => [
    path,
    statOf(node),
    node.data,
    node.acl,
    node.owner,
  ]);
  return {
    nodes: nodes.sort(([a], [b]) => (String(a) < String(b) ? -1 : 1)),
    counters: [...tree.entries()].map(([path, { createCount }]) => `${path} ${createCount}`).sort(),
    children: [...tree.entries()]
      .map(([path, { children }]) => [path, [...(children ?? [])].sort()].join())
      .sort(),
    perishable: [...tree.perishable()].sort(),
    ephemerals: [...tree.sessionsWithEphemerals()].map(([id, paths]) => [id, [...paths].sort()]),
    dataBytes: tree.dataBytes,
    nodeCount: tree.nodeCount,
    ephemeralCount: tree.ephemeralCount,
  };
}

describe('a change taken back', () => {
  const before: TreeChange[] = [create('/a'), create('/a/b'), create('/e', SESSION)];
  test.each<[string, TreeChange[]]>([
    ['a create', [create('/c')]],
    ['the first child', [create('/a/b/c')]],
    ['an ephemeral node', [create('/a/e', SESSION)]],
    [
      'a container and a node with a time to live',
      [create('/k', CONTAINER_OWNER), create('/t', ttlOwner(5n))],
    ],
    ['a delete', [remove('/a/b')]],
    ['the delete of an ephemeral node', [remove('/e')]],
    ['data', [{ kind: 'set-data', path: '/a', data: Buffer.from('much longer data'), version: 1 }]],
    ['null data', [{ kind: 'set-data', path: '/a', data: null, version: 1 }]],
    ['an access list', [{ kind: 'set-acl', path: '/a', acl: [], aversion: 1 }]],
    [
      'several on one node',
      [create('/c'), create('/c/d'), remove('/c/d'), remove('/c'), create('/c', SESSION)],
    ],
  ])('leaves no trace: %s', (_what, changes) => {
    const tree = new DataTree();
    before.forEach((change, index) => void tree.apply(change, at(index + 1)));
    const expected = everything(tree);
    const undos: Undo[] = changes.map((change) => tree.apply(change, at(10)));
    expect(everything(tree)).not.toEqual(expected);
    for (const undo of undos.reverse()) undo();
    expect(everything(tree)).toEqual(expected);
  });
});

describe('the version of a child list', () => {
  test('counts creates and deletes, while sequence numbers count creates', () => {
    const tree = new DataTree();
    tree.apply(create('/a'), at(1));
    const parent = tree.get('/a')!;
    for (const name of ['x', 'y', 'z']) tree.apply(create(`/a/${name}`), at(2));
    tree.apply(remove('/a/x'), at(3));
    tree.apply(remove('/a/y'), at(4));
    expect(statOf(parent)).toMatchObject({ cversion: 5, numChildren: 1, pzxid: 4n, mzxid: 1n, version: 0 });
    expect(parent.createCount).toBe(3);
  });

  test('is below zero for nodes whose children were there from the start', () => {
    const tree = new DataTree();
    expect(statOf(tree.get('/')!).cversion).toBe(-1);
    expect(statOf(tree.get('/zookeeper')!).cversion).toBe(-2);
    expect(statOf(tree.get('/zookeeper/config')!).aversion).toBe(-1);
  });

  test('wraps to 32 bits', () => {
    const tree = treeWithCounterAt(COUNT_MAX);
    expect(statOf(tree.get('/a')!).cversion).toBe(-2);
  });
});

describe('the sequence counter', () => {
  test('stops at its end, and takes the pzxid of creates with it but not that of deletes', () => {
    const tree = treeWithCounterAt(COUNT_MAX - 1);
    const parent = tree.get('/a')!;
    tree.apply(create('/a/x'), at(2));
    expect(parent).toMatchObject({ createCount: COUNT_MAX, pzxid: 2n });
    tree.apply(create('/a/y'), at(3));
    expect(parent).toMatchObject({ createCount: COUNT_MAX, pzxid: 2n });
    tree.apply(remove('/a/y'), at(4));
    expect(parent).toMatchObject({ createCount: COUNT_MAX, pzxid: 4n });
  });
});

describe('the owner of a node', () => {
  test.each([
    [0n, 'persistent'],
    [CONTAINER_OWNER, 'container'],
    [ttlOwner(1n), 'ttl'],
    [ttlOwner(0xffffffffffn), 'ttl'],
    [SESSION, 'ephemeral'],
    [0x7effffffffffffffn, 'ephemeral'],
  ] as const)('%s means %s', (owner, kind) => {
    expect(kindOf(owner)).toBe(kind);
  });

  test('is shown only if it is a session', () => {
    const tree = new DataTree();
    tree.apply(create('/e', SESSION), at(1));
    tree.apply(create('/k', CONTAINER_OWNER), at(1));
    tree.apply(create('/t', ttlOwner(700n)), at(1));
    const ownerOf = (path: string) => statOf(tree.get(path)!).ephemeralOwner;
    expect(['/e', '/k', '/t'].map(ownerOf)).toEqual([SESSION, 0n, 0n]);
    expect(ttlOf(tree.get('/t')!.owner)).toBe(700n);
  });
});

test('the empty path is the root to those who do not check it', () => {
  const tree = new DataTree();
  expect(tree.get('')).toBe(tree.get('/'));
});

function treeWithCounterAt(createCount: number): DataTree {
  const tree = new DataTree();
  tree.apply(create('/a'), at(1));
  const node: TreeNode = { ...tree.get('/a')!, createCount };
  const nodes = new PathMap(tree.entries());
  nodes.set('/a', node);
  return new DataTree(nodes);
}
