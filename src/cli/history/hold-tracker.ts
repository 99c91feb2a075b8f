import type { ContenderInfo, LockInfo } from '../../locks/inspection.ts';

/** That a hold began or ended, as it was seen. */
export type HoldEvent =
  | {
      readonly event: 'holds';
      readonly at: Date;
      readonly holder: ContenderInfo;
      /** False if it held before anyone looked: since when is not known. */
      readonly fromStart: boolean;
      readonly waiting: number;
    }
  | {
      readonly event: 'ended';
      readonly at: Date;
      readonly holder: ContenderInfo;
      /** Undefined if its beginning was not seen. */
      readonly heldMs: number | undefined;
    }
  /** The connection is down: what happens from now on is not seen. */
  | { readonly event: 'gap'; readonly at: Date }
  /** It is back, after that long. */
  | { readonly event: 'back'; readonly at: Date; readonly gapMs: number };

interface Hold {
  readonly holder: ContenderInfo;
  readonly sinceMs: number | undefined;
}

/** Makes a history of looks at one lock: who holds now and did not before, and the other way round. */
export class HoldTracker {
  readonly #holds = new Map<string, Hold>();
  #looked = false;
  /** Since when nothing is seen; undefined while something is. */
  #gapSinceMs: number | undefined;

  /** What is seen next may have happened at any time since the last look. */
  gap(at: Date, nowMs: number): HoldEvent[] {
    if (this.#gapSinceMs !== undefined) return [];
    this.#gapSinceMs = nowMs;
    return [{ event: 'gap', at }];
  }

  /** Those that held at the last look, as they were first seen: a request to let go overwrites what a holder says. */
  get held(): ContenderInfo[] {
    return [...this.#holds.values()].map(({ holder }) => holder);
  }

  /** One look; `nowMs` is on a clock that is never set. */
  look({ holders, queue }: LockInfo, at: Date, nowMs: number): HoldEvent[] {
    const gapSinceMs = this.#gapSinceMs;
    const events: HoldEvent[] =
      gapSinceMs === undefined ? [] : [{ event: 'back', at, gapMs: nowMs - gapSinceMs }];
    const present = new Map(holders.map((holder) => [keyOf(holder), holder]));
    const known = this.#looked && gapSinceMs === undefined;
    for (const [key, { holder, sinceMs }] of this.#holds) {
      if (present.has(key)) continue;
      this.#holds.delete(key);
      const heldMs = sinceMs === undefined || gapSinceMs !== undefined ? undefined : nowMs - sinceMs;
      events.push({ event: 'ended', at, holder, heldMs });
    }
    for (const [key, holder] of present) {
      if (this.#holds.has(key)) continue;
      this.#holds.set(key, { holder, sinceMs: known ? nowMs : undefined });
      events.push({ event: 'holds', at, holder, fromStart: known, waiting: queue.length });
    }
    this.#looked = true;
    this.#gapSinceMs = undefined;
    return events;
  }
}

/** All nodes of a simple lock have one name: the token tells them apart. */
function keyOf({ id, token }: ContenderInfo): string {
  return `${id} ${token}`;
}
