import type { Cancel, Clock } from '../base/clock.ts';
import type { Inspection } from './inspection.ts';
import type { WaitLook } from './lock-errors.ts';
import { ownerText } from './owner.ts';

/** Which part of the time of a wait has passed when it asks who holds the lock. */
const ASKS_AFTER = 0.75;

/** What asking needs. */
interface Facilities {
  readonly clock: Clock;
  readonly inspection: Inspection;
}

/**
 * What a wait that may run out of time can say then: what it saw of the queue, and who holds the lock. It asks for that
 * once, in the background, when three quarters of its time have passed: a wait that ends before costs no request, and a
 * lock that is free no timer. What is not known at the end is left out: the wait never becomes longer for it.
 */
export class HolderLook implements WaitLook {
  ahead?: number;
  behind?: string;
  holder?: string;
  since?: Date;
  waiting?: number;
  /** When the wait ends, by the clock. */
  deadlineMs = 0;
  /** Entries of the waiter itself. */
  readonly own = new Set<string>();
  /** The locks that are waited for. */
  readonly #names = new Set<string>();
  #cancel: Cancel | undefined;
  #asking: AbortController | undefined;
  #over = false;

  /** Others hold this one. */
  waitsFor(name: string, timeoutMs: number, facilities: Facilities): void {
    if (this.#over) return;
    this.#names.add(name);
    const atMs = this.deadlineMs - timeoutMs * (1 - ASKS_AFTER);
    this.#cancel ??= facilities.clock.at(atMs, () => void this.#ask(facilities));
  }

  /** One of several that are waited for was granted. */
  granted(name: string): void {
    this.#names.delete(name);
  }

  /** Nobody waits any more. */
  end(): void {
    this.#over = true;
    this.#cancel?.();
    this.#asking?.abort();
  }

  async #ask({ inspection }: Facilities): Promise<void> {
    const [name] = this.#names;
    if (name === undefined) return;
    this.#asking = new AbortController();
    try {
      const seen = await inspection.glance(name, this.#asking.signal, this.own);
      if (this.#over || !seen) return; // Released meanwhile.
      const { holder, waiting } = seen;
      this.waiting = waiting;
      const text = holder && ownerText(holder.owner);
      if (!holder || holder.unreadable || text === undefined) return;
      this.holder = text;
      this.since = holder.since;
    } catch {
      // Not known, then: the wait goes on, and ends by itself.
    }
  }
}
