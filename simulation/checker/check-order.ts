import type { Attempt, GrantedAttempt, LockFacts } from './attempts.ts';
import { who } from './check-exclusion.ts';
import type { Property, Violation } from './violation.ts';

/**
 * Tokens and turns: whoever asks after a grant has a larger token (L2, of an election L10), no two have the same (L2),
 * and who stood further ahead is granted first (L6; between readers and writers L7; not for a simple lock, which has no
 * queue, nor for permits, of which several are granted at once).
 *
 * A token is the transaction that made the contender's node, so it is its place in the queue as well. A contender that
 * did not get the lock proves nothing: its place may have been lost before anyone overtook it.
 */
export function checkOrder(name: string, lock: LockFacts): Violation[] {
  const grants = lock.grants.filter((attempt) => attempt.root === attempt && wasAlive(attempt, lock));
  return [
    ...duplicates(name, grants),
    ...(lock.declared[0].recipe === 'semaphore'
      ? askedAfterGrant(name, grants)
      : outOfTurn(name, lock, grants)),
  ];
}

/** A grant that was over when it was recorded has no place in the order of grants. */
function wasAlive({ granted }: GrantedAttempt, { removed }: LockFacts): boolean {
  const removedAtMs = removed.get(granted.token)?.atMs ?? Number.POSITIVE_INFINITY;
  return granted.leaseEndsAtMs > granted.atMs && removedAtMs > granted.atMs;
}

function duplicates(name: string, grants: readonly GrantedAttempt[]): Violation[] {
  const byToken = new Map<string, GrantedAttempt>();
  const violations: Violation[] = [];
  for (const grant of grants) {
    const { token, section = 0 } = grant.granted;
    const other = byToken.get(`${token}.${section}`);
    if (other) violations.push(between('L2', name, other, grant, 'has the token of'));
    else byToken.set(`${token}.${section}`, grant);
  }
  return violations;
}

function askedAfterGrant(name: string, grants: readonly GrantedAttempt[]): Violation[] {
  const violations: Violation[] = [];
  const byAsking = [...grants].sort((a, b) => a.asked.atMs - b.asked.atMs);
  let next = 0;
  let largest: GrantedAttempt | undefined;
  for (const grant of byAsking) {
    for (; next < grants.length && grants[next]!.granted.atMs < grant.asked.atMs; next++) {
      largest = larger(largest, grants[next]!);
    }
    if (largest && isLater(largest, grant)) {
      violations.push(between('L2', name, largest, grant, 'asked later and has a smaller token than'));
    }
  }
  return violations;
}

/** In the order of grants: a writer goes behind all, a reader behind all writers. */
function outOfTurn(name: string, lock: LockFacts, grants: readonly GrantedAttempt[]): Violation[] {
  const violations: Violation[] = [];
  let largestReader: GrantedAttempt | undefined;
  let largestOther: GrantedAttempt | undefined;
  for (const grant of grants) {
    const reader = grant.asked.mode === 'read';
    const overtaker = [largestOther, reader ? undefined : largestReader].find(
      (other) => other && isLater(other, grant),
    );
    if (overtaker) violations.push(overtaken(name, lock, overtaker, grant));
    if (reader) {
      // Readers are granted in any order, but not with a smaller token than one that came before they asked.
      largestReader = larger(largestReader, grant);
    } else largestOther = larger(largestOther, grant);
  }
  const readers = grants.filter(({ asked }) => asked.mode === 'read');
  return [...violations, ...askedAfterGrant(name, readers)];
}

function overtaken(name: string, lock: LockFacts, first: GrantedAttempt, second: GrantedAttempt): Violation {
  const { recipe } = lock.declared[0];
  if (recipe === 'simple' || second.asked.atMs > first.granted.atMs) {
    const property = recipe === 'election' ? 'L10' : 'L2';
    return between(property, name, first, second, 'asked later and has a smaller token than');
  }
  const mixed = first.asked.mode !== second.asked.mode;
  const property = recipe === 'read-write' && mixed ? 'L7' : 'L6';
  return between(property, name, first, second, 'stood further ahead and was granted later than');
}

function larger(a: GrantedAttempt | undefined, b: GrantedAttempt): GrantedAttempt {
  return a && isLater(a, b) ? a : b;
}

/** By the token, and among holds of one node by their number. */
function isLater({ granted: a }: GrantedAttempt, { granted: b }: GrantedAttempt): boolean {
  return a.token > b.token || (a.token === b.token && (a.section ?? 0) > (b.section ?? 0));
}

function between(
  property: Property,
  lock: string,
  first: Attempt,
  second: GrantedAttempt,
  relation: string,
): Violation {
  return {
    property,
    atMs: second.granted.atMs,
    lock,
    attempts: [first.asked.attempt, second.asked.attempt],
    message: `on ${lock}, ${who(second)} ${relation} ${who(first)}`,
  };
}
