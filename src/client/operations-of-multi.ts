import { checkOptionNames, type OptionNames } from '../base/option-names.ts';
import { type CreateMode, createFlags, TTL_MS_MAX } from '../protocol/constants.ts';
import { MultiError, ProtocolError, ServerError } from '../protocol/errors.ts';
import type { MultiOp, MultiReadOp, MultiResult } from '../protocol/multi.ts';
import type { Stat } from '../protocol/records.ts';
import { type AclEntry, acls, toWireAcl } from './acl.ts';
import {
  checkChoice,
  checkData,
  checkDuration,
  checkPath,
  checkSequentialPath,
  checkVersion,
  type NodeData,
} from './arguments.ts';
import type { Chroot } from './chroot.ts';

/** What kind of node to make, and for whom. */
export interface CreateOptions {
  /** What kind of node; `persistent` if left out. */
  readonly mode?: CreateMode;
  /** Who may do what; anyone anything if left out. */
  readonly acl?: readonly AclEntry[] | undefined;
  /** For the `…-with-ttl` modes: how long the node stays, without children, after its last change. */
  readonly ttlMs?: number;
}

/** The names of all options of `create`. */
export const creationNames: OptionNames<CreateOptions> = { mode: true, acl: true, ttlMs: true };

/** One write of a `multi`, made by `ops.create` and its siblings. `result` only carries a type. */
export interface MultiWrite<Result> {
  readonly wire: MultiOp;
  readonly result?: Result;
}

/** One read of a `multiRead`, made by `ops.get` and `ops.children`. `result` only carries a type. */
export interface MultiRead<Result> {
  readonly wire: MultiReadOp;
  readonly result?: Result;
}

/** `stat` is undefined where the server leaves it out of a multi (ZooKeeper before 3.8.2). */
export interface CreatedInMulti {
  readonly path: string;
  /** The transaction that made it: what `stat.czxid` says, where there is a stat. */
  readonly czxid: bigint;
  readonly stat: Stat | undefined;
}

type ResultOf<Op> = Op extends MultiWrite<infer Result> | MultiRead<infer Result> ? Result : never;
/** The results of a multi, one for each of its operations, each of that operation's type. */
export type MultiResults<Ops extends readonly MultiWrite<unknown>[]> = {
  -readonly [K in keyof Ops]: ResultOf<Ops[K]>;
};
/** Reads of a multiRead succeed or fail one by one. */
export type MultiReadResults<Ops extends readonly MultiRead<unknown>[]> = {
  -readonly [K in keyof Ops]:
    | { readonly ok: true; readonly value: ResultOf<Ops[K]> }
    | { readonly ok: false; readonly error: ServerError };
};

/** Makes the operations that `multi` and `multiRead` take. Bad input throws here, where it is written. */
export const ops = {
  create(path: string, data: NodeData = '', options: CreateOptions = {}): MultiWrite<CreatedInMulti> {
    checkOptionNames('ops.create', options, creationNames);
    return { wire: createOp(path, data, options) };
  },
  delete(path: string, version?: number): MultiWrite<undefined> {
    checkPath(path);
    return { wire: { op: 'delete', request: { path, version: checkVersion(version) } } };
  },
  set(path: string, data: NodeData, version?: number): MultiWrite<Stat> {
    checkPath(path);
    return {
      wire: { op: 'setData', request: { path, data: checkData(data), version: checkVersion(version) } },
    };
  },
  /** Lets the whole multi happen only if the node exists and has this version (any, if left out). */
  check(path: string, version?: number): MultiWrite<undefined> {
    checkPath(path);
    return { wire: { op: 'check', request: { path, version: checkVersion(version) } } };
  },
  get(path: string): MultiRead<{ data: Buffer | null; stat: Stat }> {
    checkPath(path);
    return { wire: { op: 'getData', request: { path, watch: false } } };
  },
  children(path: string): MultiRead<string[]> {
    checkPath(path);
    return { wire: { op: 'getChildren', request: { path, watch: false } } };
  },
} as const;

/** The create operation for a mode: containers and TTL nodes have opcodes of their own. */
export function createOp(path: string, data: NodeData, options: CreateOptions): CreateOp {
  const mode = checkChoice('mode', options.mode ?? 'persistent', createFlags);
  if (isSequential(createFlags[mode])) checkSequentialPath(path);
  else checkPath(path);
  const withTtl = mode.endsWith('-with-ttl');
  if (!withTtl && options.ttlMs !== undefined) {
    throw new TypeError(`ttlMs: given for mode ${mode}; allowed for the modes that end with -with-ttl`);
  }
  const request = {
    path,
    data: checkData(data),
    acl: toWireAcl(options.acl ?? acls.open),
    flags: createFlags[mode],
  };
  if (withTtl) {
    const ttlMs = checkDuration('ttlMs', options.ttlMs ?? Number.NaN, { min: 1, max: TTL_MS_MAX });
    return { op: 'createTtl', request: { ...request, ttl: BigInt(ttlMs) } };
  }
  return { op: mode === 'container' ? 'createContainer' : 'create2', request };
}

export type CreateOp = Extract<MultiOp, { op: 'create2' | 'createContainer' | 'createTtl' }>;

function isSequential(flags: number): boolean {
  return (
    flags === createFlags['persistent-sequential'] ||
    flags === createFlags['ephemeral-sequential'] ||
    flags === createFlags['persistent-sequential-with-ttl']
  );
}

/** The operations in the form they are sent in, below a chroot; what did not come out of `ops` is refused. */
export function wiresOf<Op extends MultiOp | MultiReadOp>(
  given: readonly { readonly wire: Op }[],
  name: string,
  chroot: Chroot,
): Op[] {
  return given.map((op, index) => {
    if (op?.wire) return rooted(op.wire, chroot);
    throw new TypeError(
      `${name}: operation ${index} was not made by ops.create, ops.check or one of their siblings`,
    );
  });
}

/** Puts a chroot in front of an operation's path. */
export function rooted<Op extends MultiOp | MultiReadOp>(op: Op, chroot: Chroot): Op {
  if (chroot.isRoot) return op;
  const { request } = op;
  const sequential = 'flags' in request && isSequential(request.flags);
  const path = sequential ? chroot.toServerSequential(request.path) : chroot.toServer(request.path);
  return { ...op, request: { ...request, path } };
}

/** The results of a multi that happened, or the MultiError of one that did not. */
export function shapeMulti(
  writes: readonly MultiWrite<unknown>[],
  results: readonly MultiResult[],
  { chroot, zxid }: { readonly chroot: Chroot; readonly zxid: bigint },
): unknown[] {
  const failedAt = results.findIndex((result) => result.kind === 'error' && result.err !== 0);
  const failed = results[failedAt];
  if (failed?.kind === 'error') {
    const wire = writes[failedAt]?.wire;
    throw new MultiError(failed.err, wire?.op ?? 'unknown', wire?.request.path, failedAt);
  }
  if (results.length !== writes.length) {
    throw new ProtocolError(`multi of ${writes.length} operations answered with ${results.length} results`);
  }
  return results.map((result) => {
    if (result.kind === 'create' || result.kind === 'create2') {
      const stat = result.kind === 'create2' ? result.stat : undefined;
      return { path: chroot.fromServer(result.path), czxid: zxid, stat };
    }
    return result.kind === 'setData' ? result.stat : undefined;
  });
}

export function shapeMultiRead(
  reads: readonly MultiRead<unknown>[],
  results: readonly MultiResult[],
): { ok: boolean; value?: unknown; error?: ServerError }[] {
  return results.map((result, index) => {
    if (result.kind === 'getData') return { ok: true, value: { data: result.data, stat: result.stat } };
    if (result.kind === 'getChildren') return { ok: true, value: result.children };
    const wire = reads[index]?.wire;
    const code = result.kind === 'error' ? result.err : 0;
    return { ok: false, error: new ServerError(code, wire?.op ?? 'multiRead', wire?.request.path) };
  });
}
