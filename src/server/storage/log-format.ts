import { checksum } from '../../base/hash.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { JuteReader } from '../../protocol/jute-reader.ts';
import { JuteWriter } from '../../protocol/jute-writer.ts';
import {
  buffer,
  type Codec,
  int,
  long,
  record,
  ustring,
  type ValueOf,
  vector,
} from '../../protocol/record.ts';
import { Acl } from '../../protocol/records.ts';
import type { TreeChange } from '../data-tree.ts';
import type { Transaction } from '../transaction.ts';

// A log file is a header and records behind each other:
//
//   "HFLOG001" | record | record | …
//   record:  int length | int checksum of the length | int checksum of the payload | payload
//
// The length has a checksum of its own, so that a damaged length is not taken for a record that was cut off.

const MAGIC = Buffer.from('HFLOG001', 'latin1');
const RECORD_HEADER_BYTES = 12;

/** The log is damaged where it cannot have been cut off by a crash. Nothing is skipped: the server does not start. */
export class CorruptLogError extends Error {
  override readonly name = 'CorruptLogError';
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
      return { kind: row.kind, ...(row.codec.read(input) as object) } as unknown as T;
    },
  };
}

const Change: Codec<TreeChange> = tagged<TreeChange>({
  create: [1, record({ path: ustring, data: buffer, acl: vector(Acl), owner: long })],
  delete: [2, record({ path: ustring })],
  'set-data': [3, record({ path: ustring, data: buffer, version: int })],
  'set-acl': [4, record({ path: ustring, acl: vector(Acl), aversion: int })],
});

const Moment = { zxid: long, timeMs: number64() };
const changes = vector(Change);

const TransactionCodec: Codec<Transaction> = tagged<Transaction>({
  tree: [1, record({ ...Moment, changes })],
  'open-session': [2, record({ ...Moment, sessionId: long, password: bytes(), timeoutMs: int })],
  'close-session': [3, record({ ...Moment, sessionId: long, changes })],
});

export function logHeader(): Buffer {
  return MAGIC;
}

/** A transaction as a record, to be appended. */
export function encodeTransaction(transaction: Transaction): Buffer {
  const out = new JuteWriter();
  TransactionCodec.write(out, transaction);
  const payload = out.take();
  const header = Buffer.allocUnsafe(RECORD_HEADER_BYTES);
  header.writeInt32BE(payload.byteLength, 0);
  header.writeUInt32BE(checksum(header.subarray(0, 4)), 4);
  header.writeUInt32BE(checksum(payload), 8);
  return Buffer.concat([header, payload]);
}

export interface LogContent {
  readonly transactions: readonly Transaction[];
  /** Where the good part ends: before a record that a crash cut off, or at the end of the file. */
  readonly goodBytes: number;
}

/**
 * Reads a log. A tail that was cut off by a crash is left out; damage with good records behind it, which no crash
 * can cause, is refused.
 *
 * @throws CorruptLogError
 */
export function decodeLog(file: string, content: Buffer): LogContent {
  const transactions: Transaction[] = [];
  if (content.byteLength < MAGIC.byteLength) {
    if (!MAGIC.subarray(0, content.byteLength).equals(content)) {
      throw new CorruptLogError(file, 0, 'it is not a log');
    }
    return { transactions, goodBytes: 0 };
  }
  if (!content.subarray(0, MAGIC.byteLength).equals(MAGIC))
    throw new CorruptLogError(file, 0, 'it is not a log');
  let at = MAGIC.byteLength;
  while (at < content.byteLength) {
    const payload = payloadAt(content, at);
    if (!payload) {
      const next = nextGoodRecord(content, at + 1);
      if (next !== undefined)
        throw new CorruptLogError(file, at, `there is a good record behind it, at byte ${next}`);
      return { transactions, goodBytes: at };
    }
    transactions.push(TransactionCodec.read(new JuteReader(payload)));
    at += RECORD_HEADER_BYTES + payload.byteLength;
  }
  return { transactions, goodBytes: at };
}

/** The payload of the record that begins here, or undefined if none does. */
function payloadAt(content: Buffer, at: number): Buffer | undefined {
  if (content.byteLength - at < RECORD_HEADER_BYTES) return undefined;
  if (checksum(content.subarray(at, at + 4)) !== content.readUInt32BE(at + 4)) return undefined;
  const bytes = content.readInt32BE(at);
  const start = at + RECORD_HEADER_BYTES;
  if (bytes < 0 || bytes > content.byteLength - start) return undefined;
  const payload = content.subarray(start, start + bytes);
  return checksum(payload) === content.readUInt32BE(at + 8) ? payload : undefined;
}

function nextGoodRecord(content: Buffer, from: number): number | undefined {
  for (let at = from; at + RECORD_HEADER_BYTES < content.byteLength; at++) {
    if (payloadAt(content, at)) return at;
  }
  return undefined;
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

export type ChangeRecord = ValueOf<typeof Change>;
