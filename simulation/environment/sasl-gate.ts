import { FrameDecoder } from '../../src/protocol/frame-decoder.ts';
import { JuteReader } from '../../src/protocol/jute-reader.ts';
import { JuteWriter } from '../../src/protocol/jute-writer.ts';
import { operations } from '../../src/protocol/operations.ts';
import { ReplyHeader, RequestHeader } from '../../src/protocol/records.ts';
import type { Peer, ServerLink } from '../../src/server/server-connection.ts';
import { answerChallenge } from '../../src/session/sasl-digest-md5.ts';
import type { SimulatedListener } from './simulated-network.ts';

/** What every client and every server of a world with SASL knows. */
export const SASL_CREDENTIALS = { username: 'simulated', password: 'secret' };

const FRAME_BYTES_MAX = 4 * 1024 * 1024;

interface GatedConnection {
  readonly inner: object;
  readonly link: ServerLink;
  readonly frames: FrameDecoder;
  handshaken: boolean;
  /** Set while a client has been given it and has not answered. */
  challenge: string | undefined;
  /** All that comes is the server's business: the client has logged in, or does not speak the protocol. */
  through: boolean;
}

/** Stands in front of a server that has no SASL, and speaks it for it. */
export class SaslGate implements SimulatedListener {
  readonly #inner: SimulatedListener;
  #challengeCount = 0;

  constructor(inner: SimulatedListener) {
    this.#inner = inner;
  }

  accept(link: ServerLink, peer: Peer): GatedConnection | undefined {
    const inner = this.#inner.accept(link, peer);
    if (!inner) return undefined;
    const frames = new FrameDecoder(FRAME_BYTES_MAX);
    return { inner, link, frames, handshaken: false, challenge: undefined, through: false };
  }

  receive(connection: GatedConnection, chunk: Buffer): void {
    if (connection.through) return this.#inner.receive(connection.inner, chunk);
    let frames: Buffer[];
    try {
      frames = connection.frames.push(chunk);
    } catch {
      connection.through = true; // A four-letter word.
      return this.#inner.receive(connection.inner, chunk);
    }
    for (const frame of frames) this.#frameReceived(connection, frame);
  }

  #frameReceived(connection: GatedConnection, frame: Buffer): void {
    const input = new JuteReader(frame);
    const header = connection.handshaken ? RequestHeader.read(input) : undefined;
    if (header?.type !== operations.sasl.opcode) {
      connection.handshaken = true;
      return this.#inner.receive(connection.inner, withLength(frame));
    }
    const token = String(operations.sasl.request.read(input).token);
    let answer: string;
    if (connection.challenge === undefined) {
      answer = `realm="zk-sasl-md5",nonce="n${++this.#challengeCount}",charset=utf-8,algorithm=md5-sess`;
      connection.challenge = answer;
    } else {
      const clientNonce = /cnonce="([^"]*)"/.exec(token)![1]!;
      answer = answerChallenge(connection.challenge, SASL_CREDENTIALS, clientNonce).proof;
      connection.challenge = undefined;
    }
    connection.link.write(
      framed((out) => {
        ReplyHeader.write(out, { xid: header.xid, zxid: 0n, err: 0 });
        operations.sasl.reply.write(out, { token: Buffer.from(answer) });
      }),
    );
  }

  closed(connection: GatedConnection): void {
    this.#inner.closed(connection.inner);
  }

  drained(connection: GatedConnection): void {
    this.#inner.drained(connection.inner);
  }

  stepped(): void {
    this.#inner.stepped();
  }
}

export function framed(write: (out: JuteWriter) => void): Buffer {
  const out = new JuteWriter();
  const mark = out.beginFrame();
  write(out);
  out.endFrame(mark);
  return Buffer.from(out.take());
}

export function withLength(frame: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(frame.byteLength);
  return Buffer.concat([length, frame]);
}
