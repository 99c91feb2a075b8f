import { readInt } from './big-endian.ts';
import { ProtocolError } from './errors.ts';

const PREFIX_BYTES = 4;
/** Parts shorter than this are copied together: kept by itself, a part of one byte costs a hundred. */
const PAGE_BYTES = 4 * 1024;
const FIRST_PAGE_BYTES = 64;

/**
 * Cuts a byte stream into length-prefixed frames. Pure: no socket, no promise.
 *
 * A frame that arrives in one chunk is handed out without a copy, and is good for as long as the chunk. The parts of one
 * that does not are copied into a list and joined once, so a frame in n parts costs its own length, not n times that.
 * Short parts are copied into pages, so that neither a peer that sends byte by byte nor the rest of a long chunk costs much more than it sent.
 */
export class FrameDecoder {
  readonly #frameBytesMax: number;
  #parts: Buffer[] = [];
  #partsBytes = 0;
  /** What the last part is the beginning of; undefined if that is a long one. */
  #page: Buffer | undefined;
  /** Bytes, prefix included, that the frame being collected needs; the prefix alone while that is unknown. */
  #wantedBytes = PREFIX_BYTES;

  constructor(frameBytesMax: number) {
    this.#frameBytesMax = frameBytesMax;
  }

  /** Why nothing more can be read: the frames before the one that cannot be are handed out first. */
  fault: ProtocolError | undefined;

  /** True if the stream stands between two frames. */
  get empty(): boolean {
    return this.#partsBytes === 0;
  }

  /** @throws ProtocolError for a length that cannot be, unless good frames come before it: then see `fault`. */
  push(chunk: Buffer): Buffer[] {
    if (this.fault) throw this.fault;
    const frames: Buffer[] = [];
    let rest = chunk;
    if (this.#partsBytes > 0) {
      if (this.#partsBytes + chunk.byteLength < this.#wantedBytes) {
        this.#keep(chunk);
        return frames;
      }
      rest = Buffer.concat([...this.#parts, chunk], this.#partsBytes + chunk.byteLength);
      this.#parts = [];
      this.#partsBytes = 0;
      this.#page = undefined;
    }
    let at = 0;
    for (;;) {
      const available = rest.byteLength - at;
      if (available < PREFIX_BYTES) {
        this.#wantedBytes = PREFIX_BYTES;
        break;
      }
      const frameBytes = readInt(rest, at);
      if (frameBytes < 0 || frameBytes > this.#frameBytesMax) {
        this.fault = new ProtocolError(`frame of ${frameBytes} bytes; the limit is ${this.#frameBytesMax}`);
        if (frames.length === 0) throw this.fault;
        return frames;
      }
      this.#wantedBytes = PREFIX_BYTES + frameBytes;
      if (available < this.#wantedBytes) break;
      frames.push(rest.subarray(at + PREFIX_BYTES, at + this.#wantedBytes));
      at += this.#wantedBytes;
    }
    if (at < rest.byteLength) this.#keep(at === 0 ? rest : rest.subarray(at));
    return frames;
  }

  #keep(part: Buffer): void {
    const last = this.#parts.at(-1);
    if (part.byteLength >= PAGE_BYTES) {
      this.#parts.push(Buffer.from(part));
      this.#page = undefined;
    } else if (last && this.#page && last.byteLength + part.byteLength <= this.#page.byteLength) {
      this.#page.set(part, last.byteLength);
      this.#parts[this.#parts.length - 1] = this.#page.subarray(0, last.byteLength + part.byteLength);
    } else {
      const pageBytes = Math.min(PAGE_BYTES, Math.max(FIRST_PAGE_BYTES, 2 * this.#partsBytes));
      this.#page = Buffer.allocUnsafeSlow(Math.max(part.byteLength, pageBytes));
      this.#page.set(part);
      this.#parts.push(this.#page.subarray(0, part.byteLength));
    }
    this.#partsBytes += part.byteLength;
  }
}
