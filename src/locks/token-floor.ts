import type { AclEntry } from '../client/acl.ts';
import type { RequestOptions } from '../client/request-options.ts';
import { isServerError } from '../protocol/errors.ts';
import {
  currentFloor,
  decodeFloors,
  encodeFloors,
  FLOOR_MAX,
  floorPathOf,
  NO_FLOORS,
  type TokenFloors,
} from '../queue/floor-node.ts';
import type { QueueStore } from '../queue/queue-store.ts';
import { checkToken } from './fence.ts';

/** How far the tokens of a store have come. */
export interface TokenState {
  /** No token that was given so far is larger. The next one is. */
  readonly newest: bigint;
  /** Every token that is given from now on is larger; 0 unless `raiseTokens` has set it. */
  readonly floor: bigint;
}

/** What each of its requests is given up by. */
type TokenCallOptions = Pick<RequestOptions, 'signal' | 'timeoutMs'>;

interface ReadState extends TokenState {
  readonly floors: TokenFloors;
  /** Undefined without a node. */
  readonly version: number | undefined;
}

/** Everyone may read it: a client that cannot is granted nothing, and one that is not told of it grants too little. */
const READABLE: AclEntry = { scheme: 'world', id: 'anyone', permissions: ['read'] };

/**
 * The floor of the tokens of a store: what lets them rise over a move from another store.
 *
 *   1. Read the floors, and how far the store's transactions have come, behind a write that changes nothing.
 *   2. The next token would be above `above` already? Done.
 *   3. Write the new floor on top of the old ones, if they are still what was read. If not, go to 1.
 */
export class StoreTokens {
  readonly #store: QueueStore;
  readonly #path: string;

  constructor(store: QueueStore) {
    this.#store = store;
    this.#path = floorPathOf(store.batonFolder);
  }

  async state(options: TokenCallOptions = {}): Promise<TokenState> {
    const { newest, floor } = await this.#read(options);
    return { newest, floor };
  }

  async raise(above: bigint, options: TokenCallOptions = {}): Promise<TokenState> {
    checkToken('above', above);
    if (above > FLOOR_MAX) {
      throw new RangeError(
        `above: ${above} given; at most ${FLOOR_MAX} is allowed: no token may exceed 2^63-1`,
      );
    }
    for (;;) {
      const state = await this.#read(options);
      const isAbove = above <= state.newest;
      if (isAbove) return { newest: state.newest, floor: state.floor };
      await this.#write(above, state, options);
    }
  }

  async #read(options: TokenCallOptions): Promise<ReadState> {
    const { zk } = this.#store;
    const bound = { ...options, session: zk.session };
    // By a quorum: a follower that is cut off from its leader would tell how far it has come itself.
    const [, read] = await Promise.all([zk.sync('/', { by: 'quorum', ...bound }), this.#get(bound)]);
    const floor = currentFloor(read.floors);
    return { ...read, floor, newest: floor + bound.session.lastZxid };
  }

  async #get(bound: TokenCallOptions): Promise<Pick<ReadState, 'floors' | 'version'>> {
    try {
      const { data, stat } = await this.#store.zk.get(this.#path, bound);
      return { floors: decodeFloors(this.#path, data, stat.mzxid), version: stat.version };
    } catch (error) {
      if (isServerError(error, 'no-node')) return { floors: NO_FLOORS, version: undefined };
      throw error;
    }
  }

  /** Does nothing if it has changed since it was read. */
  async #write(floor: bigint, { floors, version }: ReadState, options: TokenCallOptions): Promise<void> {
    const { zk, folderAcl } = this.#store;
    const data = encodeFloors(floor, floors);
    try {
      if (version !== undefined) {
        await zk.set(this.#path, data, { version, ...options });
        return;
      }
      const folder = this.#path.slice(0, this.#path.lastIndexOf('/'));
      if (folder !== '') await zk.ensurePath(folder, { ...options, ...(folderAcl && { acl: folderAcl }) });
      await zk.create(this.#path, data, { ...options, ...(folderAcl && { acl: [...folderAcl, READABLE] }) });
    } catch (error) {
      const isOutdated = isServerError(error, 'bad-version') || isServerError(error, 'node-exists');
      if (!isOutdated && !isServerError(error, 'no-node')) throw error;
    }
  }
}
