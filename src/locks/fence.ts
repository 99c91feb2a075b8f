import { checkPath } from '../client/arguments.ts';
import { type CallOptions, callOptionNames, checkCallOptions } from '../client/call-options.ts';
import { ops } from '../client/operations-of-multi.ts';
import type { ZooKeeper } from '../client/zookeeper.ts';
import { isServerError } from '../protocol/errors.ts';
import { ForeignDataError } from '../queue/foreign-data-error.ts';
import { StaleTokenError } from './lock-errors.ts';

/**
 * The resource's side of fencing: admits a token if none larger has been admitted. In memory, for a resource that
 * lives in this process; `ZooKeeperFence` keeps it in ZooKeeper, `examples/` has it in SQL and in Redis.
 *
 * Of a mutex with `cache` or `handOff` give the section with the token: several tasks of one process have the same
 * token one after the other. Where it is left out it is 0, as it is for all other locks.
 */
export class Fence {
  #highest: Mark;

  constructor(options: { readonly highest?: bigint; readonly section?: number } = {}) {
    this.#highest = markOf(options.highest === undefined ? 0n : options.highest, options.section);
  }

  /** The largest token that was admitted. */
  get highest(): bigint {
    return this.#highest.token;
  }

  /** The largest section of it that was admitted. */
  get section(): number {
    return this.#highest.section;
  }

  /**
   * @throws LOCK_STALE_TOKEN if a larger one has been admitted; TypeError, RangeError for what is no token or no section.
   * The same token may come again.
   */
  admit(token: bigint, section?: number): void {
    const mark = markOf(token, section);
    if (isBelow(mark, this.#highest)) throw staleError(mark, this.#highest);
    this.#highest = mark;
  }
}

/** What is compared: the token, and among equal ones the section. */
interface Mark {
  readonly token: bigint;
  readonly section: number;
}

/** A token is a signed number of 64 bits on the wire, and never negative. */
const TOKEN_MAX = 2n ** 63n - 1n;
const NOTHING_ADMITTED: Mark = { token: 0n, section: 0 };

/**
 * A fence kept in one node: for several processes that guard one resource together. The node must not be removed while
 * tokens may still come: a fence that is gone has admitted nothing.
 */
export class ZooKeeperFence {
  readonly path: string;
  readonly #zk: ZooKeeper;

  constructor(zk: ZooKeeper, path: string) {
    checkPath(path);
    this.#zk = zk;
    this.path = path;
  }

  /**
   * Admits a token for all who use this fence, or throws. One read and one write, also for a token that has been
   * admitted before.
   *
   * What is read may be old: the server may be a follower that lags behind its leader. A token below an old mark is
   * below the newest one too and is refused. Any other is admitted by a write that fails unless the mark that was read
   * is still the newest.
   *
   * @throws TypeError, RangeError for what is no token or no section, before anything is sent; LOCK_STALE_TOKEN if a
   * larger one has been admitted; ZK_FOREIGN_DATA if the node holds something else, and nothing is written then;
   * ZK_UNREACHABLE when no server answers, as `Holdfast.inspect`, ZK_REQUEST_TIMEOUT and the signal's own reason
   * where it is given up: the token may have been admitted then.
   */
  async admit(token: bigint, section?: number, options: CallOptions = {}): Promise<void> {
    const mark = markOf(token, section);
    checkCallOptions('admit', options, callOptionNames);
    await this.#zk.bounded(`admit ${this.path}`, options, async (signal) => {
      while (!(await this.#attempt(mark, { signal }))) {}
    });
  }

  /** False if the node has changed since it was read. */
  async #attempt(mark: Mark, bounds: CallOptions): Promise<boolean> {
    try {
      const { data, stat } = await this.#zk.get(this.path, bounds);
      const highest = this.#decode(data);
      const { version } = stat;
      if (isBelow(mark, highest)) throw staleError(mark, highest);
      if (isBelow(highest, mark)) await this.#zk.set(this.path, encodeMark(mark), { ...bounds, version });
      // A read cannot confirm this, nor can a sync that the leader answers by itself.
      else await this.#zk.multi([ops.check(this.path, version)], bounds);
      return true;
    } catch (error) {
      if (isServerError(error, 'no-node')) return this.#make(mark, bounds);
      if (isServerError(error, 'bad-version')) return false;
      throw error;
    }
  }

  /** False if another process has made the node. */
  async #make(mark: Mark, bounds: CallOptions): Promise<boolean> {
    try {
      await this.#zk.ensurePath(this.path.slice(0, this.path.lastIndexOf('/')) || '/', bounds);
      await this.#zk.create(this.path, encodeMark(mark), bounds);
      return true;
    } catch (error) {
      if (isServerError(error, 'node-exists')) return false;
      throw error;
    }
  }

  #decode(data: Uint8Array | null): Mark {
    const mark = decodeMark(data);
    if (!mark) throw new ForeignDataError(this.path, data, 'a fencing token, or a token and its section,');
    return mark;
  }
}

function markOf(token: bigint, section = 0): Mark {
  checkToken('token', token);
  if (typeof section !== 'number') {
    throw new TypeError(`section: ${typeof section} given; a number is needed`);
  }
  if (!Number.isSafeInteger(section) || section < 0) {
    throw new RangeError(
      `section: ${section} given; an integer from 0 to ${Number.MAX_SAFE_INTEGER} is needed`,
    );
  }
  return { token, section };
}

/** Refuses what cannot be a token. @throws TypeError, RangeError. */
export function checkToken(name: string, token: bigint): void {
  if (typeof token !== 'bigint') {
    throw new TypeError(`${name}: ${typeof token} given; a bigint is needed: a number cannot carry 64 bits`);
  }
  if (token < 0n || token > TOKEN_MAX) {
    throw new RangeError(`${name}: ${token} given; a bigint from 0 to ${TOKEN_MAX} is needed`);
  }
}

function isBelow(a: Mark, b: Mark): boolean {
  return a.token < b.token || (a.token === b.token && a.section < b.section);
}

/** A token, and its section behind a point unless that is 0: what has no sections reads as it always did. */
function encodeMark({ token, section }: Mark): string {
  return section === 0 ? String(token) : `${token}.${section}`;
}

/** Undefined if it is no mark. */
function decodeMark(data: Uint8Array | null): Mark | undefined {
  if (!data || data.byteLength === 0) return NOTHING_ADMITTED;
  const text = Buffer.from(data).toString('latin1');
  const parts = /^(\d{1,19})(?:\.(\d{1,16}))?$/.exec(text);
  if (!parts) return undefined;
  const mark = { token: BigInt(parts[1]!), section: Number(parts[2] ?? 0) };
  return mark.token <= TOKEN_MAX && Number.isSafeInteger(mark.section) ? mark : undefined;
}

function staleError(mark: Mark, highest: Mark): StaleTokenError {
  return new StaleTokenError(mark.token, highest.token, {
    section: mark.section,
    highestSection: highest.section,
  });
}
