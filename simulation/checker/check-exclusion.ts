import {
  type Attempt,
  endedAtMs,
  type GrantedAttempt,
  type LockFacts,
  leaseEndsAtMs,
  ranAgainAtMs,
} from './attempts.ts';
import type { HoldMode, LockRecipe } from './history.ts';
import type { CheckOptions, Property, Violation } from './violation.ts';

/** The property that two at once break, by recipe. */
const OVERLAP: Readonly<Record<LockRecipe, Property>> = {
  mutex: 'L1',
  simple: 'L1',
  election: 'L10',
  'read-write': 'L7',
  semaphore: 'L9',
};

/**
 * Who holds while another is granted (L1, L7, L9, L10), and who was not told of its loss by then (L3).
 *
 *   granted ──── promised ────┬── lease end ── told late ── due ──── overdue ────┬── told, released, dead
 *                             └ a conflicting grant here breaks L1               └ here L3
 *
 * A holder that did not run at its lease's end is due when it ran again. One sweep over the ends of these intervals:
 * n log n for the sorting, and a constant for each grant.
 */
export function checkExclusion(name: string, lock: LockFacts, options: CheckOptions): Violation[] {
  const violations: Violation[] = [];
  const { recipe } = lock.declared[0];
  const promised = new Holders();
  const overdue = new Holders();
  const permitsAt = permitsOverTime(lock);
  for (const mark of marksOf(lock, options)) {
    const { hold, holders } = mark;
    if (mark.kind === 'out') (holders === 'promised' ? promised : overdue).remove(hold);
    else if (holders === 'overdue') overdue.add(hold);
    else {
      const permits = recipe === 'semaphore' ? permitsAt(mark.atMs) : 1;
      const first = promised.inTheWayOf(hold, permits);
      if (first) violations.push(overlap(OVERLAP[recipe], { name, first, second: hold, permits }));
      else {
        const late = overdue.inTheWayOf(hold, permits - promised.weightBeside(hold, recipe));
        if (late) violations.push(notTold({ name, first: late, second: hold }));
      }
      promised.add(hold);
    }
  }
  return violations;
}

interface Mark {
  readonly atMs: number;
  readonly kind: 'in' | 'out';
  readonly holders: 'promised' | 'overdue';
  readonly hold: GrantedAttempt;
}

function marksOf(lock: LockFacts, { latenessMs }: CheckOptions): Mark[] {
  const marks: Mark[] = [];
  for (const hold of lock.grants) {
    const fromMs = hold.granted.atMs;
    const endMs = endedAtMs(hold, lock);
    const leaseEndMs = leaseEndsAtMs(hold);
    const promisedUntilMs = Math.min(endMs, leaseEndMs);
    if (promisedUntilMs > fromMs) {
      marks.push({ atMs: fromMs, kind: 'in', holders: 'promised', hold });
      marks.push({ atMs: promisedUntilMs, kind: 'out', holders: 'promised', hold });
    }
    const dueMs = dueAtMs(hold, leaseEndMs, latenessMs);
    if (dueMs < endMs) {
      marks.push({ atMs: dueMs, kind: 'in', holders: 'overdue', hold });
      if (endMs !== Number.POSITIVE_INFINITY)
        marks.push({ atMs: endMs, kind: 'out', holders: 'overdue', hold });
    }
  }
  // Who ends, or is due, at the moment another begins does not overlap with it.
  const rank = (mark: Mark) => (mark.kind === 'out' ? 0 : mark.holders === 'promised' ? 1 : 2);
  return marks.sort((a, b) => a.atMs - b.atMs || rank(a) - rank(b));
}

/** One that stops running before it is due can be told only when it runs again, and then has as long once more. */
function dueAtMs({ client }: GrantedAttempt, leaseEndMs: number, latenessMs: number): number {
  const dueMs = ranAgainAtMs(client, leaseEndMs) + latenessMs;
  const runsAtMs = ranAgainAtMs(client, dueMs);
  return runsAtMs > dueMs ? runsAtMs + latenessMs : dueMs;
}

/** Those who hold at one moment of the sweep, by what they keep out. Leases of one holding are one holder. */
class Holders {
  readonly #byMode = new Map<HoldMode, Map<Attempt, number>>();
  #weight = 0;

  add(hold: GrantedAttempt): void {
    const roots = this.#of(hold.asked.mode);
    const leases = roots.get(hold.root) ?? 0;
    roots.set(hold.root, leases + 1);
    if (leases === 0) this.#weight += weightOf(hold.root);
  }

  remove(hold: GrantedAttempt): void {
    const roots = this.#of(hold.asked.mode);
    const leases = roots.get(hold.root)!;
    if (leases > 1) roots.set(hold.root, leases - 1);
    else {
      roots.delete(hold.root);
      this.#weight -= weightOf(hold.root);
    }
  }

  /** How many permits of a semaphore are taken by others. */
  weightBeside(hold: GrantedAttempt, recipe: LockRecipe): number {
    if (recipe !== 'semaphore') return 0;
    return this.#of('lease').has(hold.root) ? this.#weight - weightOf(hold.root) : this.#weight;
  }

  /** Somebody who must not hold beside this one. */
  inTheWayOf(hold: GrantedAttempt, permits: number): Attempt | undefined {
    switch (hold.asked.mode) {
      case 'read':
        return this.#other(hold, 'write');
      case 'write':
        return this.#other(hold, 'write') ?? this.#other(hold, 'read');
      case 'lease': {
        const taken = this.weightBeside(hold, 'semaphore');
        return taken + weightOf(hold.root) > permits ? this.#other(hold, 'lease') : undefined;
      }
      default:
        return this.#other(hold, hold.asked.mode);
    }
  }

  #other(hold: GrantedAttempt, mode: HoldMode): Attempt | undefined {
    for (const root of this.#of(mode).keys()) {
      if (root !== hold.root) return root;
    }
    return undefined;
  }

  #of(mode: HoldMode): Map<Attempt, number> {
    let roots = this.#byMode.get(mode);
    if (!roots) {
      roots = new Map();
      this.#byMode.set(mode, roots);
    }
    return roots;
  }
}

function weightOf({ asked }: Attempt): number {
  return asked.weight ?? 1;
}

function permitsOverTime({ declared }: LockFacts): (atMs: number) => number {
  let index = 0; // Asked in the order of time.
  return (atMs) => {
    while (index + 1 < declared.length && declared[index + 1]!.atMs <= atMs) index++;
    return declared[index]!.permits ?? 1;
  };
}

interface Pair {
  readonly name: string;
  readonly first: Attempt;
  readonly second: GrantedAttempt;
}

function overlap(
  property: Property,
  { name, first, second, permits }: Pair & { permits: number },
): Violation {
  const of = property === 'L9' ? ` more than ${permits} permits of` : '';
  return {
    property,
    atMs: second.granted.atMs,
    lock: name,
    attempts: [first.asked.attempt, second.asked.attempt],
    message: `${who(second)} was granted${of} ${name} while ${who(first)} held it within its lease`,
  };
}

function notTold({ name, first, second }: Pair): Violation {
  return {
    property: 'L3',
    atMs: second.granted.atMs,
    lock: name,
    attempts: [first.asked.attempt, second.asked.attempt],
    message: `${who(second)} was granted ${name} before ${who(first)} was told that it had lost it`,
  };
}

/** An attempt, as a message names it. */
export function who({ asked, granted }: Attempt): string {
  const token = granted ? `, token ${granted.token}` : '';
  return `${asked.attempt} of ${asked.client} (${asked.mode}${token})`;
}
