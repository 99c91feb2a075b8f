import { describe, expect, test } from 'vitest';
import { decodeHistory, encodeEvent, type HistoryEvent } from './history.ts';

const granted: HistoryEvent = {
  kind: 'granted',
  atMs: 1.25,
  attempt: 'a',
  token: 2n ** 63n - 1n,
  leaseEndsAtMs: 4_000.5,
};
const remains: HistoryEvent = {
  kind: 'remains',
  atMs: 9,
  nodes: [{ lock: 'm', path: '/locks/m/x', czxid: 2n ** 53n + 1n }],
};

describe('a history', () => {
  test('comes back from JSON lines as it was, 64-bit numbers included', () => {
    const text = [granted, remains].map((event) => `${encodeEvent(event)}\n`).join('');
    expect(decodeHistory(text)).toEqual([granted, remains]);
    expect(decodeHistory('')).toEqual([]);
  });

  test('is read without the last line of a recorder that was killed while it wrote', () => {
    const line = `${encodeEvent(granted)}\n`;
    for (let bytes = 0; bytes < line.length; bytes++) {
      expect(decodeHistory(line + line.slice(0, bytes))).toEqual([granted]);
    }
  });

  test('is refused with the number of a line that is no event', () => {
    expect(() => decodeHistory(`${encodeEvent(granted)}\n{"kind":\n`)).toThrow(
      new SyntaxError('line 2 of the history is no event: {"kind":'),
    );
    expect(() => decodeHistory('{"token":"seven"}\n')).toThrow(SyntaxError);
  });
});
