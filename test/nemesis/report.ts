import { readFileSync } from 'node:fs';
import type { Asked, Granted, HistoryEvent } from '../../simulation/checker/history.ts';
import { judge } from './judge.ts';
import type { NemesisResult } from './run-nemesis.ts';
import { LOCKS } from './scene.ts';

const PAGE = new URL('./report-page.html', import.meta.url);
const LOCK_NAMES = Object.keys(LOCKS);

/** A page for people: what went wrong when, who held what, who lost it. Needs nothing but itself. */
export function reportPage(
  result: NemesisResult,
  { seed, minutes }: { readonly seed: number; readonly minutes: number },
): string {
  const { verdict, control } = result;
  const data = {
    seed,
    minutes,
    judged: judge(result, { minutes }),
    counts: verdict.counts,
    controlFound: control.violations.length,
    ...timelineOf(verdict.events),
    violations: verdict.violations.map(({ property, atMs, message, lock }) => ({
      atMs: atMs - verdict.events[0]!.atMs,
      lock: lock === undefined ? -1 : LOCK_NAMES.indexOf(lock),
      text: `${property} at ${((atMs - verdict.events[0]!.atMs) / 1_000).toFixed(3)} s: ${message}`,
    })),
  };
  // Names and messages are data, also where they look like the end of a script.
  const json = JSON.stringify(data).replaceAll('<', '\\u003c');
  return readFileSync(PAGE, 'utf8').replace('"__DATA__"', () => json);
}

interface Hold {
  readonly asked: Asked;
  granted?: Granted;
  /** As far as it was promised. */
  leaseEndMs: number;
  endMs?: number;
  lost: boolean;
}

/** What the page draws, in rows as short as can be: there are tens of thousands of them. */
function timelineOf(events: readonly HistoryEvent[]): Record<string, unknown> {
  const startMs = events[0]?.atMs ?? 0;
  const endMs = (events.at(-1)?.atMs ?? 0) - startMs;
  const at = (ms: number) => Math.round((ms - startMs) * 10) / 10;
  const attempts = new Map<string, Hold>();
  const faults = new Map<string, [string, string, string, number, number]>();
  const losses: [number, number, string][] = [];
  const refusals: [number, number, string][] = [];
  const absences: [number, number, number, string][] = [];
  const lastLives = new Map<number, { client: string; atMs: number }>();
  const gaveUp: Record<string, number> = {};
  for (const event of events) {
    switch (event.kind) {
      case 'asked': {
        attempts.set(event.attempt, { asked: event, leaseEndMs: 0, lost: false });
        const slot = slotOf(event.client);
        const before = lastLives.get(slot);
        if (before && before.client !== event.client) {
          absences.push([slot, at(before.atMs), at(event.atMs), `${before.client} was killed`]);
          lastLives.delete(slot);
        }
        break;
      }
      case 'granted':
        Object.assign(attempts.get(event.attempt)!, { granted: event, leaseEndMs: event.leaseEndsAtMs });
        break;
      case 'looked':
        if (event.leaseEndsAtMs > event.atMs) attempts.get(event.attempt)!.leaseEndMs = event.leaseEndsAtMs;
        break;
      case 'lost': {
        const hold = attempts.get(event.attempt)!;
        hold.lost = true;
        hold.endMs ??= event.atMs;
        const text = `${event.attempt} was told: ${event.reason}`;
        for (const lock of hold.asked.locks) losses.push([LOCK_NAMES.indexOf(lock), at(event.atMs), text]);
        break;
      }
      case 'release-started':
        attempts.get(event.attempt)!.endMs ??= event.atMs;
        break;
      case 'gave-up':
        gaveUp[event.reason] = (gaveUp[event.reason] ?? 0) + 1;
        break;
      case 'ended':
        if (event.how === 'killed') lastLives.set(slotOf(event.client), event);
        for (const hold of attempts.values()) {
          if (hold.asked.client === event.client && hold.granted) hold.endMs ??= event.atMs;
        }
        break;
      case 'stalled':
        absences.push([
          slotOf(event.client),
          at(event.fromMs),
          at(event.atMs),
          `${event.client} did not run`,
        ]);
        break;
      case 'wrote': {
        const index = LOCK_NAMES.indexOf(event.resource.slice(event.resource.indexOf(' ') + 1));
        if (event.outcome === 'refused' && index >= 0) {
          refusals.push([index, at(event.atMs), `a write with token ${event.token} was refused`]);
        }
        break;
      }
      case 'fault-began':
        faults.set(event.fault, [event.fault, event.what, event.target, at(event.atMs), at(event.atMs)]);
        break;
      case 'fault-ended':
        faults.get(event.fault)![4] = at(event.atMs);
        break;
      default:
        break;
    }
  }
  const holds = [...attempts.values()].flatMap(({ asked, granted, endMs: until, leaseEndMs, lost }) => {
    if (!granted) return [];
    const locks = asked.locks.map((lock) => LOCK_NAMES.indexOf(lock));
    const token = String(granted.token);
    const endedMs = until ?? leaseEndMs;
    const times = [at(granted.atMs), at(Math.min(endedMs, leaseEndMs)), at(endedMs)] as const;
    const waitedMs = Math.round(granted.atMs - asked.atMs);
    return [
      [locks, slotOf(asked.client), ...times, asked.mode, token, asked.attempt, lost ? 1 : 0, waitedMs],
    ];
  });
  return {
    endMs,
    // Not spread: an hour has more attempts than a call has room for.
    workers: [...attempts.values()].reduce((most, { asked }) => Math.max(most, slotOf(asked.client)), 1),
    locks: LOCK_NAMES.map((name) => ({ name, recipe: LOCKS[name]!.recipe })),
    holds,
    faults: [...faults.values()].sort((a, b) => a[3] - b[3]),
    losses,
    refusals,
    absences,
    gaveUp,
  };
}

/** `w3.7` is the seventh life of worker 3. */
function slotOf(client: string): number {
  return Number(/^w(\d+)\./.exec(client)?.[1] ?? 0);
}
