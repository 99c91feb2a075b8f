import { expect, test } from 'vitest';
import { percentile } from './measurement.ts';

test.each([
  [[1, 2, 3, 4], 0.5, 2],
  [[1, 2, 3, 4], 0.51, 3],
  [[1, 2, 3, 4], 0.99, 4],
  [[7], 0.5, 7],
  [Array.from({ length: 100 }, (_, at) => at + 1), 0.95, 95],
  [[], 0.5, Number.NaN],
])('of %j, %d is not above %d', (sorted, share, expected) => {
  expect(percentile(sorted, share)).toBe(expected);
});
