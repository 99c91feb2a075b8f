import type { Attempt, LockFacts, RunFacts } from './attempts.ts';
import { who } from './check-exclusion.ts';
import type { RegisterEvent, RegisterWriteBegan } from './history.ts';
import type { Violation } from './violation.ts';

/**
 * A read under a lock sees what earlier holders wrote under it (L15). Each lock protects one register, which its holders
 * read and write plainly, each through a connection of its own; so a lost update is a read of something older than the
 * last write.
 *
 * What may be read is a set of values. It is one value behind a write that was answered. A write of unknown outcome adds
 * its value: it may have happened before the next holder was granted, or never. A read tells which, and makes the set
 * one value again, so that a write which is done only after that is found too.
 *
 * A holder whose node was removed by hand is promised nothing: what may be read is anything, from its first use of the
 * register until its last write is known to be over.
 */
export function checkRegisters({ registerEvents, locks, attempts }: RunFacts): Violation[] {
  const violations: Violation[] = [];
  for (const [name, events] of byLock(registerEvents)) {
    const register = new Register(spansOfRemoved(events, locks.get(name)!, attempts));
    for (const event of events) {
      const expected = register.take(event, attempts.get(event.attempt)!.granted!.atMs);
      if (!expected) continue;
      const reader = attempts.get(event.attempt)!;
      violations.push({
        property: 'L15',
        atMs: event.atMs,
        lock: name,
        attempts: [event.attempt, ...expected.by],
        message: `${who(reader)} read ${quoted(event.value)} under ${name}, where only ${expected.values.map(quoted).join(' or ')} can be`,
      });
    }
  }
  return violations;
}

/** What could have been read, and whose writes that was. */
interface Expected {
  readonly values: readonly string[];
  readonly by: readonly string[];
}

class Register {
  /** In the order of their beginnings. */
  readonly #removed: readonly Span[];
  #begunCount = 0;
  /** The latest end of those that have begun. */
  #anythingUntilMs = Number.NEGATIVE_INFINITY;
  /** What it may contain, and who has written that; undefined if that can be anything. */
  #possible: Map<string, string | undefined> | undefined = new Map([['', undefined]]);
  readonly #open = new Map<string, RegisterWriteBegan>();
  /** Who has used it last. */
  #lastUser: string | undefined;

  constructor(removed: readonly Span[]) {
    this.#removed = [...removed].sort((a, b) => a.fromMs - b.fromMs);
  }

  /** Returns what was possible, if something else was read. */
  take(event: RegisterEvent, grantedAtMs: number): Expected | undefined {
    const { attempt, value } = event;
    const began = event.kind === 'register-write-ended' ? this.#open.get(value) : undefined;
    if (event.kind === 'register-write-began') this.#open.set(value, event);
    if (began) this.#open.delete(value);
    const isOvertaken = this.#lastUser !== undefined && this.#lastUser !== attempt;
    if (event.kind !== 'register-write-ended') this.#lastUser = attempt;
    // A read is asked for at some time after the grant.
    const fromMs = event.kind === 'register-read' ? grantedAtMs : (began ?? event).atMs;
    if (this.#isAnything(fromMs, event.atMs)) {
      this.#possible = undefined;
      return undefined;
    }
    switch (event.kind) {
      case 'register-write-began':
        this.#possible?.set(value, attempt);
        return undefined;
      case 'register-write-ended':
        // Told late: others have used it since, and have seen whether it had happened.
        if (!isOvertaken) this.#ended(event.outcome, value, attempt);
        return undefined;
      case 'register-read':
        return this.#read(value);
    }
  }

  #ended(outcome: 'applied' | 'not-applied' | 'unknown', value: string, attempt: string): void {
    if (outcome === 'applied') this.#possible = new Map([[value, attempt]]);
    else if (outcome === 'not-applied') this.#possible?.delete(value);
  }

  #read(value: string): Expected | undefined {
    const possible = this.#possible;
    this.#possible = new Map([[value, possible?.get(value)]]);
    if (!possible || possible.has(value)) return undefined;
    return { values: [...possible.keys()], by: [...possible.values()].filter((by) => by !== undefined) };
  }

  /** Asked in the order of `toMs`. */
  #isAnything(fromMs: number, toMs: number): boolean {
    for (
      let next = this.#removed[this.#begunCount];
      next && next.fromMs <= toMs;
      next = this.#removed[++this.#begunCount]
    ) {
      this.#anythingUntilMs = Math.max(this.#anythingUntilMs, next.toMs);
    }
    return fromMs <= this.#anythingUntilMs;
  }
}

interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

/** When somebody may have used the register who was put out by hand. */
function spansOfRemoved(
  events: readonly RegisterEvent[],
  { removed }: LockFacts,
  attempts: ReadonlyMap<string, Attempt>,
): Span[] {
  if (removed.size === 0) return [];
  const uses = new Map<string, { fromMs: number; lastMs: number; readonly open: Set<string> }>();
  for (const { kind, attempt, atMs, value, ...event } of events) {
    const { granted } = attempts.get(attempt)!;
    if (!removed.has(granted!.token)) continue;
    const use = uses.get(attempt) ?? { fromMs: atMs, lastMs: atMs, open: new Set() };
    uses.set(attempt, use);
    use.lastMs = atMs;
    if (kind === 'register-write-began') use.open.add(value);
    if (kind === 'register-write-ended' && 'outcome' in event && event.outcome !== 'unknown')
      use.open.delete(value);
  }
  const spans: Span[] = [];
  for (const [attempt, { fromMs, lastMs, open }] of uses) {
    const toMs = open.size > 0 ? Number.POSITIVE_INFINITY : lastMs;
    if (toMs >= removed.get(attempts.get(attempt)!.granted!.token)!.atMs) spans.push({ fromMs, toMs });
  }
  return spans;
}

function byLock(events: readonly RegisterEvent[]): Map<string, RegisterEvent[]> {
  const ofLocks = new Map<string, RegisterEvent[]>();
  for (const event of events) {
    const ofLock = ofLocks.get(event.lock);
    if (ofLock) ofLock.push(event);
    else ofLocks.set(event.lock, [event]);
  }
  return ofLocks;
}

function quoted(value: string): string {
  return value === '' ? 'nothing' : `"${value}"`;
}
