import { describe, expect, test } from 'vitest';
import { LockWorkspace } from '../support/lock-backends.ts';
import { looseEnds } from '../support/loose-ends.ts';
import { startStuckCounterServer } from '../support/stuck-counter-server.ts';
import { until } from '../support/until.ts';
import { turns, Witness } from '../support/witness.ts';

/** From ZooKeeper 3.6 on, numbers end at 2147483647, which then everyone gets. Curator and kazoo let two in. */
const LAST = '2147483647';

describe('where the counter is stuck', () => {
  test('a mutex is held by one at a time, in order of arrival', async () => {
    await using _ends = looseEnds();
    await using server = await startStuckCounterServer();
    await using workspace = await LockWorkspace.on(server);
    const clients = await workspace.holdfasts(4);
    await workspace.admin.ensurePath('/locks/m');
    server.setCounter(`${workspace.root}/locks/m`, 3);
    const first = await clients[0]!.mutex('m').acquire();
    const witness = new Witness();
    const order: number[] = [];
    const waiting: Promise<void>[] = [];
    for (let index = 0; index < 12; index++) {
      waiting.push(
        clients[index % 4]!.mutex('m').use(async (lease) => {
          order.push(index);
          await witness.during(lease, () => turns());
        }),
      );
      await workspace.untilEntries('m', index + 2);
    }
    const names = await workspace.entries('m');
    expect(names.filter((name) => name.endsWith(LAST))).toHaveLength(10);
    expect((await clients[0]!.inspect('m')).queue).toHaveLength(12);
    await first.release();
    await Promise.all(waiting);
    expect(order).toEqual(waiting.map((_, index) => index));
    expect(witness).toMatchObject({ seenMax: 1, tokensRise: true });
    expect(await clients[1]!.mutex('m').tryAcquire()).toMatchObject({ lockName: 'm' });
  });

  test('a writer excludes, also beside its own reader', async () => {
    await using _ends = looseEnds();
    await using server = await startStuckCounterServer();
    await using workspace = await LockWorkspace.on(server);
    const [one, two] = await workspace.holdfasts(2);
    await workspace.admin.ensurePath('/locks/c');
    server.setCounter(`${workspace.root}/locks/c`, 0);
    const write = await one!.readWriteLock('c').write.acquire();
    let writing = false;
    const next = two!.readWriteLock('c').write.use(async () => {
      writing = true;
    });
    await workspace.untilEntries('c', 2);
    const read = await one!.readWriteLock('c').downgrade(write);
    await turns(20);
    expect(writing).toBe(false);
    await read.release();
    await next;
    await workspace.expectNoResidue();
  });

  test('a semaphore gives several permits, and never too many', async () => {
    await using _ends = looseEnds();
    await using server = await startStuckCounterServer();
    await using workspace = await LockWorkspace.on(server);
    const clients = await workspace.holdfasts(3);
    for (const folder of ['locks', 'leases']) {
      await workspace.admin.ensurePath(`/locks/s/${folder}`);
      server.setCounter(`${workspace.root}/locks/s/${folder}`, 1);
    }
    let used = 0;
    let usedMax = 0;
    await Promise.all(
      clients.map(async (client) => {
        for (let round = 0; round < 5; round++) {
          await using _lease = await client.semaphore('s', { permits: 3 }).acquire({ permits: 2 });
          used += 2;
          usedMax = Math.max(usedMax, used);
          await turns(2);
          used -= 2;
        }
      }),
    );
    expect(usedMax).toBe(2);
    await workspace.expectNoResidue();
  });

  test('a multi-lock waits for no deadlock, an election has one leader', async () => {
    await using _ends = looseEnds();
    await using server = await startStuckCounterServer();
    await using workspace = await LockWorkspace.on(server);
    const clients = await workspace.holdfasts(3);
    for (const name of ['a', 'b', 'e']) {
      await workspace.admin.ensurePath(`/locks/${name}`);
      server.setCounter(`${workspace.root}/locks/${name}`, 1);
    }
    const witness = new Witness();
    const leaders = new Witness();
    await Promise.all(
      clients.map(async (client, index) => {
        for (let round = 0; round < 4; round++) {
          const names = index % 2 === 0 ? ['a', 'b'] : ['b', 'a'];
          await client.multiLock(names).use((lease) => witness.during(lease, () => turns(2)));
          await client.election('e').use((lease) => leaders.during(lease, () => turns(2)));
        }
      }),
    );
    expect(witness).toMatchObject({ seenMax: 1, tokensRise: true });
    expect(leaders).toMatchObject({ seenMax: 1, tokensRise: true });
    await until('no leader', async () => (await clients[0]!.election('e').leader()) === undefined);
    await workspace.expectNoResidue();
  });
});
