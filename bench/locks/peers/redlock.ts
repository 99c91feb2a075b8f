// `redlock` on one Redis, through `ioredis`. It does not queue: who finds the lock taken asks again after a while.
import { createRequire } from 'node:module';
import { FIVE } from '../orders.ts';
import { type LockDriver, serveOrders } from './serve-orders.ts';

/** Its own defaults are 200 ± 100 ms and 10 attempts; these make it faster under contention, and it asks to the end. */
const RETRY_DELAY_MS = 10;
const RETRY_JITTER_MS = 5;
const RETRIES_MAX = 1_000_000;
const LOCK_MS = 30_000;

const requirePeer = createRequire(new URL('../../peers/package.json', import.meta.url));
const Redis = requirePeer('ioredis') as RedisClass;
const { default: Redlock, ExecutionError } = requirePeer('redlock') as {
  readonly default: RedlockClass;
  readonly ExecutionError: new () => Error;
};
const [, , server] = process.argv as string[] as [string, string, string];

const driver: LockDriver = {
  async open() {
    const redis = new Redis(`redis://${server}`);
    const redlock = new Redlock([redis], {
      retryDelay: RETRY_DELAY_MS,
      retryJitter: RETRY_JITTER_MS,
    });
    return {
      lock: (kind, name) => {
        const keys =
          kind === 'five-locks' ? Array.from({ length: FIVE }, (_, at) => `${name}-${at}`) : [name];
        return async (_cycle, untilMs) => {
          const retryCount = Math.min(
            RETRIES_MAX,
            Math.max(0, Math.ceil((untilMs - performance.now()) / RETRY_DELAY_MS)),
          );
          try {
            const lock = await redlock.acquire(keys, LOCK_MS, { retryCount });
            return () => lock.release();
          } catch (error) {
            if (error instanceof ExecutionError) return undefined; // Never had its turn in all that time.
            throw error;
          }
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
  settings: { readonly retryDelay: number; readonly retryJitter: number },
) => {
  acquire(
    keys: readonly string[],
    durationMs: number,
    settings: { readonly retryCount: number },
  ): Promise<{ release(): Promise<unknown> }>;
};
