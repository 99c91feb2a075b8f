import { expect, test } from 'vitest';
import { ageText } from './age-text.ts';

test.each([
  [-5_000, '0s'],
  [0, '0s'],
  [850.4, '850ms'],
  [1_000, '1s'],
  [41_999, '41s'],
  [60_000, '1m00s'],
  [192_000, '3m12s'],
  [7_500_000, '2h05m'],
  [9 * 86_400_000 + 4 * 3_600_000, '9d04h'],
  [Number.NaN, '0s'],
])('%d ms is %s', (ageMs, text) => {
  expect(ageText(ageMs)).toBe(text);
});
