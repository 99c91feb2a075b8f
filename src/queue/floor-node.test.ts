import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  currentFloor,
  decodeFloors,
  encodeFloors,
  FLOOR_MAX,
  floorPathOf,
  NO_FLOORS,
  type TokenFloors,
  tokenAt,
} from './floor-node.ts';

const PATH = '/holdfast/token-floor';
const written = (floor: bigint, earlier: TokenFloors, mzxid: bigint) =>
  decodeFloors(PATH, Buffer.from(encodeFloors(floor, earlier)), mzxid);

describe('tokens by floors', () => {
  test('rise with the transactions, whenever floors are set; and are above each floor from then on', () => {
    const step = fc.record({
      transactions: fc.bigInt(1n, 1_000n),
      above: fc.option(fc.bigInt(0n, 2n ** 54n), { nil: undefined }),
    });
    fc.assert(
      fc.property(fc.bigInt(0n, 2n ** 57n), fc.array(step, { maxLength: 130 }), (first, steps) => {
        let zxid = first;
        let floors = NO_FLOORS;
        let newest = -1n;
        for (const { transactions, above } of steps) {
          zxid += transactions;
          const token = tokenAt(floors, zxid);
          expect(token).toBeGreaterThan(newest);
          newest = token;
          if (above === undefined) continue;
          const floor = newest + above + 1n;
          if (floor > FLOOR_MAX) continue;
          floors = written(floor, floors, ++zxid);
          expect(tokenAt(floors, zxid + 1n)).toBeGreaterThan(floor);
        }
      }),
    );
  });

  test('are for older entries what they were before the last hundred floors', () => {
    let floors = NO_FLOORS;
    for (let count = 1n; count <= 101n; count++) floors = written(count * 1_000n, floors, count * 10n);
    expect(floors).toHaveLength(101);
    expect([5n, 15n, 1_005n].map((czxid) => tokenAt(floors, czxid))).toEqual([5n, 1_015n, 100_000n + 1_005n]);
    expect(currentFloor(floors)).toBe(101_000n);
  });

  test('are the transactions themselves where there is no floor', () => {
    expect(tokenAt(NO_FLOORS, 7n)).toBe(7n);
    expect(currentFloor(NO_FLOORS)).toBe(0n);
  });
});

describe('the node of the floor', () => {
  test.each([
    ['/holdfast/batons', '/holdfast/token-floor'],
    ['/batons', '/token-floor'],
    ['/app/holdfast/b', '/app/holdfast/token-floor'],
  ])('beside %s is %s', (batonFolder, path) => expect(floorPathOf(batonFolder)).toBe(path));

  test.each([
    ['nothing', null],
    ['a number', '7'],
    ['another thing', '{"kind":"mutex"}'],
    ['a floor that is no text', '{"floor":7,"earlier":[]}'],
    ['a negative one', '{"floor":"-7","earlier":[]}'],
    ['one above 2^62', `{"floor":"${FLOOR_MAX + 1n}","earlier":[]}`],
    ['one that does not rise', '{"floor":"7","earlier":[{"floor":"7","since":"1"}]}'],
    ['earlier ones that are no list', '{"floor":"7","earlier":7}'],
    ['an earlier one without its beginning', '{"floor":"7","earlier":[{"floor":"1"}]}'],
  ])('with %s is refused', (_what, data) => {
    const decode = () => decodeFloors(PATH, data === null ? null : Buffer.from(data), 9n);
    expect(decode).toThrow(expect.objectContaining({ code: 'ZK_FOREIGN_DATA', path: PATH }));
  });
});
