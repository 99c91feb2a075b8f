import { sleep } from '../../base/abort.ts';
import { type Clock, systemClock } from '../../base/clock.ts';
import type { Holdfast } from '../../locks/holdfast.ts';
import type { LockInfo } from '../../locks/inspection.ts';
import { type WaitGraph, waitGraph } from '../../locks/wait-graph.ts';

/** The graph of the locks that could be read, and the others. */
export interface ConfirmedGraph extends WaitGraph {
  readonly unreadable: readonly LockInfo[];
}

/** Between the two looks: long enough for a queue that moves to have moved. */
const LOOK_AGAIN_MS = 300;

/**
 * The graph of all waits. Locks are read one after another, so a circle may be made of what was never true at one
 * moment: a deadlock counts only if a second look, a moment later, finds the same sessions in the same waits.
 */
export async function confirmedGraph(
  holdfast: Pick<Holdfast, 'list' | 'zk'>,
  clock: Clock = systemClock,
): Promise<ConfirmedGraph> {
  const first = await look(holdfast);
  if (first.deadlocks.length === 0) return first;
  await sleep(clock, LOOK_AGAIN_MS);
  const second = await look(holdfast);
  const before = new Set(first.waits.map(({ waiter }) => waiter.id));
  const deadlocks = second.deadlocks.filter((group) =>
    waitsWithin(second, group).every(({ waiter }) => before.has(waiter.id)),
  );
  return { ...second, deadlocks, stuck: deadlocks.length > 0 ? second.stuck : [] };
}

/** The waits of a group's sessions for each other. */
export function waitsWithin({ waits }: WaitGraph, group: readonly bigint[]): WaitGraph['waits'] {
  const members = new Set(group);
  return waits.filter(
    ({ waiter, blockers }) =>
      members.has(waiter.session) &&
      blockers.some(({ session }) => session !== waiter.session && members.has(session)),
  );
}

async function look(holdfast: Pick<Holdfast, 'list' | 'zk'>): Promise<ConfirmedGraph> {
  await holdfast.zk.sync();
  const locks = await holdfast.list();
  return { ...waitGraph(locks), unreadable: locks.filter(({ kind }) => kind === 'unreadable') };
}
