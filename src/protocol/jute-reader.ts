import { readInt, readLong } from './big-endian.ts';
import { ProtocolError } from './errors.ts';

/**
 * Reads Jute values from one frame.
 *
 * Every length is checked against the bytes that are left before anything is allocated, so a frame of n
 * bytes can cost at most about n bytes of memory whatever it claims. Throws `ProtocolError` and nothing else.
 * Bytes behind the last field are ignored, as all ZooKeeper implementations do.
 */
export class JuteReader {
  readonly #bytes: Buffer;
  #position = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get remaining(): number {
    return this.#bytes.byteLength - this.#position;
  }

  int(): number {
    const at = this.#advance(4);
    return readInt(this.#bytes, at);
  }

  long(): bigint {
    const at = this.#advance(8);
    return readLong(this.#bytes, at);
  }

  boolean(): boolean {
    return this.#bytes[this.#advance(1)] !== 0;
  }

  /** A copy, so that a small value does not keep the network chunk it came in alive. */
  buffer(): Buffer | null {
    const bytes = this.int();
    if (bytes === -1) return null;
    const at = this.#advance(bytes);
    return Buffer.from(this.#bytes.subarray(at, at + bytes));
  }

  ustring(): string | null {
    const bytes = this.int();
    if (bytes === -1) return null;
    const at = this.#advance(bytes);
    return this.#bytes.toString('utf8', at, at + bytes);
  }

  /** A vector's count: null for -1, empty for other negative numbers, as the Java decoder has it. */
  count(elementBytesMin: number): number | null {
    const count = this.int();
    if (count === -1) return null;
    if (count > this.remaining / elementBytesMin) {
      throw new ProtocolError(`vector of ${count} elements in ${this.remaining} bytes`);
    }
    return Math.max(0, count);
  }

  /** Whether these bytes come next: if so, they are passed over. */
  skipIfNext(wanted: Buffer): boolean {
    if (wanted.byteLength > this.remaining) return false;
    for (let index = 0; index < wanted.byteLength; index++) {
      if (this.#bytes[this.#position + index] !== wanted[index]) return false;
    }
    this.#position += wanted.byteLength;
    return true;
  }

  /** A copy of the last bytes that were read. */
  previous(bytes: number): Buffer {
    return Buffer.from(this.#bytes.subarray(this.#position - bytes, this.#position));
  }

  #advance(bytes: number): number {
    const at = this.#position;
    if (bytes < 0 || bytes > this.#bytes.byteLength - at) {
      throw new ProtocolError(`field of ${bytes} bytes with ${this.remaining} bytes left`);
    }
    this.#position = at + bytes;
    return at;
  }
}
