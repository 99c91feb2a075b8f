import { describe, expect, test } from 'vitest';
import { inOrder, parseEntry } from '../queue/entry-name.ts';
import type { QueueEntry } from '../queue/lock-queue.ts';
import {
  decideTurn,
  exclusive,
  isFree,
  reading,
  readingUpgradably,
  type TurnRule,
  upgrading,
  writing,
} from './turn.ts';

/** `w1 r2 r3`: a writer with number 1, then two readers; `m`: a mutex's contender; `u`: upgradable, `U`: upgraded. */
function queueOf(text: string): QueueEntry[] {
  const markers: Record<string, string> = {
    m: 'lock-',
    r: '__READ__',
    w: '__WRIT__',
    u: '__UPGR____READ__',
    U: '__UPGR____WRIT__',
  };
  return text
    .split(' ')
    .filter(Boolean)
    .map((word) => parseEntry(`_c_x-${markers[word[0]!]}${word.slice(1).padStart(10, '0')}`)!)
    .sort(inOrder);
}

function turnOf(self: string, queue: string, rule: TurnRule): string {
  const turn = decideTurn(queueOf(self)[0]!, queueOf(queue), rule);
  if (turn.kind !== 'wait') return turn.kind;
  return `wait for ${turn.for.sequence}${turn.baton ? ', baton' : ''}, ${turn.ahead} ahead`;
}

describe('whose turn it is', () => {
  test.each([
    ['a mutex alone', 'm1', 'm1', exclusive, 'granted'],
    ['the first of two', 'm1', 'm1 m2', exclusive, 'granted'],
    ['the second of two', 'm2', 'm1 m2', exclusive, 'wait for 1, baton, 1 ahead'],
    ['the last of many waits for the nearest', 'm9', 'm1 m4 m7 m9', exclusive, 'wait for 7, baton, 3 ahead'],
    ['one who is not there', 'm2', 'm1 m3', exclusive, 'evicted'],
    ['a reader among readers', 'r3', 'r1 r2 r3', reading, 'granted'],
    ['a reader behind a writer', 'r2', 'w1 r2', reading, 'wait for 1, baton, 1 ahead'],
    [
      'a reader waits for the nearest writer',
      'r6',
      'w1 r2 w3 r4 r5 r6',
      reading,
      'wait for 3, baton, 5 ahead',
    ],
    ['a reader ignores writers behind it', 'r1', 'r1 w2', reading, 'granted'],
    ['a writer alone', 'w1', 'w1 r2', writing, 'granted'],
    ['a writer behind a reader gets no baton', 'w2', 'r1 w2', writing, 'wait for 1, 1 ahead'],
    ['an upgradable among readers', 'u2', 'r1 u2 r3', readingUpgradably, 'granted'],
    ['an upgradable behind another', 'u3', 'u1 r2 u3', readingUpgradably, 'wait for 1, 2 ahead'],
    ['a reader beside an upgradable', 'r2', 'u1 r2', reading, 'granted'],
    ['a reader behind an upgrade', 'r3', 'u1 U2 r3', reading, 'wait for 2, 2 ahead'],
    ['a writer behind an upgradable', 'w2', 'u1 w2', writing, 'wait for 1, 1 ahead'],
    ['an upgrade behind readers', 'U4', 'r1 u2 r3 U4 w5', upgrading, 'wait for 3, 3 ahead'],
    ['an upgrade behind upgradables only', 'U3', 'u1 u2 U3 w4', upgrading, 'granted'],
    ['a writer behind a writer', 'w3', 'r1 w2 w3', writing, 'wait for 2, baton, 2 ahead'],
  ] as const)('%s', (_what, self, queue, rule, expected) => {
    expect(turnOf(self, queue, rule)).toBe(expected);
  });

  test('is free to those whom nobody there is in the way of', () => {
    expect(isFree(queueOf('r1 r2'), reading)).toBe(true);
    expect(isFree(queueOf('r1 w2'), reading)).toBe(false);
    expect(isFree(queueOf('r1'), writing)).toBe(false);
    expect(isFree([], exclusive)).toBe(true);
  });
});
