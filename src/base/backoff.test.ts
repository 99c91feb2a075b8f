import { describe, expect, test } from 'vitest';
import { Backoff } from './backoff.ts';
import { type Random, seededRandom } from './random.ts';

const lowest: Random = { u32: () => 0, bytes: (count) => new Uint8Array(count) };
const highest: Random = { u32: () => 2 ** 32 - 1, bytes: (count) => new Uint8Array(count) };
const options = { delayMsMin: 100, delayMsMax: 1_000 };

const delays = (backoff: Backoff, count: number) =>
  Array.from({ length: count }, () => backoff.nextDelayMs());

describe('delays', () => {
  test.each([
    ['the bound, if the draw is the highest', highest, [100, 200, 400, 800, 1_000, 1_000]],
    ['half of the bound, if the draw is the lowest', lowest, [50, 100, 200, 400, 500, 500]],
  ])('double up to the limit; they are %s', (_, random, expected) => {
    expect(delays(new Backoff(options, random), 6)).toEqual(expected);
  });

  test('start again after a reset', () => {
    const backoff = new Backoff(options, highest);
    delays(backoff, 5);
    backoff.reset();
    expect(delays(backoff, 2)).toEqual([100, 200]);
  });

  test('stay at the limit however many there were', () => {
    const backoff = new Backoff(options, highest);
    const all = delays(backoff, 3_000);
    expect(all.slice(4).every((delayMs) => delayMs === 1_000)).toBe(true);
  });

  test('are never above a limit that is below the first bound', () => {
    expect(delays(new Backoff({ delayMsMin: 500, delayMsMax: 200 }, highest), 3)).toEqual([200, 200, 200]);
  });

  test('are spread between half of the bound and the bound, for every seed', () => {
    const firsts = new Set<number>();
    for (let seed = 0; seed < 200; seed++) {
      const all = delays(new Backoff(options, seededRandom(seed)), 6);
      [100, 200, 400, 800, 1_000, 1_000].forEach((boundMs, index) => {
        expect(all[index]).toBeGreaterThanOrEqual(boundMs / 2);
        expect(all[index]).toBeLessThanOrEqual(boundMs);
        expect(Number.isInteger(all[index])).toBe(true);
      });
      firsts.add(all[0]!);
    }
    expect(firsts.size).toBeGreaterThan(40); // Of the 51 whole numbers there are.
  });
});
