import type { Session } from '../client/session.ts';
import type { ZooKeeper } from '../client/zookeeper.ts';
import { isServerError } from '../protocol/errors.ts';
import type { WatchEvent } from '../session/watch-registry.ts';
import {
  currentFloor,
  decodeFloors,
  floorPathOf,
  NO_FLOORS,
  type TokenFloors,
  tokenAt,
} from './floor-node.ts';
import { ForeignDataError } from './foreign-data-error.ts';
import { untilAnswered } from './settled-writes.ts';

/** What was read of the floors, and for which entries it is all that counts. */
interface Known {
  readonly floors: TokenFloors;
  /** Without a watch: entries made after this may have a later floor. */
  readonly untilZxid: bigint | undefined;
}

/**
 * The tokens of one session: what is added to the czxid of an entry.
 *
 * The floors are read once, by a request that leaves together with the first entry, and watched from then on. A server
 * tells of a floor before it answers with the czxid of an entry that was made after it, on the same connection; after a
 * reconnect the watch is set again, as of the last transaction seen, before anything else is sent. So no entry gets a
 * token by a floor that had been replaced when it was made.
 */
export class SessionTokens {
  readonly #zk: ZooKeeper;
  readonly #session: Session;
  readonly #path: string;
  #known: Known | undefined;
  #reading: Promise<void> | undefined;
  /** The newest floor that was seen: one below it is a mistake of whoever wrote it. */
  #highest = 0n;

  constructor(zk: ZooKeeper, session: Session, batonFolder: string) {
    this.#zk = zk;
    this.#session = session;
    this.#path = floorPathOf(batonFolder);
  }

  /** Asks for the floors, unless they are known or asked for: before the first entry, so that nothing waits for them. */
  prepare(): void {
    if (!this.#known && !this.#reading) void this.#read();
  }

  /** The token of an entry; undefined if the floors have to be read for it. */
  of(czxid: bigint): bigint | undefined {
    const known = this.#known;
    if (!known || (known.untilZxid !== undefined && czxid > known.untilZxid)) return undefined;
    return known.floors === NO_FLOORS ? czxid : tokenAt(known.floors, czxid);
  }

  /**
   * The token of an entry, once the floors are known for it.
   *
   * @throws ZK_FOREIGN_DATA, ZK_NO_AUTH. Without knowing the floor, no token can be given.
   */
  async whenKnown(czxid: bigint): Promise<bigint> {
    for (;;) {
      const token = this.of(czxid);
      if (token !== undefined) return token;
      await (this.#reading ?? this.#read());
    }
  }

  #read(): Promise<void> {
    const reading: Promise<void> = untilAnswered(() => this.#ask()).then(
      (known) => {
        if (this.#reading !== reading) return; // It has changed since.
        this.#reading = undefined;
        this.#known = known;
      },
      (error) => {
        if (this.#reading === reading) this.#reading = undefined;
        throw error;
      },
    );
    reading.catch(() => {}); // Of interest to who waits for it.
    this.#reading = reading;
    return reading;
  }

  /** In a store without floors one request; the server sets the watch whether the node is there or not. */
  async #ask(): Promise<Known> {
    const session = this.#session;
    let isWatched = true;
    let isThere: boolean;
    try {
      isThere = (await this.#zk.exists(this.#path, { session, watch: this.#onChange })) !== undefined;
    } catch (error) {
      // The server has no room for another watch: read again for each later entry.
      if (!isServerError(error, 'throttled-op')) throw error;
      isWatched = false;
      isThere = true;
    }
    const floors = isThere ? await this.#get() : NO_FLOORS;
    this.#checkNotSunk(floors);
    return { floors, untilZxid: isWatched ? undefined : session.lastZxid };
  }

  async #get(): Promise<TokenFloors> {
    try {
      const { data, stat } = await this.#zk.get(this.#path, { session: this.#session });
      return decodeFloors(this.#path, data, stat.mzxid);
    } catch (error) {
      if (isServerError(error, 'no-node')) return NO_FLOORS;
      throw error;
    }
  }

  #checkNotSunk(floors: TokenFloors): void {
    const floor = currentFloor(floors);
    if (floor < this.#highest) {
      const found = floor === 0n ? null : Buffer.from(String(floor));
      throw new ForeignDataError(this.#path, found, `a floor of tokens of at least ${this.#highest}`);
    }
    this.#highest = floor;
  }

  readonly #onChange = ({ type }: WatchEvent): void => {
    if (type === 'session-lost') return;
    this.#known = undefined;
    void this.#read();
  };
}
