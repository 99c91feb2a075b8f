import { expect, test } from 'vitest';
import { describeDuration, durationText, parseDuration } from './duration.ts';

test.each([
  ['30s', 30_000],
  ['500ms', 500],
  ['1.5h', 5_400_000],
  ['1m30s', 90_000],
  ['2d', 172_800_000],
  ['5', 5_000],
  ['0.25', 250],
  ['0', 0],
])('%s is %i ms', (text, durationMs) => {
  expect(parseDuration(text)).toBe(durationMs);
});

test.each(['', 's', '5 s', '-5s', '5x', '1e3', 'forever', '5s!', 'NaN', 'Infinity', '.5s'])(
  '%j is no duration',
  (text) => {
    expect(parseDuration(text)).toBeUndefined();
  },
);

test.each([
  [0, '0.0 s'],
  [449, '0.4 s'],
  [9_999, '9.9 s'],
  [12_700, '12 s'],
  [185_000, '3 min 5 s'],
  [7_800_000, '2 h 10 min'],
  [356_400_000, '4 d 3 h'],
])('%i ms reads %s', (durationMs, text) => {
  expect(describeDuration(durationMs)).toBe(text);
});

test.each([
  [300, '300 ms'],
  [3_000, '3 s'],
  [1_500, '1.5 s'],
  [90_000, '90 s'],
  [600_000, '10 min'],
  [7_200_000, '2 h'],
])('%i ms as it was given is %s', (durationMs, text) => {
  expect(durationText(durationMs)).toBe(text);
});
