import { invariant } from '../base/assert.ts';
import { writeLong } from './big-endian.ts';

/** A slab holds several of the largest writes seen, within these bounds. */
const SLAB_BYTES_MIN = 512;
const SLAB_BYTES_MAX = 16 * 1024;
const WRITES_PER_SLAB = 8;
const SHORT_STRING_LENGTH = 48;

/**
 * Writes Jute values and frames into one growing buffer.
 *
 *   slab:  | taken earlier | frame | frame | frame being written … | free |
 *                          ^start                                  ^end
 *
 * `take()` hands out start…end without a copy and goes on behind it in the same slab, so that a tick's
 * requests are one contiguous write and a busy client allocates one slab per 16 KiB, not one per request.
 * A server has a writer per connection, and most connections only ever answer pings: their slabs stay small.
 */
export class JuteWriter {
  #slab: Buffer = Buffer.allocUnsafeSlow(SLAB_BYTES_MIN);
  #view = viewOf(this.#slab);
  #start = 0;
  #end = 0;
  /** The most that was taken at once since the slab was begun. */
  #takenBytesMax = 0;

  /** Bytes written and not yet taken. */
  get byteLength(): number {
    return this.#end - this.#start;
  }

  int(value: number): void {
    this.#reserve(4);
    this.#setInt(this.#end, value);
    this.#end += 4;
  }

  long(value: bigint): void {
    this.#reserve(8);
    writeLong(this.#view, this.#end, value);
    this.#end += 8;
  }

  boolean(value: boolean): void {
    this.#reserve(1);
    this.#slab[this.#end++] = value ? 1 : 0;
  }

  buffer(value: Uint8Array | null): void {
    if (value === null) return this.int(-1);
    this.#reserve(4 + value.byteLength);
    this.#setInt(this.#end, value.byteLength);
    if (value.byteLength > 0) this.#slab.set(value, this.#end + 4);
    this.#end += 4 + value.byteLength;
  }

  ustring(value: string | null): void {
    if (value === null) return this.int(-1);
    // A UTF-16 code unit becomes at most three bytes of UTF-8.
    this.#reserve(4 + value.length * 3);
    const start = this.#end + 4;
    const end = this.#shortAscii(value, start) ?? start + this.#slab.write(value, start, 'utf8');
    this.#setInt(this.#end, end - start);
    this.#end = end;
  }

  /** Begins a length-prefixed frame and returns its mark for `endFrame` or `dropFrame`. */
  beginFrame(): number {
    this.#reserve(4);
    const mark = this.byteLength;
    this.#end += 4;
    return mark;
  }

  /** Fills in the frame's length and returns it, prefix excluded. */
  endFrame(mark: number): number {
    const at = this.#start + mark;
    const frameBytes = this.#end - at - 4;
    invariant(frameBytes >= 0, 'a frame ends after it begins');
    this.#setInt(at, frameBytes);
    return frameBytes;
  }

  /** Forgets everything written since `beginFrame` returned `mark`. */
  dropFrame(mark: number): void {
    this.#end = this.#start + mark;
  }

  /** Hands out what was written since the last `take`; the writer does not touch those bytes again. */
  take(): Buffer {
    return this.takeFirst(this.byteLength);
  }

  /** As `take`, for the first `bytes` bytes of it. */
  takeFirst(bytes: number): Buffer {
    const end = this.#start + bytes;
    const taken = this.#slab.subarray(this.#start, end);
    this.#takenBytesMax = Math.max(this.#takenBytesMax, bytes);
    this.#start = end;
    return taken;
  }

  /** What was written since the last `take`, as long as nothing more is written. */
  peek(): Buffer {
    return this.#slab.subarray(this.#start, this.#end);
  }

  /** Forgets what was written since the last `take`; its place is used again. */
  clear(): void {
    this.#end = this.#start;
  }

  /** Most strings are short ASCII paths, for which a loop beats the call into the encoder. */
  #shortAscii(value: string, start: number): number | undefined {
    if (value.length > SHORT_STRING_LENGTH) return undefined;
    const slab = this.#slab;
    for (let index = 0; index < value.length; index++) {
      const unit = value.charCodeAt(index);
      if (unit > 0x7f) return undefined;
      slab[start + index] = unit;
    }
    return start + value.length;
  }

  #setInt(at: number, value: number): void {
    if (value !== (value | 0)) throw new RangeError(`${value} is not a number of 32 bits`);
    this.#view.setInt32(at, value);
  }

  #reserve(bytes: number): void {
    if (this.#end + bytes <= this.#slab.byteLength) return;
    const pending = this.#slab.subarray(this.#start, this.#end);
    const wantedBytes = WRITES_PER_SLAB * Math.max(this.#takenBytesMax, pending.byteLength + bytes);
    const slabBytes = Math.min(SLAB_BYTES_MAX, Math.max(SLAB_BYTES_MIN, wantedBytes));
    const slab = Buffer.allocUnsafeSlow(Math.max(slabBytes, 2 * (pending.byteLength + bytes)));
    slab.set(pending);
    this.#slab = slab;
    this.#view = viewOf(slab);
    this.#takenBytesMax = 0;
    this.#end = pending.byteLength;
    this.#start = 0;
  }
}

function viewOf({ buffer, byteOffset, byteLength }: Buffer): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}
