import type { NemesisResult } from './run-nemesis.ts';

/** What must at least have happened in a minute for a run to say anything. */
const FAULTS_PER_MINUTE = 6;
const GRANTS_PER_MINUTE = 330;
const READS_PER_MINUTE = 100;
/** How many of those who stopped a lock's holder, at least once. */
const STALE_MIN = 1;

/**
 * What is wrong with a run, in words. Promises that were broken; and signs that it proves nothing: too little has
 * happened, no stale write came to the resource, or the lock that is wrong was not found out.
 */
export function judge(
  { verdict, control, failures }: NemesisResult,
  { minutes }: { readonly minutes: number },
): string[] {
  const { counts, violations } = verdict;
  const faults = [...failures];
  if (violations.length > 0)
    faults.push(`${violations.length} violations, the first: ${violations[0]!.message}`);
  // Nobody removes anything by hand here, and whatever else may end an attempt has a name of its own.
  const odd = verdict.events.find(
    (event) => event.kind === 'gave-up' && (event.reason === 'evicted' || event.reason === 'error'),
  );
  if (odd?.kind === 'gave-up') faults.push(`${odd.attempt} ended with ${odd.reason}: ${odd.detail}`);
  const atLeast = (what: string, count: number, least: number) => {
    if (count < least)
      faults.push(`${what}: ${count}, at least ${least} are needed for the run to say anything`);
  };
  atLeast('faults', counts.faults, Math.floor(FAULTS_PER_MINUTE * minutes));
  atLeast('grants', counts.grants, Math.floor(GRANTS_PER_MINUTE * minutes));
  for (const [lock, grants] of Object.entries(counts.grantsByLock)) atLeast(`grants of ${lock}`, grants, 1);
  atLeast('stale writes that the fence refused', counts.writesRefused, STALE_MIN);
  atLeast('stale writes where there is no fence', counts.staleApplied, STALE_MIN);
  atLeast('reads of what a lock protects', counts.registerReads, READS_PER_MINUTE * Math.floor(minutes));
  atLeast('losses that were told', counts.losses, 1);
  const found = control.violations.filter(({ property }) => property === 'L1').length;
  atLeast('overlaps of the control lock, which is wrong', found, 1);
  return faults;
}
