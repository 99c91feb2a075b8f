import { describe, expect, test } from 'vitest';
import type { ContenderInfo, LockInfo } from '../../locks/inspection.ts';
import { type Finding, worstOf } from './finding.ts';
import {
  checkClocks,
  checkDeadlocks,
  checkForeign,
  checkFreeFolders,
  checkOrphans,
  checkQueues,
  checkSequences,
} from './lock-checks.ts';
import {
  checkEnsemble,
  checkLatency,
  checkReachability,
  checkReadOnly,
  checkSessionTimeout,
} from './server-checks.ts';
import { configurationFrom, type ServerFacts } from './server-facts.ts';

const NOW_MS = Date.parse('2026-01-01T12:00:00Z');

function server(given: Partial<ServerFacts> = {}): ServerFacts {
  const session = { connectMs: 3, readMs: [1, 1, 2], timeoutMs: 15_000, readOnly: false };
  const facts = {
    name: 'zk1:2181',
    version: '3.8.0',
    mode: 'standalone',
    trouble: undefined,
    configuration: undefined,
  };
  return { session, ...facts, ...given };
}
function contender(given: Partial<ContenderInfo> = {}): ContenderInfo {
  const facts = { id: 'c', role: 'exclusive', token: 1n, session: 5n, owner: { host: 'web-3' } } as const;
  return { since: new Date(NOW_MS), ...facts, ...given };
}
function lock(given: Partial<LockInfo> = {}): LockInfo {
  return { name: 'a', kind: 'mutex', holders: [contender()], queue: [], foreign: [], numbered: 1, ...given };
}
const verdicts = (findings: readonly Finding[]) => findings.map(({ verdict }) => verdict);

describe('the doctor', () => {
  test('says of each server whether it gives a session, and why not', () => {
    const dead = server({ name: 'zk2:2181', session: undefined, trouble: 'connect ECONNREFUSED' });
    expect(checkReachability([server(), dead])).toMatchObject([
      { verdict: 'ok', detail: 'zk1:2181: a session in 3.0 ms (ZooKeeper 3.8.0, standalone)' },
      { verdict: 'fail', detail: 'zk2:2181: connect ECONNREFUSED' },
    ]);
  });

  test.each([
    [['standalone'], 'ok'],
    [['leader', 'follower', 'follower'], 'ok'],
    [['standalone', 'standalone'], 'fail'],
    [['leader', 'standalone'], 'fail'],
    [['follower', 'follower'], 'warn'],
    [['leader', 'leader'], 'warn'],
    [['leader', undefined], 'skip'],
  ] as const)('servers that are %j belong together: %s', (modes, verdict) => {
    expect(checkEnsemble(modes.map((mode) => server({ mode }))).verdict).toBe(verdict);
  });

  test('finds servers slow, and read-only', () => {
    const slow = { connectMs: 3, readMs: [60, 70, 80], timeoutMs: 15_000, readOnly: true };
    const stalling = { connectMs: 3, readMs: [1, 1, 4_000], timeoutMs: 15_000, readOnly: false };
    expect(
      verdicts(checkLatency([server(), server({ session: slow }), server({ session: stalling })])),
    ).toEqual(['ok', 'warn', 'warn']);
    expect(verdicts(checkReadOnly([server(), server({ session: slow })]))).toEqual(['warn']);
  });

  test.each([
    [15_000, { tickMs: 2_000, syncLimit: 5 }, ['ok']],
    [10_000, { tickMs: 2_000, syncLimit: 5 }, ['warn', 'warn']],
    [15_000, { tickMs: 2_000, syncLimit: undefined }, ['skip']],
    [15_000, undefined, ['skip']],
  ])('a session of %d ms against %j', (timeoutMs, configuration, expected) => {
    const session = { connectMs: 1, readMs: [1], timeoutMs, readOnly: false };
    const servers = ['leader', 'follower'].map((mode) => server({ session, mode, configuration }));
    expect(verdicts(checkSessionTimeout(servers, 15_000))).toEqual(expected);
  });

  test('does not ask a server that stands alone for a syncLimit', () => {
    expect(verdicts(checkSessionTimeout([server()], 15_000))).toEqual(['ok']);
  });

  test('reads what conf says', () => {
    const conf = 'clientPort=2181\ntickTime=2000\nmaxClientCnxns=60\nserverId=1\ninitLimit=10\nsyncLimit=5\n';
    expect(configurationFrom(conf)).toEqual({ tickMs: 2_000, syncLimit: 5 });
    expect(configurationFrom('tickTime=2000\nsyncLimit=undefined')).toEqual({
      tickMs: 2_000,
      syncLimit: undefined,
    });
    expect(configurationFrom('')).toBeUndefined();
    expect(configurationFrom('not a ZooKeeper at all')).toBeUndefined();
  });

  test.each([
    [0, 'ok'],
    [1_000_000, 'ok'],
    [1_800_000_000, 'warn'],
    [2_147_483_647, 'fail'],
  ])('%d numbers of a lock used is %s', (numbered, verdict) => {
    expect(checkSequences([lock(), lock({ numbered })]).verdict).toBe(verdict);
  });

  test('finds contenders of no session, and nodes among the batons', () => {
    expect(verdicts(checkOrphans([lock()], []))).toEqual(['ok']);
    const lasting = lock({ queue: [contender({ id: 'stays', session: 0n })] });
    expect(checkOrphans([lasting], ['x'])).toMatchObject([
      { verdict: 'fail', detail: expect.stringContaining('a/stays') },
      { verdict: 'warn' },
    ]);
  });

  test('names strangers, and whose they may be', () => {
    expect(verdicts(checkForeign([lock()]))).toEqual(['ok']);
    const [finding] = checkForeign([lock({ foreign: ['6f__lock__0000000001'] })]);
    expect(finding).toMatchObject({ verdict: 'warn', detail: expect.stringContaining('kazoo') });
  });

  test('finds deep queues and long waits, but lets candidates wait', () => {
    const old = contender({ since: new Date(NOW_MS - 3_600_000) });
    const deep = lock({ queue: Array.from({ length: 101 }, () => contender()) });
    expect(verdicts(checkQueues([deep], NOW_MS))).toEqual(['warn']);
    expect(checkQueues([lock({ queue: [old] })], NOW_MS)).toMatchObject([
      { verdict: 'warn', detail: 'a: web-3 has waited 1h00m' },
    ]);
    expect(verdicts(checkQueues([lock({ kind: 'election', queue: [old] }), lock()], NOW_MS))).toEqual(['ok']);
  });

  test('finds folders that nobody removes, and deadlocks', () => {
    const free = (count: number) => Array.from({ length: count }, () => lock({ kind: 'free', holders: [] }));
    expect(checkFreeFolders(free(1_000))).toEqual([]);
    expect(verdicts(checkFreeFolders(free(1_001)))).toEqual(['warn']);
    expect(checkDeadlocks({ waits: [], nested: [], deadlocks: [], stuck: [] }).verdict).toBe('ok');
    expect(checkDeadlocks({ waits: [], nested: [], deadlocks: [[1n, 2n]], stuck: [3n] })).toMatchObject({
      verdict: 'fail',
      detail: '2 sessions wait for each other in a circle, and 1 more wait for them',
    });
  });

  test('finds clocks that are off, of contenders and its own', () => {
    const since = (skewMs: number) =>
      contender({ owner: { host: 'web-3', since: new Date(NOW_MS - skewMs).toISOString() } });
    expect(verdicts(checkClocks([lock({ holders: [since(1_500)] })], 20))).toEqual(['ok']);
    expect(checkClocks([lock({ holders: [since(60_000)] })], -6_000)).toMatchObject([
      { verdict: 'warn', detail: 'web-3: 1m00s behind the servers' },
      { verdict: 'warn', detail: 'this machine: 6s ahead of the servers' },
    ]);
    expect(verdicts(checkClocks([], undefined))).toEqual(['skip']);
    expect(
      verdicts(checkClocks([lock({ holders: [contender({ owner: { since: 'yesterday' } })] })], 0)),
    ).toEqual(['ok']);
  });

  test('is as bad as its worst finding; what could not be looked at is not bad', () => {
    const finding = (verdict: Finding['verdict']): Finding => ({ check: 'x', verdict, detail: '' });
    expect(worstOf([finding('ok'), finding('skip')])).toBe('ok');
    expect(worstOf([finding('warn'), finding('ok')])).toBe('warn');
    expect(worstOf([finding('warn'), finding('fail'), finding('ok')])).toBe('fail');
  });
});
