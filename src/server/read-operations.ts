import { permissions } from '../protocol/constants.ts';
import type { MultiReadOp, MultiResult } from '../protocol/multi.ts';
import type { Acl, Stat } from '../protocol/records.ts';
import { type Identity, isAllowed, maskDigests, prepareAccess, Refusal } from './access.ts';
import { type DataTree, statOf, type TreeNode } from './data-tree.ts';
import { ITEMS_PER_STEP, type SlicedResult, type SlicedWork } from './sliced-work.ts';

/** Reads: they check no path syntax, since an odd path is just not there; the empty one is the root. */
export class ReadOperations {
  readonly #tree: DataTree;
  readonly #replyBytesMax: number;

  constructor(tree: DataTree, replyBytesMax: number) {
    this.#tree = tree;
    this.#replyBytesMax = replyBytesMax;
  }

  /** The node whose stat may be shown. */
  exists(path: string, identities: readonly Identity[]): TreeNode {
    if (path.includes('\0')) throw new Refusal('bad-arguments');
    return this.#readable(path, identities);
  }

  /** The node whose data may be shown. */
  getData(path: string, identities: readonly Identity[]): TreeNode {
    const node = this.#readable(path, identities);
    new Room(this.#replyBytesMax).take(node.data);
    return node;
  }

  /** The node whose children may be shown. */
  getChildren(path: string, identities: readonly Identity[]): TreeNode {
    const node = this.#readable(path, identities);
    new Room(this.#replyBytesMax).takeNames(node);
    return node;
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

  /** The session's own short-lived nodes, as they are at the first step. */
  *getEphemerals(sessionId: bigint, prefix: string): SlicedResult<string[]> {
    const room = new Room(this.#replyBytesMax);
    room.take(null);
    const found: string[] = [];
    for (const [index, path] of this.#tree.ephemeralsOf(sessionId).entries()) {
      if (index % ITEMS_PER_STEP === ITEMS_PER_STEP - 1) yield;
      if (!path.startsWith(prefix)) continue;
      room.takeName(path);
      found.push(path);
    }
    return found;
  }

  /** Looks up who may read what, so that `multiRead` need not: access lists may be long. */
  *prepare(ops: readonly MultiReadOp[], identities: readonly Identity[]): SlicedWork {
    for (const { request } of ops) {
      const node = this.#tree.get(request.path);
      if (node && prepareAccess(node.acl, identities)) yield;
    }
  }

  /** Each read succeeds or fails by itself, unless the answer to all of them would be too long. */
  multiRead(ops: readonly MultiReadOp[], identities: readonly Identity[]): MultiResult[] {
    const room = new Room(this.#replyBytesMax);
    return ops.map((op) => {
      const result = this.#multiReadOp(op, identities, room);
      if (result.kind === 'getData') room.take(result.data);
      return result;
    });
  }

  #multiReadOp({ op, request }: MultiReadOp, identities: readonly Identity[], room: Room): MultiResult {
    let node: TreeNode;
    try {
      if (op === 'getData') {
        node = this.getData(request.path, identities);
        return { kind: 'getData', data: node.data, stat: statOf(node) };
      }
      node = this.getChildren(request.path, identities);
    } catch (error) {
      if (error instanceof Refusal) return { kind: 'error', err: error.serverCode };
      throw error;
    }
    room.takeNames(node);
    return { kind: 'getChildren', children: childrenOf(node) };
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

/** The names of a node's children. */
export function childrenOf({ children }: TreeNode): readonly string[] {
  return children?.names() ?? [];
}

/** What a field takes besides its own bytes: its length, and in a multiRead also a header and a stat. */
const FIELD_BYTES = 4;
const RESULT_BYTES = 96;

/**
 * What is left of an answer's length. ZooKeeper sends answers of any length; most clients hang up on long ones and
 * ask again, for ever. Here the answer is an error instead, told before anything is copied.
 */
class Room {
  #bytes: number;

  constructor(bytes: number) {
    this.#bytes = bytes;
  }

  take(data: Uint8Array | null): void {
    this.#take(RESULT_BYTES + (data?.byteLength ?? 0));
  }

  /** The names of a node's children, which are counted already. */
  takeNames({ children }: TreeNode): void {
    this.#take(RESULT_BYTES + (children?.nameBytes ?? 0));
  }

  takeName(name: string): void {
    this.#take(FIELD_BYTES + Buffer.byteLength(name));
  }

  #take(bytes: number): void {
    this.#bytes -= bytes;
    if (this.#bytes < 0) throw new Refusal('marshalling-error');
  }
}
