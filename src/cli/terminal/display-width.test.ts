import { expect, test } from 'vitest';
import { displayWidth, fitted, truncated } from './display-width.ts';

test.each([
  ['', 0],
  ['abc', 3],
  ['é', 1],
  ['e\u0301', 1],
  ['日本語', 6],
  ['ｱｲｳ', 3],
  ['한국어', 6],
  ['ＡＢ', 4],
  ['🦊', 2],
  ['👨‍👩‍👧', 2],
  ['🇩🇪', 2],
  ['✈️', 2],
  ['…', 1],
])('a terminal draws %j in %i columns', (text, width) => {
  expect(displayWidth(text)).toBe(width);
});

test('text is cut by columns, between letters, and says that it was', () => {
  expect(truncated('holdfast', 8)).toBe('holdfast');
  expect(truncated('holdfast', 5)).toBe('hold…');
  expect(truncated('日本語', 5)).toBe('日本…');
  expect(truncated('日本語', 4)).toBe('日…');
  expect(truncated('e\u0301e\u0301e\u0301', 2)).toBe('e\u0301…');
  expect(truncated('abc', 0)).toBe('');
});

test('a fitted text has exactly its width, whatever it is made of', () => {
  for (const text of ['', 'a', '日本語', 'a日', '🦊🦊🦊', 'holdfast']) {
    for (const width of [1, 2, 3, 5, 9]) {
      expect(displayWidth(fitted(text, width))).toBe(width);
      expect(displayWidth(fitted(text, width, 'right'))).toBe(width);
    }
  }
});

test('a letter under a heap of accents is one sign, not a screenful', () => {
  expect(truncated(`a${'\u0301'.repeat(1_000)}b`, 10)).toBe('�b');
});
