import { Fifo } from '../base/fifo.ts';
import { permissions } from '../protocol/constants.ts';
import { isAllowed } from './access.ts';
import type { ClientOutput } from './client-output.ts';
import type { ServerConnection } from './server-connection.ts';
import type { WatchTable } from './watch-table.ts';
import type { Happening } from './write-operations.ts';

/** What may be told within one request, and in one step after that: a millisecond's worth. */
const WEIGHT_MAX = 1_024;
/** A long access list takes longer to look through, and a long path to write. */
const LONG_ACL_LENGTH = 8;
const LONG_ACL_WEIGHT = 32;
const PATH_UNITS_SHIFT = 8;

interface Untold {
  readonly happening: Happening;
  readonly zxid: bigint;
  /** Those who are still to be told; undefined if nobody has looked yet who that is. */
  readonly rest: IterableIterator<ServerConnection> | undefined;
}

/**
 * Tells watchers what has happened, in order: within the request that did it where that is soon done, and in steps
 * where many are to be told of much. Until then the server is busy and handles no other request, so that each client
 * hears of a change before it can see it.
 */
export class EventTeller {
  readonly #watches: WatchTable<ServerConnection>;
  readonly #output: ClientOutput;
  readonly #untold = new Fifo<Untold>();

  constructor(watches: WatchTable<ServerConnection>, output: ClientOutput) {
    this.#watches = watches;
    this.#output = output;
  }

  get busy(): boolean {
    return this.#untold.length > 0;
  }

  tell(happenings: readonly Happening[], zxid: bigint): void {
    let weight = 0;
    for (const happening of happenings) {
      if (this.busy || weight >= WEIGHT_MAX) this.#untold.push({ happening, zxid, rest: undefined });
      else weight += this.#tellOne(happening, zxid, undefined, WEIGHT_MAX - weight);
    }
  }

  /** Goes on where `tell` left off, for one step. */
  more(): void {
    for (let weight = 0; weight < WEIGHT_MAX; ) {
      const next = this.#untold.shift();
      if (!next) return;
      weight += this.#tellOne(next.happening, next.zxid, next.rest, WEIGHT_MAX - weight);
    }
  }

  /** What these transactions did has been taken back: there is nothing to tell. */
  forget(isTakenBack: (zxid: bigint) => boolean): void {
    for (const untold of this.#untold.drain()) if (!isTakenBack(untold.zxid)) this.#untold.push(untold);
  }

  /** Returns what it weighed. Those for whom there is no room come next. */
  #tellOne(happening: Happening, zxid: bigint, rest: Untold['rest'], room: number): number {
    const { type, acl, path } = happening;
    const pathWeight = path.length >> PATH_UNITS_SHIFT;
    let weight = 1 + pathWeight;
    const told = rest ?? this.#watches.fire(happening)?.values();
    if (!told) return weight;
    const each = 1 + pathWeight + (acl.length > LONG_ACL_LENGTH ? LONG_ACL_WEIGHT : 0);
    for (let next = told.next(); !next.done; next = told.next()) {
      if (isAllowed(acl, permissions.read, next.value.identities))
        this.#output.notify(next.value, type, path, zxid);
      weight += each;
      if (weight >= room) {
        this.#untold.prepend([{ happening, zxid, rest: told }]);
        break;
      }
    }
    return weight;
  }
}
