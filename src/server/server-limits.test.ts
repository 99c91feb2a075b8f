import { describe, expect, test } from 'vitest';
import { defaultLimits, limitsFrom, type ServerLimits } from './server-limits.ts';
import { startServer } from './start-server.ts';

describe('limits', () => {
  test('are the defaults where nothing else is said', () => {
    expect(limitsFrom()).toEqual(defaultLimits);
    expect(limitsFrom({})).toEqual(defaultLimits);
    expect(limitsFrom({ nodesMax: undefined } as never)).toEqual(defaultLimits);
    expect(limitsFrom({ nodesMax: 5 })).toEqual({ ...defaultLimits, nodesMax: 5 });
  });

  test('leave room for answers that show the longest frame', () => {
    const mebibytes = 2 ** 20;
    const limits = limitsFrom({ frameBytesMax: 16 * mebibytes });
    expect(limits.nodeBytesMax).toBe(16 * mebibytes);
    expect(limits.replyBytesMax).toBeGreaterThan(16 * mebibytes);
    expect(limits.outputBytesMax).toBeGreaterThan(limits.replyBytesMax);
  });

  const names = Object.keys(defaultLimits) as (keyof ServerLimits)[];
  test.each(names)('%s is a number that can be', (name) => {
    for (const value of [Number.NaN, -1, 0, -Infinity]) {
      expect(() => limitsFrom({ [name]: value })).toThrow(RangeError);
      expect(() => limitsFrom({ [name]: value })).toThrow(`limit ${name} is ${value}`);
    }
    for (const value of ['5', null, 5n, {}]) {
      expect(() => limitsFrom({ [name]: value } as never)).toThrow(TypeError);
    }
    if (name.includes('Ms') || name === 'frameBytesMax')
      expect(() => limitsFrom({ [name]: Number.POSITIVE_INFINITY })).toThrow(RangeError);
  });

  test.each<[Partial<ServerLimits>, string]>([
    [{ nodesMax: 1.5 }, 'limit nodesMax is 1.5; it is a positive whole number or Infinity'],
    [{ frameBytesMax: 10 }, 'limit frameBytesMax is 10; it is a whole number from 64 to 2147483647'],
    [
      { sessionTimeoutMsMin: 5_000, sessionTimeoutMsMax: 4_999 },
      'limit sessionTimeoutMsMin is 5000; it is at most sessionTimeoutMsMax, which is 4999',
    ],
    [
      { nodeBytesMax: 1_000, replyBytesMax: 1_000 },
      'limit nodeBytesMax is 1000; it is at most replyBytesMax less 128, which is 1000',
    ],
    [
      { replyBytesMax: 5_000_000, outputBytesMax: 5_000_000 },
      'limit replyBytesMax is 5000000; it is at most outputBytesMax less 1, which is 5000000',
    ],
  ])('%o cannot be', (limits, message) => {
    expect(() => limitsFrom(limits)).toThrow(new RangeError(message));
  });

  test('there are no others', () => {
    expect(() => limitsFrom({ conectionsMax: 5 } as never)).toThrow(
      new TypeError('there is no limit conectionsMax'),
    );
    expect(() => limitsFrom({ constructor: 5 } as never)).toThrow(TypeError);
  });

  test('that cannot be are refused before a folder is made', async () => {
    // A folder that cannot be made: whoever tried would fail otherwise.
    const folder = '/dev/null/nowhere';
    await expect(startServer({ folder, limits: { nodesMax: -1 } })).rejects.toThrow(RangeError);
    await expect(startServer({ folder })).rejects.toThrow(/ENOTDIR/);
  });
});
