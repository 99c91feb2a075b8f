import { permissions } from '../protocol/constants.ts';
import type { MultiReadOp, MultiResult } from '../protocol/multi.ts';
import type { Acl, Stat } from '../protocol/records.ts';
import { type Identity, isAllowed, maskDigests, Refusal } from './access.ts';
import { type DataTree, statOf, type TreeNode } from './data-tree.ts';

/** Reads: they check no path syntax, since an odd path is just not there; the empty one is the root. */
export class ReadOperations {
  readonly #tree: DataTree;

  constructor(tree: DataTree) {
    this.#tree = tree;
  }

  exists(path: string, identities: readonly Identity[]): Stat {
    if (path.includes('\0')) throw new Refusal('bad-arguments');
    return statOf(this.#readable(path, identities));
  }

  getData(path: string, identities: readonly Identity[]): { data: Uint8Array | null; stat: Stat } {
    const node = this.#readable(path, identities);
    return { data: node.data, stat: statOf(node) };
  }

  getChildren(path: string, identities: readonly Identity[]): { children: string[]; stat: Stat } {
    const node = this.#readable(path, identities);
    return { children: [...(node.children ?? [])], stat: statOf(node) };
  }

  getAcl(path: string, identities: readonly Identity[]): { acl: readonly Acl[]; stat: Stat } {
    const node = this.#node(path);
    if (!isAllowed(node.acl, permissions.read | permissions.admin, identities)) throw new Refusal('no-auth');
    const admin = isAllowed(node.acl, permissions.admin, identities);
    return { acl: admin ? node.acl : maskDigests(node.acl), stat: statOf(node) };
  }

  countDescendants(path: string, identities: readonly Identity[]): number {
    this.#readable(path, identities);
    // ZooKeeper counts what begins with the path and a slash: for the empty path that is the root itself too.
    return path === '' ? 1 + this.#tree.countDescendants('/') : this.#tree.countDescendants(path);
  }

  /** Each read succeeds or fails by itself. */
  multiRead(ops: readonly MultiReadOp[], identities: readonly Identity[]): MultiResult[] {
    return ops.map(({ op, request }) => {
      try {
        if (op === 'getData') return { kind: 'getData', ...this.getData(request.path, identities) };
        return { kind: 'getChildren', children: this.getChildren(request.path, identities).children };
      } catch (error) {
        if (error instanceof Refusal) return { kind: 'error', err: error.serverCode };
        throw error;
      }
    });
  }

  #node(path: string): TreeNode {
    const node = this.#tree.get(path);
    if (!node) throw new Refusal('no-node');
    return node;
  }

  #readable(path: string, identities: readonly Identity[]): TreeNode {
    const node = this.#node(path);
    if (!isAllowed(node.acl, permissions.read, identities)) throw new Refusal('no-auth');
    return node;
  }
}
