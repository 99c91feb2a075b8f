import type { Clock } from '../base/clock.ts';
import { utf8Bytes } from '../base/utf8-bytes.ts';
import type { Session } from '../client/session.ts';
import type { ZooKeeper } from '../client/zookeeper.ts';

type Watches = Parameters<ZooKeeper['watchSince']>[1];

/** So many watches, or so many bytes of paths, are set by one request: far below what a request may be long. */
const BATCH_MAX = 300;
const BATCH_BYTES_MAX = 128 * 1024;

/** The watches of one who waits, set together. */
interface Part {
  readonly sinceZxid: bigint;
  readonly watches: Watches;
  readonly onSet: () => void;
  resolve(sinceZxid: bigint): void;
  reject(error: unknown): void;
}

interface Batch {
  readonly parts: Part[];
  watchCount: number;
  byteCount: number;
}

/** Watches of one session: those that are asked for in one tick are set by one request. */
export class BatchedWatches {
  readonly #zk: ZooKeeper;
  readonly #session: Session;
  readonly #clock: Clock;
  #batch: Batch | undefined;

  constructor(zk: ZooKeeper, session: Session, clock: Clock) {
    this.#zk = zk;
    this.#session = session;
    this.#clock = clock;
  }

  /**
   * Resolves when they are set, with the transaction from which on changes are told: `sinceZxid`, or a later one. That
   * a node is not there is told in any case. `onSet` is called before anything is told that happens after that.
   */
  set(sinceZxid: bigint, watches: Watches, onSet: () => void): Promise<bigint> {
    let byteCount = 0;
    for (const { path } of watches) byteCount += 4 + utf8Bytes(path);
    const present = this.#batch;
    const isFull =
      present !== undefined &&
      (present.watchCount + watches.length > BATCH_MAX || present.byteCount + byteCount > BATCH_BYTES_MAX);
    if (isFull) this.#batch = undefined;
    this.#batch ??= this.#begin();
    const batch = this.#batch;
    batch.watchCount += watches.length;
    batch.byteCount += byteCount;
    return new Promise((resolve, reject) => {
      batch.parts.push({ sinceZxid, watches, onSet, resolve, reject });
    });
  }

  #begin(): Batch {
    const batch: Batch = { parts: [], watchCount: 0, byteCount: 0 };
    this.#clock.endOfTick(() => {
      if (this.#batch === batch) this.#batch = undefined;
      this.#send(batch.parts);
    });
    return batch;
  }

  /** Called at the end of a tick, where nothing may throw. */
  #send(parts: readonly Part[]): void {
    let sinceZxid = 0n;
    // An earlier one would tell of nodes that were made since as of changed ones.
    for (const part of parts) if (part.sinceZxid > sinceZxid) sinceZxid = part.sinceZxid;
    const watches = parts.flatMap((part) => part.watches);
    let answering: Promise<void>;
    try {
      answering = this.#zk.watchSince(sinceZxid, watches, { session: this.#session });
    } catch (error) {
      // Refused before it left: whichever of them is the reason, the others are not.
      if (parts.length === 1) parts[0]!.reject(error);
      else for (const part of parts) this.#send([part]);
      return;
    }
    // In the first reaction to the answer: later ones come behind what the server says next.
    const onAnswer = () => {
      for (const { onSet } of parts) onSet();
      for (const { resolve } of parts) resolve(sinceZxid);
    };
    answering.then(onAnswer, (error) => {
      for (const { reject } of parts) reject(error);
    });
  }
}
