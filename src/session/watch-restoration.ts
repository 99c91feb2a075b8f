import { operations } from '../protocol/operations.ts';
import { OwnRequest } from './session-request.ts';
import type { WatchRegistry } from './watch-registry.ts';

/** What a setWatches2 request has besides its paths: header, zxid, five counts. */
const SET_WATCHES_BYTES = 8 + 8 + 5 * 4;

/**
 * Sets a session's watches again on a new connection, from where they left off.
 *
 * Where that is stands still until all of them are set: the answer to the first of several setWatches frames says how
 * new the server is, not what the paths of the other frames have missed.
 */
export class WatchRestoration {
  readonly #registry: WatchRegistry;
  readonly #requestBytesMax: number;
  #seenZxid = 0n;
  #complete = true;

  constructor(registry: WatchRegistry, requestBytesMax: number) {
    this.#registry = registry;
    this.#requestBytesMax = requestBytesMax;
  }

  /** What to send first on a new connection; the last is answered when all are set. */
  requests(): OwnRequest[] {
    const batches = [...this.#registry.batches(this.#requestBytesMax - SET_WATCHES_BYTES)];
    this.#complete = batches.length === 0;
    return batches.map((batch, index) => {
      const purpose = index === batches.length - 1 ? 'watches-restored' : 'watches';
      const persistent = batch.persistentWatches.length + batch.persistentRecursiveWatches.length > 0;
      const operation = persistent ? operations.setWatches2 : operations.setWatches;
      return new OwnRequest(purpose, operation, { relativeZxid: this.#seenZxid, ...batch }) as OwnRequest;
    });
  }

  /** A reply told of this transaction: everything up to it has been told to the watches that are set. */
  seen(zxid: bigint): void {
    if (this.#complete) this.#seenZxid = zxid;
  }

  completed(zxid: bigint): void {
    this.#complete = true;
    this.#seenZxid = zxid;
  }
}
