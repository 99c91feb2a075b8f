import type { Attempt, RunFacts } from './attempts.ts';
import { who } from './check-exclusion.ts';
import type { Violation } from './violation.ts';

/** What is left when nobody asks for anything more: nodes of holders and of those who wait, and nothing else (L5, L12). */
export function checkRemains({ remains, locks }: RunFacts): Violation[] {
  const violations: Violation[] = [];
  for (const { atMs, nodes, others = [] } of remains) {
    for (const { lock, path, czxid } of nodes) {
      const attempt = locks.get(lock)?.byCzxid.get(czxid);
      if (attempt && mayHaveNode(attempt)) continue;
      const released = attempt?.released !== undefined;
      violations.push({
        property: released ? 'L12' : 'L5',
        atMs,
        lock,
        attempts: attempt ? [attempt.asked.attempt] : [],
        message: `${path} is left, of ${attempt ? `${who(attempt)}, which ${endOf(attempt)}` : 'nobody'}`,
      });
    }
    for (const other of others) {
      violations.push({ property: 'L5', atMs, attempts: [], message: `${other} is left` });
    }
  }
  return violations;
}

function mayHaveNode({ gaveUp, lost, released, client }: Attempt): boolean {
  return !gaveUp && !lost && !released && !client.ended;
}

function endOf({ gaveUp, lost, released, client }: Attempt): string {
  if (released) return 'has let go';
  if (gaveUp) return `gave up (${gaveUp.reason})`;
  if (lost) return 'was told lost';
  return `was ${client.ended!.how}`;
}
