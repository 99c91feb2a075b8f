import type { ZooKeeper } from '../client/zookeeper.ts';
import { isServerError } from '../protocol/errors.ts';
import { StaleTokenError } from './lock-errors.ts';

/**
 * The resource's side of fencing: admits a token if none larger has been admitted. In memory, for a resource that
 * lives in this process; `ZooKeeperFence` keeps it in ZooKeeper, `examples/` has it in SQL and in Redis.
 */
export class Fence {
  #highest: bigint;

  constructor(options: { readonly highest?: bigint } = {}) {
    this.#highest = checkToken(options.highest ?? 0n);
  }

  /** The largest token that was admitted. */
  get highest(): bigint {
    return this.#highest;
  }

  /** @throws ZK_STALE_TOKEN if a larger one has been admitted. The same token may come again. */
  admit(token: bigint): void {
    if (checkToken(token) < this.#highest) throw new StaleTokenError(token, this.#highest);
    this.#highest = token;
  }
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
  async admit(token: bigint): Promise<void> {
    checkToken(token);
    for (;;) {
      try {
        const { data, stat } = await this.#zk.get(this.path);
        const highest = BigInt(data?.toString('latin1') || '0');
        if (token < highest) throw new StaleTokenError(token, highest);
        if (token > highest) await this.#zk.set(this.path, String(token), { version: stat.version });
        return;
      } catch (error) {
        if (isServerError(error, 'no-node')) await this.#make(token);
        else if (!isServerError(error, 'bad-version')) throw error;
      }
    }
  }

  async #make(token: bigint): Promise<void> {
    try {
      await this.#zk.ensurePath(this.path.slice(0, this.path.lastIndexOf('/')) || '/');
      await this.#zk.create(this.path, String(token));
    } catch (error) {
      if (!isServerError(error, 'node-exists')) throw error;
    }
  }
}

function checkToken(token: bigint): bigint {
  if (typeof token !== 'bigint') {
    throw new TypeError(`token: ${typeof token} given; a bigint is needed: a number cannot carry 64 bits`);
  }
  return token;
}
