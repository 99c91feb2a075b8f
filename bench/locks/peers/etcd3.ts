// `etcd3`'s Lock: a key on a lease. It does not queue and does not wait: who finds the lock taken is told so, and here
// asks again after a while.
import { createRequire } from 'node:module';
import { setTimeout as delay } from 'node:timers/promises';
import { FIVE } from '../orders.ts';
import { type LockDriver, oneByOne, serveOrders, type TakeLock } from './serve-orders.ts';

const RETRY_DELAY_MS = 10;
const RETRY_JITTER_MS = 5;
const LEASE_SECONDS = 30;

const requirePeer = createRequire(new URL('../../peers/package.json', import.meta.url));
const { Etcd3, EtcdLockFailedError } = requirePeer('etcd3') as Library;
const [, , server] = process.argv as string[] as [string, string, string];

const driver: LockDriver = {
  async open() {
    const etcd = new Etcd3({ hosts: `http://${server}` });
    return {
      lock: (kind, name) =>
        kind === 'five-locks'
          ? oneByOne(Array.from({ length: FIVE }, (_, index) => taking(etcd, `${name}-${index}`)))
          : taking(etcd, name),
      close: async () => etcd.close(),
    };
  },
};
await serveOrders(driver);

function taking(etcd: Etcd, key: string): TakeLock {
  return async (_cycle, untilMs) => {
    for (;;) {
      const lock = etcd.lock(key).ttl(LEASE_SECONDS);
      try {
        await lock.acquire();
        return () => lock.release();
      } catch (error) {
        if (!(error instanceof EtcdLockFailedError)) throw error;
        if (performance.now() >= untilMs) return undefined;
        await delay(RETRY_DELAY_MS + (2 * Math.random() - 1) * RETRY_JITTER_MS);
      }
    }
  };
}

// Typed by what is used of it: the bench is checked without the peers being there.
interface Library {
  readonly Etcd3: new (options: { readonly hosts: string }) => Etcd;
  readonly EtcdLockFailedError: new () => Error;
}

interface Etcd {
  lock(key: string): { ttl(seconds: number): EtcdLock };
  close(): void;
}

interface EtcdLock {
  acquire(): Promise<unknown>;
  release(): Promise<unknown>;
}
