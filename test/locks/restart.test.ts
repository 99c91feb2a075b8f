import { describe, expect, test } from 'vitest';
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
      code: 'ZK_LOCK_UNREACHABLE',
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
