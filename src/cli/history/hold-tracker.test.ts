import { expect, test } from 'vitest';
import type { ContenderInfo, LockInfo } from '../../locks/inspection.ts';
import { HoldTracker } from './hold-tracker.ts';

const AT = new Date(0);

function holder(id: string, token = 1n): ContenderInfo {
  return { id, token, role: 'exclusive', session: 1n, since: AT, owner: {} };
}
function lock(...holders: ContenderInfo[]): LockInfo {
  return { name: 'a', kind: 'mutex', holders, queue: [], foreign: [], numbered: 0 };
}
const told = (events: ReturnType<HoldTracker['look']>) =>
  events.map((event) =>
    event.event === 'gap'
      ? 'gap'
      : event.event === 'back'
        ? `back after ${event.gapMs}`
        : event.event === 'holds'
          ? `${event.holder.id} holds${event.fromStart ? '' : ', unknown since'}`
          : `${event.holder.id} ended after ${event.heldMs}`,
  );

test('a hold is told when it begins and when it ends, with its length', () => {
  const tracker = new HoldTracker();
  expect(told(tracker.look(lock(), AT, 0))).toEqual([]);
  expect(told(tracker.look(lock(holder('x')), AT, 10))).toEqual(['x holds']);
  expect(told(tracker.look(lock(holder('x')), AT, 20))).toEqual([]);
  expect(told(tracker.look(lock(holder('y')), AT, 35))).toEqual(['x ended after 25', 'y holds']);
});

test('who held before the first look, since when is not known', () => {
  const tracker = new HoldTracker();
  expect(told(tracker.look(lock(holder('x')), AT, 5))).toEqual(['x holds, unknown since']);
  expect(told(tracker.look(lock(), AT, 10))).toEqual(['x ended after undefined']);
});

test('a gap is told once, and makes what changed in it of unknown length', () => {
  const tracker = new HoldTracker();
  tracker.look(lock(), AT, 0);
  tracker.look(lock(holder('x')), AT, 10);
  expect([...told(tracker.gap(AT, 20)), ...told(tracker.gap(AT, 30))]).toEqual(['gap']);
  expect(told(tracker.look(lock(holder('y')), AT, 99))).toEqual([
    'back after 79',
    'x ended after undefined',
    'y holds, unknown since',
  ]);
  expect(told(tracker.look(lock(), AT, 120))).toEqual(['y ended after undefined']);
});

test('two holders of a simple lock in a row are two, though their nodes have one name', () => {
  const tracker = new HoldTracker();
  tracker.look(lock(), AT, 0);
  tracker.look(lock(holder('simple', 1n)), AT, 1);
  expect(told(tracker.look(lock(holder('simple', 2n)), AT, 4))).toEqual([
    'simple ended after 3',
    'simple holds',
  ]);
});
