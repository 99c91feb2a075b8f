import type { ZooKeeper } from '../client/zookeeper.ts';
import { isServerError } from '../protocol/errors.ts';
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
    this.#highest = markOf(options.highest ?? 0n, options.section);
  }

  /** The largest token that was admitted. */
  get highest(): bigint {
    return this.#highest.token;
  }

  /** The largest section of it that was admitted. */
  get section(): number {
    return this.#highest.section;
  }

  /** @throws ZK_STALE_TOKEN if a larger one has been admitted. The same token may come again. */
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

/** A fence kept in one node: for several processes that guard one resource together. */
export class ZooKeeperFence {
  readonly path: string;
  readonly #zk: ZooKeeper;

  constructor(zk: ZooKeeper, path: string) {
    this.#zk = zk;
    this.path = path;
  }

  /**
   * Admits a token for everyone, or throws. One read if it has been admitted before, one read and one write otherwise.
   *
   * @throws ZK_STALE_TOKEN if a larger one has been admitted.
   */
  async admit(token: bigint, section?: number): Promise<void> {
    const mark = markOf(token, section);
    for (;;) {
      try {
        const { data, stat } = await this.#zk.get(this.path);
        const highest = decodeMark(data?.toString('latin1') || '0');
        if (isBelow(mark, highest)) throw staleError(mark, highest);
        if (isBelow(highest, mark)) {
          await this.#zk.set(this.path, encodeMark(mark), { version: stat.version });
        }
        return;
      } catch (error) {
        if (isServerError(error, 'no-node')) await this.#make(mark);
        else if (!isServerError(error, 'bad-version')) throw error;
      }
    }
  }

  async #make(mark: Mark): Promise<void> {
    try {
      await this.#zk.ensurePath(this.path.slice(0, this.path.lastIndexOf('/')) || '/');
      await this.#zk.create(this.path, encodeMark(mark));
    } catch (error) {
      if (!isServerError(error, 'node-exists')) throw error;
    }
  }
}

function markOf(token: bigint, section = 0): Mark {
  if (typeof token !== 'bigint') {
    throw new TypeError(`token: ${typeof token} given; a bigint is needed: a number cannot carry 64 bits`);
  }
  if (!Number.isSafeInteger(section) || section < 0) {
    throw new RangeError(`section: ${String(section)} given; an integer from 0 is needed`);
  }
  return { token, section };
}

function isBelow(a: Mark, b: Mark): boolean {
  return a.token < b.token || (a.token === b.token && a.section < b.section);
}

/** A token, and its section behind a point unless that is 0: what has no sections reads as it always did. */
function encodeMark({ token, section }: Mark): string {
  return section === 0 ? String(token) : `${token}.${section}`;
}

function decodeMark(text: string): Mark {
  const [token, section = '0'] = text.split('.');
  return { token: BigInt(token!), section: Number(section) };
}

function staleError(mark: Mark, highest: Mark): StaleTokenError {
  return new StaleTokenError(mark.token, highest.token, {
    section: mark.section,
    highestSection: highest.section,
  });
}
