import { type Attempt, type RunFacts, ranAgainAtMs, stalledWithin } from './attempts.ts';
import { who } from './check-exclusion.ts';
import type { CheckOptions, Property, Violation } from './violation.ts';

/**
 * What each attempt must keep to by itself: nothing dead is handed out (L3b), nothing lost comes back (L3c), nothing is
 * granted after its deadline, what gives up does so by then, and everything settles (L14), in time once all is well (L4), re-entry shares the token (L8),
 * one node for each call (L11) and of the session that holds (L11b), all nodes of a multi-lock in one transaction (L13).
 */
export function checkAttempts(facts: RunFacts, options: CheckOptions): Violation[] {
  const violations: Violation[] = [];
  for (const attempt of facts.attempts.values()) {
    const broken = (property: Property, atMs: number, message: string) => {
      const { locks } = attempt.asked;
      violations.push({
        property,
        atMs,
        ...(locks.length === 1 && { lock: locks[0]! }),
        attempts: [attempt.asked.attempt],
        message: `${who(attempt)} ${message}`,
      });
    };
    checkGrant(attempt, options, broken);
    checkGaveUp(attempt, options, broken);
    checkNodes(attempt, broken);
    if (facts.healedAtMs !== undefined) checkSettled(attempt, facts.healedAtMs, options, broken);
  }
  return violations;
}

type Broken = (property: Property, atMs: number, message: string) => void;

function checkGrant(attempt: Attempt, { latenessMs }: CheckOptions, broken: Broken): void {
  const { asked, granted, lost, looks, client, root } = attempt;
  if (!granted) return;
  const { atMs, leaseEndsAtMs, token } = granted;
  const ran =
    !stalledWithin(client, atMs - latenessMs, atMs + latenessMs) && ranAgainAtMs(client, atMs) === atMs;
  if (leaseEndsAtMs <= atMs && ran) broken('L3b', atMs, 'was handed out when its lease was over');
  if (lost) {
    const revived = looks.find((look) => look.atMs > lost.atMs && look.leaseEndsAtMs > look.atMs);
    if (revived) broken('L3c', revived.atMs, `was held again after it was told lost at ${lost.atMs}`);
  }
  const { deadlineAtMs } = asked;
  if (
    deadlineAtMs !== undefined &&
    atMs > deadlineAtMs + latenessMs &&
    !stalledWithin(client, asked.atMs, atMs)
  ) {
    broken('L14', atMs, `was granted ${(atMs - deadlineAtMs).toFixed(3)} ms after its deadline`);
  }
  if (root !== attempt && root.granted?.token !== token) {
    broken('L8', atMs, `was entered within ${who(root)}, and has another token`);
  }
}

/** Times in the shared clock are quotients of those on the client's. */
const ROUNDING_MS = 0.01;

function checkGaveUp({ asked, gaveUp, client }: Attempt, { latenessMs }: CheckOptions, broken: Broken): void {
  const { deadlineAtMs } = asked;
  if (!gaveUp || deadlineAtMs === undefined || client.ended) return;
  const lateMs = gaveUp.atMs - deadlineAtMs - latenessMs;
  if (lateMs > ROUNDING_MS && !stalledWithin(client, asked.atMs, gaveUp.atMs)) {
    broken('L14', gaveUp.atMs, `gave up ${(lateMs + latenessMs).toFixed(3)} ms after its deadline`);
  }
}

function checkNodes({ granted, queued }: Attempt, broken: Broken): void {
  const ofLock = new Map<string, bigint>();
  const ofSession = new Map<string, bigint>();
  for (const { lock, session, czxid, atMs } of queued) {
    const other = ofLock.get(`${session} ${lock}`);
    if (other !== undefined && other !== czxid) {
      broken('L11', atMs, `has two nodes in ${lock} of session ${session}: ${other} and ${czxid}`);
    }
    ofLock.set(`${session} ${lock}`, czxid);
    const together = ofSession.get(session);
    if (other === undefined && together !== undefined && together !== czxid) {
      broken('L13', atMs, `joined its queues in two transactions: ${together} and ${czxid}`);
    }
    ofSession.set(session, czxid);
    if (granted?.session !== undefined && granted.token === czxid && granted.session !== session) {
      broken('L11b', granted.atMs, `holds by a node of session ${session} in session ${granted.session}`);
    }
  }
}

function checkSettled(attempt: Attempt, healedAtMs: number, options: CheckOptions, broken: Broken): void {
  const { asked, granted, gaveUp, releaseStarted, released, client } = attempt;
  if (client.ended) return;
  const settled = granted ?? gaveUp;
  if (!settled) broken('L14', asked.atMs, 'never settled');
  else {
    const tookMs = settled.atMs - Math.max(asked.atMs, healedAtMs);
    if (tookMs > options.settleMsMax) {
      broken(
        'L4',
        settled.atMs,
        `took ${tookMs.toFixed(0)} ms though all was well; at most ${options.settleMsMax}`,
      );
    }
  }
  if (releaseStarted && !released) broken('L14', releaseStarted.atMs, 'was never done with letting go');
}
