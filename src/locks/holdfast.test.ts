import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ZooKeeper } from '../client/zookeeper.ts';
import { Holdfast } from './holdfast.ts';

const FACTS = {
  root: '/locks',
  batonFolder: '/holdfast/batons',
  auditFolder: '/holdfast/audit',
  servers: 'zk:2181',
};

/** Lock objects are made without a request: no server is needed. A connection asks for the floor of its tokens only. */
function offline(): Holdfast {
  const session = { state: 'connected' };
  const zk = { session, exists: async () => undefined, on: () => () => {} };
  return new Holdfast(zk as unknown as ZooKeeper, {}, FACTS);
}

/** What a program asks for, and how. */
type Wanted =
  | { readonly kind: 'mutex' | 'readWriteLock' | 'simpleLock' | 'semaphore'; readonly name: string }
  | { readonly kind: 'election'; readonly name: string; readonly id?: string }
  | { readonly kind: 'multiLock'; readonly names: readonly string[] };

function lockOf(holdfast: Holdfast, wanted: Wanted): object {
  switch (wanted.kind) {
    case 'election':
      return holdfast.election(wanted.name, wanted.id === undefined ? {} : { id: wanted.id });
    case 'multiLock':
      return holdfast.multiLock(wanted.names);
    case 'semaphore':
      return holdfast.semaphore(wanted.name, { permits: 1 });
    default:
      return holdfast[wanted.kind](wanted.name);
  }
}

/** The order of a multi-lock's names has no meaning. */
function isSameWish(a: Wanted, b: Wanted): boolean {
  const canonical = (wanted: Wanted) =>
    JSON.stringify(wanted.kind === 'multiLock' ? { ...wanted, names: [...wanted.names].sort() } : wanted);
  return canonical(a) === canonical(b);
}

describe('the lock objects of one connection', () => {
  test('an election with an id and one whose name contains that id are two objects', () => {
    const holdfast = offline();
    expect(holdfast.election('a', { id: 'b' })).not.toBe(holdfast.election('a as b'));
    expect(holdfast.election('a', { id: '' })).not.toBe(holdfast.election('a'));
  });

  test('are the same for the same kind and names, and for nothing else', () => {
    // The separators that keys are tempted to use, and what programs put into names.
    const part = fc.array(fc.constantFrom('a', ' as ', '","'), { minLength: 1, maxLength: 3 });
    const name = part.map((parts) => parts.join(''));
    const wanted = fc.oneof(
      fc.record({ kind: fc.constantFrom('mutex', 'readWriteLock', 'simpleLock', 'semaphore'), name }),
      fc.record({ kind: fc.constant('election'), name }),
      fc.record({
        kind: fc.constant('election'),
        name,
        id: fc.oneof(name, fc.constant(''), fc.constant('a/b')),
      }),
      fc.record({
        kind: fc.constant('multiLock'),
        names: fc.uniqueArray(name, { minLength: 1, maxLength: 3 }),
      }),
    ) as fc.Arbitrary<Wanted>;
    fc.assert(
      fc.property(fc.array(wanted, { minLength: 2, maxLength: 30 }), (wishes) => {
        const holdfast = offline();
        const locks = wishes.map((wish) => lockOf(holdfast, wish));
        for (const [index, wish] of wishes.entries()) {
          for (const [other, otherWish] of wishes.entries()) {
            expect(locks[index] === locks[other], `${JSON.stringify([wish, otherWish])}`).toBe(
              isSameWish(wish, otherWish),
            );
          }
        }
      }),
      { numRuns: 500 },
    );
  });

  test('an id that is no string is refused', () => {
    for (const id of [7, null, {}, ['b']]) {
      expect(() => offline().election('a', { id: id as never })).toThrow(/^id: .* a string is needed$/);
    }
  });
});
