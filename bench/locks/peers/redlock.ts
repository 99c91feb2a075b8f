// `redlock` on one Redis, through `ioredis`. It does not queue: who finds the lock taken asks again after a while.
import { createRequire } from 'node:module';
import { FIVE } from '../orders.ts';
import { type LockDriver, serveOrders } from './serve-orders.ts';

/** Its own defaults are 200 ± 100 ms and 10 attempts; these make it faster under contention, and never give up. */
const RETRY_DELAY_MS = 10;
const RETRY_JITTER_MS = 5;
const LOCK_MS = 30_000;

const requirePeer = createRequire(new URL('../../peers/package.json', import.meta.url));
const Redis = requirePeer('ioredis') as RedisClass;
const { default: Redlock } = requirePeer('redlock') as { readonly default: RedlockClass };
const [, , server] = process.argv as string[] as [string, string, string];

const driver: LockDriver = {
  async open() {
    const redis = new Redis(`redis://${server}`);
    const redlock = new Redlock([redis], {
      retryCount: -1,
      retryDelay: RETRY_DELAY_MS,
      retryJitter: RETRY_JITTER_MS,
    });
    return {
      lock: (kind, name) => {
        const keys =
          kind === 'five-locks' ? Array.from({ length: FIVE }, (_, at) => `${name}-${at}`) : [name];
        return async () => {
          const lock = await redlock.acquire(keys, LOCK_MS);
          return () => lock.release();
        };
      },
      close: () => redis.quit(),
    };
  },
};
await serveOrders(driver);

// Typed by what is used of them: the bench is checked without the peers being there.
type RedisClass = new (url: string) => { quit(): Promise<unknown> };
type RedlockClass = new (
  clients: readonly object[],
  settings: { readonly retryCount: number; readonly retryDelay: number; readonly retryJitter: number },
) => { acquire(keys: readonly string[], durationMs: number): Promise<{ release(): Promise<unknown> }> };
