import { ProtocolError } from './errors.ts';

const PREFIX_BYTES = 4;

/**
 * Cuts a byte stream into length-prefixed frames. Pure: no socket, no promise.
 *
 * A frame that arrives in one chunk is handed out without a copy. The parts of one that does not are kept
 * in a list and joined once, so a frame in n parts costs its own length, not n times that.
 */
export class FrameDecoder {
  readonly #frameBytesMax: number;
  #parts: Buffer[] = [];
  #partsBytes = 0;
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
      this.#parts.push(chunk);
      this.#partsBytes += chunk.byteLength;
      if (this.#partsBytes < this.#wantedBytes) return frames;
      rest = Buffer.concat(this.#parts, this.#partsBytes);
      this.#parts = [];
      this.#partsBytes = 0;
    }
    let at = 0;
    for (;;) {
      const available = rest.byteLength - at;
      if (available < PREFIX_BYTES) {
        this.#wantedBytes = PREFIX_BYTES;
        break;
      }
      const frameBytes = rest.readInt32BE(at);
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
    if (at < rest.byteLength) {
      this.#parts.push(at === 0 ? rest : rest.subarray(at));
      this.#partsBytes = rest.byteLength - at;
    }
    return frames;
  }
}
