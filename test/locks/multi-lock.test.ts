import { describe, expect, test } from 'vitest';
import { deferred } from '../../src/base/deferred.ts';
import { connect, LockTimeoutError } from '../../src/holdfast.ts';
import { Neighbours } from '../../src/queue/neighbours.ts';
import { seededRandom, startTestServer } from '../../src/testing.ts';
import { LateTransport } from '../support/late-transport.ts';
import { everyBackend, onEveryLockBackend } from '../support/lock-backends.ts';
import { until } from '../support/until.ts';
import { turns, Witness } from '../support/witness.ts';

describe('a multi-lock', () => {
  // 5.5 "+": M1, M6, M9 over two paths
  onEveryLockBackend(
    'holds all of its names, in any order of them, and shares them with mutexes',
    async (workspace) => {
      const [one, two] = await workspace.holdfasts(2);
      const held = await one!.multiLock(['b', 'a']).acquire();
      expect(await two!.mutex('a').tryAcquire()).toBeNull();
      expect(await two!.multiLock(['c', 'b']).tryAcquire()).toBeNull();
      expect(await workspace.entries('c')).toEqual([]);
      const order: string[] = [];
      const single = two!.mutex('b').use(async () => order.push('mutex'));
      await workspace.untilEntries('b', 2);
      const both = two!.multiLock(['a', 'b']).use(async ({ token }) => {
        order.push('both');
        expect(token).toBeGreaterThan(held.token);
      });
      await workspace.untilEntries('b', 3);
      await held.release();
      await Promise.all([single, both]);
      expect(order).toEqual(['mutex', 'both']);
    },
  );

  // X2
  onEveryLockBackend('is all or nothing: what cannot be had gives the rest back', async (workspace) => {
    const [one, two] = await workspace.holdfasts(2);
    const held = await one!.mutex('b').acquire();
    await expect(two!.multiLock(['a', 'b']).acquire({ timeoutMs: 100 })).rejects.toBeInstanceOf(
      LockTimeoutError,
    );
    await workspace.untilEntries('a', 0);
    await workspace.admin.create('/locks/c');
    await workspace.admin.create('/locks/c/stranger');
    await expect(two!.multiLock(['a', 'b', 'c']).acquire()).rejects.toMatchObject({
      code: 'LOCK_FOREIGN_NODE',
      lockName: 'c',
    });
    await workspace.untilEntries('a', 0);
    await workspace.untilEntries('b', 1);
    await held.release();
  });

  onEveryLockBackend(
    'ends its wait when one of its nodes is removed, also where that one is first already',
    async (workspace) => {
      const [one, two, three] = await workspace.holdfasts(3);
      const held = await one!.mutex('a').acquire();
      const waiting = two!.multiLock(['a', 'b']).acquire({ timeoutMs: 5_000 });
      const ended = expect(waiting).rejects.toMatchObject({
        code: 'LOCK_CONTENDER_EVICTED',
        lockName: 'b',
      });
      const [name] = await workspace.untilEntries('b', 1);
      await workspace.admin.delete(`/locks/b/${name}`);
      const other = await three!.mutex('b').acquire();
      await ended;
      await workspace.untilEntries('a', 1);
      await held.release();
      await other.release();
    },
  );

  onEveryLockBackend(
    'is not granted within the process by its last turn where another of its nodes was just removed',
    async (workspace) => {
      const holdfast = await workspace.holdfast();
      const held = await holdfast.mutex('a').acquire();
      const waiting = holdfast.multiLock(['a', 'b']).acquire({ timeoutMs: 5_000 });
      const ended = expect(waiting).rejects.toMatchObject({ code: 'LOCK_CONTENDER_EVICTED' });
      const [name] = await workspace.untilEntries('b', 1);
      // In one tick: the release is told at once, the removal comes back from the server.
      await Promise.all([holdfast.zk.delete(`/locks/b/${name}`), held.release()]);
      await ended;
    },
  );

  // Where members are taken one after another, this ends in a deadlock
  onEveryLockBackend(
    'does not deadlock, in whatever orders many clients take overlapping sets',
    async (workspace) => {
      const clients = await workspace.holdfasts(4);
      const random = seededRandom(7);
      const witnesses = new Map(['a', 'b', 'c', 'd'].map((name) => [name, new Witness()]));
      await Promise.all(
        clients.map(async (client) => {
          for (let round = 0; round < 12; round++) {
            const names = [...witnesses.keys()]
              .sort(() => (random.u32() % 2) - 0.5)
              .slice(0, 2 + (random.u32() % 2));
            await client.multiLock(names).use(
              async (lease) => {
                const entered = names.map((name) => witnesses.get(name)!.during(lease, () => turns(2)));
                await Promise.all(entered);
              },
              { timeoutMs: 20_000 },
            );
          }
        }),
      );
      for (const witness of witnesses.values()) {
        expect(witness).toMatchObject({ seenMax: 1, tokensRise: true });
      }
    },
    everyBackend,
  );

  onEveryLockBackend('joins again, as a whole, when its session ends while it waits', async (workspace) => {
    const { holdfast, expire } = await workspace.faulty();
    const held = await (await workspace.holdfast()).mutex('b').acquire();
    const waiting = holdfast.multiLock(['a', 'b']).acquire();
    await workspace.untilEntries('b', 2);
    const { session } = holdfast.zk;
    await expire();
    while (holdfast.zk.session === session) await turns();
    await workspace.untilEntries('b', 2);
    await workspace.untilEntries('a', 1);
    await held.release();
    await (await waiting).release();
  });
});

// Found by the nemesis, whose stopped processes read first that their nodes are gone, and then that the session is over.
test('a multi-lock whose session ends while it waits joins again, though it hears of its nodes first', async () => {
  await using server = await startTestServer();
  const transport = new LateTransport();
  const { connectString: servers } = server;
  await using waiter = await connect({ servers, transport, neighbours: new Neighbours() });
  await using holder = await connect({ servers, neighbours: new Neighbours() });
  const held = await holder.mutex('b').acquire();
  const acquiring = waiter.multiLock(['a', 'b']).acquire();
  acquiring.catch(() => {});
  const entries = () => holder.zk.children('/locks/a').catch(() => []);
  await until('it waits', async () => (await entries()).length === 1);
  await waiter.zk.sync(); // It watches its nodes.
  await waiter.zk.sync();
  const own = `/locks/a/${(await entries())[0]}`;
  const deleted = deferred();
  await waiter.zk.exists(own, { watch: () => deleted.resolve() });
  transport.hold(); // What it asks for now is not answered before its session is over.
  await holder.zk.delete(own);
  await deleted.promise;
  server.expireSession(waiter.zk.session.id);
  transport.deliver();
  await until('it waits again', async () => (await entries()).length === 1);
  await held.release();
  await (await acquiring).release();
});
