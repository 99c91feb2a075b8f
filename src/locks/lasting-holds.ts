import type { Cancel, Clock } from '../base/clock.ts';
import { type Link, LinkedList } from '../base/linked-list.ts';

/** A hold that is to be told when it has lasted for long. */
export interface LastingHold {
  readonly grantedAtMs: number;
  lasted(): void;
}

/**
 * The holds of one connection that have not lasted for long yet, oldest first. They share one timer, which is not taken
 * back: most of them end long before, and a timer for each would cost more than all else that is done for it.
 */
export class LastingHolds {
  readonly #clock: Clock;
  readonly #lastingMs: number;
  readonly #young = new LinkedList<LastingHold>();
  #cancel: Cancel | undefined;

  constructor(clock: Clock, lastingMs: number) {
    this.#clock = clock;
    this.#lastingMs = lastingMs;
  }

  /** Returns what is to be removed when it has ended. */
  add(hold: LastingHold): Link<LastingHold> {
    this.#cancel ??= this.#awaitThat(hold);
    return this.#young.add(hold);
  }

  /** Takes the timer back: the connection is closed. */
  end(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #awaitThat(hold: LastingHold): Cancel {
    return this.#clock.at(this.#dueAtMs(hold), this.#look);
  }

  /** Reckoned in one way only: from the other end it could be due, and by a rounding error not be. */
  #dueAtMs({ grantedAtMs }: LastingHold): number {
    return grantedAtMs + this.#lastingMs;
  }

  readonly #look = () => {
    this.#cancel = undefined;
    const nowMs = this.#clock.nowMs();
    for (let link = this.#young.first; link; link = this.#young.first) {
      const { item: hold } = link;
      if (this.#dueAtMs(hold) > nowMs) {
        this.#cancel = this.#awaitThat(hold);
        return;
      }
      link.remove();
      hold.lasted();
    }
  };
}
