import type { HistoryEvent, HoldMode, LockRecipe } from './history.ts';

/** One attempt of a history that is made up, and how it ends. */
export interface PlannedAttempt {
  readonly arrivesAfterMs: number;
  readonly client: number;
  readonly writer: boolean;
  readonly weight: number;
  readonly holdMs: number;
  readonly patienceMs: number | undefined;
  readonly end: 'release' | 'loss' | 'stall' | 'kill';
}

const LEASE_MS = 60;
/** Lease ends come this long before the server lets the next one in. */
const MARGIN_MS = 20;
const ROUND_TRIP_MS = 2;
const PERMITS = 3;

interface Entry {
  readonly id: string;
  readonly mode: HoldMode;
  readonly weight: number;
  readonly plan: PlannedAttempt;
  readonly client: string;
  readonly deadlineAtMs: number;
  czxid: bigint;
  granted: boolean;
}

/**
 * A history of a perfect lock, from a plan: a queue in the order of arrival, whose head is let in a round trip after
 * those in its way have gone; holders that let go, are told before their lease's end, sleep through it, or die.
 */
export function goodHistory(recipe: LockRecipe, plans: readonly PlannedAttempt[]): HistoryEvent[] {
  const events: HistoryEvent[] = [{ kind: 'lock', atMs: 0, lock: 'x', recipe, permits: PERMITS }];
  const agenda: { atMs: number; run: () => void }[] = [];
  const queue: Entry[] = [];
  let nowMs = 0;
  let zxid = 2n ** 60n;
  const at = (atMs: number, run: () => void) => agenda.push({ atMs, run });
  const tell = (event: HistoryEvent) => events.push(event);

  const mayGo = (index: number): boolean => {
    const entry = queue[index]!;
    if (entry.mode === 'read') return queue.slice(0, index).every(({ mode }) => mode === 'read');
    if (entry.mode !== 'lease') return index === 0;
    return queue.slice(0, index + 1).reduce((sum, { weight }) => sum + weight, 0) <= PERMITS;
  };
  const leave = (entry: Entry) => {
    queue.splice(queue.indexOf(entry), 1);
    look();
  };
  const look = () => {
    for (const [index, entry] of [...queue.entries()]) {
      if (!entry.granted && mayGo(index) && nowMs + ROUND_TRIP_MS <= entry.deadlineAtMs) {
        entry.granted = true;
        at(nowMs + ROUND_TRIP_MS, () => grant(entry));
      }
    }
  };
  const grant = (entry: Entry) => {
    const { id, plan, client } = entry;
    if (recipe === 'semaphore') entry.czxid = zxid++;
    const endsMs = nowMs + LEASE_MS;
    tell({ kind: 'granted', atMs: nowMs, attempt: id, token: entry.czxid, leaseEndsAtMs: endsMs });
    if (plan.end === 'release') {
      at(nowMs + plan.holdMs, () => {
        tell({ kind: 'looked', atMs: nowMs, attempt: id, leaseEndsAtMs: nowMs + LEASE_MS });
        tell({ kind: 'release-started', atMs: nowMs, attempt: id });
        at(nowMs + 1, () => leave(entry));
        at(nowMs + ROUND_TRIP_MS, () => tell({ kind: 'released', atMs: nowMs, attempt: id }));
      });
    } else if (plan.end === 'loss') {
      at(endsMs, () => tell({ kind: 'lost', atMs: nowMs, attempt: id }));
      at(endsMs + MARGIN_MS, () => leave(entry));
    } else if (plan.end === 'stall') {
      const fromMs = nowMs + 1;
      at(endsMs + MARGIN_MS, () => leave(entry));
      at(endsMs + 5 * MARGIN_MS, () => {
        tell({ kind: 'stalled', fromMs, atMs: nowMs, client });
        tell({ kind: 'lost', atMs: nowMs, attempt: id });
      });
    } else {
      at(nowMs + plan.holdMs, () => tell({ kind: 'ended', atMs: nowMs, client, how: 'killed' }));
      at(nowMs + plan.holdMs + LEASE_MS + MARGIN_MS, () => leave(entry));
    }
  };
  const arrive = (plan: PlannedAttempt, index: number) => {
    const id = `a${index}`;
    // Who sleeps or dies does so alone: the others of its process would be excused, or gone, with it.
    const client = plan.end === 'stall' || plan.end === 'kill' ? `alone${index}` : `c${plan.client}`;
    const mode: HoldMode =
      recipe === 'semaphore'
        ? 'lease'
        : recipe === 'election'
          ? 'leader'
          : recipe !== 'read-write'
            ? 'exclusive'
            : plan.writer
              ? 'write'
              : 'read';
    const weight = mode === 'lease' ? plan.weight : 1;
    const deadlineAtMs = nowMs + (plan.patienceMs ?? Number.POSITIVE_INFINITY);
    tell({ kind: 'asked', atMs: nowMs, attempt: id, client, locks: ['x'], mode, weight, deadlineAtMs });
    const entry: Entry = { id, mode, weight, plan, client, deadlineAtMs, czxid: zxid++, granted: false };
    queue.push(entry);
    tell({ kind: 'queued', atMs: nowMs, attempt: id, lock: 'x', session: client, czxid: entry.czxid });
    look();
    if (plan.patienceMs === undefined) return;
    at(deadlineAtMs, () => {
      if (entry.granted) return;
      tell({ kind: 'gave-up', atMs: nowMs, attempt: id, reason: 'timeout' });
      leave(entry);
    });
  };

  let arrivesAtMs = 1;
  for (const [index, plan] of plans.entries()) {
    arrivesAtMs += plan.arrivesAfterMs;
    at(arrivesAtMs, () => arrive(plan, index));
  }
  while (agenda.length > 0) {
    let first = 0;
    for (let index = 1; index < agenda.length; index++) {
      if (agenda[index]!.atMs < agenda[first]!.atMs) first = index;
    }
    const [next] = agenda.splice(first, 1);
    nowMs = next!.atMs;
    next!.run();
  }
  tell({ kind: 'healed', atMs: nowMs });
  tell({ kind: 'remains', atMs: nowMs, nodes: [] });
  return events;
}
