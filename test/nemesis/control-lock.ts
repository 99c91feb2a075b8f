import { setTimeout as delay } from 'node:timers/promises';
import { isServerError, type ZooKeeper } from '../../src/zookeeper.ts';

const LOOK_AGAIN_MS = 15;

/**
 * The control: a lock as it is often written. Who makes the ephemeral node holds until it deletes it, and takes being
 * alive for holding. The checker must find it out, or it would find nothing.
 */
export class ControlLock {
  readonly #zk: ZooKeeper;
  readonly #path: string;

  constructor(zk: ZooKeeper, path: string) {
    this.#zk = zk;
    this.#path = path;
  }

  async acquire(signal: AbortSignal): Promise<bigint> {
    for (;;) {
      signal.throwIfAborted();
      try {
        const { stat } = await this.#zk.create(this.#path, '', { mode: 'ephemeral' });
        return stat.czxid;
      } catch (error) {
        if (isServerError(error, 'node-exists')) await this.#removeOwn();
      }
      await delay(LOOK_AGAIN_MS);
    }
  }

  async release(): Promise<void> {
    await this.#zk.delete(this.#path).catch(() => {}); // One that is left is found by `acquire`.
  }

  /** A create whose answer was lost. Nobody else in this session has the lock. */
  async #removeOwn(): Promise<void> {
    const stat = await this.#zk.exists(this.#path).catch(() => undefined);
    if (stat?.ephemeralOwner === this.#zk.session.id) await this.release();
  }
}
