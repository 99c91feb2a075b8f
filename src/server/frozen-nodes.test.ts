import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { seededRandom } from '../base/random.ts';
import { DataTree, type TreeNode, type Undo } from './data-tree.ts';
import { decodeSnapshot, encodeSnapshot } from './storage/snapshot-format.ts';
import { OPEN_ACL, Owner, picturesOf } from './storage/store.test-data.ts';

/** Changes the tree at random; now and then the newest changes are taken back, newest first. */
class Changer {
  readonly #owner: Owner;
  readonly #undos: Undo[] = [];
  readonly #random: ReturnType<typeof seededRandom>;

  constructor(tree: DataTree, seed: number) {
    this.#owner = new Owner({ tree, sessions: new Map(), zxid: 0n, usedZxid: 0n, logBytes: 0, logCount: 0 });
    this.#random = seededRandom(seed);
  }

  change(): void {
    if (this.#random.u32() % 4 === 0 && this.#undos.length > 0) {
      for (let count = this.#random.u32() % 4; count >= 0; count--) this.#undos.pop()?.();
      return;
    }
    const transaction = this.#owner.next(this.#random);
    if (transaction.kind === 'open-session') {
      const { sessionId: id, password, timeoutMs } = transaction;
      this.#owner.sessions.set(id, { id, password, timeoutMs });
    }
    if (transaction.kind !== 'tree') return;
    for (const change of transaction.changes) this.#undos.push(this.#owner.tree.apply(change, transaction));
  }
}

/** What is kept of each node: all but its children, which the others' paths tell. */
function keptOf(nodes: Iterable<readonly [string, TreeNode]>): string[] {
  return picturesOf(Array.from(nodes, ([path, node]) => [path, { ...node, children: undefined }] as const));
}

describe('the frozen nodes of a tree', { timeout: 60_000 }, () => {
  const changes = fc.record({ seed: fc.nat(), before: fc.nat(60), during: fc.nat(5) });

  test('are those of when it was frozen, whatever is changed and taken back while they are walked through', () => {
    fc.assert(
      fc.property(changes, ({ seed, before, during }) => {
        const tree = new DataTree();
        const changer = new Changer(tree, seed);
        for (let count = 0; count < before; count++) changer.change();
        for (let round = 0; round < 3; round++) {
          const expected = keptOf(tree.entries());
          const frozen = tree.freeze();
          const walked: string[] = [];
          for (const entry of frozen) {
            walked.push(...keptOf([entry]));
            for (let count = 0; count < during; count++) changer.change();
          }
          frozen.release();
          expect(walked.sort()).toEqual(expected);
          expect(walked).toHaveLength(frozen.nodeCount);
        }
      }),
      { numRuns: 300 },
    );
  });

  test('make a snapshot that gives the tree of that moment back, children and all', () => {
    fc.assert(
      fc.property(changes, ({ seed, before, during }) => {
        const tree = new DataTree();
        const changer = new Changer(tree, seed);
        const random = seededRandom(seed);
        // Enough for several chunks, so that there is something in between.
        for (let index = 0; index < 2_500; index++) {
          const create = { kind: 'create', path: `/${index}`, data: null, acl: OPEN_ACL, owner: 0n } as const;
          tree.apply(create, { zxid: 1n, timeMs: 1 });
        }
        for (let count = 0; count < before; count++) changer.change();
        const expected = picturesOf(tree.entries());
        const nodes = tree.freeze();
        const parts: Buffer[] = [];
        for (const part of encodeSnapshot({ zxid: 5n, sessions: [], nodes })) {
          parts.push(Buffer.from(part));
          for (let count = 0; count < during * 5; count++) changer.change();
          // Many at once, so that whichever comes next is likely to be among them.
          for (const [path, { version }] of [...tree.entries()].filter(() => random.u32() % 3 === 0))
            tree.apply({ kind: 'set-data', path, data: part, version: version + 1 }, { zxid: 9n, timeMs: 9 });
        }
        nodes.release();
        expect(parts.length).toBeGreaterThan(7);
        const loaded = decodeSnapshot('snapshot', Buffer.concat(parts));
        expect(picturesOf(new DataTree(loaded.nodes).entries())).toEqual(expected);
      }),
      { numRuns: 10 },
    );
  });

  test('keep their times and access lists in a snapshot', () => {
    const tree = new DataTree();
    // Times on either side of where a half of the 64 bits is full; lists that are equal, shared, or neither.
    const times = [0, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 1_700_000_000_123, 2 ** 52 + 1];
    for (const [index, timeMs] of times.entries()) {
      const acl = index % 2 === 0 ? OPEN_ACL : [{ perms: index % 3, id: { scheme: 'world', id: 'anyone' } }];
      const create = { kind: 'create', path: `/${index}`, data: null, acl, owner: 0n } as const;
      tree.apply(create, { zxid: 1n, timeMs });
    }
    const nodes = tree.freeze();
    const parts = Array.from(encodeSnapshot({ zxid: 5n, sessions: [], nodes }), (part) => Buffer.from(part));
    const loaded = decodeSnapshot('snapshot', Buffer.concat(parts));
    expect(picturesOf(loaded.nodes)).toEqual(picturesOf(tree.entries()));
    expect(times.map((_, index) => loaded.nodes.get(`/${index}`)!.ctimeMs)).toEqual(times);
  });

  test('are kept no longer than until they are released', () => {
    const tree = new DataTree();
    const frozen = tree.freeze();
    frozen.release();
    tree.apply({ kind: 'delete', path: '/zookeeper/quota' }, { zxid: 1n, timeMs: 1 });
    expect([...frozen].map(([path]) => path)).not.toContain('/zookeeper/quota');
    expect(keptOf(tree.freeze())).toEqual(keptOf(tree.entries()));
  });
});
