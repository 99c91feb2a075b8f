// Numbers as they are on the wire. Node's own ways between buffers and bigints do arithmetic on bigints, each step of
// which is an allocation: here a long is looked at as its two words, by arrays over the same bytes.

const long = new BigInt64Array(1);
const words = new Int32Array(long.buffer);
long[0] = 1n;
const LOW = words[0] === 1 ? 0 : 1;
const HIGH = 1 - LOW;

const LONG_MIN = -(2n ** 63n);
const LONG_MAX = 2n ** 63n - 1n;

/** Writes a long at this place, which must be there. */
export function writeLong(view: DataView, at: number, value: bigint): void {
  if (value > LONG_MAX || value < LONG_MIN) throw new RangeError(`${value} is not a number of 64 bits`);
  long[0] = value;
  view.setInt32(at, words[HIGH]!);
  view.setInt32(at + 4, words[LOW]!);
}

/** Reads the long at this place, which must be there. */
export function readLong(bytes: Uint8Array, at: number): bigint {
  words[HIGH] = readInt(bytes, at);
  words[LOW] = readInt(bytes, at + 4);
  return long[0]!;
}

/** Reads the int at this place, which must be there. */
export function readInt(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;
}
