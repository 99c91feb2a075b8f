import { connect, type Socket } from 'node:net';
import { deferred } from '../../src/base/deferred.ts';
import { FrameDecoder } from '../../src/protocol/frame-decoder.ts';
import { Connected } from '../../src/protocol/handshake.ts';
import { JuteReader } from '../../src/protocol/jute-reader.ts';
import type { ValueOf } from '../../src/protocol/record.ts';
import { ReplyHeader } from '../../src/protocol/records.ts';
import { connectFrame } from '../../src/server/memory-client.test-data.ts';

export interface Address {
  readonly host: string;
  readonly port: number;
}

const FRAME_BYTES_MAX = 2 ** 26;
/** A server that answers at all does so long before this, also on a machine that has other work. */
const SILENCE_MS = 20_000;
/** Less than any timeout: what is closed by then was closed for what it did. */
const CLOSING_MS = 6_000;

/** A peer that sends whatever bytes it likes, and tells what came back. */
export class RawPeer implements AsyncDisposable {
  readonly socket: Socket;
  readonly #decoder = new FrameDecoder(FRAME_BYTES_MAX);
  #frames: Buffer[] = [];
  #closed = false;
  #changed = deferred();

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk: Buffer) => {
      this.#frames.push(...this.#decoder.push(chunk));
      this.#wake();
    });
    socket.on('error', () => {}); // `close` follows.
    const ended = () => {
      this.#closed = true;
      this.#wake();
    };
    socket.on('end', ended);
    socket.on('close', ended);
  }

  static async dial(
    { host, port }: Address,
    options: { readonly halfOpen?: boolean } = {},
  ): Promise<RawPeer> {
    const socket = connect({ host, port, noDelay: true, allowHalfOpen: options.halfOpen ?? false });
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve);
      socket.once('error', reject);
    });
    return new RawPeer(socket);
  }

  /** A peer with a session. */
  static async connected(
    address: Address,
    request: Parameters<typeof connectFrame>[0] & { readonly halfOpen?: boolean } = {},
  ): Promise<RawPeer> {
    const peer = await RawPeer.dial(address, request);
    peer.send(connectFrame(request));
    await peer.handshakeAnswer();
    return peer;
  }

  get closed(): boolean {
    return this.#closed;
  }

  send(bytes: Uint8Array): void {
    if (!this.socket.destroyed) this.socket.write(bytes);
  }

  async handshakeAnswer(): Promise<ValueOf<typeof Connected>> {
    return Connected.read(new JuteReader(await this.frame()));
  }

  /** The next frame. @throws if the connection ends instead. */
  async frame(): Promise<Buffer> {
    await this.#until(() => this.#frames.length > 0);
    const frame = this.#frames.shift();
    if (!frame) throw new Error('the connection ended where a frame was due');
    return frame;
  }

  /** What has come and was not asked for. */
  rest(): Buffer[] {
    return this.#frames.splice(0);
  }

  /** The headers of what comes until the one with this xid, or the end of the connection. */
  async replies(lastXid: number): Promise<ReplyHeader[]> {
    const replies: ReplyHeader[] = [];
    for (;;) {
      await this.#until(() => this.#frames.length > 0);
      const frame = this.#frames.shift();
      if (!frame) return replies;
      const header = ReplyHeader.read(new JuteReader(frame));
      replies.push(header);
      if (header.xid === lastXid) return replies;
    }
  }

  /** Resolves when the server has closed. @throws if it does not, as one that waits for a timeout to pass. */
  async close(withinMs = CLOSING_MS): Promise<void> {
    await this.#until(() => false, withinMs);
  }

  /** Resolves when the condition holds or the connection has ended. */
  async #until(condition: () => boolean, withinMs = SILENCE_MS): Promise<void> {
    const deadlineMs = performance.now() + withinMs;
    while (!condition() && !this.#closed) {
      const leftMs = deadlineMs - performance.now();
      if (leftMs <= 0) throw new Error(`neither an answer nor an end within ${withinMs} ms`);
      const overdue = setTimeout(() => this.#wake(), leftMs);
      await this.#changed.promise;
      clearTimeout(overdue);
    }
  }

  #wake(): void {
    this.#changed.resolve();
    this.#changed = deferred();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.socket.destroy();
  }
}
