import type { Clock } from '../base/clock.ts';
import { FrameDecoder } from '../protocol/frame-decoder.ts';
import { Connect, Connected } from '../protocol/handshake.ts';
import { JuteReader } from '../protocol/jute-reader.ts';
import { JuteWriter } from '../protocol/jute-writer.ts';
import { operations } from '../protocol/operations.ts';
import type { Codec, ValueOf } from '../protocol/record.ts';
import { ReplyHeader, RequestHeader } from '../protocol/records.ts';
import type { ServerConnection, ServerLink } from './server-connection.ts';
import type { ServerCore } from './server-core.ts';

/** Time that stands still until it is set. */
export class StillClock implements Clock {
  ms = 1_000;
  nowMs(): number {
    return this.ms;
  }
  wallMs(): number {
    return 1_700_000_000_000 + Math.floor(this.ms);
  }
  at(): never {
    throw new Error('the core has no timers');
  }
  endOfTick(): never {
    throw new Error('the core has no timers');
  }
  afterTick(): never {
    throw new Error('the core has no timers');
  }
  afterInput(): never {
    throw new Error('the core has no timers');
  }
}

/** Everything takes time: each look at the clock is a tenth of a millisecond later. */
export class SlowClock extends StillClock {
  override nowMs(): number {
    this.ms += 0.1;
    return this.ms;
  }
}

/** A link to a peer in the same process. What is written arrives at once, unless the peer does not read. */
export class MemoryLink implements ServerLink {
  reads = true;
  paused = false;
  ended = false;
  destroyed = false;
  bufferedBytes = 0;
  writeCount = 0;
  #received: Buffer[] = [];

  write(bytes: Buffer): void {
    if (this.destroyed) return;
    this.writeCount++;
    if (!this.reads) this.bufferedBytes += bytes.byteLength;
    this.#received.push(Buffer.from(bytes));
  }
  end(): void {
    this.ended = true;
  }
  destroy(): void {
    this.destroyed = true;
  }
  pause(): void {
    this.paused = true;
  }
  resume(): void {
    this.paused = false;
  }

  get over(): boolean {
    return this.ended || this.destroyed;
  }

  /** What has arrived since this was asked last. */
  take(): Buffer {
    const received = Buffer.concat(this.#received);
    this.#received = [];
    return received;
  }
}

export interface Reply extends ReplyHeader {
  readonly body: Buffer;
}

type OperationName = keyof typeof operations;

/** A client of a server core, frame by frame, without a socket. */
export class MemoryClient {
  readonly link = new MemoryLink();
  readonly connection: ServerConnection;
  readonly #core: ServerCore;
  readonly #decoder = new FrameDecoder(2 ** 30);
  #nextXid = 1;

  constructor(core: ServerCore, address = '127.0.0.1') {
    this.#core = core;
    this.connection = core.accept(this.link, { address, port: 4000, identities: [] });
  }

  /** A client with a session. */
  static connected(core: ServerCore, request: Partial<ValueOf<typeof Connect>> = {}): MemoryClient {
    const client = new MemoryClient(core);
    client.send(connectFrame(request));
    client.handshakeAnswer();
    return client;
  }

  send(bytes: Buffer): void {
    this.#core.receive(this.connection, bytes);
  }

  /** Sends requests in one chunk; returns their xids. */
  ask(...requests: readonly (readonly [OperationName, unknown?])[]): number[] {
    const xids = requests.map(() => this.#nextXid++);
    this.send(
      Buffer.concat(requests.map(([name, record], index) => requestFrame(xids[index]!, name, record))),
    );
    return xids;
  }

  /** Asks one thing and returns the answer, which must be there at once. */
  call(name: OperationName, record?: unknown): Reply {
    const [xid] = this.ask([name, record]);
    const reply = this.replies().find((each) => each.xid === (name === 'ping' ? -2 : xid));
    if (!reply) throw new Error(`${name} was not answered`);
    return reply;
  }

  /** The peer reads what it has not read, and goes on reading. */
  readAll(): void {
    this.link.reads = true;
    this.link.bufferedBytes = 0;
    this.#core.drained(this.connection);
  }

  handshakeAnswer(): ValueOf<typeof Connected> | undefined {
    const [frame] = this.frames();
    return frame && Connected.read(new JuteReader(frame));
  }

  frames(): Buffer[] {
    return this.#decoder.push(this.link.take());
  }

  replies(): Reply[] {
    return this.frames().map((frame) => ({
      ...ReplyHeader.read(new JuteReader(frame)),
      body: frame.subarray(ReplyHeader.bytesMin),
    }));
  }
}

const out = new JuteWriter();

export function frameOf(write: (out: JuteWriter) => void): Buffer {
  const mark = out.beginFrame();
  write(out);
  out.endFrame(mark);
  return Buffer.from(out.take());
}

export function connectFrame(request: Partial<ValueOf<typeof Connect>> = {}): Buffer {
  return frameOf((out) =>
    Connect.write(out, {
      protocolVersion: 0,
      lastZxidSeen: 0n,
      timeOut: 10_000,
      sessionId: 0n,
      passwd: Buffer.alloc(16),
      readOnly: false,
      ...request,
    }),
  );
}

export function requestFrame(xid: number, name: OperationName, record?: unknown): Buffer {
  const operation = operations[name];
  return frameOf((out) => {
    RequestHeader.write(out, { xid, type: operation.opcode });
    (operation.request as Codec<unknown>).write(out, record);
  });
}

export const OPEN_ACL = [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }] as const;

/** The record of a create with nothing special about it. */
export function node(path: string, data: Buffer | null = null, flags = 0) {
  return { path, data, acl: OPEN_ACL, flags };
}
