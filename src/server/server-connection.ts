import { Fifo } from '../base/fifo.ts';
import { REQUEST_BYTES_MAX } from '../protocol/constants.ts';
import { ProtocolError } from '../protocol/errors.ts';
import { FrameDecoder } from '../protocol/frame-decoder.ts';
import { JuteWriter } from '../protocol/jute-writer.ts';
import type { Identity } from './access.ts';
import type { RequestRate } from './request-rate.ts';
import { Latencies } from './server-statistics.ts';
import type { ServerSession } from './session-table.ts';
import type { SlicedWork } from './sliced-work.ts';

const OPENING_BYTES = 4;
const GATHERED_BYTES = 64 * 1024;

/** The socket under a connection, or what a simulation has in its place. */
export interface ServerLink {
  write(bytes: Buffer): void;
  /** Ends the connection once what was written has gone out. */
  end(): void;
  destroy(): void;
  /** Stops and resumes reading: how a client that sends too much is held up. */
  pause(): void;
  resume(): void;
  /** What was written and has not gone out. */
  readonly bufferedBytes: number;
}

export interface Peer {
  /** The address in Java's form, e.g. 127.0.0.1. */
  readonly address: string;
  readonly port: number;
  /** What the transport itself proves, e.g. by a client certificate. */
  readonly identities: readonly Identity[];
}

/** Output that must wait for a transaction to be on disk, since it shows that transaction's effect, or comes behind such. */
interface Held {
  readonly zxid: bigint;
  /** Where it ends, counted from the first byte that was ever sent. */
  endsAt: number;
  frameCount: number;
  /** How many of the frames a request waits for, and not only a watcher. */
  answerCount: number;
}

/** What keeps a connection's next request from being handled. */
export type Obstacle = 'disk' | 'output' | 'rate' | 'turn';

/** One client's connection: its frames, its identities, its output. Knows no operation. */
export class ServerConnection {
  readonly peer: Peer;
  readonly link: ServerLink;
  readonly frames: FrameDecoder;
  readonly openedAtMs: number;
  identities: Identity[];
  session: ServerSession<ServerConnection> | undefined;
  /** Frames are heard no more: the connection was closed, from either side. */
  over = false;
  receivedCount = 0;
  sentCount = 0;
  lastOperation = 'NA';
  /** Of the last request a user made: the xids of pings and the like are negative, and not remembered. */
  lastXid = 0;
  lastZxid = 0n;
  lastResponseAtMs = 0;
  readonly latencies = new Latencies();
  /** Requests that came in and have not been handled; few, since reading stops while there are any. */
  readonly waiting = new Fifo<Buffer>();
  /** How fast they may be handled; as fast as can be if undefined. */
  rate: RequestRate | undefined;
  /** What it has had of one turn of the event loop: the intake's to keep. */
  readonly turn = { number: 0, usedMs: 0 };
  /** What it has had lately: the intake's to keep. */
  readonly load = { usedMs: 0, atMs: 0 };
  /** What is left of the request that is under way. */
  work: SlicedWork | undefined;
  /** The client is gone, and what it asked before is being done. Nothing is answered. */
  departed = false;
  /** It has asked a four-letter word, and is not heard any more. */
  asksWord = false;
  /** How long the frames are that waited when the client left. */
  waitingBytes = 0;
  /** Why they have not been handled. */
  stalledBy: Obstacle | undefined;
  /** Answers that wait for the disk. */
  outstandingCount = 0;
  #paused = false;
  /** What came before there were four bytes; undefined from then on. */
  #opening: Buffer | undefined = Buffer.alloc(0);
  /**
   * What has not been written to the link, in order:
   *
   *   | may go out | held until one transaction | held until a later one | …
   *   ^writtenBytes ^freeUntil                   ^held[0].endsAt
   */
  readonly #out = new JuteWriter();
  #writtenBytes = 0;
  #freeUntil = 0;
  #frameMark = 0;
  #frameOpen = false;
  /** Events behind the answer that is being made; undefined if none is. */
  eventsLater: (() => void)[] | undefined;
  #held: Held[] = [];
  /** Frames that wait for the disk. */
  heldCount = 0;
  #ending = false;

  constructor(peer: Peer, link: ServerLink, nowMs: number, frameBytesMax: number = REQUEST_BYTES_MAX) {
    this.peer = peer;
    this.link = link;
    this.openedAtMs = nowMs;
    this.frames = new FrameDecoder(frameBytesMax);
    this.identities = [{ scheme: 'ip', id: peer.address }, ...peer.identities];
  }

  /** Everything that was sent and that the peer's machine has not taken, for whatever reason. */
  get outputBytes(): number {
    return this.link.bufferedBytes + this.#out.byteLength;
  }

  /**
   * Holds the first bytes back until there are four: a four-letter word, or the length of the connect request.
   * The four with all that came after them are handed out once; undefined until then.
   */
  open(chunk: Buffer): Buffer | undefined {
    if (this.#opening === undefined) return undefined;
    const bytes = this.#opening.byteLength === 0 ? chunk : Buffer.concat([this.#opening, chunk]);
    this.#opening = bytes.byteLength < OPENING_BYTES ? bytes : undefined;
    return this.#opening ? undefined : bytes;
  }

  /** Whether the first four bytes have been handed out. */
  get opened(): boolean {
    return this.#opening === undefined;
  }

  /** Cuts frames, which then wait to be handled. Bytes that are not the protocol show as the decoder's fault. */
  push(chunk: Buffer): void {
    try {
      for (const frame of this.frames.push(chunk)) this.waiting.push(frame);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
    }
  }

  /** Reads no more until `resume`. */
  pause(): void {
    if (this.#paused) return;
    this.#paused = true;
    this.link.pause();
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.link.resume();
  }

  /** Begins a frame of the output: to be written into what is returned, and to be ended by `endFrame`. */
  beginFrame(): JuteWriter {
    this.#frameMark = this.#out.beginFrame();
    this.#frameOpen = true;
    return this.#out;
  }

  /** The frame goes out when everything up to `heldUntil` is on disk (at once if undefined), and behind all before it. */
  endFrame(heldUntil: bigint | undefined, answers: boolean): void {
    this.#out.endFrame(this.#frameMark);
    this.#frameOpen = false;
    this.sentCount++;
    const endsAt = this.#writtenBytes + this.#out.byteLength;
    const last = this.#held.at(-1);
    if (heldUntil === undefined && !last) {
      this.#freeUntil = endsAt;
      // What is gathered further is copied each time it outgrows its buffer.
      if (this.#out.byteLength >= GATHERED_BYTES) this.flush();
      return;
    }
    this.heldCount++;
    if (answers) this.outstandingCount++;
    if (last && (heldUntil === undefined || heldUntil <= last.zxid)) {
      last.endsAt = endsAt;
      last.frameCount++;
      if (answers) last.answerCount++;
    } else this.#held.push({ zxid: heldUntil!, endsAt, frameCount: 1, answerCount: answers ? 1 : 0 });
  }

  /** Everything up to this transaction is on disk: what waited for it goes out with the next `flush`. */
  release(zxid: bigint): void {
    let count = 0;
    for (const held of this.#held) {
      if (held.zxid > zxid) break;
      count++;
      this.#freeUntil = held.endsAt;
      this.heldCount -= held.frameCount;
      this.outstandingCount -= held.answerCount;
    }
    if (count === this.#held.length) this.#held = [];
    else if (count > 0) this.#held.splice(0, count);
  }

  /** Sends what may go out: all that one step produced, in one write. */
  flush(): void {
    if (this.#frameOpen) return; // It is found by its place behind what has not been written.
    const bytes = this.#freeUntil - this.#writtenBytes;
    if (bytes > 0) {
      this.#writtenBytes = this.#freeUntil;
      this.link.write(this.#out.takeFirst(bytes));
    }
    if (this.#ending && this.#held.length === 0) {
      this.#ending = false;
      this.link.end();
    }
  }

  /** Hears no more, and ends once the output is out. */
  end(): void {
    this.over = true;
    this.#ending = true;
    this.waiting.drain();
    this.resume(); // What the peer still says is not heard, but that it hangs up must be.
    this.flush();
  }

  /** Says something that is no frame, and ends. */
  endWith(text: string): void {
    this.sentCount++;
    this.link.write(Buffer.from(text));
    this.end();
  }

  destroy(): void {
    this.abandon();
    this.link.destroy();
  }

  /** How long the frames are that wait. */
  measureWaiting(): number {
    const frames = this.waiting.drain();
    for (const frame of frames) this.waiting.push(frame);
    this.waitingBytes = frames.reduce((sum, { byteLength }) => sum + byteLength, 0);
    return this.waitingBytes;
  }

  /** The link is gone: what waits on either side of it waits for nothing. */
  abandon(): void {
    this.over = true;
    this.waiting.drain();
    this.silence();
  }

  /** The answer is made that events had to come behind. */
  tellLater(): void {
    const { eventsLater } = this;
    if (!eventsLater) return;
    this.eventsLater = undefined;
    for (const tell of eventsLater) tell();
  }

  /** The link is gone: nothing more goes out. */
  silence(): void {
    this.#frameOpen = false;
    this.eventsLater = undefined;
    this.#held = [];
    this.heldCount = 0;
    this.outstandingCount = 0;
    this.#ending = false;
    this.#out.clear();
    this.#freeUntil = this.#writtenBytes;
  }

  /** Counts anew, as if the connection had done nothing so far. */
  resetStatistics(): void {
    this.receivedCount = 0;
    this.sentCount = 0;
    this.lastOperation = 'NA';
    this.lastXid = -1;
    this.lastZxid = -1n;
    this.lastResponseAtMs = 0;
    this.latencies.reset();
  }
}
