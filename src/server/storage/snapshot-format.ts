import { checksum } from '../../base/hash.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { JuteReader } from '../../protocol/jute-reader.ts';
import { JuteWriter } from '../../protocol/jute-writer.ts';
import { nameOf, parentOf } from '../../protocol/paths.ts';
import { buffer, type Codec, int, long, record, ustring, vector } from '../../protocol/record.ts';
import { Acl } from '../../protocol/records.ts';
import type { TreeNode } from '../data-tree.ts';
import { CorruptLogError } from './log-format.ts';

// A snapshot is a header and chunks behind each other, ended by one that says how many nodes there must have been:
//
//   "HFSNAP01" | chunk | chunk | … | end
//   chunk:  int length | int checksum of the payload | payload
//
// It gets its name only when it is whole and on disk, so anything but a whole one is damage.

const MAGIC = Buffer.from('HFSNAP01', 'latin1');
const CHUNK_HEADER_BYTES = 8;
/** Few enough to be written between two requests without anyone noticing. */
const NODES_PER_CHUNK = 500;
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
  readonly nodes: readonly (readonly [path: string, node: TreeNode])[];
}

const Session = record({ id: long, password: buffer, timeoutMs: int });
const Node = record({
  path: ustring,
  data: buffer,
  acl: vector(Acl),
  czxid: long,
  mzxid: long,
  pzxid: long,
  ctime: long,
  mtime: long,
  version: int,
  createCount: int,
  aversion: int,
  owner: long,
});
const Sessions = record({ zxid: long, sessions: vector(Session) });
const Nodes = vector(Node);
const End = record({ nodeCount: int });

/** The snapshot in pieces, to be written one after the other with time for others in between. */
export function* encodeSnapshot({ zxid, sessions, nodes }: SavedState): Generator<Buffer> {
  yield MAGIC;
  yield chunk(kinds.sessions, Sessions, { zxid, sessions });
  for (let from = 0; from < nodes.length; from += NODES_PER_CHUNK) {
    const part = nodes.slice(from, from + NODES_PER_CHUNK).map(([path, node]) => ({
      ...node,
      path,
      ctime: BigInt(node.ctimeMs),
      mtime: BigInt(node.mtimeMs),
    }));
    yield chunk(kinds.nodes, Nodes, part);
  }
  yield chunk(kinds.end, End, { nodeCount: nodes.length });
}

/** @throws CorruptLogError unless it is whole. */
export function decodeSnapshot(file: string, content: Buffer): SavedState {
  const corrupt = (offset: number, reason: string) => new CorruptLogError(file, offset, reason);
  if (!content.subarray(0, MAGIC.byteLength).equals(MAGIC)) throw corrupt(0, 'it is not a snapshot');
  const nodes = new Map<string, TreeNode>();
  let head: { readonly zxid: bigint; readonly sessions: readonly SavedSession[] } | undefined;
  for (let at = MAGIC.byteLength; ; ) {
    const payload = payloadAt(content, at);
    if (!payload) throw corrupt(at, 'a chunk is cut off or its checksum is wrong');
    const input = new JuteReader(payload);
    try {
      const kind = input.int();
      if (kind === kinds.sessions) head = Sessions.read(input) as typeof head;
      else if (kind === kinds.nodes)
        for (const saved of Nodes.read(input)) nodes.set(saved.path, toNode(saved));
      else if (kind === kinds.end) {
        const { nodeCount } = End.read(input);
        if (nodeCount !== nodes.size || !head) throw corrupt(at, `${nodes.size} nodes of ${nodeCount}`);
        linkChildren(nodes);
        return { ...head, nodes: [...nodes] };
      } else throw corrupt(at, `a chunk of kind ${kind}`);
    } catch (error) {
      if (error instanceof ProtocolError) throw corrupt(at, error.message);
      throw error;
    }
    at += CHUNK_HEADER_BYTES + payload.byteLength;
  }
}

function chunk<T>(kind: number, codec: Codec<T>, value: T): Buffer {
  const out = new JuteWriter();
  out.int(kind);
  codec.write(out, value);
  const payload = out.take();
  const header = Buffer.allocUnsafe(CHUNK_HEADER_BYTES);
  header.writeInt32BE(payload.byteLength, 0);
  header.writeUInt32BE(checksum(payload), 4);
  return Buffer.concat([header, payload]);
}

function payloadAt(content: Buffer, at: number): Buffer | undefined {
  if (content.byteLength - at < CHUNK_HEADER_BYTES) return undefined;
  const bytes = content.readInt32BE(at);
  const start = at + CHUNK_HEADER_BYTES;
  if (bytes < 0 || bytes > content.byteLength - start) return undefined;
  const payload = content.subarray(start, start + bytes);
  return checksum(payload) === content.readUInt32BE(at + 4) ? payload : undefined;
}

function toNode(saved: ReturnType<typeof Node.read>): TreeNode {
  const { path: _path, ctime, mtime, ...rest } = saved;
  return { ...rest, ctimeMs: Number(ctime), mtimeMs: Number(mtime), children: undefined };
}

/** Which children a node has is not saved: their paths say it. */
function linkChildren(nodes: Map<string, TreeNode>): void {
  for (const path of nodes.keys()) {
    if (path === '/') continue;
    const parent = nodes.get(parentOf(path));
    if (!parent) throw new CorruptLogError('snapshot', 0, `${path} has no parent`);
    parent.children ??= new Set();
    parent.children.add(nameOf(path));
  }
}
