import type { Wrote } from './history.ts';
import type { Violation } from './violation.ts';

/**
 * A fenced resource applies nothing whose token is below the largest writer's that it has applied, and refuses nothing
 * else (L1u). One that is not fenced applies everything, and shows how often that would have mattered.
 */
export function checkFences(writes: readonly Wrote[]): {
  readonly violations: Violation[];
  /** Stale writes that an unfenced resource applied. */
  readonly staleApplied: number;
} {
  const violations: Violation[] = [];
  const largest = new Map<string, bigint>();
  let staleApplied = 0;
  for (const { resource, token, mode, outcome, fenced, atMs } of writes) {
    const highest = largest.get(resource) ?? 0n;
    const stale = token < highest;
    if (outcome === 'applied' && mode === 'write' && !stale) largest.set(resource, token);
    if (stale && outcome === 'applied' && !fenced) staleApplied++;
    else if (stale !== (outcome === 'refused')) {
      const relation = stale ? 'below' : 'not below';
      const message = `${resource} ${outcome} a write with token ${token}, ${relation} ${highest}`;
      violations.push({ property: 'L1u', atMs, attempts: [], message });
    }
  }
  return { violations, staleApplied };
}
