import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { displayWidth } from './display-width.ts';
import { wrapped, wrappedFor } from './wrapped.ts';

describe('a long line', () => {
  test('is broken between words, with the later lines indented', () => {
    expect(wrapped('2026-01-01T00:00:00Z  asked     cat@host:1, by ops: the month end is late', 44)).toEqual([
      '2026-01-01T00:00:00Z  asked     cat@host:1,',
      '    by ops: the month end is late',
    ]);
    expect(wrapped('  one two three', 10)).toEqual(['  one two', '      three']);
  });

  test('is one line where there is room, and never loses a word; only a word is wider', () => {
    expect(wrapped('', 10)).toEqual(['']);
    expect(wrapped('a  b', 10)).toEqual(['a  b']);
    fc.assert(
      fc.property(
        fc.array(fc.stringMatching(/^[a-z会]{1,12}$/)),
        fc.integer({ min: 1, max: 60 }),
        (words, width) => {
          const lines = wrapped(words.join(' '), width);
          expect(lines.join(' ').split(/ +/).filter(Boolean)).toEqual(words);
          for (const line of lines) {
            if (displayWidth(line) > width) expect(line.trim()).not.toContain(' ');
          }
        },
      ),
    );
  });

  test('is broken for a terminal only, each line by itself', () => {
    const text = 'Examples:\n  holdfast run nightly -- ./report.sh   one at a time\n\nEnd.\n';
    expect(wrappedFor({}, text)).toBe(text);
    expect(wrappedFor({ isTTY: true, columns: 40 }, text)).toBe(
      'Examples:\n  holdfast run nightly -- ./report.sh\n      one at a time\n\nEnd.\n',
    );
  });
});
