import type { EntryRole } from '../queue/lock-queue.ts';
import type { ContenderInfo, LockInfo } from './inspection.ts';
import { parentHold } from './owner.ts';

/** One session's wait for a lock, and the sessions that stand in its way. */
export interface Wait {
  readonly lockName: string;
  readonly waiter: ContenderInfo;
  /** In the order of their turns. For a semaphore any of them may make room; otherwise all must go. */
  readonly blockers: readonly ContenderInfo[];
  readonly enough: 'all' | 'any';
}

/** A run whose command started another run: it holds its lock until that command ends. */
export interface Nested {
  readonly parent: ContenderInfo;
  readonly child: ContenderInfo;
}

/** Who waits for whom, by session: what `ephemeralOwner` says of every client, Curator's as well. */
export interface WaitGraph {
  readonly waits: readonly Wait[];
  /** The runs that were started by runs, as far as both are among the contenders; each pair of sessions once. */
  readonly nested: readonly Nested[];
  /** Groups of sessions that wait for each other in a circle, and so for ever. */
  readonly deadlocks: readonly (readonly bigint[])[];
  /** Sessions that are in no circle themselves and wait for one. */
  readonly stuck: readonly bigint[];
}

/**
 * Builds the graph from the locks as they were seen.
 *
 *   1. A session that waits for nothing can go on, and will let go of what it holds.
 *   2. One that waits can go on once those in its way can: all of them, or one of them for a semaphore.
 *   3. One whose command started a run that waits can go on once that run can: its lock is held until its command ends.
 *   4. Repeat. Whoever never can go on is deadlocked, in a circle or behind one.
 *
 * A session that waits for itself is taken for two tasks of one program, which is common and harmless. So is, in truth,
 * a circle of programs each of which has several tasks in one session: no server can tell those from one that waits
 * with the lock in hand.
 */
export function waitGraph(locks: readonly LockInfo[]): WaitGraph {
  // One of whom the server hides even the session cannot be told from others of its kind.
  const waits = locks.flatMap((lock) =>
    lock.queue
      .filter(({ unreadable, session }) => !unreadable || session !== 0n)
      .map((waiter) => waitOf(lock, waiter)),
  );
  const waitsOf = new Map<bigint, Wait[]>();
  for (const wait of waits) {
    const { session } = wait.waiter;
    waitsOf.set(session, [...(waitsOf.get(session) ?? []), wait]);
  }
  const nested = nestedRuns(locks);
  const childrenOf = new Map<bigint, bigint[]>();
  for (const { parent, child } of nested) {
    childrenOf.set(parent.session, [...(childrenOf.get(parent.session) ?? []), child.session]);
  }
  const waitsBy = (session: bigint) => waitsOf.get(session) ?? [];
  const startedBy = (session: bigint) => childrenOf.get(session) ?? [];
  const blocked = new Set([...waitsOf.keys(), ...childrenOf.keys()]);
  for (let size = -1; size !== blocked.size; ) {
    size = blocked.size;
    for (const session of blocked) {
      const childrenEnd = startedBy(session).every((child) => !blocked.has(child));
      if (childrenEnd && waitsBy(session).every((wait) => canEnd(wait, blocked))) blocked.delete(session);
    }
  }
  const behind = (session: bigint) => [
    ...startedBy(session).filter((child) => blocked.has(child)),
    ...waitsBy(session).flatMap(({ blockers }) =>
      blockers.map((blocker) => blocker.session).filter((other) => other !== session && blocked.has(other)),
    ),
  ];
  const deadlocks = circles([...blocked], behind);
  const inCircle = new Set(deadlocks.flat());
  return { waits, nested, deadlocks, stuck: [...blocked].filter((session) => !inCircle.has(session)) };
}

function waitOf({ name, kind, holders, queue }: LockInfo, waiter: ContenderInfo): Wait {
  const wait = { lockName: name, waiter, enough: kind === 'semaphore' ? 'any' : 'all' } as const;
  // Readers are let in beside readers: those that hold are not in the way, the last writer ahead is.
  const inTheWay = holders.filter(({ role }) => standsInTheWay(waiter.role, role));
  if (inTheWay.length > 0) return { ...wait, blockers: inTheWay };
  const ahead = queue.slice(0, queue.indexOf(waiter));
  const nearest = ahead.findLast(({ role }) => standsInTheWay(waiter.role, role));
  return { ...wait, blockers: nearest ? [nearest] : [] };
}

/** Pairs of a hold and a contender that names it as its parent; what names a hold that is not there is nobody's child. */
function nestedRuns(locks: readonly LockInfo[]): Nested[] {
  const holds = new Map<string, ContenderInfo>();
  const key = ({ session, token }: { readonly session: bigint; readonly token: bigint }) =>
    `${session}/${token}`;
  for (const { holders } of locks) for (const holder of holders) holds.set(key(holder), holder);
  const pairs = new Map<string, Nested>();
  for (const { holders, queue } of locks) {
    for (const child of [...holders, ...queue]) {
      const named = parentHold(child.owner);
      const parent = named && holds.get(key(named));
      if (!parent || parent.session === child.session) continue;
      pairs.set(`${parent.session}/${child.session}`, { parent, child });
    }
  }
  return [...pairs.values()];
}

function standsInTheWay(of: EntryRole, other: EntryRole): boolean {
  const writes = other === 'write' || other === 'upgraded';
  if (of === 'read') return writes;
  return of !== 'upgradable' || writes || other === 'upgradable';
}

function canEnd({ waiter, blockers, enough }: Wait, blocked: ReadonlySet<bigint>): boolean {
  const goes = ({ session }: ContenderInfo) => session === waiter.session || !blocked.has(session);
  return blockers.length === 0 || (enough === 'all' ? blockers.every(goes) : blockers.some(goes));
}

/** Groups of more than one that reach each other (Tarjan's strongly connected components, without recursion). */
function circles(sessions: readonly bigint[], next: (session: bigint) => readonly bigint[]): bigint[][] {
  const found: bigint[][] = [];
  const order = new Map<bigint, number>();
  const lowest = new Map<bigint, number>();
  const open: bigint[] = [];
  const isOpen = new Set<bigint>();
  const enter = (session: bigint) => {
    order.set(session, order.size);
    lowest.set(session, order.get(session)!);
    open.push(session);
    isOpen.add(session);
    return { session, rest: [...next(session)] };
  };
  for (const start of sessions) {
    if (order.has(start)) continue;
    const path = [enter(start)];
    while (path.length > 0) {
      const { session, rest } = path.at(-1)!;
      const other = rest.pop();
      if (other !== undefined) {
        if (!order.has(other)) path.push(enter(other));
        else if (isOpen.has(other)) lowest.set(session, Math.min(lowest.get(session)!, order.get(other)!));
        continue;
      }
      path.pop();
      const parent = path.at(-1)?.session;
      if (parent !== undefined) lowest.set(parent, Math.min(lowest.get(parent)!, lowest.get(session)!));
      if (lowest.get(session) !== order.get(session)) continue;
      const group = open.splice(open.indexOf(session));
      for (const member of group) isOpen.delete(member);
      if (group.length > 1) found.push(group);
    }
  }
  return found;
}
