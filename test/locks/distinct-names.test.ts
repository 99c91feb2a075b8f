import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connect, type Holdfast, type LockLease } from '../../src/holdfast.ts';
import { startServer } from '../../src/server.ts';
import { collectGarbage } from '../support/collect-garbage.ts';
import { until } from '../support/until.ts';

/** HOLDFAST_DISTINCT_NAMES=1000000 for the whole of it: `npm run test:long`. */
const NAMES = Number(process.env['HOLDFAST_DISTINCT_NAMES'] ?? 50_000);
/** The heap is measured after a part of the names, and after all of them. */
const WARM_NAMES = Math.min(100_000, NAMES / 5);
const HEAP_GROWTH_BYTES_MAX = 2 * 1024 * 1024;
/** Of every kind but the mutex. */
const NAMES_OF_EACH_KIND = 1_500;
const TASKS = 128;
/** How soon the server removes the folders of locks that are not used. */
const REAP_MS = 250;

let server: Awaited<ReturnType<typeof startServer>>;
let holdfast: Holdfast;
beforeAll(async () => {
  server = await startServer({ limits: { reapMs: REAP_MS } });
  holdfast = await connect({ servers: server.connectString });
});
afterAll(async () => {
  await holdfast.close();
  await server.stop();
});

let nameCount = 0;

/** Takes so many locks once each, whose names have not been used before. */
async function useNames(count: number, take: (name: string) => Promise<LockLease>): Promise<void> {
  const end = nameCount + count;
  const task = async () => {
    while (nameCount < end) await (await take(`member-${nameCount++}`)).release();
  };
  await Promise.all(Array.from({ length: TASKS }, task));
}

/** The heap without garbage, client and server together, once the server has removed the folders. */
async function heapBytes(): Promise<number> {
  await until(
    'the folders to be removed',
    async () => (await holdfast.zk.children('/locks')).length === 0,
    60_000,
  );
  await collectGarbage();
  return process.memoryUsage().heapUsed;
}

describe('a lock for each of many names', () => {
  test(
    `costs no memory once it was released: ${NAMES} names`,
    async () => {
      const take = (name: string) => holdfast.mutex(name).acquire();
      await useNames(WARM_NAMES, take);
      const before = await heapBytes();
      await useNames(NAMES - WARM_NAMES, take);
      expect((await heapBytes()) - before).toBeLessThan(HEAP_GROWTH_BYTES_MAX);
    },
    60_000 + NAMES,
  );

  test.each<[string, (name: string) => Promise<LockLease>]>([
    ['a cached mutex', (name) => holdfast.mutex(name, { cache: { idleMs: 20 } }).acquire()],
    ['a mutex that is entered', (name) => holdfast.mutex(name).use(async (lease) => lease)],
    ['a mutex that is tried', async (name) => (await holdfast.mutex(name).tryAcquire())!],
    ['a mutex of another holder', (name) => contended(name)],
    ['a read-write lock', (name) => holdfast.readWriteLock(name).upgradable.acquire()],
    ['a semaphore', (name) => holdfast.semaphore(name, { permits: 2 }).acquire()],
    ['a multi-lock', (name) => holdfast.multiLock([name, `${name}-too`]).acquire()],
    ['an election', (name) => holdfast.election(name).campaign()],
    ['a simple lock', (name) => holdfast.simpleLock(name).acquire()],
    ['a mutex whose listener was removed', (name) => listenedTo(name)],
  ])('costs no memory once it was released: %s', async (_kind, take) => {
    await useNames(NAMES_OF_EACH_KIND, take);
    const before = await heapBytes();
    await useNames(NAMES_OF_EACH_KIND, take);
    // What a name costs that is kept is more than 1 kB; the rest is the noise of the heap.
    expect((await heapBytes()) - before).toBeLessThan(NAMES_OF_EACH_KIND * 400);
  });

  async function contended(name: string): Promise<LockLease> {
    const [first, second] = [holdfast.mutex(name).acquire(), holdfast.mutex(name).acquire()];
    await (await first).release();
    return second;
  }

  async function listenedTo(name: string): Promise<LockLease> {
    const lock = holdfast.mutex(name);
    const stop = lock.on('lost', () => {});
    const lease = await lock.acquire();
    stop();
    return lease;
  }
});

describe('a lock object that the program does not refer to', () => {
  const seen = () => new WeakRef(holdfast.mutex('kept'));

  test('is the same while it is held, also by a lease that was dropped', async () => {
    await holdfast.mutex('kept').acquire();
    const lock = seen();
    await collectGarbage();
    expect(lock.deref()).toBe(holdfast.mutex('kept'));
    const [holder] = (await holdfast.inspect('kept')).holders;
    await holdfast.forceRelease('kept', { holder: holder!.id, reason: 'its program has lost it' });
    await until('the lock object to be collected', async () => {
      await collectGarbage();
      return lock.deref() === undefined;
    });
  });

  test('is the same while it is waited for', async () => {
    await using other = await connect({ servers: server.connectString });
    const held = await other.mutex('kept').acquire();
    const waiting = holdfast.mutex('kept').acquire();
    const lock = seen();
    await until('the waiter to queue', async () => (await other.inspect('kept')).queue.length === 1);
    await collectGarbage();
    expect(lock.deref()).toBe(holdfast.mutex('kept'));
    await held.release();
    await (await waiting).release();
  });

  test.each(['mutex', 'read', 'write', 'upgradable'] as const)(
    'is the same while a listener is registered, of a %s, and hears of later holds',
    async (side) => {
      const lockOf = (name: string) =>
        side === 'mutex' ? holdfast.mutex(name) : holdfast.readWriteLock(name)[side];
      const name = `heard-${side}`;
      let count = 0;
      let stop: (() => void) | undefined = lockOf(name).on('lockAcquired', () => count++);
      const lock = new WeakRef(lockOf(name));
      await collectGarbage();
      await (await lockOf(name).acquire()).release();
      expect(count).toBe(1);
      expect(lock.deref()).toBe(lockOf(name));
      stop();
      stop = undefined; // It refers to the lock.
      await until('the lock object to be collected', async () => {
        await collectGarbage();
        return lock.deref() === undefined;
      });
    },
  );

  test.each(['read', 'write', 'upgradable'] as const)(
    'is the same while the program refers to the %s side',
    async (side) => {
      const lock = holdfast.readWriteLock('sided')[side];
      await collectGarbage();
      expect(holdfast.readWriteLock('sided')[side]).toBe(lock);
    },
  );
});
