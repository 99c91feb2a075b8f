import { describe, expect, test } from 'vitest';
import { checkHistory, type HistoryCounts } from '../../simulation/checker/checker.ts';
import type { Violation } from '../../simulation/checker/violation.ts';
import { judge } from './judge.ts';
import type { NemesisResult } from './run-nemesis.ts';

const overlap: Violation = { property: 'L1', atMs: 1, message: 'two hold it', attempts: [] };
const empty = checkHistory([]);
const enough: HistoryCounts = {
  ...empty.counts,
  faults: 60,
  grants: 3_300,
  grantsByLock: { a: 1 },
  writesRefused: 1,
  staleApplied: 1,
  losses: 1,
  registerReads: 1_000,
};
const good: NemesisResult = {
  verdict: { ...empty, counts: enough },
  control: { ...empty, violations: [overlap] },
  failures: [],
};
const withCounts = (counts: Partial<HistoryCounts>): NemesisResult => ({
  ...good,
  verdict: { ...empty, counts: { ...enough, ...counts } },
});

describe('a run of the nemesis', () => {
  test('is good if nothing was broken and enough has happened', () => {
    expect(judge(good, { minutes: 10 })).toEqual([]);
  });

  test.each<readonly [string, NemesisResult, RegExp]>([
    [
      'a promise was broken',
      { ...good, verdict: { ...good.verdict, violations: [overlap] } },
      /1 violations/,
    ],
    [
      'an attempt ended with an error that nothing explains',
      {
        ...good,
        verdict: {
          ...good.verdict,
          events: [{ kind: 'gave-up', atMs: 1, attempt: 'w1.1/7', reason: 'error', detail: 'TypeError: x' }],
        },
      },
      /w1\.1\/7 ended with error: TypeError/,
    ],
    ['a worker failed', { ...good, failures: ['w1.1 ended by itself'] }, /w1\.1/],
    ['it had too few faults', withCounts({ faults: 59 }), /^faults: 59, at least 60/],
    ['it had too few grants', withCounts({ grants: 3_299 }), /^grants: 3299, at least 3300/],
    ['one lock was never granted', withCounts({ grantsByLock: { a: 5, s: 0 } }), /grants of s/],
    ['no stale write came to the fence', withCounts({ writesRefused: 0 }), /the fence refused/],
    ['nobody wrote too late where there is no fence', withCounts({ staleApplied: 0 }), /no fence/],
    [
      'holders hardly read anything',
      withCounts({ registerReads: 999 }),
      /^reads of what a lock protects: 999/,
    ],
    ['nobody lost anything', withCounts({ losses: 0 }), /losses/],
    ['the lock that is wrong was not found out', { ...good, control: empty }, /control lock/],
  ])('is not good if %s', (_name, result, fault) => {
    expect(judge(result, { minutes: 10 })).toEqual([expect.stringMatching(fault)]);
  });
});
