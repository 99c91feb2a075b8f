import { connect, type Socket } from 'node:net';
import { deferred } from '../../src/base/deferred.ts';
import { FrameDecoder } from '../../src/protocol/frame-decoder.ts';
import { Connect } from '../../src/protocol/handshake.ts';
import { JuteWriter } from '../../src/protocol/jute-writer.ts';
import type { ValueOf } from '../../src/protocol/record.ts';

const FRAME_BYTES_MAX = 16 * 1024 * 1024;
/** A server that answers at all does so long before this, also on a machine that has other work. */
const SILENCE_MS = 10_000;

/** The length of what follows, the xid and the opcode. */
const PREFIX_AND_HEADER_BYTES = 12;

export interface RawRequest {
  readonly xid: number;
  readonly opcode: number;
  readonly body: Buffer;
}

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** What came, and why there is no more to wait for. */
export interface Collected {
  readonly frames: readonly Buffer[];
  readonly ended: 'answered' | 'closed' | 'silence';
}

/**
 * One connection, frame by frame. It shares the codecs with the server under test and nothing else: the client
 * proper stays out, so that a fault in it cannot hide one in the server.
 */
export class FrameConnection {
  readonly #socket: Socket;
  readonly #decoder = new FrameDecoder(FRAME_BYTES_MAX);
  #frames: Buffer[] = [];
  #closed = false;
  #changed = deferred();

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('data', (chunk) => {
      this.#frames.push(...this.#decoder.push(chunk));
      this.#wake();
    });
    socket.on('error', () => {}); // `close` follows.
    // The server's half is what counts: nothing more will come, whenever our own half is gone too.
    socket.on('end', () => this.#end());
    socket.on('close', () => this.#end());
  }

  static async open(address: Address): Promise<FrameConnection> {
    const socket = connect({ ...address, noDelay: true });
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve);
      socket.once('error', reject);
    });
    return new FrameConnection(socket);
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Sends a connect request and waits for the answer, or for the connection to be closed instead of one. */
  async handshake(request: ValueOf<typeof Connect>): Promise<Collected> {
    const out = new JuteWriter();
    const mark = out.beginFrame();
    Connect.write(out, request);
    out.endFrame(mark);
    this.#socket.write(out.take());
    return this.collect((frames) => frames.length > 0);
  }

  /** Sends requests in one write, bodies as they are given. */
  send(requests: readonly RawRequest[]): void {
    const parts = requests.flatMap(({ xid, opcode, body }) => {
      const head = Buffer.alloc(PREFIX_AND_HEADER_BYTES);
      head.writeInt32BE(PREFIX_AND_HEADER_BYTES - 4 + body.byteLength, 0);
      head.writeInt32BE(xid, 4);
      head.writeInt32BE(opcode, 8);
      return [head, body];
    });
    this.#socket.write(Buffer.concat(parts));
  }

  /** Takes everything that arrives until `enough` of it is there, the connection is closed, or nothing comes. */
  async collect(enough: (frames: readonly Buffer[]) => boolean, silenceMs = SILENCE_MS): Promise<Collected> {
    const deadlineMs = performance.now() + silenceMs;
    for (;;) {
      if (enough(this.#frames)) return this.#take('answered');
      if (this.#closed) return this.#take('closed');
      const leftMs = deadlineMs - performance.now();
      if (leftMs <= 0) return this.#take('silence');
      await this.#change(leftMs);
    }
  }

  /** Hangs up without a word. */
  async drop(): Promise<void> {
    this.#socket.destroy();
    await this.collect(() => false);
  }

  #take(ended: Collected['ended']): Collected {
    const frames = this.#frames;
    this.#frames = [];
    return { frames, ended };
  }

  async #change(waitMs: number): Promise<void> {
    const overdue = setTimeout(() => this.#wake(), waitMs);
    await this.#changed.promise;
    clearTimeout(overdue);
  }

  #end(): void {
    this.#closed = true;
    this.#wake();
  }

  #wake(): void {
    this.#changed.resolve();
    this.#changed = deferred();
  }
}
