import { checksum } from '../../base/hash.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { JuteReader } from '../../protocol/jute-reader.ts';
import { JuteWriter } from '../../protocol/jute-writer.ts';
import { buffer, int, long, record, vector } from '../../protocol/record.ts';
import { Acl } from '../../protocol/records.ts';
import { linkChildren } from '../children.ts';
import type { TreeNode } from '../data-tree.ts';
import { PathMap } from '../path-map.ts';
import { CorruptLogError } from './log-format.ts';

// A snapshot is a header and chunks behind each other, ended by one that says how many nodes there must have been:
//
//   "HFSNAP02" | chunk | chunk | … | end
//   chunk:  int length | int checksum of the payload | payload
//
// It gets its name only when it is whole and on disk, so anything but a whole one is damage.

const MAGIC = Buffer.from('HFSNAP02', 'latin1');
const CHUNK_HEADER_BYTES = 8;
/** Little enough to be made between two requests without anyone noticing. */
const CHUNK_NODES_MAX = 200;
const CHUNK_BYTES_MAX = 128 * 1024;
/** More lists than this are looked up by what they say, so that looking them up does not keep them all. */
const ACLS_KEPT_MAX = 1_000;
const kinds = { sessions: 1, nodes: 2, end: 3 } as const;

export interface SavedSession {
  readonly id: bigint;
  readonly password: Buffer;
  readonly timeoutMs: number;
}

/** Everything that is kept, as of one transaction. */
export interface SavedState {
  readonly zxid: bigint;
  readonly sessions: readonly SavedSession[];
  readonly nodes: SavedNodes;
}

/** All nodes, given out one by one; each is used before the next is asked for. */
export interface SavedNodes extends Iterable<readonly [path: string, node: TreeNode]> {
  readonly nodeCount: number;
  /** Nobody will ask for more. */
  release(): void;
}

/** What a snapshot gave back. */
export interface LoadedState {
  readonly zxid: bigint;
  readonly sessions: readonly SavedSession[];
  readonly nodes: PathMap<TreeNode>;
}

const Session = record({ id: long, password: buffer, timeoutMs: int });
const Sessions = record({ zxid: long, sessions: vector(Session) });
const End = record({ nodeCount: int });
const AclList = vector(Acl);

/**
 * The snapshot in pieces, to be written one after the other with time for others in between. All of them are in the same
 * buffer: each is used before the next is asked for. What is thrown away here, thousands of times, has to be collected
 * while clients wait.
 */
export function* encodeSnapshot({ zxid, sessions, nodes }: SavedState): Generator<Buffer> {
  yield MAGIC;
  const out = new JuteWriter();
  const chunk = (kind: number, write: () => void) => encodeChunk(out, kind, write);
  yield chunk(kinds.sessions, () => Sessions.write(out, { zxid, sessions }));
  const acls = new AclNumbers();
  const walk = nodes[Symbol.iterator]();
  for (let more = true; more; ) {
    yield chunk(kinds.nodes, () => {
      for (let count = 0; count < CHUNK_NODES_MAX && out.byteLength < CHUNK_BYTES_MAX; count++) {
        // Asked for here and nowhere else: what was given out may change as soon as others have their turn.
        const next = walk.next();
        if (next.done) {
          more = false;
          return;
        }
        writeNode(out, next.value[0], next.value[1], acls);
      }
    });
  }
  yield chunk(kinds.end, () => End.write(out, { nodeCount: nodes.nodeCount }));
}

/** @throws CorruptLogError unless it is whole. */
export function decodeSnapshot(file: string, content: Buffer): LoadedState {
  const corrupt = (offset: number, reason: string) => new CorruptLogError(file, offset, reason);
  if (!content.subarray(0, MAGIC.byteLength).equals(MAGIC)) throw corrupt(0, 'it is not a snapshot');
  const nodes = new PathMap<TreeNode>();
  const acls: (readonly Acl[])[] = [];
  let head: { readonly zxid: bigint; readonly sessions: readonly SavedSession[] } | undefined;
  for (let at = MAGIC.byteLength; ; ) {
    const payload = payloadAt(content, at);
    if (!payload) throw corrupt(at, 'a chunk is cut off or its checksum is wrong');
    const input = new JuteReader(payload);
    try {
      const kind = input.int();
      if (kind === kinds.sessions) head = Sessions.read(input) as typeof head;
      else if (kind === kinds.nodes) while (input.remaining > 0) readNode(input, nodes, acls);
      else if (kind === kinds.end) {
        const { nodeCount } = End.read(input);
        if (nodeCount !== nodes.size || !head) throw corrupt(at, `${nodes.size} nodes of ${nodeCount}`);
        // Which children a node has is not saved: their paths say it.
        const orphan = linkChildren(nodes);
        if (orphan !== undefined) throw corrupt(at, `${orphan} has no parent`);
        return { ...head, nodes };
      } else throw corrupt(at, `a chunk of kind ${kind}`);
    } catch (error) {
      if (error instanceof ProtocolError) throw corrupt(at, error.message);
      throw error;
    }
    at += CHUNK_HEADER_BYTES + payload.byteLength;
  }
}

function encodeChunk(out: JuteWriter, kind: number, write: () => void): Buffer {
  out.clear();
  for (let word = 0; word < CHUNK_HEADER_BYTES / 4; word++) out.int(0); // Filled in below.
  out.int(kind);
  write();
  const bytes = out.peek();
  bytes.writeInt32BE(bytes.byteLength - CHUNK_HEADER_BYTES, 0);
  bytes.writeUInt32BE(checksum(bytes.subarray(CHUNK_HEADER_BYTES)), 4);
  return bytes;
}

function payloadAt(content: Buffer, at: number): Buffer | undefined {
  if (content.byteLength - at < CHUNK_HEADER_BYTES) return undefined;
  const bytes = content.readInt32BE(at);
  const start = at + CHUNK_HEADER_BYTES;
  if (bytes < 0 || bytes > content.byteLength - start) return undefined;
  const payload = content.subarray(start, start + bytes);
  return checksum(payload) === content.readUInt32BE(at + 4) ? payload : undefined;
}

// A node is written out by hand, since there may be a million of them. Most share a few access lists: each of those is
// numbered, and written where its number is used first.

class AclNumbers {
  /** The same list is mostly the same object, and then need not be spelled out to be found. */
  readonly #byList = new Map<readonly Acl[], number>();
  readonly #byText = new Map<string, number>();

  write(out: JuteWriter, acl: readonly Acl[]): void {
    let number = this.#byList.get(acl);
    if (number === undefined) {
      const text = JSON.stringify(acl);
      number = this.#byText.get(text) ?? this.#byText.size;
      const isNew = number === this.#byText.size;
      this.#byText.set(text, number);
      if (this.#byList.size < ACLS_KEPT_MAX) this.#byList.set(acl, number);
      out.int(number);
      if (isNew) AclList.write(out, acl);
    } else out.int(number);
  }
}

function writeNode(out: JuteWriter, path: string, node: TreeNode, acls: AclNumbers): void {
  out.ustring(path);
  out.buffer(node.data);
  acls.write(out, node.acl);
  out.long(node.czxid);
  out.long(node.mzxid);
  out.long(node.pzxid);
  writeTime(out, node.ctimeMs);
  writeTime(out, node.mtimeMs);
  out.int(node.version);
  out.int(node.createCount);
  out.int(node.aversion);
  out.long(node.owner);
}

/** As `long` would write it, without making a bigint of it. */
function writeTime(out: JuteWriter, timeMs: number): void {
  out.int(Math.floor(timeMs / 2 ** 32));
  out.int(timeMs | 0);
}

function readNode(input: JuteReader, nodes: PathMap<TreeNode>, acls: (readonly Acl[])[]): void {
  const path = input.ustring();
  if (path === null) throw new ProtocolError('a node without a path');
  const data = input.buffer();
  const number = input.int();
  if (number === acls.length) acls.push(AclList.read(input));
  const acl = acls[number];
  if (!acl) throw new ProtocolError(`an access list of number ${number}`);
  const czxid = input.long();
  const mzxid = input.long();
  const pzxid = input.long();
  nodes.set(path, {
    data,
    acl,
    czxid,
    // The same number is the same object, as in a node that has not changed since it was made.
    mzxid: mzxid === czxid ? czxid : mzxid,
    pzxid: pzxid === czxid ? czxid : pzxid,
    ctimeMs: Number(input.long()),
    mtimeMs: Number(input.long()),
    version: input.int(),
    createCount: input.int(),
    aversion: input.int(),
    owner: input.long(),
    children: undefined,
    changedZxid: 0n,
    stamp: 0,
  });
}
