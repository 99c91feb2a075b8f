import { describe, expect, test } from 'vitest';
import { fraction, type Random, seededRandom, shuffled, systemRandom } from './random.ts';

const draws = (random: Random, count: number) => Array.from({ length: count }, () => random.u32());

describe('seeded numbers', () => {
  test('are those of mulberry32, so that a seed written down means the same for ever', () => {
    expect(draws(seededRandom(0), 3)).toEqual([1144304738, 1416247, 958946056]);
    expect(draws(seededRandom(1), 3)).toEqual([2693262067, 11749833, 2265367787]);
    expect([...seededRandom(1).bytes(3)]).toEqual([2693262067 & 0xff, 11749833 & 0xff, 2265367787 & 0xff]);
  });

  test('are the same for the same seed and others for another', () => {
    expect(draws(seededRandom(42), 100)).toEqual(draws(seededRandom(42), 100));
    expect(draws(seededRandom(42), 100)).not.toEqual(draws(seededRandom(43), 100));
  });

  test('do not depend on what another generator draws', () => {
    const random = seededRandom(7);
    const other = seededRandom(8);
    const mixed = Array.from({ length: 20 }, () => {
      other.u32();
      return random.u32();
    });
    expect(mixed).toEqual(draws(seededRandom(7), 20));
  });

  test('fill their range evenly', () => {
    const random = seededRandom(3);
    const buckets = new Array<number>(16).fill(0);
    for (let count = 0; count < 16_000; count++) buckets[random.u32() >>> 28]!++;
    for (const count of buckets) expect(count).toBeGreaterThan(850);
  });

  test('come as bytes of every value', () => {
    expect(new Set(seededRandom(5).bytes(10_000)).size).toBe(256);
    expect(seededRandom(5).bytes(0)).toHaveLength(0);
  });
});

describe.each([
  ['the machine', systemRandom],
  ['a seed', seededRandom(9)],
])('numbers of %s', (_, random) => {
  test('are whole and in range', () => {
    for (const draw of draws(random, 1_000)) {
      expect(Number.isInteger(draw) && draw >= 0 && draw < 2 ** 32).toBe(true);
    }
  });

  test('differ from each other', () => {
    expect(new Set(draws(random, 1_000)).size).toBeGreaterThan(990);
    expect(random.bytes(16)).not.toEqual(random.bytes(16));
    expect(random.bytes(16)).toHaveLength(16);
  });

  test('make fractions from zero up to, not including, one', () => {
    for (let count = 0; count < 1_000; count++) {
      const drawn = fraction(random);
      expect(drawn >= 0 && drawn < 1).toBe(true);
    }
  });
});

test.each([
  [0, 0],
  [2 ** 31, 0.5],
  [2 ** 32 - 1, 1 - 2 ** -32],
])('the draw %i is the fraction %d', (u32, expected) => {
  expect(fraction({ ...systemRandom, u32: () => u32 })).toBe(expected);
});

describe('a shuffle', () => {
  test('is a permutation, and leaves the original alone', () => {
    const items = Object.freeze(['a', 'b', 'c', 'd', 'e', 'a']);
    for (let seed = 0; seed < 100; seed++) {
      expect(shuffled(items, seededRandom(seed)).toSorted()).toEqual([...items].toSorted());
    }
    expect(shuffled([], seededRandom(1))).toEqual([]);
    expect(shuffled(['a'], seededRandom(1))).toEqual(['a']);
  });

  test('finds every order about equally often', () => {
    const counts = new Map<string, number>();
    const random = seededRandom(11);
    for (let count = 0; count < 6_000; count++) {
      const order = shuffled(['a', 'b', 'c'], random).join('');
      counts.set(order, (counts.get(order) ?? 0) + 1);
    }
    expect([...counts.keys()].sort()).toEqual(['abc', 'acb', 'bac', 'bca', 'cab', 'cba']);
    for (const count of counts.values()) expect(Math.abs(count - 1_000)).toBeLessThan(150);
  });

  test('is in range at the ends of the draw', () => {
    for (const u32 of [0, 2 ** 32 - 1]) {
      expect(shuffled([1, 2, 3], { ...systemRandom, u32: () => u32 }).toSorted()).toEqual([1, 2, 3]);
    }
  });
});
