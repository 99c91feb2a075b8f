import { describe, expect, test } from 'vitest';
import { connect, type Holdfast, type LockLease, type UpgradableLease } from '../../src/holdfast.ts';
import { startTestServer } from '../../src/testing.ts';
import { collectGarbage } from '../support/collect-garbage.ts';
import { SwitchedTransport } from '../support/switched-transport.ts';
import { until } from '../support/until.ts';

type Bounds = { readonly timeoutMs?: number; readonly signal?: AbortSignal };
type Attempt = (bounds: Bounds, index: number) => Promise<unknown>;

/** Each makes ready what an attempt needs while the server can be reached. */
const recipes: Readonly<Record<string, (holdfast: Holdfast) => Promise<Attempt>>> = {
  'a mutex': async (holdfast) => {
    await usedOnce(holdfast.mutex('m'));
    return (bounds) => holdfast.mutex('m').acquire(bounds);
  },
  'a mutex of a new name': async (holdfast) => (bounds, index) =>
    holdfast.mutex(`new-${index}`).acquire(bounds),
  'a mutex with cache': async (holdfast) => {
    const mutex = holdfast.mutex('cached', { cache: true });
    return (bounds) => mutex.acquire(bounds);
  },
  'a mutex with handOff': async (holdfast) => {
    const mutex = holdfast.mutex('handed', { handOff: true });
    await usedOnce(mutex);
    return (bounds) => mutex.acquire(bounds);
  },
  'trying a mutex': async (holdfast) => {
    await usedOnce(holdfast.mutex('m'));
    return (bounds) => holdfast.mutex('m').tryAcquire(bounds);
  },
  'a reader': async (holdfast) => {
    await usedOnce(holdfast.readWriteLock('rw').read);
    return (bounds) => holdfast.readWriteLock('rw').read.acquire(bounds);
  },
  'a writer': async (holdfast) => (bounds) => holdfast.readWriteLock('rw').write.acquire(bounds),
  'an upgradable reader': async (holdfast) => {
    await usedOnce(holdfast.readWriteLock('rw').upgradable);
    return (bounds) => holdfast.readWriteLock('rw').upgradable.acquire(bounds);
  },
  'an upgrade': async (holdfast) => {
    const lease: UpgradableLease = await holdfast.readWriteLock('rw').upgradable.acquire();
    return (bounds) => lease.upgrade(bounds);
  },
  'trying an upgrade': async (holdfast) => {
    const { upgradable, write } = holdfast.readWriteLock('rw');
    const within = await upgradable.acquire();
    return (bounds) => write.tryAcquire({ ...bounds, within });
  },
  'an upgrade before a writer': async (holdfast) => {
    const lease = await holdfast.readWriteLock('rw').upgradable.acquire();
    holdfast
      .readWriteLock('rw')
      .write.acquire()
      .catch(() => {});
    await until('a writer', async () => (await holdfast.zk.children('/locks/rw')).length === 2);
    return (bounds) => lease.upgrade(bounds);
  },
  'a reader within a writer': async (holdfast) => {
    const { write, read } = holdfast.readWriteLock('rw');
    const within = await write.acquire();
    return (bounds) => read.acquire({ ...bounds, within });
  },
  'a semaphore': async (holdfast) => {
    const semaphore = holdfast.semaphore('s', { permits: 2 });
    await usedOnce(semaphore);
    return (bounds) => semaphore.acquire({ ...bounds, permits: 2 });
  },
  'trying a semaphore': async (holdfast) => (bounds) =>
    holdfast.semaphore('s', { permits: 2 }).tryAcquire(bounds),
  'a multi-lock': async (holdfast) => {
    await usedOnce(holdfast.multiLock(['x', 'y']));
    return (bounds) => holdfast.multiLock(['x', 'y']).acquire(bounds);
  },
  'an election': async (holdfast) => (bounds) => holdfast.election('e').campaign(bounds),
  'a simple lock': async (holdfast) => (bounds) => holdfast.simpleLock('simple').acquire(bounds),
  'a simple lock that is held': async (holdfast) => {
    await holdfast.simpleLock('held').acquire();
    return (bounds) => holdfast.simpleLock('held').acquire(bounds);
  },
};

async function usedOnce(lock: { acquire(): Promise<LockLease> }): Promise<void> {
  await (await lock.acquire()).release();
}

const LIMITS = { sessionTimeoutMsMax: 120_000 };
/** What is kept of an attempt that was withdrawn, and what the measurement is off by. */
const BYTES_MAX = 150;
const NOISE_BYTES = 400_000;
const AT_ONCE = 500;

/** Gives so many attempts up, by time and by signal in turn; resolves with by how many bytes the heap has grown. */
async function giveUp(attempt: Attempt, count: number): Promise<number> {
  await collectGarbage();
  const before = process.memoryUsage().heapUsed;
  for (let from = 0; from < count; from += AT_ONCE) await giveUpAtOnce(attempt, from);
  await collectGarbage();
  return process.memoryUsage().heapUsed - before;
}

/** Apart, so that nothing of the last ones is in use when memory is measured. */
async function giveUpAtOnce(attempt: Attempt, from: number): Promise<void> {
  const attempts = Array.from({ length: AT_ONCE }, async (_, index) => {
    if (index % 2 === 0) return attempt({ timeoutMs: 1 }, from + index);
    const controller = new AbortController();
    setImmediate(() => controller.abort(new Error('given up')));
    return attempt({ signal: controller.signal }, from + index);
  });
  const settled = await Promise.allSettled(attempts);
  expect(settled.filter(({ status }) => status === 'fulfilled')).toEqual([]);
}

describe('while no server can be reached', () => {
  for (const [name, prepare] of Object.entries(recipes)) {
    // A queue in which every node is of somebody who gave up long ago would stand before the living.
    test(`${name} that is given up keeps nothing and sends nothing afterwards`, async () => {
      await using server = await startTestServer({ limits: LIMITS });
      const transport = new SwitchedTransport();
      await using holdfast = await connect({
        servers: server.connectString,
        sessionTimeoutMs: 120_000,
        transport,
      });
      await using admin = await connect({ servers: server.connectString });
      const attempt = await prepare(holdfast);
      const nodes = async () => [await admin.zk.countDescendants('/'), await livingNodes(admin)];
      const nodesBefore = await nodes();
      transport.off();
      await until('the connection to be down', () => holdfast.zk.session.state === 'suspended');
      await giveUp(attempt, AT_ONCE); // What is made once, and code that is compiled.
      const count = name === 'a mutex' ? 7_000 : 1_000;
      // What is kept grows each time; what the runtime does of its own accord, at one time or another.
      const measured = [
        await giveUp(attempt, count),
        await giveUp(attempt, count),
        await giveUp(attempt, count),
      ];
      const [, grownBytes] = measured.sort((left, right) => left - right);
      transport.makingCount = 0;
      transport.on();
      await until('the connection to be back', () => holdfast.zk.session.state === 'connected');
      await holdfast.zk.sync('/');
      expect(transport.makingCount).toBe(0);
      expect(await nodes()).toEqual(nodesBefore);
      expect(grownBytes).toBeLessThan(count * BYTES_MAX + NOISE_BYTES);
    });
  }

  // The first of them were sent to a server that had gone; of the others none was
  test('what waits behind what has been sent is taken back too', async () => {
    await using server = await startTestServer({ limits: LIMITS });
    const transport = new SwitchedTransport();
    await using holdfast = await connect({
      servers: server.connectString,
      sessionTimeoutMs: 60_000,
      transport,
    });
    const names = Array.from({ length: 20 }, (_, index) => `m${index}`);
    for (const name of names) await usedOnce(holdfast.mutex(name));
    server.pause();
    const controller = new AbortController();
    const attempts: Promise<unknown>[] = [];
    transport.makingCount = 0;
    for (const name of names) {
      attempts.push(holdfast.mutex(name).acquire({ signal: controller.signal }));
      await new Promise((resolve) => setImmediate(resolve)); // A transaction each, as far as they go.
    }
    const sentCount = transport.makingCount;
    expect(sentCount).toBeLessThan(names.length);
    controller.abort(new Error('given up'));
    for (const attempt of attempts) await expect(attempt).rejects.toThrow('given up');
    server.resume();
    await holdfast.zk.sync('/');
    await until('nothing to be left', async () => (await livingNodes(holdfast)).length === 0);
    for (const name of names.slice(sentCount)) {
      // As many entries as were made before: the folder's counter says how many there have ever been.
      const { cversion } = (await holdfast.zk.exists(`/locks/${name}`))!;
      expect(cversion).toBe(2);
    }
  });
});

/** The nodes that live by a session, in the folders of locks. */
async function livingNodes(holdfast: Holdfast): Promise<string[]> {
  await holdfast.zk.sync('/');
  const names = await holdfast.zk.children('/locks').catch(() => []);
  const lists = await Promise.all(
    names.map(async (name) => {
      const entries = await holdfast.zk.children(`/locks/${name}`).catch(() => []);
      return entries.map((entry) => `${name}/${entry}`);
    }),
  );
  return lists.flat();
}
