import { invariant } from '../base/assert.ts';
import { nameOf, parentOf } from '../protocol/paths.ts';
import type { Acl, Stat } from '../protocol/records.ts';
import { Children, linkChildren } from './children.ts';
import { FrozenNodes, type Stamped } from './frozen-nodes.ts';
import { PathMap } from './path-map.ts';

/** The owner of a container, which is shown to clients as nobody. */
export const CONTAINER_OWNER = -0x8000000000000000n;
/** Owners of nodes with a time to live have this top byte and the time below it. */
const TTL_OWNER = -0x100000000000000n;
const TTL_MASK = 0xffffffffffn;
const COUNT_MAX = 2 ** 31 - 1;

/** Who a node belongs to: nobody, a session, a container or a time to live. */
export type NodeKind = 'persistent' | 'ephemeral' | 'container' | 'ttl';

export function ttlOwner(ttlMs: bigint): bigint {
  return TTL_OWNER | ttlMs;
}

export function ttlOf(owner: bigint): bigint {
  return owner & TTL_MASK;
}

export function kindOf(owner: bigint): NodeKind {
  if (owner === 0n) return 'persistent';
  if (owner === CONTAINER_OWNER) return 'container';
  return owner >> 56n === -1n ? 'ttl' : 'ephemeral';
}

export interface TreeNode extends Stamped {
  data: Uint8Array | null;
  acl: readonly Acl[];
  readonly czxid: bigint;
  mzxid: bigint;
  pzxid: bigint;
  readonly ctimeMs: number;
  mtimeMs: number;
  version: number;
  /** How many children were ever made: the next sequence number. Not what clients see as cversion. */
  createCount: number;
  aversion: number;
  readonly owner: bigint;
  children: Children | undefined;
  /** The transaction that changed anything of it last: data, access list, who its children are. Not kept on disk. */
  changedZxid: bigint;
}

/** One change of the tree, checked beforehand: what is logged, and replayed after a restart. */
export type TreeChange =
  | {
      readonly kind: 'create';
      readonly path: string;
      readonly data: Uint8Array | null;
      readonly acl: readonly Acl[];
      readonly owner: bigint;
    }
  | { readonly kind: 'delete'; readonly path: string }
  | {
      readonly kind: 'set-data';
      readonly path: string;
      readonly data: Uint8Array | null;
      readonly version: number;
    }
  | {
      readonly kind: 'set-acl';
      readonly path: string;
      readonly acl: readonly Acl[];
      readonly aversion: number;
    };

/** When a change happened: the transaction's number, and the wall clock, which only stats show. */
export interface Moment {
  readonly zxid: bigint;
  readonly timeMs: number;
}

/** Takes a change back, if it is the newest one that has not been taken back. */
export type Undo = () => void;

/**
 * The nodes. Knows how the tree changes and nothing of who may change it: whatever is applied has been checked.
 *
 * Each change can be taken back, newest first. That is how a `multi` is all or nothing although each of its
 * operations sees the ones before it, and how a write that the disk refused never happened.
 */
export class DataTree {
  readonly #nodes: PathMap<TreeNode>;
  readonly #ephemerals = new Map<bigint, Set<string>>();
  /** Containers and nodes with a time to live: what may be removed by itself. */
  readonly #perishable = new Set<string>();
  #dataBytes = 0;
  #aclBytes = 0;
  #ephemeralCount = 0;
  #longAclCount = 0;
  #frozen: FrozenNodes<TreeNode> | undefined;
  #stamp = 0;

  /** The nodes given are the tree's from now on. */
  constructor(nodes: PathMap<TreeNode> = initialNodes()) {
    this.#nodes = nodes;
    for (const [path, node] of nodes) this.#account(path, node, 1);
  }

  /** The empty path is the root too, to those who ask without checking their path. */
  get(path: string): TreeNode | undefined {
    return this.#nodes.get(path === '' ? '/' : path);
  }

  get nodeCount(): number {
    return this.#nodes.size;
  }

  get dataBytes(): number {
    return this.#dataBytes;
  }

  /** What access lists take, which ZooKeeper does not count with the data. */
  get aclBytes(): number {
    return this.#aclBytes;
  }

  /** Nodes whose access list takes a while to look through. */
  get longAclCount(): number {
    return this.#longAclCount;
  }

  get ephemeralCount(): number {
    return this.#ephemeralCount;
  }

  entries(): IterableIterator<[string, TreeNode]> {
    return this.#nodes[Symbol.iterator]();
  }

  /**
   * The nodes as they are now: later changes do not show, and nothing is copied but what they touch. One at a time,
   * and to be released. Who their children are is said by their paths.
   */
  freeze(): FrozenNodes<TreeNode> {
    invariant(!this.#frozen, 'the tree is pictured once at a time');
    this.#stamp++;
    this.#frozen = new FrozenNodes(this.#nodes, this.#stamp, () => {
      this.#frozen = undefined;
    });
    return this.#frozen;
  }

  ephemeralsOf(sessionId: bigint): readonly string[] {
    return [...(this.#ephemerals.get(sessionId) ?? [])];
  }

  /** The first of a session's ephemeral nodes, as many as this at most. */
  firstEphemeralsOf(sessionId: bigint, countMax: number): readonly string[] {
    const paths: string[] = [];
    for (const path of this.#ephemerals.get(sessionId) ?? []) {
      if (paths.length === countMax) break;
      paths.push(path);
    }
    return paths;
  }

  hasEphemerals(sessionId: bigint): boolean {
    return this.#ephemerals.has(sessionId);
  }

  sessionsWithEphemerals(): IterableIterator<[bigint, ReadonlySet<string>]> {
    return this.#ephemerals.entries();
  }

  perishable(): IterableIterator<string> {
    return this.#perishable.values();
  }

  /** How many nodes are below this one, at any depth. */
  countDescendants(path: string): number {
    return this.#nodes.get(path)?.children?.descendantCount ?? 0;
  }

  apply(change: TreeChange, moment: Moment): Undo {
    switch (change.kind) {
      case 'create':
        return this.#create(change, moment);
      case 'delete':
        return this.#delete(change.path, moment);
      case 'set-data':
        return this.#setData(change, moment);
      case 'set-acl':
        return this.#setAcl(change, moment);
    }
  }

  #create(change: Extract<TreeChange, { kind: 'create' }>, { zxid, timeMs }: Moment): Undo {
    const { path, data, acl, owner } = change;
    const parentPath = parentOf(path);
    const name = nameOf(path);
    const parent = this.#parent(parentPath, path);
    const { createCount, pzxid, changedZxid } = parent;
    this.#frozen?.keep(parentPath, parent);
    const node: TreeNode = {
      data,
      acl,
      czxid: zxid,
      mzxid: zxid,
      pzxid: zxid,
      ctimeMs: timeMs,
      mtimeMs: timeMs,
      version: 0,
      createCount: 0,
      aversion: 0,
      owner,
      children: undefined,
      changedZxid: zxid,
      stamp: this.#stamp, // No picture that was begun earlier may show it.
    };
    invariant(!this.#nodes.has(path), `${path} is made once`);
    this.#nodes.set(path, node);
    parent.children ??= new Children(parentPath, this.#childrenAbove(parentPath));
    parent.children.add(name);
    parent.changedZxid = zxid;
    this.#account(path, node, 1);
    // At its end the counter stays where it is, and takes the parent's pzxid with it (ZooKeeper 3.6 and later).
    if (createCount < COUNT_MAX) {
      parent.createCount = createCount + 1;
      parent.pzxid = zxid;
    }
    return () => {
      this.#frozen?.keep(path, node);
      this.#frozen?.keep(parentPath, parent);
      this.#nodes.delete(path);
      parent.children!.delete(name);
      this.#account(path, node, -1);
      parent.createCount = createCount;
      parent.pzxid = pzxid;
      parent.changedZxid = changedZxid;
    };
  }

  #delete(path: string, { zxid }: Moment): Undo {
    const node = this.#nodes.get(path);
    invariant(node, `${path} is there to be deleted`);
    const parentPath = parentOf(path);
    const name = nameOf(path);
    const parent = this.#parent(parentPath, path);
    const { pzxid, changedZxid } = parent;
    this.#frozen?.keep(path, node);
    this.#frozen?.keep(parentPath, parent);
    this.#nodes.delete(path);
    parent.children!.delete(name);
    parent.pzxid = zxid;
    parent.changedZxid = zxid;
    this.#account(path, node, -1);
    return () => {
      // A picture begun since the deletion must not show it.
      node.stamp = this.#stamp;
      this.#frozen?.keep(parentPath, parent);
      this.#nodes.set(path, node);
      parent.children!.add(name);
      parent.pzxid = pzxid;
      parent.changedZxid = changedZxid;
      this.#account(path, node, 1);
    };
  }

  #setData(change: Extract<TreeChange, { kind: 'set-data' }>, { zxid, timeMs }: Moment): Undo {
    const node = this.#nodes.get(change.path);
    invariant(node, `${change.path} is there to be written`);
    const { data, version, mzxid, mtimeMs, changedZxid } = node;
    this.#frozen?.keep(change.path, node);
    this.#dataBytes += (change.data?.byteLength ?? 0) - (data?.byteLength ?? 0);
    node.data = change.data;
    node.version = change.version;
    node.mzxid = zxid;
    node.mtimeMs = timeMs;
    node.changedZxid = zxid;
    return () => {
      this.#frozen?.keep(change.path, node);
      this.#dataBytes -= (change.data?.byteLength ?? 0) - (data?.byteLength ?? 0);
      Object.assign(node, { data, version, mzxid, mtimeMs, changedZxid });
    };
  }

  #setAcl(change: Extract<TreeChange, { kind: 'set-acl' }>, { zxid }: Moment): Undo {
    const node = this.#nodes.get(change.path);
    invariant(node, `${change.path} is there to be protected`);
    const { acl, aversion, changedZxid } = node;
    const growth = aclBytesOf(change.acl) - aclBytesOf(acl);
    const longGrowth = Number(isLong(change.acl)) - Number(isLong(acl));
    this.#aclBytes += growth;
    this.#longAclCount += longGrowth;
    this.#frozen?.keep(change.path, node);
    Object.assign(node, { acl: change.acl, aversion: change.aversion, changedZxid: zxid });
    return () => {
      this.#aclBytes -= growth;
      this.#longAclCount -= longGrowth;
      this.#frozen?.keep(change.path, node);
      Object.assign(node, { acl, aversion, changedZxid });
    };
  }

  #parent(parentPath: string, path: string): TreeNode {
    const parent = this.#nodes.get(parentPath);
    invariant(parent, `${path} has a parent`);
    return parent;
  }

  /** Those that the node of this path is one of. */
  #childrenAbove(path: string): Children | undefined {
    return path === '/' ? undefined : this.#nodes.get(parentOf(path))?.children;
  }

  #account(path: string, node: TreeNode, sign: 1 | -1): void {
    this.#dataBytes += sign * (path.length + (node.data?.byteLength ?? 0));
    this.#aclBytes += sign * aclBytesOf(node.acl);
    if (isLong(node.acl)) this.#longAclCount += sign;
    switch (kindOf(node.owner)) {
      case 'persistent':
        return;
      case 'container':
      case 'ttl':
        if (sign === 1) this.#perishable.add(path);
        else this.#perishable.delete(path);
        return;
      case 'ephemeral': {
        const paths = this.#ephemerals.get(node.owner) ?? new Set();
        this.#ephemeralCount += sign;
        if (sign === 1) this.#ephemerals.set(node.owner, paths.add(path));
        else if (paths.delete(path) && paths.size === 0) this.#ephemerals.delete(node.owner);
      }
    }
  }
}

const ACL_ENTRY_BYTES = 12;

/** Longer lists are measured once. */
const ACL_LENGTH_SHORT = 8;
const measuredAcls = new WeakMap<readonly Acl[], number>();

function isLong(acl: readonly Acl[]): boolean {
  return acl.length > ACL_LENGTH_SHORT;
}

/** About what an access list takes in a frame. Lists are never changed in place. */
export function aclBytesOf(acl: readonly Acl[]): number {
  if (!isLong(acl)) return measure(acl);
  let bytes = measuredAcls.get(acl);
  if (bytes === undefined) {
    bytes = measure(acl);
    measuredAcls.set(acl, bytes);
  }
  return bytes;
}

function measure(acl: readonly Acl[]): number {
  let bytes = 0;
  for (const { id } of acl) bytes += ACL_ENTRY_BYTES + id.scheme.length + (id.id?.length ?? 0);
  return bytes;
}

/** A node's stat as clients see it. */
export function statOf(node: TreeNode): Stat {
  const childCount = node.children?.size ?? 0;
  return {
    czxid: node.czxid,
    mzxid: node.mzxid,
    ctime: BigInt(node.ctimeMs),
    mtime: BigInt(node.mtimeMs),
    version: node.version,
    // Creates and deletes together: what goes over the wire is not the counter that numbers children.
    cversion: (2 * node.createCount - childCount) | 0,
    aversion: node.aversion,
    ephemeralOwner: kindOf(node.owner) === 'ephemeral' ? node.owner : 0n,
    dataLength: node.data?.byteLength ?? 0,
    numChildren: childCount,
    pzxid: node.pzxid,
  };
}

const OPEN: readonly Acl[] = [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }];
const READ_ONLY: readonly Acl[] = [{ perms: 1, id: { scheme: 'world', id: 'anyone' } }];

function initialNodes(): PathMap<TreeNode> {
  const node = (rest: Partial<TreeNode> = {}): TreeNode => ({
    data: Buffer.alloc(0),
    acl: OPEN,
    czxid: 0n,
    mzxid: 0n,
    pzxid: 0n,
    ctimeMs: 0,
    mtimeMs: 0,
    version: 0,
    createCount: 0,
    aversion: 0,
    owner: 0n,
    children: undefined,
    changedZxid: 0n,
    stamp: 0,
    ...rest,
  });
  const nodes = new PathMap([
    ['/', node()],
    ['/zookeeper', node()],
    ['/zookeeper/config', node({ acl: READ_ONLY, aversion: -1 })],
    ['/zookeeper/quota', node()],
  ]);
  linkChildren(nodes);
  return nodes;
}
