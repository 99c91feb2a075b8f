import { randomFillSync } from 'node:crypto';

/** The only door to randomness, so that a seed replays a whole run. */
export interface Random {
  /** A whole number in [0, 2^32). */
  u32(): number;
  /** `count` unpredictable bytes. */
  bytes(count: number): Uint8Array;
}

/** The generator is asked for this much at once: a call costs more than the bytes. */
const POOL_BYTES = 4_096;
let pool = new Uint8Array(0);
let poolCursor = 0;

/** Each byte is handed out once. */
function takeBytes(count: number): Uint8Array {
  if (count > POOL_BYTES / 4) return randomFillSync(new Uint8Array(count));
  if (poolCursor + count > pool.byteLength) {
    pool = randomFillSync(new Uint8Array(POOL_BYTES));
    poolCursor = 0;
  }
  const from = poolCursor;
  poolCursor += count;
  return pool.slice(from, poolCursor);
}

/** The machine's cryptographic generator. */
export const systemRandom: Random = {
  u32: () => new DataView(takeBytes(4).buffer).getUint32(0),
  bytes: takeBytes,
};

/** The same numbers for the same seed (mulberry32): for simulations and tests, never for secrets. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  const u32 = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
  return { u32, bytes: (count) => Uint8Array.from({ length: count }, () => u32() & 0xff) };
}

/** A fraction in [0, 1). */
export function fraction(random: Random): number {
  return random.u32() / 2 ** 32;
}

/** A new array with the items in random order (Fisher–Yates). */
export function shuffled<T>(items: readonly T[], random: Random): T[] {
  const result = [...items];
  for (let last = result.length - 1; last > 0; last--) {
    const other = Math.floor(fraction(random) * (last + 1));
    [result[last], result[other]] = [result[other]!, result[last]!];
  }
  return result;
}
