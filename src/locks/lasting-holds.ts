import type { Cancel, Clock } from '../base/clock.ts';

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
  readonly #young = new Set<LastingHold>();
  #cancel: Cancel | undefined;

  constructor(clock: Clock, lastingMs: number) {
    this.#clock = clock;
    this.#lastingMs = lastingMs;
  }

  add(hold: LastingHold): void {
    this.#young.add(hold);
    this.#cancel ??= this.#awaitThat(hold);
  }

  /** It has ended. */
  delete(hold: LastingHold): void {
    this.#young.delete(hold);
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
    for (const hold of this.#young) {
      if (this.#dueAtMs(hold) > nowMs) {
        this.#cancel = this.#awaitThat(hold);
        return;
      }
      this.#young.delete(hold);
      hold.lasted();
    }
  };
}
