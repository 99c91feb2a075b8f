import { describe, expect, test } from 'vitest';
import type { ContenderInfo, LockInfo } from '../../locks/inspection.ts';
import { judgeOwnHolds, namesToLookAt } from './ancestors.ts';
import { type AncestorHold, ancestorsFrom, ancestorsText } from './held-variable.ts';
import type { WantedLock } from './run-plan.ts';

const hold = (session: bigint, token: bigint, ...locks: string[]): AncestorHold => ({
  session,
  token,
  locks,
  door: `/run/${session}`,
});

function lock(name: string, ...holders: (readonly [bigint, bigint, ContenderInfo['role']])[]): LockInfo {
  const infos = holders.map(([session, token, role]) => ({
    id: `${session}-${token}`,
    role,
    token,
    session,
    since: new Date(0),
    owner: {},
  }));
  return { name, kind: 'mutex', holders: infos, queue: [], foreign: [], numbered: 0 };
}

const judged = (wanted: WantedLock, info: LockInfo, ...ancestors: AncestorHold[]) =>
  judgeOwnHolds(wanted, [info], ancestors).map(({ stuck, covers }) => ({ stuck, covers }));

describe('what a run knows of the runs that started it', () => {
  test('survives the environment, 64-bit numbers and names of every kind included', () => {
    const chain = [
      hold(-1n, 9_223_372_036_854_775_807n, 'a', 'b"\\,'),
      { ...hold(0x1234n, 5n, '会員'), door: undefined },
    ];
    expect(ancestorsFrom(ancestorsText(chain))).toEqual(chain);
  });

  test('keeps the nearest 32 levels, and is short enough for an environment', () => {
    const chain = Array.from({ length: 40 }, (_, at) => hold(BigInt(at), BigInt(at), 'x'));
    expect(ancestorsFrom(ancestorsText(chain))).toEqual(chain.slice(-32));
  });

  test('goes without the names of the outermost locks where they are too long; then it may be any lock', () => {
    const names = (letter: string) =>
      Array.from({ length: 64 }, (_, at) => `${letter}${at}${'"'.repeat(1_000)}`);
    const [outer, inner] = [hold(1n, 1n, ...names('a')), hold(2n, 2n, 'near')];
    const text = ancestorsText([outer, inner]);
    expect(ancestorsFrom(text)).toEqual([{ ...outer, locks: undefined }, inner]);
    expect(namesToLookAt({ kind: 'multi', names: ['x', 'y'] }, ancestorsFrom(text))).toEqual(['x', 'y']);
  });

  test('fits into one string of an environment at every limit there is, nested again and again', () => {
    const names = Array.from({ length: 64 }, (_, at) => `"${at}${'"'.repeat(1_000)}`);
    let chain: AncestorHold[] = [];
    for (let level = 0; level < 40; level += 1) {
      const door = `/${'\u0001'.repeat(106)}`;
      const own = { session: -1n, token: 9_223_372_036_854_775_807n, locks: names, door };
      const text = ancestorsText([...chain, own]);
      expect(Buffer.byteLength(`HOLDFAST_HELD=${text}\0`)).toBeLessThanOrEqual(128 * 1024);
      chain = ancestorsFrom(text);
      expect(chain).toHaveLength(Math.min(level + 1, 32));
    }
  });

  test('is not taken for nothing where it is longer than what any run writes', () => {
    expect(() => ancestorsFrom(`[${' '.repeat(140_000)}]`)).toThrow(
      expect.objectContaining({ exitCode: 2, message: expect.stringContaining('HOLDFAST_HELD has 140002') }),
    );
  });

  test.each([
    undefined,
    '',
    'x',
    '{}',
    'null',
    '[null, 1, "a"]',
    '[{"session":1,"token":"1","locks":[]}]',
    '[{"session":"0x1","token":"-1","locks":["a"]}]',
    '[{"session":"0x1","token":"1","locks":[1]}]',
    `[${' '.repeat(70_000)}]`,
  ])('means no ancestors where it is none of ours: %j', (text) => {
    expect(ancestorsFrom(text)).toEqual([]);
  });

  test('is looked at only for locks that an ancestor names', () => {
    const wanted = { kind: 'multi', names: ['a', 'b', 'c'] } as const;
    expect(namesToLookAt(wanted, [hold(1n, 1n, 'b'), hold(2n, 2n, 'c', 'z')])).toEqual(['b', 'c']);
    expect(namesToLookAt({ kind: 'mutex', name: 'q' }, [hold(1n, 1n, 'b')])).toEqual([]);
  });
});

describe('a lock that an ancestor says it holds', () => {
  const mutex = { kind: 'mutex', name: 'a' } as const;

  test('would be waited for in vain if the servers say so too, however many levels above', () => {
    const held = lock('a', [1n, 10n, 'exclusive']);
    expect(judged(mutex, held, hold(1n, 10n, 'a'))).toEqual([{ stuck: 'certain', covers: true }]);
    expect(judged(mutex, held, hold(1n, 10n, 'a'), hold(2n, 11n, 'b'))).toHaveLength(1);
  });

  test('is an ordinary one if the ancestor has released, holds anew, or holds at other servers', () => {
    expect(judged(mutex, lock('a'), hold(1n, 10n, 'a'))).toEqual([]);
    expect(judged(mutex, lock('a', [1n, 12n, 'exclusive']), hold(1n, 10n, 'a'))).toEqual([]);
    expect(judged(mutex, lock('a', [3n, 10n, 'exclusive']), hold(1n, 10n, 'a'))).toEqual([]);
  });

  test('is left to acquire where it is a lock of another kind', () => {
    expect(judged(mutex, lock('a', [1n, 10n, 'write']), hold(1n, 10n, 'a'))).toEqual([]);
    expect(
      judged({ kind: 'read', name: 'a' }, lock('a', [1n, 10n, 'exclusive']), hold(1n, 10n, 'a')),
    ).toEqual([]);
  });

  test('covers no more than it is: a reader is no writer', () => {
    const [reads, writes] = [lock('a', [1n, 10n, 'read']), lock('a', [1n, 10n, 'write'])];
    const parent = hold(1n, 10n, 'a');
    expect(judged({ kind: 'write', name: 'a' }, reads, parent)).toEqual([
      { stuck: 'certain', covers: false },
    ]);
    expect(judged({ kind: 'read', name: 'a' }, reads, parent)).toEqual([
      { stuck: 'if-it-waits', covers: true },
    ]);
    expect(judged({ kind: 'read', name: 'a' }, writes, parent)).toEqual([{ stuck: 'certain', covers: true }]);
    expect(judged({ kind: 'write', name: 'a' }, writes, parent)).toEqual([
      { stuck: 'certain', covers: true },
    ]);
  });

  test('of permits is waited for in vain only if the ancestors have those that are missing', () => {
    const three = lock('a', [1n, 10n, 'lease'], [1n, 10n, 'lease'], [2n, 11n, 'lease']);
    const parents = [hold(1n, 10n, 'a'), hold(2n, 11n, 'a')];
    const wanted = (permits: number, of: number) => ({ kind: 'semaphore', name: 'a', permits, of }) as const;
    expect(judged(wanted(1, 4), three, ...parents)).toEqual([{ stuck: 'no', covers: true }]);
    expect(judged(wanted(2, 4), three, ...parents)).toEqual([{ stuck: 'certain', covers: false }]);
    expect(judged(wanted(1, 3), three, ...parents)).toEqual([{ stuck: 'certain', covers: true }]);
    expect(judged(wanted(2, 4), three, hold(1n, 10n, 'a'))).toEqual([{ stuck: 'no', covers: true }]);
  });
});
