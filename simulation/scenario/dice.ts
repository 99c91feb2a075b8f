import { fraction, type Random } from '../../src/base/random.ts';

/** Draws from one source. */
export class Dice {
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  chance(probability: number): boolean {
    return fraction(this.#random) < probability;
  }

  /** To a tenth: a scenario is read by people. */
  between(min: number, max: number): number {
    return Math.round((min + fraction(this.#random) * (max - min)) * 10) / 10;
  }

  whole(min: number, max: number): number {
    return min + Math.floor(fraction(this.#random) * (max - min + 1));
  }

  pick<T>(items: readonly T[]): T {
    return items[this.whole(0, items.length - 1)]!;
  }
}
