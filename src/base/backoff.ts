import { fraction, type Random } from './random.ts';

export interface BackoffOptions {
  /** Upper bound of the first delay. */
  readonly delayMsMin: number;
  /** Upper bound of every delay. */
  readonly delayMsMax: number;
}

/**
 * Delays that double up to a limit, each drawn between half of its bound and the bound, so that a thousand
 * clients cut off in one instant do not come back in one instant.
 */
export class Backoff {
  readonly #options: BackoffOptions;
  readonly #random: Random;
  #attemptCount = 0;

  constructor(options: BackoffOptions, random: Random) {
    this.#options = options;
    this.#random = random;
  }

  nextDelayMs(): number {
    const { delayMsMin, delayMsMax } = this.#options;
    const boundMs = Math.min(delayMsMax, delayMsMin * 2 ** Math.min(this.#attemptCount++, 30));
    return Math.round(boundMs / 2 + (fraction(this.#random) * boundMs) / 2);
  }

  reset(): void {
    this.#attemptCount = 0;
  }
}
