import { describe, expect, test } from 'vitest';
import { connect } from '../../src/holdfast.ts';
import { startServer } from '../../src/server.ts';
import { LockWorkspace, SUPER_DIGEST } from '../support/lock-backends.ts';
import { looseEnds } from '../support/loose-ends.ts';
import { until } from '../support/until.ts';
import { turns, Witness } from '../support/witness.ts';
import { startZooKeeper } from '../support/zookeeper-process.ts';

const OPTIONS = { tickTimeMs: 500, minSessionTimeoutMs: 1_000, superDigest: SUPER_DIGEST };

describe('a server that goes away and comes back', () => {
  // M2, S9, L4, L8, E7, E11, E13: one server, since each is a JVM
  test('with its data: holders hold, waiters are served, releases are done', async () => {
    await using _ends = looseEnds();
    await using server = await startZooKeeper(OPTIONS);
    await using workspace = await LockWorkspace.on({
      connectString: server.connectString,
      endpoints: [server],
    });
    // Long enough for the server to be back before anyone is given up.
    const clients = await workspace.holdfasts(3, { sessionTimeoutMs: 20_000 });
    const mutex = await clients[0]!.mutex('m').acquire();
    const permit = await clients[0]!.semaphore('s', { permits: 1 }).acquire();
    const leadership = await clients[0]!.election('e', { id: 'first' }).campaign();
    const witness = new Witness();
    const waiting = clients.flatMap((client) => [
      client.mutex('m').use((lease) => witness.during(lease, () => turns())),
      client.semaphore('s', { permits: 1 }).use(() => turns()),
      client.election('e').use(() => turns()),
    ]);
    await workspace.untilEntries('m', 4);
    await workspace.untilEntries('e', 4);
    await workspace.untilEntries('s/locks', 3);
    const before = await workspace.entries('m');
    const inTime = mutex.remainingMs();
    await server.kill();
    await until('everyone to know', () => clients.every(({ zk }) => zk.session.state === 'suspended'));
    // Let go while nobody can be told; and a wait that nobody waits for any more.
    const released = permit.release();
    await expect(clients[1]!.mutex('m').acquire({ timeoutMs: 100 })).rejects.toMatchObject({
      code: 'LOCK_UNREACHABLE',
    });
    await server.start();
    await released;
    await until('everyone to be back', () => clients.every(({ zk }) => zk.session.state === 'connected'));
    expect(await workspace.untilEntries('m', 4)).toEqual(before);
    expect(inTime).toBeGreaterThan(0);
    expect(await clients[2]!.election('e').leader()).toMatchObject({ id: 'first', epoch: leadership.epoch });
    await mutex.release();
    await leadership.resign();
    await Promise.all(waiting);
    expect(witness).toMatchObject({ seenMax: 1, tokensRise: true });
    await workspace.expectNoResidue();
  }, 60_000);
});

describe('a server that forgets', () => {
  // L18, E14; CURATOR-724: another server in the place of the first
  test('everything: holders are told, waiters join again', async () => {
    await using _ends = looseEnds();
    let server = await startServer({ fourLetterWords: '*', superDigest: SUPER_DIGEST });
    const { port } = server;
    try {
      await using holder = await connect({ servers: server.connectString });
      await using other = await connect({ servers: server.connectString });
      const held = await holder.mutex('m').acquire();
      const { signal } = held;
      const waiting = [other.mutex('m').acquire(), other.election('m2').campaign()];
      await (await waiting[1])!.release();
      await server.stop();
      // In memory a run is told from the one before by the second in which it began.
      const second = () => Math.floor(Date.now() / 1_000);
      const stoppedIn = second();
      await until('the next second', () => second() > stoppedIn);
      server = await startServer({ port, fourLetterWords: '*', superDigest: SUPER_DIGEST });
      const lease = await waiting[0]!;
      await until('the holder to be told', () => signal.aborted);
      expect(signal.reason).toMatchObject({ code: 'LOCK_LOST' });
      expect(lease.token).toBeGreaterThan(held.token);
      await Promise.all([held.release(), lease.release()]);
      expect(await other.zk.children('/locks/m')).toEqual([]);
    } finally {
      await server.stop();
    }
  });

  // M4: folders that are empty for a moment
  test('empty folders: locks go on, and no folder is left in the end', async () => {
    await using _ends = looseEnds();
    await using server = await startServer({ limits: { reapMs: 5 } });
    await using one = await connect({ servers: server.connectString });
    await using two = await connect({ servers: server.connectString });
    const witness = new Witness();
    await Promise.all(
      [one, two, one].map(async (holdfast) => {
        for (let round = 0; round < 25; round++) {
          await holdfast.mutex('m').use((lease) => witness.during(lease, () => turns(2)));
          await holdfast.semaphore('s', { permits: 1 }).use(() => turns(1));
          await holdfast.multiLock(['a', 'b']).use(() => turns(1));
          if (round % 5 === 0) await new Promise((resolve) => setTimeout(resolve, 12));
        }
      }),
    );
    expect(witness).toMatchObject({ seenMax: 1, tokensRise: true });
    await until('the folders to be gone', async () => (await one.list()).length === 0);
  });
});
