import type { ContenderInfo, LockInfo } from '../../locks/inspection.ts';
import type { WaitGraph } from '../../locks/wait-graph.ts';
import { describeForeign, SEQUENCE_LAST } from '../../queue/entry-name.ts';
import { ownerText } from '../owner-text.ts';
import { ageText } from '../terminal/age-text.ts';
import type { Finding } from './finding.ts';

const SEQUENCE_WARN_SHARE = 0.8;
const DEEP_QUEUE = 100;
const OLD_WAIT_MS = 10 * 60_000;
const FREE_FOLDERS_MANY = 1_000;
const SKEW_MS_MAX = 5_000;
const NAMED_MAX = 5;

/** How many numbers are left before the counter sticks, and everyone gets the same. */
export function checkSequences(locks: readonly LockInfo[]): Finding {
  const check = 'sequence';
  const used = Math.max(0, ...locks.map(({ numbered }) => numbered));
  const high = locks.filter(({ numbered }) => numbered > SEQUENCE_LAST * SEQUENCE_WARN_SHARE);
  const share = `${((used / SEQUENCE_LAST) * 100).toFixed(1)} %`;
  if (high.length === 0) {
    return { check, verdict: 'ok', detail: `at most ${share} of the numbers of a lock are used` };
  }
  const stuck = high.some(({ numbered }) => numbered >= SEQUENCE_LAST);
  return {
    check,
    verdict: stuck ? 'fail' : 'warn',
    detail: `${named(high.map(({ name }) => name))}: ${share} of the numbers used`,
    advice:
      'when they are used up, Curator and kazoo let two in: stop using the lock for a few minutes, so that its folder is removed and numbers start again, or use another name',
  };
}

/** What holds or waits and will never go by itself. */
export function checkOrphans(locks: readonly LockInfo[], batons: readonly string[]): Finding[] {
  const lasting = locks.flatMap(({ name, holders, queue }) =>
    [...holders, ...queue]
      .filter(({ session, unreadable }) => session === 0n && !unreadable)
      .map(({ id }) => `${name}/${id}`),
  );
  const findings: Finding[] = [];
  if (lasting.length > 0) {
    findings.push({
      check: 'orphans',
      verdict: 'fail',
      detail: `${named(lasting)}: of no session, so it stays for ever`,
      advice: 'find out who made it; remove it with `holdfast release` if it holds',
    });
  }
  if (batons.length > 0) {
    findings.push({
      check: 'orphans',
      verdict: 'warn',
      detail: `${batons.length} nodes in the folder of batons, where none ever stays`,
      advice: 'somebody else writes there, and could forge a release: see its access list, and remove them',
    });
  }
  return findings.length > 0 ? findings : [{ check: 'orphans', verdict: 'ok', detail: 'none' }];
}

/** What is in a lock's folder and is no contender: the lock cannot be taken by Holdfast. */
export function checkForeign(locks: readonly LockInfo[]): Finding[] {
  const strange = locks.filter(({ foreign }) => foreign.length > 0);
  if (strange.length === 0)
    return [{ check: 'foreign', verdict: 'ok', detail: 'no strangers in the folders of locks' }];
  return strange.slice(0, NAMED_MAX).map(({ name, foreign }) => ({
    check: 'foreign',
    verdict: 'warn',
    detail: `${name}: ${named(foreign.map(describeForeign))}`,
    advice:
      'Holdfast does not take this lock while they are there: use another name, or make the other program stop',
  }));
}

/** Locks of which nothing is known here: all other checks leave them out. */
export function checkUnreadable(locks: readonly LockInfo[]): Finding[] {
  const hidden = locks.filter(({ kind }) => kind === 'unreadable');
  const unreadable = hidden.slice(0, NAMED_MAX).map(
    ({ name, problem }): Finding => ({
      check: 'unreadable',
      verdict: 'warn',
      detail: `${name}: ${problem?.message}`,
      advice: 'give credentials that may read it (--auth, HOLDFAST_AUTH), or see whose it is and remove it',
    }),
  );
  const more = hidden.length - unreadable.length;
  if (more > 0) unreadable.push({ check: 'unreadable', verdict: 'warn', detail: `and ${more} more` });
  return unreadable;
}

/** Queues that grow faster than they move. */
export function checkQueues(locks: readonly LockInfo[], wallMs: number): Finding[] {
  const deep = locks.filter(({ queue }) => queue.length > DEEP_QUEUE);
  const findings: Finding[] = deep.slice(0, NAMED_MAX).map(({ name, queue }) => ({
    check: 'queues',
    verdict: 'warn',
    detail: `${name}: ${queue.length} wait`,
    advice: 'see who holds it and for how long (`holdfast inspect`); split the lock, or try without waiting',
  }));
  // Candidates of an election wait as long as the leader lives: that is their job.
  const old = locks
    .filter(({ kind }) => kind !== 'election')
    .flatMap(({ name, queue }) => queue.slice(0, 1).map((waiter) => ({ name, waiter })))
    .filter(({ waiter }) => wallMs - waiter.since.getTime() > OLD_WAIT_MS);
  for (const { name, waiter } of old.slice(0, NAMED_MAX)) {
    findings.push({
      check: 'queues',
      verdict: 'warn',
      detail: `${name}: ${ownerText(waiter)} has waited ${ageText(wallMs - waiter.since.getTime())}`,
      advice: 'ask the holder to let go: `holdfast revoke`',
    });
  }
  if (findings.length > 0) return findings;
  const deepest = Math.max(0, ...locks.map(({ queue }) => queue.length));
  return [
    { check: 'queues', verdict: 'ok', detail: `${locks.length} locks, at most ${deepest} wait for one` },
  ];
}

/** Folders of locks that nobody uses, which the servers should have removed. */
export function checkFreeFolders(locks: readonly LockInfo[]): Finding[] {
  const free = locks.filter(({ kind }) => kind === 'free').length;
  if (free <= FREE_FOLDERS_MANY) return [];
  return [
    {
      check: 'free-folders',
      verdict: 'warn',
      detail: `${free} folders of locks that nobody holds`,
      advice:
        'the servers remove empty containers every minute; folders made by others stay: remove them, or use fewer names',
    },
  ];
}

export function checkDeadlocks({ deadlocks, stuck }: WaitGraph): Finding {
  if (deadlocks.length === 0) return { check: 'deadlocks', verdict: 'ok', detail: 'none' };
  const behind = stuck.length > 0 ? `, and ${stuck.length} more wait for them` : '';
  return {
    check: 'deadlocks',
    verdict: 'fail',
    detail: `${deadlocks.flat().length} sessions wait for each other in a circle${behind}`,
    advice:
      'see `holdfast graph`; revoke or release one of the locks, and take them as one multi-lock from then on',
  };
}

/** Clocks of the machines that hold and wait, by what they wrote of the time and what the server did. */
export function checkClocks(locks: readonly LockInfo[], ownSkewMs: number | undefined): Finding[] {
  const findings: Finding[] = [];
  const skewed = new Map<string, number>();
  for (const { holders, queue } of locks) {
    for (const contender of [...holders, ...queue]) {
      const skewMs = skewOf(contender);
      if (skewMs !== undefined && Math.abs(skewMs) > SKEW_MS_MAX) {
        skewed.set(contender.owner.host ?? ownerText(contender), skewMs);
      }
    }
  }
  if (ownSkewMs !== undefined && Math.abs(ownSkewMs) > SKEW_MS_MAX) skewed.set('this machine', ownSkewMs);
  for (const [host, skewMs] of [...skewed].slice(0, NAMED_MAX)) {
    findings.push({
      check: 'clock',
      verdict: 'warn',
      detail: `${host}: ${ageText(Math.abs(skewMs))} ${skewMs > 0 ? 'behind' : 'ahead of'} the servers`,
      advice: 'no lock depends on it, but times in logs and tables do: see its time service',
    });
  }
  if (findings.length > 0) return findings;
  if (ownSkewMs === undefined)
    return [{ check: 'clock', verdict: 'skip', detail: 'nothing was written to compare with' }];
  return [{ check: 'clock', verdict: 'ok', detail: `within ${ageText(SKEW_MS_MAX)} of the servers` }];
}

/** Its node was made by the server a moment after it looked at its own clock. */
function skewOf({ since, owner }: ContenderInfo): number | undefined {
  const saidMs = Date.parse(owner.since ?? '');
  return Number.isNaN(saidMs) ? undefined : since.getTime() - saidMs;
}

function named(names: readonly string[]): string {
  const shown = names.slice(0, NAMED_MAX).join(', ');
  return names.length > NAMED_MAX ? `${shown} and ${names.length - NAMED_MAX} more` : shown;
}
