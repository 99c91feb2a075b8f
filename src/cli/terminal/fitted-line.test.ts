import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { displayWidth } from './display-width.ts';
import { fittedLine, placeText } from './fitted-line.ts';

const PARTS = [
  { text: 'waiting for nightly', weight: 5 },
  { text: ': 1st in line', weight: 4 },
  { text: ', held by cat@host:4711', weight: 3 },
  { text: ' since 10:00:00', weight: 1 },
  { text: ': the whole month end', weight: 0 },
  { text: ', waited 12 s', weight: 2 },
];

describe('a line that has to fit', () => {
  test('is whole where there is room', () => {
    expect(fittedLine(PARTS, 120)).toBe(
      'waiting for nightly: 1st in line, held by cat@host:4711 since 10:00:00: the whole month end, waited 12 s',
    );
  });

  test.each([
    [
      100,
      'waiting for nightly: 1st in line, held by cat@host:4711 since 10:00:00: the whole mont…, waited 12 s',
    ],
    [80, 'waiting for nightly: 1st in line, held by cat@host:4711 since 10:…, waited 12 s'],
    [60, 'waiting for nightly: 1st in line, held by cat@host:4711…'],
    [40, 'waiting for nightly: 1st in line, held…'],
  ])('loses what matters least first, with an ellipsis: %i columns', (width, line) => {
    expect(fittedLine(PARTS, width)).toBe(line);
  });

  test('is never wider, whatever is in it, and never draws', () => {
    const part = fc.record({ text: fc.string({ unit: 'grapheme' }), weight: fc.nat(5) });
    fc.assert(
      fc.property(fc.array(part, { maxLength: 6 }), fc.integer({ min: 1, max: 100 }), (parts, width) => {
        const line = fittedLine(parts, width);
        expect(displayWidth(line)).toBeLessThanOrEqual(width);
        expect(line).not.toMatch(/\p{Cc}/u);
      }),
    );
  });
});

test('a place in a queue is counted as people do', () => {
  expect([1, 2, 3, 4, 11, 12, 13, 21, 102, 111, 113].map(placeText)).toEqual(
    ['1st', '2nd', '3rd', '4th', '11th', '12th', '13th', '21st', '102nd', '111th', '113th'].map(
      (each) => `${each} in line`,
    ),
  );
});
