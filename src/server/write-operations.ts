import { createFlags, permissions, TTL_MS_MAX } from '../protocol/constants.ts';
import { errorCodes } from '../protocol/error-codes.ts';
import type { MultiOp, MultiResult } from '../protocol/multi.ts';
import { parentOf, pathFault } from '../protocol/paths.ts';
import type { Acl, Stat } from '../protocol/records.ts';
import { type Identity, isAllowed, normalizeAcl, prepareAccess, Refusal } from './access.ts';
import {
  aclBytesOf,
  CONTAINER_OWNER,
  type DataTree,
  kindOf,
  type Moment,
  statOf,
  type TreeChange,
  type TreeNode,
  ttlOwner,
  type Undo,
} from './data-tree.ts';
import type { ServerLimits } from './server-limits.ts';
import { SharedAcls } from './shared-acls.ts';
import type { SlicedWork } from './sliced-work.ts';
import type { NodeChange } from './watch-table.ts';

/** Who asks, and for what session: all that a write may depend on besides the tree. */
export interface Asker {
  readonly sessionId: bigint;
  readonly identities: readonly Identity[];
}

type WriteLimits = ServerLimits & { readonly ttlNodes: boolean };

/** A node event with the access list that decides who may hear of it. */
export interface Happening extends NodeChange {
  readonly acl: readonly Acl[];
}

/** What a write did: for the log, for the watchers, and for taking it back. */
export interface Written<R> {
  readonly result: R;
  readonly changes: readonly TreeChange[];
  readonly happenings: readonly Happening[];
  readonly undo: Undo;
}

/** A write that has changed memory, and is to be committed: logged, and its events sent. */
export interface Change {
  readonly written: Written<unknown>;
  readonly moment: Moment;
  /** The session that ends with it. */
  readonly endedSession?: bigint;
}

interface PreparedAcl {
  readonly identities: readonly Identity[];
  readonly identityCount: number;
  readonly acl: readonly Acl[];
}

const PROTECTED = new Set(['/', '/zookeeper', '/zookeeper/quota', '/zookeeper/config']);

/** The paths above a longer path are not cut out of it one by one, since each is then read from its beginning. */
const SHORT_PATH_LENGTH = 256;

type CreateRequest = Extract<MultiOp, { op: 'create' }>['request'];

/**
 * Writes: each checks in the order ZooKeeper does, since the order decides which error a client sees, and
 * throws a `Refusal` or changes the tree.
 */
export class WriteOperations {
  readonly #tree: DataTree;
  readonly #limits: WriteLimits;
  readonly #acls = new SharedAcls();
  /** Access lists of requests that are being prepared, as they are to be stored. */
  readonly #prepared = new WeakMap<readonly Acl[], PreparedAcl>();

  constructor(tree: DataTree, limits: WriteLimits) {
    this.#tree = tree;
    this.#limits = limits;
  }

  create(
    request: CreateRequest,
    kind: 'plain' | 'container' | { readonly ttl: bigint },
    asker: Asker,
    moment: Moment,
  ): Written<{ path: string; stat: Stat }> {
    const { path, data, flags } = request;
    const { sequential, owner } = this.#creation(flags, kind, asker);
    if (!path.includes('/') || path.includes('\0')) throw new Refusal('bad-arguments');
    const acl = this.#acl(request.acl, asker);
    const parentPath = parentOf(path);
    const parent = this.#existing(parentPath);
    this.#allow(parent, permissions.create, asker);
    const finalPath = sequential ? path + sequenceSuffix(parent.createCount) : path;
    if (pathFault(finalPath)) throw new Refusal('bad-arguments');
    if (this.#tree.get(finalPath)) throw new Refusal('node-exists');
    if (kindOf(parent.owner) === 'ephemeral') throw new Refusal('no-children-for-ephemerals');
    if (this.#tree.nodeCount >= this.#limits.nodesMax) throw new Refusal('quota-exceeded');
    this.#fits(data, finalPath.length + (data?.byteLength ?? 0) + aclBytesOf(acl));

    const change: TreeChange = { kind: 'create', path: finalPath, data, acl, owner };
    const undo = this.#tree.apply(change, moment);
    const stat = statOf(this.#existing(finalPath));
    const happenings: Happening[] = [
      { type: 'node-created', path: finalPath, acl, above: aboveOf(finalPath, parent) },
      { type: 'node-children-changed', path: parentPath, acl: parent.acl },
    ];
    return { result: { path: finalPath, stat }, changes: [change], happenings, undo };
  }

  delete(
    { path, version }: { path: string; version: number },
    asker: Asker,
    moment: Moment,
  ): Written<undefined> {
    if (!path.includes('/') || path.includes('\0') || PROTECTED.has(path)) throw new Refusal('bad-arguments');
    const parentPath = parentOf(path);
    const parent = this.#existing(parentPath);
    this.#allow(parent, permissions.delete, asker);
    const node = this.#existing(path);
    checkVersion(version, node.version);
    if ((node.children?.size ?? 0) > 0) throw new Refusal('not-empty');
    return this.#remove(path, node.acl, parentPath, parent, moment);
  }

  /** Removes a node that may be removed: after the checks of `delete`, or when its time is over. */
  remove(path: string, moment: Moment): Written<undefined> {
    const parentPath = parentOf(path);
    return this.#remove(path, this.#existing(path).acl, parentPath, this.#existing(parentPath), moment);
  }

  #remove(
    path: string,
    acl: readonly Acl[],
    parentPath: string,
    parent: TreeNode,
    moment: Moment,
  ): Written<undefined> {
    const change: TreeChange = { kind: 'delete', path };
    const undo = this.#tree.apply(change, moment);
    const happenings: Happening[] = [
      { type: 'node-deleted', path, acl, above: aboveOf(path, parent) },
      { type: 'node-children-changed', path: parentPath, acl: parent.acl },
    ];
    return { result: undefined, changes: [change], happenings, undo };
  }

  setData(
    { path, data, version }: { path: string; data: Uint8Array | null; version: number },
    asker: Asker,
    moment: Moment,
  ): Written<Stat> {
    if (pathFault(path)) throw new Refusal('bad-arguments');
    const node = this.#existing(path);
    this.#allow(node, permissions.write, asker);
    checkVersion(version, node.version);
    this.#fits(data, (data?.byteLength ?? 0) - (node.data?.byteLength ?? 0));
    const change: TreeChange = { kind: 'set-data', path, data, version: (node.version + 1) | 0 };
    const undo = this.#tree.apply(change, moment);
    const above = path.length > SHORT_PATH_LENGTH ? aboveOf(path, this.#existing(parentOf(path))) : undefined;
    const happenings: Happening[] = [{ type: 'node-data-changed', path, acl: node.acl, above }];
    return { result: statOf(node), changes: [change], happenings, undo };
  }

  setAcl(
    request: { path: string; acl: readonly Acl[] | null; version: number },
    asker: Asker,
    moment: Moment,
  ): Written<Stat> {
    const { path, version } = request;
    if (pathFault(path)) throw new Refusal('bad-arguments');
    const acl = this.#acl(request.acl, asker);
    const node = this.#existing(path);
    this.#allow(node, permissions.admin, asker);
    checkVersion(version, node.aversion);
    this.#fits(null, aclBytesOf(acl) - aclBytesOf(node.acl));
    const change: TreeChange = { kind: 'set-acl', path, acl, aversion: (node.aversion + 1) | 0 };
    const undo = this.#tree.apply(change, moment);
    return { result: statOf(node), changes: [change], happenings: [], undo };
  }

  check({ path, version }: { path: string; version: number }, asker: Asker): void {
    if (pathFault(path)) throw new Refusal('bad-arguments');
    const node = this.#existing(path);
    this.#allow(node, permissions.read, asker);
    checkVersion(version, node.version);
  }

  /**
   * Does beforehand what a multi does with access lists, which is nearly all there can be to do: the lists of its
   * requests are made what they are stored as, and what those of the nodes allow is looked up. Nothing is decided by
   * it; what changes before the multi is done is looked up again then.
   */
  *prepare(ops: readonly MultiOp[], asker: Asker): SlicedWork {
    const mayBeDear = this.#tree.longAclCount > 0 || asker.identities.length > 1;
    for (const { op, request } of ops) {
      const { path } = request;
      const paths = op === 'setData' || op === 'check' ? [path] : [path, parentOf(path)];
      let dear = false;
      for (const each of mayBeDear ? paths : []) {
        const node = this.#tree.get(each);
        if (node && prepareAccess(node.acl, asker.identities)) dear = true;
      }
      if ('acl' in request && request.acl && this.#prepareAcl(request.acl, asker)) dear = true;
      if (dear) yield;
    }
  }

  /** All or none. A refusal is not thrown but told, operation by operation, as clients expect it of a multi. */
  multi(ops: readonly MultiOp[], asker: Asker, moment: Moment): Written<MultiResult[]> {
    if (ops.length > this.#limits.multiOpsMax) throw new Refusal('bad-arguments');
    const done: Written<MultiResult>[] = [];
    let aclBytes = 0;
    const undo = () => {
      for (const written of done.reverse()) written.undo();
    };
    for (let failedAt = 0; failedAt < ops.length; failedAt++) {
      const op = ops[failedAt]!;
      try {
        const written = this.#multiOp(op, asker, moment);
        done.push(written);
        const [change] = written.changes;
        if (change?.kind !== 'create') continue;
        aclBytes += aclBytesOf(change.acl);
        if (aclBytes > this.#limits.multiAclBytesMax) throw new Refusal('invalid-acl');
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        undo();
        // What cannot be read is no operation that failed, and the multi with it is none.
        if (error.serverCode === errorCodes['marshalling-error']) throw error;
        const result = ops.map((_, index): MultiResult => {
          const err = index < failedAt ? 0 : index === failedAt ? error.serverCode : -2;
          return { kind: 'error', err };
        });
        return { result, changes: [], happenings: [], undo: () => {} };
      }
    }
    return {
      result: done.map(({ result }) => result),
      changes: done.flatMap(({ changes }) => changes),
      happenings: done.flatMap(({ happenings }) => happenings),
      undo,
    };
  }

  #multiOp({ op, request }: MultiOp, asker: Asker, moment: Moment): Written<MultiResult> {
    switch (op) {
      case 'create': {
        const written = this.create(request, 'plain', asker, moment);
        return { ...written, result: { kind: 'create', path: written.result.path } };
      }
      case 'create2':
      case 'createContainer':
      case 'createTtl': {
        const kind =
          op === 'create2' ? 'plain' : op === 'createContainer' ? 'container' : { ttl: request.ttl };
        const written = this.create(request, kind, asker, moment);
        return { ...written, result: { kind: 'create2', ...written.result } };
      }
      case 'delete':
        return { ...this.delete(request, asker, moment), result: { kind: 'delete' } };
      case 'setData': {
        const written = this.setData(request, asker, moment);
        return { ...written, result: { kind: 'setData', stat: written.result } };
      }
      case 'check':
        this.check(request, asker);
        return { result: { kind: 'check' }, changes: [], happenings: [], undo: () => {} };
    }
  }

  #creation(
    flags: number,
    kind: 'plain' | 'container' | { readonly ttl: bigint },
    { sessionId }: Asker,
  ): { sequential: boolean; owner: bigint } {
    const timed =
      flags === createFlags['persistent-with-ttl'] || flags === createFlags['persistent-sequential-with-ttl'];
    if (!Number.isInteger(flags) || flags < 0 || flags > 6) throw new Refusal('bad-arguments');
    if (typeof kind === 'object') {
      if (!this.#limits.ttlNodes) throw new Refusal('unimplemented');
      if (!timed || kind.ttl <= 0n || kind.ttl > BigInt(TTL_MS_MAX)) throw new Refusal('bad-arguments');
      return {
        sequential: flags === createFlags['persistent-sequential-with-ttl'],
        owner: ttlOwner(kind.ttl),
      };
    }
    if (timed) throw new Refusal(this.#limits.ttlNodes ? 'bad-arguments' : 'unimplemented');
    const sequential =
      flags === createFlags['persistent-sequential'] || flags === createFlags['ephemeral-sequential'];
    // The opcode says whether it is a container, not the flag.
    if (kind === 'container') return { sequential, owner: CONTAINER_OWNER };
    const ephemeral = flags === createFlags.ephemeral || flags === createFlags['ephemeral-sequential'];
    return { sequential, owner: ephemeral ? sessionId : 0n };
  }

  /** An access list as it is stored. Its length is looked at twice: few words can stand for many identities. */
  #acl(given: readonly Acl[] | null, asker: Asker): readonly Acl[] {
    const prepared = given && this.#prepared.get(given);
    if (prepared?.identities === asker.identities && prepared.identityCount === asker.identities.length)
      return prepared.acl;
    const { aclBytesMax } = this.#limits;
    if (aclBytesOf(given ?? []) > aclBytesMax) throw new Refusal('invalid-acl');
    const acl = normalizeAcl(given, asker.identities);
    if (aclBytesOf(acl) > aclBytesMax) throw new Refusal('invalid-acl');
    return this.#acls.share(acl);
  }

  /** False if that took no time. For this asker only: equal lists of several requests can be one and the same. */
  #prepareAcl(given: readonly Acl[], asker: Asker): boolean {
    if (given.length === 1 && given[0]!.id.scheme === 'world') return false;
    try {
      const { identities } = asker;
      const acl = this.#acl(given, asker);
      this.#prepared.set(given, { identities, identityCount: identities.length, acl });
    } catch (error) {
      if (!(error instanceof Refusal)) throw error; // It is refused in its turn.
    }
    return true;
  }

  #fits(data: Uint8Array | null, growth: number): void {
    const { nodeBytesMax, dataBytesMax } = this.#limits;
    const { dataBytes, aclBytes } = this.#tree;
    if ((data?.byteLength ?? 0) > nodeBytesMax) throw new Refusal('quota-exceeded');
    if (growth > 0 && dataBytes + aclBytes + growth > dataBytesMax) throw new Refusal('quota-exceeded');
  }

  #existing(path: string): TreeNode {
    const node = this.#tree.get(path);
    if (!node) throw new Refusal('no-node');
    return node;
  }

  #allow({ acl }: TreeNode, permission: number, { identities }: Asker): void {
    if (!isAllowed(acl, permission, identities)) throw new Refusal('no-auth');
  }
}

function aboveOf(path: string, parent: TreeNode): Happening['above'] {
  return path.length > SHORT_PATH_LENGTH ? parent.children : undefined;
}

function checkVersion(wanted: number, actual: number): void {
  if (wanted !== -1 && wanted !== actual) throw new Refusal('bad-version');
}

function sequenceSuffix(count: number): string {
  return String(count).padStart(10, '0');
}
