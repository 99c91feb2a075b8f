import type { Clock } from '../base/clock.ts';

/**
 * Keeps the event loop turning while an answer is due. A processor that has been put to sleep, a virtual one above all,
 * takes about as long to wake up as a near server to answer.
 */
export class BusyPoll {
  readonly #clock: Clock;
  readonly #pollMs: number;
  readonly #isDue: () => boolean;
  #untilMs = 0;
  #polling = false;

  /** `isDue`: whether anything has been asked that is not answered. */
  constructor(clock: Clock, pollMs: number, isDue: () => boolean) {
    this.#clock = clock;
    this.#pollMs = pollMs;
    this.#isDue = isDue;
  }

  /** Something was sent: polls until all is answered, but no longer than `pollMs`. */
  sent(): void {
    if (this.#pollMs === 0) return;
    this.#untilMs = this.#clock.nowMs() + this.#pollMs;
    if (this.#polling) return;
    this.#polling = true;
    this.#clock.afterInput(this.#turn);
  }

  readonly #turn = () => {
    this.#polling = this.#isDue() && this.#clock.nowMs() < this.#untilMs;
    if (this.#polling) this.#clock.afterInput(this.#turn);
  };
}
