import { expect, test } from 'vitest';
import { visibleText } from './visible-text.ts';

test.each([
  ['plain text, ünïcödé, 日本, 🦊', 'plain text, ünïcödé, 日本, 🦊'],
  ['a\nb\rc\td', 'a\\nb\\rc\\td'],
  ['\x1b[2J\x1b]0;title\x07', '\\x1b[2J\\x1b]0;title\\x07'],
  ['\x9b31m', '\\x9b31m'],
  ['abc\u202edcba', 'abc\\u{202e}dcba'],
  ['zero\u200bwidth\u2060', 'zero\\u{200b}width\\u{2060}'],
  ['line\u2028line\u2029', 'line\\u{2028}line\\u{2029}'],
  ['half \ud800 of a pair', 'half \\u{d800} of a pair'],
  ['\u3164', '\\u{3164}'],
])('writes out what would not be seen, or be obeyed: %j', (text, shown) => {
  expect(visibleText(text)).toBe(shown);
});
