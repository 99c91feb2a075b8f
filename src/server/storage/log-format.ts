import { checksum } from '../../base/hash.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { JuteReader } from '../../protocol/jute-reader.ts';
import type { JuteWriter } from '../../protocol/jute-writer.ts';
import { buffer, type Codec, int, long, record, ustring, vector } from '../../protocol/record.ts';
import { Acl } from '../../protocol/records.ts';
import type { TreeChange } from '../data-tree.ts';
import type { Transaction } from '../transaction.ts';

// A log file is a header and batches behind each other:
//
//   "HFLOG002" | long base | int seed | int checksum of all before | batch | batch | …
//   batch:  int length | int checksum of the length | int checksum of the payload | payload
//   payload:  int count | transaction | transaction | …
//
// A batch is what was written and synced in one go, and none is begun before the one before it is on disk. So a crash
// can damage the last one, in any shape, and no other. The length has a checksum of its own, so that a damaged length
// is not taken for a batch that was cut off. The seed begins every checksum of the file: bytes that a client wrote, or
// that an older file left on the disk, are never taken for a batch.
//
// The base is the last transaction that was promised before this log was begun. What a log before this one has beyond
// it was taken back, when the disk failed; and if less than that is found, something has been lost.

const MAGIC = Buffer.from('HFLOG002', 'latin1');
/** How long a log's header is. */
export const LOG_HEADER_BYTES = MAGIC.byteLength + 16;
const BATCH_HEADER_BYTES = 12;
const COUNT_BYTES = 4;
/** When a batch is full: little enough to be made between two requests. A torn one is looked through byte by byte. */
const BATCH_BYTES_MAX = 256 * 1024;

/** A log or a snapshot is damaged where no crash can have done it. Nothing is skipped: the server does not start. */
export class CorruptLogError extends Error {
  override readonly name = 'CorruptLogError';
  readonly code = 'HOLDFAST_CORRUPT_LOG';
  readonly file: string;
  readonly offset: number;

  constructor(file: string, offset: number, reason: string) {
    super(`${file} is damaged at byte ${offset}: ${reason}`);
    this.file = file;
    this.offset = offset;
  }
}

/** A union of records by a leading number. */
function tagged<T extends { readonly kind: string }>(
  table: {
    readonly [K in T['kind']]: readonly [tag: number, codec: Codec<Omit<Extract<T, { kind: K }>, 'kind'>>];
  },
): Codec<T> {
  type Row = readonly [number, Codec<unknown>];
  const rows = Object.entries<Row>(table as unknown as Record<string, Row>);
  const byTag = new Map(rows.map(([kind, [tag, codec]]) => [tag, { kind, codec }]));
  const byKind = new Map(rows.map(([kind, [tag, codec]]) => [kind, { tag, codec }]));
  return {
    bytesMin: 4,
    write(out, value) {
      const row = byKind.get(value.kind)!;
      out.int(row.tag);
      row.codec.write(out, value);
    },
    read(input) {
      const tag = input.int();
      const row = byTag.get(tag);
      if (!row) throw new ProtocolError(`a record of kind ${tag}`);
      const value = row.codec.read(input) as { kind: string };
      value.kind = row.kind; // Into the record just read: a log may have millions.
      return value as unknown as T;
    },
  };
}

const Change: Codec<TreeChange> = tagged<TreeChange>({
  create: [1, createChange()],
  delete: [2, record({ path: ustring })],
  'set-data': [3, record({ path: ustring, data: buffer, version: int })],
  'set-acl': [4, record({ path: ustring, acl: vector(Acl), aversion: int })],
});

const Moment = { zxid: long, timeMs: number64() };
const changes = vector(Change);

const TransactionCodec: Codec<Transaction> = tagged<Transaction>({
  tree: [1, treeTransaction()],
  'open-session': [2, record({ ...Moment, sessionId: long, password: bytes(), timeoutMs: int })],
  'close-session': [3, record({ ...Moment, sessionId: long, changes })],
});

/** How a log begins. */
export interface LogHeader {
  readonly base: bigint;
  readonly seed: number;
}

export function encodeLogHeader({ base, seed }: LogHeader): Buffer {
  const header = Buffer.alloc(LOG_HEADER_BYTES);
  MAGIC.copy(header);
  header.writeBigInt64BE(base, 8);
  header.writeUInt32BE(seed, 16);
  header.writeUInt32BE(checksum(header.subarray(0, 20)), 20);
  return header;
}

/**
 * Reads a log's header: undefined if it is cut off, which is so only before anything was promised in that log.
 *
 * @throws CorruptLogError
 */
export function decodeLogHeader(file: string, content: Buffer): LogHeader | undefined {
  const whole =
    content.byteLength >= LOG_HEADER_BYTES &&
    content.subarray(0, MAGIC.byteLength).equals(MAGIC) &&
    checksum(content.subarray(0, 20)) === content.readUInt32BE(20);
  if (whole) return { base: content.readBigInt64BE(8), seed: content.readUInt32BE(16) };
  if (content.byteLength <= LOG_HEADER_BYTES) return undefined;
  throw new CorruptLogError(file, 0, 'it is not a log, or its header is damaged');
}

/** The first of these transactions, as many as make a batch, to be appended: good until `out` is used again. */
export function encodeBatch(
  transactions: readonly Transaction[],
  seed: number,
  out: JuteWriter,
): { readonly bytes: Buffer; readonly count: number } {
  out.clear();
  for (let word = 0; word < (BATCH_HEADER_BYTES + COUNT_BYTES) / 4; word++) out.int(0); // Filled in below.
  let count = 0;
  while (count < transactions.length && out.byteLength < BATCH_BYTES_MAX)
    TransactionCodec.write(out, transactions[count++]!);
  const bytes = out.peek();
  const payload = bytes.subarray(BATCH_HEADER_BYTES);
  payload.writeInt32BE(count, 0);
  bytes.writeInt32BE(payload.byteLength, 0);
  bytes.writeUInt32BE(checksum(bytes.subarray(0, 4), seed), 4);
  bytes.writeUInt32BE(checksum(payload, seed), 8);
  return { bytes, count };
}

/**
 * Reads a log behind its header, transaction by transaction, and returns where the good part ends: before a batch that
 * a crash cut off, or at the end of the file. Damage with good batches behind it, which no crash can cause, is refused.
 *
 * @throws CorruptLogError
 */
export function decodeLog(
  file: string,
  content: Buffer,
  { seed }: LogHeader,
  each: (transaction: Transaction) => void,
): number {
  let at = LOG_HEADER_BYTES;
  while (at < content.byteLength) {
    const payload = payloadAt(content, at, seed);
    if (!payload) {
      const next = nextGoodBatch(content, at + 1, seed);
      if (next === undefined) return at;
      throw new CorruptLogError(file, at, `there is a good batch behind it, at byte ${next}`);
    }
    const input = new JuteReader(payload);
    try {
      for (let count = input.int(); count > 0; count--) each(TransactionCodec.read(input));
    } catch (error) {
      if (error instanceof ProtocolError) throw new CorruptLogError(file, at, error.message);
      throw error;
    }
    at += BATCH_HEADER_BYTES + payload.byteLength;
  }
  return at;
}

/** The payload of the batch that begins here, or undefined if none does. */
function payloadAt(content: Buffer, at: number, seed: number): Buffer | undefined {
  if (content.byteLength - at < BATCH_HEADER_BYTES + COUNT_BYTES) return undefined;
  const bytes = content.readInt32BE(at);
  const start = at + BATCH_HEADER_BYTES;
  if (bytes < COUNT_BYTES || bytes > content.byteLength - start) return undefined;
  if (checksum(content.subarray(at, at + 4), seed) !== content.readUInt32BE(at + 4)) return undefined;
  const payload = content.subarray(start, start + bytes);
  return checksum(payload, seed) === content.readUInt32BE(at + 8) ? payload : undefined;
}

function nextGoodBatch(content: Buffer, from: number, seed: number): number | undefined {
  for (let at = from; at + BATCH_HEADER_BYTES < content.byteLength; at++) {
    if (payloadAt(content, at, seed)) return at;
  }
  return undefined;
}

// What a log has most of is read by hand, since there may be millions: the fields are those of the table beside it.

function createChange() {
  const table = record({ path: ustring, data: buffer, acl: vector(Acl), owner: long });
  const acl = vector(Acl);
  const read = (input: JuteReader) => ({
    kind: 'create', // Made with its place for the kind, which the caller fills in.
    path: ustring.read(input),
    data: input.buffer(),
    acl: acl.read(input),
    owner: input.long(),
  });
  return { ...table, read };
}

function treeTransaction() {
  const table = record({ ...Moment, changes });
  const read = (input: JuteReader) => ({
    kind: 'tree',
    zxid: input.long(),
    timeMs: Number(input.long()),
    changes: changes.read(input),
  });
  return { ...table, read };
}

/** Milliseconds since 1970 as 64 bits: a number is exact far beyond any clock. */
function number64(): Codec<number> {
  return {
    bytesMin: 8,
    write: (out, value) => out.long(BigInt(Math.trunc(value))),
    read: (input) => Number(input.long()),
  };
}

function bytes(): Codec<Buffer> {
  return {
    bytesMin: 4,
    write: (out, value) => out.buffer(value),
    read: (input) => input.buffer() ?? Buffer.alloc(0),
  };
}
