import { endedAtMs, gatherFacts, type LockFacts, type RunFacts } from './attempts.ts';
import { checkAttempts } from './check-attempts.ts';
import { checkExclusion } from './check-exclusion.ts';
import { checkFences } from './check-fences.ts';
import { checkOrder } from './check-order.ts';
import { checkRegisters } from './check-registers.ts';
import { checkRemains } from './check-remains.ts';
import type { History, HistoryEvent } from './history.ts';
import type { CheckOptions, Violation } from './violation.ts';

/** What was in a history, so that one that did nothing cannot pass for a good one. */
export interface HistoryCounts {
  readonly attempts: number;
  readonly grants: number;
  readonly grantsByLock: Readonly<Record<string, number>>;
  readonly gaveUp: number;
  readonly losses: number;
  readonly faults: number;
  readonly faultsByKind: Readonly<Record<string, number>>;
  readonly stalls: number;
  readonly writesApplied: number;
  readonly writesRefused: number;
  /** Stale writes that an unfenced resource applied. */
  readonly staleApplied: number;
  /** How often a holder has read what its lock protects. */
  readonly registerReads: number;
  /** From letting go to the next grant, where somebody waited for a lock with one holder. */
  readonly handOverMs: {
    readonly count: number;
    readonly p50: number;
    readonly p99: number;
    readonly max: number;
  };
}

/** What the checker says of a history. */
export interface Verdict {
  /** In the order of time; empty if every promise was kept. */
  readonly violations: readonly Violation[];
  readonly counts: HistoryCounts;
  /** The history in the order of time, for whoever tells of it. */
  readonly events: readonly HistoryEvent[];
}

/**
 * Judges a history: which promises of docs/testing.md were not kept. Takes n log n steps, since tokens say the order in
 * which the servers saw things, and nothing has to be searched for.
 *
 * A history without `healed` is one of a run that was not ended: nothing is said of what it left undone.
 *
 * @throws MalformedHistoryError for a history that no run can have recorded.
 */
export function checkHistory(history: History, options: Partial<CheckOptions> = {}): Verdict {
  const { latenessMs = 0, settleMsMax = Number.POSITIVE_INFINITY } = options;
  if (!(latenessMs >= 0)) throw new RangeError(`latenessMs: ${latenessMs} given; 0 or more is needed`);
  if (!(settleMsMax >= 0)) throw new RangeError(`settleMsMax: ${settleMsMax} given; 0 or more is needed`);
  const facts = gatherFacts(history);
  const fences = checkFences(facts.writes);
  const violations = [
    ...[...facts.locks].flatMap(([name, lock]) => [
      ...checkExclusion(name, lock, { latenessMs, settleMsMax }),
      ...checkOrder(name, lock),
    ]),
    ...checkAttempts(facts, { latenessMs, settleMsMax }),
    ...checkRegisters(facts),
    ...checkRemains(facts),
    ...fences.violations,
  ].sort((a, b) => a.atMs - b.atMs);
  return { violations, counts: countsOf(facts, fences.staleApplied), events: facts.events };
}

function countsOf(facts: RunFacts, staleApplied: number): HistoryCounts {
  const attempts = [...facts.attempts.values()];
  const faults = facts.events.filter((event) => event.kind === 'fault-began');
  const faultsByKind: Record<string, number> = {};
  for (const { what } of faults) faultsByKind[what] = (faultsByKind[what] ?? 0) + 1;
  const gapsMs = [...facts.locks.values()].flatMap(handOversMs).sort((a, b) => a - b);
  const quantile = (part: number) =>
    gapsMs[Math.min(gapsMs.length - 1, Math.floor(gapsMs.length * part))] ?? 0;
  return {
    attempts: attempts.length,
    grants: attempts.filter(({ granted }) => granted).length,
    grantsByLock: Object.fromEntries([...facts.locks].map(([name, { grants }]) => [name, grants.length])),
    gaveUp: attempts.filter(({ gaveUp }) => gaveUp).length,
    losses: attempts.filter(({ lost }) => lost).length,
    faults: faults.length,
    faultsByKind,
    stalls: [...facts.clients.values()].reduce((sum, { stalls }) => sum + stalls.length, 0),
    writesApplied: facts.writes.filter(({ outcome }) => outcome === 'applied').length,
    writesRefused: facts.writes.filter(({ outcome }) => outcome === 'refused').length,
    staleApplied,
    registerReads: facts.registerEvents.filter(({ kind }) => kind === 'register-read').length,
    handOverMs: { count: gapsMs.length, p50: quantile(0.5), p99: quantile(0.99), max: gapsMs.at(-1) ?? 0 },
  };
}

function handOversMs(lock: LockFacts): number[] {
  if (lock.declared[0].recipe !== 'mutex' && lock.declared[0].recipe !== 'election') return [];
  return lock.grants.slice(1).flatMap((next, index) => {
    const before = lock.grants[index]!;
    const endMs = endedAtMs(before, lock);
    const handed =
      before.releaseStarted?.atMs === endMs && next.asked.atMs < endMs && next.granted.atMs >= endMs;
    return handed ? [next.granted.atMs - endMs] : [];
  });
}
