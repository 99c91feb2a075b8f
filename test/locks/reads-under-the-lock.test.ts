import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Holdfast, LockLease } from '../../src/holdfast.ts';
import { Neighbours } from '../../src/queue/neighbours.ts';
import { LockWorkspace, SUPER_DIGEST } from '../support/lock-backends.ts';
import { startEnsemble, type ZooKeeperEnsemble } from '../support/zookeeper-ensemble.ts';

const TASKS = 2;
const ROUNDS = 50;
/** What goes between one follower and the others takes so long, each way. */
const LAG_MS = 3;

let ensemble: ZooKeeperEnsemble;

beforeAll(async () => {
  ensemble = await startEnsemble({ severable: true, tickTimeMs: 500, superDigest: SUPER_DIGEST });
  const [follower] = await ensemble.followers();
  ensemble.links.slowOne(ensemble.servers.indexOf(follower!) + 1, LAG_MS);
});
afterAll(() => ensemble[Symbol.asyncDispose]());

/** One connection of one process to each of the servers. */
async function connections(space: LockWorkspace): Promise<Holdfast[]> {
  const neighbours = new Neighbours();
  return Promise.all(
    ensemble.servers.map(({ connectString }) =>
      space.holdfast({ servers: `${connectString}${space.root}`, neighbours }),
    ),
  );
}

async function onEnsemble(body: (space: LockWorkspace) => Promise<void>): Promise<void> {
  await using space = await LockWorkspace.on({
    connectString: ensemble.connectString,
    endpoints: ensemble.servers,
  });
  await body(space);
}

async function upgraded(holdfast: Holdfast): Promise<LockLease> {
  const reading = await holdfast.readWriteLock('u').upgradable.acquire();
  const writing = await reading.upgrade();
  await reading.release(); // The place stays until the writing is over.
  return writing;
}

/** Every kind of lock that lets one in at a time. */
const KINDS: Readonly<Record<string, (holdfast: Holdfast) => Promise<LockLease>>> = {
  mutex: (holdfast) => holdfast.mutex('m').acquire(),
  'mutex with cache': (holdfast) => holdfast.mutex('c', { cache: true }).acquire(),
  'mutex with handOff': (holdfast) => holdfast.mutex('h', { handOff: { grantsMax: 1 } }).acquire(),
  'write lock': (holdfast) => holdfast.readWriteLock('w').write.acquire(),
  'upgraded lock': upgraded,
  'multi-lock': (holdfast) => holdfast.multiLock(['a', 'b']).acquire(),
  'semaphore of one permit': (holdfast) => holdfast.semaphore('s', { permits: 1 }).acquire(),
  election: (holdfast) => holdfast.election('e').campaign(),
  'simple lock': (holdfast) => holdfast.simpleLock('x').acquire(),
};

describe('a holder reads what earlier holders wrote, whatever server each is connected to', () => {
  test.each(Object.entries(KINDS))(
    'a counter under a %s loses no increment',
    (_kind, acquire) =>
      onEnsemble(async (space) => {
        const clients = await connections(space);
        await space.admin.create('/counter', '0');
        await space.admin.sync('/', { by: 'quorum' });
        const count = async (holdfast: Holdfast) => {
          for (let round = 0; round < ROUNDS; round++) {
            await using _lease = await acquire(holdfast);
            const { data } = await holdfast.zk.get('/counter');
            await holdfast.zk.set('/counter', String(Number(data) + 1));
          }
        };
        const tasks = clients.flatMap((holdfast) => Array.from({ length: TASKS }, () => count(holdfast)));
        await Promise.all(tasks);
        await space.admin.sync('/', { by: 'quorum' });
        expect(Number((await space.admin.get('/counter')).data)).toBe(clients.length * TASKS * ROUNDS);
      }),
    120_000,
  );

  test(
    'so does a reader behind a writer',
    () =>
      onEnsemble(async (space) => {
        const clients = await connections(space);
        await space.admin.create('/value', '0');
        await space.admin.sync('/', { by: 'quorum' });
        for (let round = 1; round <= ROUNDS; round++) {
          const writer = clients[round % clients.length]!;
          const writing = await writer.readWriteLock('rw').write.acquire();
          const reads = clients.map(async (holdfast) => {
            await using _lease = await holdfast.readWriteLock('rw').read.acquire();
            return Number((await holdfast.zk.get('/value')).data);
          });
          await space.untilEntries('rw', 1 + clients.length);
          await writer.zk.set('/value', String(round));
          await writing.release();
          expect(await Promise.all(reads)).toEqual(clients.map(() => round));
        }
      }),
    60_000,
  );

  // A hand-over by the server comes behind whatever was written before it, by whichever client.
  test(
    'and what the holder has written through another client of its own',
    () =>
      onEnsemble(async (space) => {
        const clients = await connections(space);
        const leader = ensemble.servers.indexOf(await ensemble.leader());
        await space.admin.create('/counter', '0');
        await space.admin.sync('/', { by: 'quorum' });
        const count = async (holdfast: Holdfast) => {
          for (let round = 0; round < ROUNDS; round++) {
            await using _lease = await holdfast.mutex('m').acquire();
            const { data } = await holdfast.zk.get('/counter');
            await clients[leader]!.zk.set('/counter', String(Number(data) + 1));
            await holdfast.zk.sync('/', { by: 'quorum' }); // The next may be of this session.
          }
        };
        await Promise.all(clients.flatMap((holdfast) => [count(holdfast), count(holdfast)]));
        await space.admin.sync('/', { by: 'quorum' });
        expect(Number((await space.admin.get('/counter')).data)).toBe(clients.length * 2 * ROUNDS);
      }),
    120_000,
  );
});
