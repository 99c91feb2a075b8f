import { describe, expect, test } from 'vitest';
import { seededRandom } from '../../src/testing.ts';
import { faultPlan, type PlannedFault } from './plan.ts';

const SESSION_TIMEOUT_MS = 3_000;

function firstOf(seed: number, count: number): (readonly PlannedFault[])[] {
  const plan = faultPlan(seededRandom(seed), SESSION_TIMEOUT_MS);
  return Array.from({ length: count }, () => plan.next().value as readonly PlannedFault[]);
}

describe('the course of a nemesis', () => {
  test('is the same for the same seed, and another for another', () => {
    expect(firstOf(7, 100)).toEqual(firstOf(7, 100));
    expect(firstOf(7, 100)).not.toEqual(firstOf(8, 100));
  });

  test('has every kind of fault, and begins with those who hold', () => {
    const course = firstOf(1, 500);
    expect(course[0]!.map(({ kind }) => kind)).toEqual(['pause-holders']);
    expect(course[0]![0]!.holdMs).toBeGreaterThan(2 * SESSION_TIMEOUT_MS);
    const kinds = new Set(course.flat().map(({ kind }) => kind));
    expect(kinds.size).toBe(17);
  });

  test('strikes servers once at a time', () => {
    const ofServers = /leader|follower|quorum|rolling|folders/;
    for (const faults of firstOf(1, 500)) {
      expect(faults.filter(({ kind }) => ofServers.test(kind)).length).toBeLessThan(2);
      for (const { holdMs } of faults) expect(holdMs).toBeLessThanOrEqual(3 * SESSION_TIMEOUT_MS);
    }
  });
});
