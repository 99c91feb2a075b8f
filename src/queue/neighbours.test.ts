import { describe, expect, test } from 'vitest';
import { systemClock } from '../base/clock.ts';
import type { Session } from '../client/session.ts';
import {
  type Follower,
  type LeavingConnection,
  Neighbours,
  neighboursAt,
  remainingOf,
} from './neighbours.ts';

const session = {} as Session;
const by: LeavingConnection = { session, lastZxid: 7n, carriesAllWrites: false };
const follower = (departed: Follower['departed']): Follower => ({
  name: 'own',
  departed,
  evict: () => expect.unreachable(),
  heirs: () => undefined,
  aheadSettled: () => [],
});

describe('places of one process', () => {
  test('are told how the one they listen to was left', () => {
    const neighbours = new Neighbours();
    const heard: string[] = [];
    for (const name of ['a', 'b']) {
      neighbours.arrive(name, session);
      neighbours.follow(
        name,
        follower((departure) => heard.push(`${name} ${departure}`)),
      );
    }
    expect(neighbours.leave('a', 'released', by)).toHaveLength(1);
    expect(neighbours.leave('b', 'gone', by)).toHaveLength(1);
    expect(heard).toEqual(['a released', 'b gone']);
  });

  test('hear by which session they were left', () => {
    const neighbours = new Neighbours();
    neighbours.arrive('a', session);
    expect(neighbours.sessionOf('a')).toBe(session);
    const heard: LeavingConnection[] = [];
    neighbours.follow('a', { ...follower(() => {}), departed: (_departure, leaver) => heard.push(leaver) });
    neighbours.leave('a', 'released', by);
    expect(heard).toEqual([by]);
    expect(neighbours.sessionOf('a')).toBeUndefined();
  });

  test('are known to all connections with the same servers, in whatever order, and to no others', () => {
    const here = neighboursAt(['one:2181', 'two:2181']);
    expect(neighboursAt(['two:2181', 'one:2181', 'one:2181'])).toBe(here);
    expect(neighboursAt(['one:2181'])).not.toBe(here);
  });

  test('know of no others, and of none that was left', () => {
    const neighbours = new Neighbours();
    neighbours.arrive('a', session);
    neighbours.leave('a', 'released', by);
    const unheard = follower(() => expect.unreachable());
    expect(neighbours.follow('a', unheard)).toBeUndefined();
    expect(neighbours.follow('of another process', unheard)).toBeUndefined();
    expect(neighbours.leave('a', 'released', by)).toEqual([]);
  });

  test('are told in memory up to 256 behind one place; the next one is to ask the server', () => {
    const neighbours = new Neighbours();
    neighbours.arrive('a', session);
    let toldCount = 0;
    const told = follower(() => toldCount++);
    for (let count = 1; count <= 256; count++) expect(neighbours.follow('a', { ...told })).toBeDefined();
    expect(neighbours.follow('a', { ...told })).toBeUndefined();
    expect(neighbours.leave('a', 'released', by)).toHaveLength(256);
    expect(toldCount).toBe(256);
  });

  test('that have stopped listening are not told, and do not count', () => {
    const neighbours = new Neighbours();
    neighbours.arrive('a', session);
    neighbours.follow(
      'a',
      follower(() => expect.unreachable()),
    )!();
    expect(neighbours.leave('a', 'released', by)).toEqual([]);
  });

  test('let timers and sockets in when very many follow each other', async () => {
    const neighbours = new Neighbours();
    const count = 1_000;
    let left = 0;
    const leave = async () => {
      await neighbours.pause(`${left}`, systemClock);
      neighbours.leave(`${left++}`, 'released', by);
    };
    for (let index = 0; index < count; index++) {
      neighbours.arrive(`${index}`, session);
      const next = index + 1 < count ? () => void leave() : () => {};
      neighbours.follow(`${index}`, follower(next));
    }
    const leftByTurn: number[] = [];
    const countTurns = () => {
      leftByTurn.push(left);
      if (left < count) setImmediate(countTurns);
    };
    setImmediate(countTurns);
    void leave();
    await expect.poll(() => left).toBe(count);
    expect(leftByTurn[0]).toBe(64);
    expect(leftByTurn.length).toBeGreaterThan(10);
  });

  test('of whom nobody is behind any do not wait', () => {
    const neighbours = new Neighbours();
    neighbours.arrive('a', session);
    for (let index = 0; index < 1_000; index++) expect(neighbours.pause('a', systemClock)).toBeUndefined();
  });

  test('pass the lock on and on: who has not left yet is found, however long the chain', () => {
    const last = follower(() => {});
    let first = last;
    for (let length = 0; length < 100_000; length++) {
      const next = first;
      first = { ...last, heirs: () => [next] };
    }
    expect(remainingOf([first])).toEqual([last]);
    expect(remainingOf([{ ...last, heirs: () => [] }])).toEqual([]);
    expect(remainingOf([last, { ...last, heirs: () => [last] }])).toEqual([last, last]);
  });
});
