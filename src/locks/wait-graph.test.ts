import { describe, expect, test } from 'vitest';
import type { ContenderInfo, LockInfo, LockKind } from './inspection.ts';
import { parentLabel } from './owner.ts';
import { waitGraph } from './wait-graph.ts';

const ROLES: Readonly<Record<string, ContenderInfo['role']>> = {
  r: 'read',
  w: 'write',
  u: 'upgradable',
  U: 'upgraded',
};

/**
 * `'1'` is a contender of session 1; `'1r'`, `'1w'`, `'1u'`, `'1U'` a reader, a writer, an upgradable, its upgrade;
 * `'2<1'` one of session 2, of a run that was started by the command of session 1.
 */
function lock(name: string, holders: string[], queue: string[], kind: LockKind = 'mutex'): LockInfo {
  const contender = (text: string, index: number): ContenderInfo => ({
    id: `${name}-${index}-${text}`,
    role: ROLES[text.at(-1)!] ?? 'exclusive',
    token: BigInt(Number.parseInt(text, 10)),
    session: BigInt(Number.parseInt(text, 10)),
    since: new Date(0),
    owner: ownerOf(text.split('<')[1]),
  });
  const all = [...holders, ...queue].map(contender);
  return {
    name,
    kind,
    holders: all.slice(0, holders.length),
    queue: all.slice(holders.length),
    foreign: [],
    numbered: 0,
  };
}

function ownerOf(parent: string | undefined): ContenderInfo['owner'] {
  if (parent === undefined) return {};
  return { labels: parentLabel({ session: BigInt(parent), token: BigInt(parent) }) };
}

const sorted = (sessions: readonly bigint[]) => [...sessions].sort();

describe('wait graph', () => {
  test('of an upgrade has it wait for the readers, and others of its kind for it alone', () => {
    const { waits } = waitGraph([lock('a', ['1r', '2u'], ['3u', '2U', '4r'], 'read-write')]);
    expect(
      waits.map(({ waiter, blockers }) => [waiter.session, ...blockers.map(({ session }) => session)]),
    ).toEqual([
      [3n, 2n],
      [2n, 1n, 2n],
      [4n, 2n],
    ]);
  });

  test('of a queue that moves has no deadlock', () => {
    const graph = waitGraph([lock('a', ['1'], ['2', '3']), lock('b', ['2'], ['4'])]);
    expect(graph.deadlocks).toEqual([]);
    expect(graph.stuck).toEqual([]);
    expect(graph.waits).toHaveLength(3);
  });

  test('finds two sessions that wait for each other, and who waits for them', () => {
    const graph = waitGraph([lock('a', ['1'], ['2']), lock('b', ['2'], ['1', '3']), lock('c', ['4'], ['5'])]);
    expect(graph.deadlocks.map(sorted)).toEqual([[1n, 2n]]);
    expect(graph.stuck).toEqual([3n]);
  });

  test('finds a circle of many, and two circles apart', () => {
    const circle = [1, 2, 3, 4, 5].map((at) => lock(`l${at}`, [`${at}`], [`${(at % 5) + 1}`]));
    const graph = waitGraph([...circle, lock('x', ['8'], ['9']), lock('y', ['9'], ['8'])]);
    expect(graph.deadlocks.map((group) => group.length).sort()).toEqual([2, 5]);
  });

  test('takes a session that waits for itself for two tasks of one program', () => {
    expect(waitGraph([lock('a', ['1'], ['1'])]).deadlocks).toEqual([]);
    expect(waitGraph([lock('a', ['1'], ['1']), lock('b', ['2'], ['1'])]).stuck).toEqual([]);
  });

  test('lets a reader wait for the writer ahead, not for the readers that hold', () => {
    const graph = waitGraph([lock('a', ['1r'], ['2w', '3r'], 'read-write')]);
    expect(
      graph.waits.map(({ waiter, blockers }) => [waiter.session, ...blockers.map((b) => b.session)]),
    ).toEqual([
      [2n, 1n],
      [3n, 2n],
    ]);
  });

  test('finds a circle that goes through a waiting writer', () => {
    // 3 reads b and waits for a behind the writer 2, who waits for the reader 1, who wants to write b.
    const graph = waitGraph([
      lock('a', ['1r'], ['2w', '3r'], 'read-write'),
      lock('b', ['3r'], ['1w'], 'read-write'),
    ]);
    expect(graph.deadlocks.map(sorted)).toEqual([[1n, 2n, 3n]]);
  });

  test('takes one permit that can come free for enough', () => {
    const semaphore = lock('s', ['1', '2'], ['3'], 'semaphore');
    expect(waitGraph([semaphore, lock('a', ['3'], ['1'])]).deadlocks).toEqual([]);
    expect(waitGraph([semaphore, lock('a', ['3'], ['1', '2'])]).deadlocks.map(sorted)).toEqual([
      [1n, 2n, 3n],
    ]);
  });

  test('of ten thousand in a row is found without running out of stack', () => {
    const count = 10_000;
    const chain = Array.from({ length: count }, (_, at) =>
      lock(`l${at}`, [`${at}`], [`${(at + 1) % count}`]),
    );
    expect(waitGraph(chain).deadlocks.map((group) => group.length)).toEqual([count]);
  });

  test('joins a run with the run that started it: A then B against B then A is a deadlock', () => {
    const graph = waitGraph([lock('a', ['1'], ['4<3']), lock('b', ['3'], ['2<1'])]);
    expect(graph.deadlocks.map(sorted)).toEqual([[1n, 2n, 3n, 4n]]);
    expect(graph.nested.map(({ parent, child }) => [parent.session, child.session])).toEqual([
      [3n, 4n],
      [1n, 2n],
    ]);
  });

  test('joins through a run in between that holds a lock of its own', () => {
    const graph = waitGraph([
      lock('a', ['1'], ['5<4']),
      lock('b', ['2<1'], []),
      lock('c', ['4'], ['3<2', '6']),
    ]);
    expect(graph.deadlocks.map(sorted)).toEqual([[1n, 2n, 3n, 4n, 5n]]);
    expect(graph.stuck).toEqual([6n]);
  });

  test('finds a run that waits for the lock of the run that started it', () => {
    expect(waitGraph([lock('a', ['1'], ['2<1'])]).deadlocks.map(sorted)).toEqual([[1n, 2n]]);
  });

  test('does not join a run whose parent holds no longer, or was another hold of that session', () => {
    const stale = lock('b', ['3'], ['2<9']);
    expect(waitGraph([lock('a', ['1'], ['3']), stale])).toMatchObject({ deadlocks: [], nested: [] });
    const other = lock('a', ['1'], ['4<3']);
    const [holder] = other.holders;
    const renewed = { ...other, holders: [{ ...holder!, token: 77n }] };
    const graph = waitGraph([renewed, lock('b', ['3'], ['2<1'])]);
    expect(graph.deadlocks).toEqual([]);
  });

  test('lets a run wait beside another of the same parent, as long as that one can go on', () => {
    const graph = waitGraph([lock('a', ['1'], []), lock('b', ['2<1'], ['3<1'])]);
    expect(graph).toMatchObject({ deadlocks: [], stuck: [] });
  });
});
