import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { deferred } from '../../src/base/deferred.ts';
import { FrameDecoder } from '../../src/protocol/frame-decoder.ts';
import { Connect, Connected, SESSION_PASSWORD_BYTES } from '../../src/protocol/handshake.ts';
import { JuteReader } from '../../src/protocol/jute-reader.ts';
import { JuteWriter } from '../../src/protocol/jute-writer.ts';
import { operationOf, operations, xids } from '../../src/protocol/operations.ts';
import type { Codec, ValueOf } from '../../src/protocol/record.ts';
import { ReplyHeader, RequestHeader, type Stat, WatcherEvent } from '../../src/protocol/records.ts';

const HOST = '127.0.0.1';
const FRAME_BYTES_MAX = 16 * 1024 * 1024;

/** One request of a client, decoded. */
export interface RawRequest {
  readonly xid: number;
  /** The operation's name, such as `getData`; its number if there is no such operation. */
  readonly operation: string;
  readonly record: unknown;
}

/** What a connection does from its acceptance on. Ends by itself when the connection does. */
export type RawScript = (connection: RawConnection) => unknown;

/**
 * A server on 127.0.0.1 that does what its script says, to show a client what no real server would send.
 *
 * @example
 * ```ts
 * await using server = await RawServer.start(async (connection) => {
 *   await connection.grant();
 *   for await (const request of connection.requests()) connection.refuse(request, -9999);
 * });
 * ```
 */
export class RawServer implements AsyncDisposable {
  readonly host = HOST;
  readonly port: number;
  /** In the order they were made, those that have ended included. */
  readonly connections: RawConnection[] = [];
  readonly #listener: Server;
  readonly #script: RawScript;
  readonly #failures: unknown[] = [];

  private constructor(listener: Server, script: RawScript) {
    this.port = (listener.address() as AddressInfo).port;
    this.#listener = listener;
    this.#script = script;
    listener.on('connection', (socket) => void this.#accept(socket));
  }

  static async start(script: RawScript): Promise<RawServer> {
    const listener = createServer({ noDelay: true });
    await new Promise<void>((resolve) => listener.listen({ host: HOST, port: 0 }, resolve));
    return new RawServer(listener, script);
  }

  get connectString(): string {
    return `${this.host}:${this.port}`;
  }

  /** Stops listening and ends every connection. @throws what a script threw. */
  async [Symbol.asyncDispose](): Promise<void> {
    const stopped = new Promise<void>((resolve) => this.#listener.close(() => resolve()));
    for (const connection of this.connections) connection.destroy();
    await stopped;
    if (this.#failures.length > 0) throw new AggregateError(this.#failures, this.#failures.join('; '));
  }

  async #accept(socket: Socket): Promise<void> {
    const connection = new RawConnection(socket);
    this.connections.push(connection);
    try {
      await this.#script(connection);
    } catch (error) {
      this.#failures.push(error);
    }
  }
}

/** One connection, as the server's end of it sees it. */
export class RawConnection {
  /** What the client asked for in its handshake. */
  readonly opening: Promise<ValueOf<typeof Connect>>;
  readonly #socket: Socket;
  readonly #frames = new FrameDecoder(FRAME_BYTES_MAX);
  readonly #opened = deferred<ValueOf<typeof Connect>>();
  readonly #requests: RawRequest[] = [];
  #isOpen = false;
  #changed = deferred();
  #zxid = 1n;

  constructor(socket: Socket) {
    this.#socket = socket;
    this.opening = this.#opened.promise;
    socket.on('data', (chunk) => {
      // A four-letter word: a server that has them turned off says nothing, and hangs up.
      if (!this.#isOpen && chunk.byteLength === 4) return void socket.destroy();
      for (const frame of this.#frames.push(chunk)) this.#received(new JuteReader(frame));
    });
    socket.on('error', () => {}); // The client hung up; `close` follows.
    socket.on('close', () => this.#wake());
  }

  get closed(): boolean {
    return this.#socket.destroyed;
  }

  /** Answers the handshake: the session that was asked for, or a new one. */
  async grant(options: { readonly timeoutMs?: number; readonly newId?: bigint } = {}): Promise<void> {
    const { sessionId, timeOut } = await this.opening;
    this.#answerHandshake(
      options.timeoutMs ?? timeOut,
      sessionId === 0n ? (options.newId ?? 0x1000n) : sessionId,
    );
  }

  /** Answers the handshake as a server does that has ended the session. */
  async expire(): Promise<void> {
    await this.opening;
    this.#answerHandshake(0, 0n);
  }

  /**
   * The requests as they come in, until the connection ends. Pings and the closing of the session are answered
   * here and not handed out.
   */
  async *requests(): AsyncGenerator<RawRequest, void, void> {
    for (;;) {
      const request = this.#requests.shift();
      if (request) yield request;
      else if (this.closed) return;
      else await this.#changed.promise;
    }
  }

  /** The next `count` requests; fewer if the connection ends before. */
  async take(count: number): Promise<RawRequest[]> {
    while (this.#requests.length < count && !this.closed) await this.#changed.promise;
    return this.#requests.splice(0, count);
  }

  /** Answers a request with success. The record is the reply of its operation. */
  answer(request: RawRequest, reply: unknown): void {
    this.send(this.answerBytes(request, reply));
  }

  answerBytes({ xid, operation }: RawRequest, reply: unknown): Buffer {
    const codec: Codec<unknown> = operations[operation as keyof typeof operations].reply;
    return replyBytes({ xid, zxid: this.#zxid++, err: 0 }, (out) => codec.write(out, reply));
  }

  /** Answers a request with an error code, whether there is such a code or not. */
  refuse({ xid }: { readonly xid: number }, err: number): void {
    this.send(replyBytes({ xid, zxid: this.#zxid++, err }));
  }

  /** Tells of an event, whether there is such a type or not. */
  notify(event: { readonly type: number; readonly path: string }): void {
    this.send(
      replyBytes({ xid: xids.notification, zxid: -1n, err: 0 }, (out) =>
        WatcherEvent.write(out, { ...event, state: 3 }),
      ),
    );
  }

  send(bytes: Uint8Array): void {
    if (!this.closed) this.#socket.write(bytes);
  }

  /** Hangs up, as a server does that stops. */
  destroy(): void {
    this.#socket.destroy();
  }

  #answerHandshake(timeOut: number, sessionId: bigint): void {
    const passwd = Buffer.alloc(SESSION_PASSWORD_BYTES, timeOut > 0 ? 7 : 0);
    this.send(
      frameBytes((out) =>
        Connected.write(out, { protocolVersion: 0, timeOut, sessionId, passwd, readOnly: false }),
      ),
    );
  }

  #received(input: JuteReader): void {
    if (!this.#isOpen) {
      this.#isOpen = true;
      this.#opened.resolve(Connect.read(input));
      return;
    }
    const { xid, type } = RequestHeader.read(input);
    const operation = operationOf(type);
    if (operation === operations.ping || operation === operations.closeSession) {
      this.send(replyBytes({ xid, zxid: this.#zxid, err: 0 }));
      if (operation === operations.closeSession) this.#socket.end();
      return;
    }
    this.#requests.push({
      xid,
      operation: operation?.name ?? String(type),
      record: operation?.request.read(input),
    });
    this.#wake();
  }

  #wake(): void {
    this.#changed.resolve();
    this.#changed = deferred();
  }
}

/** A frame with whatever `write` writes. */
export function frameBytes(write: (out: JuteWriter) => void): Buffer {
  const out = new JuteWriter();
  const mark = out.beginFrame();
  write(out);
  out.endFrame(mark);
  return out.take();
}

export function replyBytes(header: ReplyHeader, body?: (out: JuteWriter) => void): Buffer {
  return frameBytes((out) => {
    ReplyHeader.write(out, header);
    body?.(out);
  });
}

/** A length prefix of the test's choice, without the frame that it announces. */
export function lengthPrefix(frameBytesClaimed: number): Buffer {
  const prefix = Buffer.alloc(4);
  prefix.writeInt32BE(frameBytesClaimed | 0);
  return prefix;
}

/** The stat of a node that nobody has looked at. */
export const BLANK_STAT: Stat = {
  czxid: 1n,
  mzxid: 1n,
  ctime: 0n,
  mtime: 0n,
  version: 0,
  cversion: 0,
  aversion: 0,
  ephemeralOwner: 0n,
  dataLength: 0,
  numChildren: 0,
  pzxid: 1n,
};
