import { eventTypes } from '../../src/protocol/constants.ts';
import { conditionOf } from '../../src/protocol/error-codes.ts';
import { ProtocolError } from '../../src/protocol/errors.ts';
import { Connected } from '../../src/protocol/handshake.ts';
import { JuteReader } from '../../src/protocol/jute-reader.ts';
import type { MultiResult } from '../../src/protocol/multi.ts';
import { opcodeOfDeleteContainer, operationOf, xids } from '../../src/protocol/operations.ts';
import { type Acl, ReplyHeader, type Stat, WatcherEvent } from '../../src/protocol/records.ts';
import { isBodyOfNoUse, multiResultShown } from './known-differences.ts';
import type { Call } from './scenario.ts';

/** A line of the story, written once all that its step brought is known. */
export interface Line {
  readonly isEvent: boolean;
  text(): string;
}

const CLOCK_TOLERANCE_MS = 10 * 60_000;

/**
 * Turns what one server sends into lines that another server's can be compared with. What must differ is named by
 * its place: zxids by rank among those seen, session ids and passwords by first appearance, times by whether
 * they make sense. Everything else is shown as it is.
 */
export class Transcript {
  readonly #zxids = new Set<bigint>();
  readonly #sessions = new Map<bigint, string>();
  readonly #passwords = new Map<string, string>();
  readonly #timeOf = new Map<bigint, bigint>();
  #ranks: Map<bigint, number> | undefined;
  /** The newest transaction seen in any answer: what a client would claim to have seen. */
  seenZxid = 0n;
  /** Connections are heard at the same time, so what one of them shows is not yet due of the others. */
  #floor = 0n;

  /** From here on, no answer may be older than what has been seen. */
  advance(): void {
    this.#floor = this.seenZxid;
  }

  /** An answer to a connect request. */
  handshake(frame: Buffer): Line {
    const input = new JuteReader(frame);
    const { timeOut, sessionId, passwd, readOnly, protocolVersion } = Connected.read(input);
    const session = this.#session(sessionId);
    const password = this.#password(passwd);
    const text = `session ${session}, password ${password}, timeout ${timeOut}, version ${protocolVersion}, read-only ${readOnly}`;
    return { isEvent: false, text: () => text + this.#rest(input) };
  }

  /** A frame behind the handshake: an event, or the answer to `call`. */
  frame(frame: Buffer, call: Call | undefined): Line {
    const input = new JuteReader(frame);
    const header = ReplyHeader.read(input);
    if (header.xid === xids.notification) return this.#event(header, input);
    const zxid = this.#headerZxid(header.zxid, call);
    const err = header.err === 0 ? 'ok' : `${header.err} ${conditionOf(header.err)}`;
    const body = header.err === 0 ? this.#body(call, input) : () => '';
    const name = call ? nameOf(call) : 'nothing that was asked';
    return {
      isEvent: false,
      text: () =>
        `answer to ${name}: xid ${header.xid}, ${zxid()}, ${err}${body()}` +
        (isBodyOfNoUse(call, header.err) ? '' : this.#rest(input)),
    };
  }

  #event({ err, zxid }: ReplyHeader, input: JuteReader): Line {
    const { type, state, path } = WatcherEvent.read(input);
    const name = eventTypes[type as keyof typeof eventTypes] ?? type;
    const text = `event ${name} ${JSON.stringify(path)}, state ${state}, err ${err}`;
    return { isEvent: true, text: () => `${text}${zxid === 0n ? ', zxid 0' : ''}${this.#rest(input)}` };
  }

  /** The zxid of a write is its own. That of a read only says how far the server is, others' writes included. */
  #headerZxid(zxid: bigint, call: Call | undefined): () => string {
    if (zxid <= 0n) return () => `zxid ${zxid}`;
    const isWrite =
      call?.opcode === opcodeOfDeleteContainer || (call && operationOf(call.opcode)?.writes === true);
    const isNew = zxid > this.seenZxid;
    if (isNew) this.seenZxid = zxid;
    if (zxid < this.#floor) return () => 'zxid of the past';
    if (!isWrite) return () => 'zxid of now';
    this.#see(zxid);
    return () => (isNew ? `new zxid ${this.#zxid(zxid)}` : 'zxid of another');
  }

  #body(call: Call | undefined, input: JuteReader): () => string {
    if (!call) return () => '';
    const operation = operationOf(call.opcode);
    if (!operation || input.remaining === 0) return () => '';
    let value: unknown;
    try {
      value = operation.reply.read(input);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      return () => ` unreadable (${error.message})`;
    }
    if (call.ops) {
      const results = value as readonly MultiResult[];
      value = results.map((result, index) => multiResultShown(result, call.ops![index]));
    }
    const shown = this.#shown(value);
    return () => ` ${shown()}`;
  }

  #shown(value: unknown): () => string {
    if (value === undefined) return () => '';
    if (Buffer.isBuffer(value)) return () => `<${value.toString('latin1')}>`;
    if (Array.isArray(value)) {
      const parts = value.map((each) => this.#shown(each));
      return () => `[${parts.map((part) => part()).join(', ')}]`;
    }
    if (typeof value === 'bigint') return () => String(value);
    if (value === null || typeof value !== 'object') return () => JSON.stringify(value);
    if ('czxid' in value) return this.#stat(value as Stat);
    const fields = Object.entries(value).map(
      ([name, each]) => [name, this.#shown(ordered(name, each))] as const,
    );
    return () => `{${fields.map(([name, each]) => `${name} ${each()}`).join(', ')}}`;
  }

  #stat(stat: Stat): () => string {
    for (const zxid of [stat.czxid, stat.mzxid, stat.pzxid]) this.#see(zxid);
    const owner = this.#session(stat.ephemeralOwner);
    const times = this.#times(stat);
    const { version, cversion, aversion, dataLength, numChildren } = stat;
    return () =>
      `stat(c ${this.#zxid(stat.czxid)} m ${this.#zxid(stat.mzxid)} p ${this.#zxid(stat.pzxid)} ${times} ` +
      `v ${version} cv ${cversion} av ${aversion} owner ${owner} bytes ${dataLength} children ${numChildren})`;
  }

  /** One transaction has one time, whichever node shows it; no other equality can be counted on. */
  #times({ czxid, mzxid, ctime, mtime }: Stat): string {
    const faults: string[] = [];
    for (const [zxid, time] of [
      [czxid, ctime],
      [mzxid, mtime],
    ] as const) {
      if ((this.#timeOf.get(zxid) ?? time) !== time) faults.push('a transaction with two times');
      this.#timeOf.set(zxid, time);
      const isNow = Math.abs(Number(time) - Date.now()) < CLOCK_TOLERANCE_MS;
      if (zxid === 0n ? time !== 0n : !isNow) faults.push(`time ${time}`);
    }
    return faults.length === 0 ? 'times fine' : faults.join(', ');
  }

  #see(zxid: bigint): void {
    if (this.#zxids.has(zxid)) return;
    this.#zxids.add(zxid);
    this.#ranks = undefined;
  }

  #zxid(zxid: bigint): string {
    this.#ranks ??= new Map(
      [...this.#zxids].sort((a, b) => (a < b ? -1 : 1)).map((each, rank) => [each, rank]),
    );
    return zxid === 0n ? '0' : `#${this.#ranks.get(zxid)}`;
  }

  #session(id: bigint): string {
    if (id === 0n) return 'none';
    const name = this.#sessions.get(id) ?? `S${this.#sessions.size}`;
    this.#sessions.set(id, name);
    return name;
  }

  #password(password: Uint8Array | null): string {
    if (password === null) return 'null';
    const hex = Buffer.from(password).toString('hex');
    if (/^0+$/.test(hex)) return `zeros(${password.byteLength})`;
    const name = this.#passwords.get(hex) ?? `P${this.#passwords.size}(${password.byteLength})`;
    this.#passwords.set(hex, name);
    return name;
  }

  #rest(input: JuteReader): string {
    return input.remaining === 0 ? '' : `, and ${input.remaining} more bytes`;
  }
}

/** A request in a word or two, to find it again in a burst. */
function nameOf({ name, record }: Call): string {
  const path = record?.['path'];
  return typeof path === 'string' ? `${name} ${JSON.stringify(path)}` : name;
}

/** Lists whose order means nothing. */
function ordered(name: string, value: unknown): unknown {
  if (!Array.isArray(value)) return value;
  if (name === 'children' || name === 'ephemerals') return [...value].sort();
  const text = (each: unknown) => JSON.stringify(each);
  if (name === 'clientInfo') return [...value].sort((a, b) => (text(a) < text(b) ? -1 : 1));
  // Whoever `auth` stands for is listed in the order of a hash set.
  const digests = (value as Acl[]).filter(({ id }) => id?.scheme === 'digest').length;
  if (name === 'acl' && digests > 1) return [...value].sort((a, b) => (text(a) < text(b) ? -1 : 1));
  return value;
}
