import type { LockLease } from '../../src/holdfast.ts';

/** Sees every holder of one lock come and go, and says when there were too many. */
export class Witness {
  /** The largest number of holders at one time. */
  seenMax = 0;
  /** In the order of their grants. */
  readonly tokens: bigint[] = [];
  #holderCount = 0;

  /** Counts a holder for as long as `work` takes. */
  async during<T>(lease: LockLease, work: () => Promise<T>): Promise<T> {
    this.tokens.push(lease.token);
    this.#holderCount++;
    this.seenMax = Math.max(this.seenMax, this.#holderCount);
    try {
      return await work();
    } finally {
      this.#holderCount--;
    }
  }

  get tokensRise(): boolean {
    return this.tokens.every((token, index) => index === 0 || token > this.tokens[index - 1]!);
  }
}

/** One turn of the event loop, or a few: for others to come in if they can. */
export async function turns(count = 3): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
}
