import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type LockLease, ZooKeeperFence } from '../../src/holdfast.ts';
import { LockWorkspace, SUPER_DIGEST } from '../support/lock-backends.ts';
import { looseEnds } from '../support/loose-ends.ts';
import { until } from '../support/until.ts';
import { turns, Witness } from '../support/witness.ts';
import { startEnsemble, type ZooKeeperEnsemble } from '../support/zookeeper-ensemble.ts';

/** How often the follower is cut off: HOLDFAST_ISOLATION_ROUNDS=20 for more. */
const ROUNDS = Number(process.env['HOLDFAST_ISOLATION_ROUNDS'] ?? 1);
/** HOLDFAST_ISOLATION_STOCK=1: with the times of a stock ensemble, and the shortest session there is. */
const STOCK = process.env['HOLDFAST_ISOLATION_STOCK'] !== undefined;
const TICK_MS = STOCK ? 2_000 : 500;
/** A follower goes on answering by itself for so many ticks after it was cut off. */
const SYNC_LIMIT_TICKS = STOCK ? 5 : 30;
const SESSION_MS = 2 * TICK_MS;

let ensemble: ZooKeeperEnsemble;

beforeAll(async () => {
  const options = { tickTimeMs: TICK_MS, syncLimitTicks: SYNC_LIMIT_TICKS, superDigest: SUPER_DIGEST };
  ensemble = await startEnsemble({ ...options, severable: true });
});
afterEach(async () => {
  ensemble.heal();
  await ensemble.start();
  await ensemble.waitUntilServing();
});
afterAll(() => ensemble[Symbol.asyncDispose]());

function workspace(): Promise<LockWorkspace> {
  return LockWorkspace.on({ connectString: ensemble.connectString, endpoints: ensemble.servers });
}

/** Notes when a lease ends by its own clock, when it was told, and the longest time nothing could be noted. */
function watchLease(lease: LockLease): Disposable & {
  readonly leaseEndMs: number;
  readonly lostAtMs: number;
  readonly longestTurnMs: number;
} {
  const noted = { leaseEndMs: Number.NaN, lostAtMs: Number.POSITIVE_INFINITY, longestTurnMs: 0 };
  let lastMs = performance.now();
  const look = () => {
    const nowMs = performance.now();
    const remainingMs = lease.remainingMs();
    if (remainingMs > 0) noted.leaseEndMs = nowMs + remainingMs;
    noted.longestTurnMs = Math.max(noted.longestTurnMs, nowMs - lastMs);
    lastMs = nowMs;
  };
  look();
  const timer = setInterval(look, 10);
  lease.signal.addEventListener('abort', () => {
    noted.lostAtMs = performance.now();
  });
  return Object.assign(noted, { [Symbol.dispose]: () => clearInterval(timer) });
}

describe('a follower that is cut off from its leader', () => {
  // Connected is not holding: the follower answers by itself for seconds after others may have the lock.
  test(
    'tells nothing to the holder it serves, who knows that the lock is lost before another has it',
    async () => {
      await using _ends = looseEnds();
      await using space = await workspace();
      const marginsMs: number[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        const [follower] = await ensemble.followers();
        const majority = ensemble.servers.filter((server) => server !== follower);
        const at = (servers: readonly { connectString: string }[]) =>
          `${servers.map(({ connectString }) => connectString).join(',')}${space.root}`;
        const holder = await space.holdfast({
          servers: at([follower!]),
          sessionTimeoutMs: SESSION_MS,
          lease: { touchLagMs: TICK_MS / 2 },
        });
        const bystander = await space.holdfast({ servers: at([follower!]) });
        const other = await space.holdfast({ servers: at(majority) });

        const lease = await holder.mutex('m').acquire();
        const path = `/locks/m/${(await space.entries('m'))[0]}`;
        const fence = new ZooKeeperFence(bystander.zk, '/fences/m');
        await fence.admit(lease.token);
        using watched = watchLease(lease);
        const waiting = other.mutex('m').acquire();
        await space.untilEntries('m', 2);
        ensemble.isolate(follower!);
        const next = await waiting;
        const grantedAtMs = performance.now();

        expect(lease.remainingMs()).toBe(0);
        marginsMs.push(grantedAtMs - watched.leaseEndMs);
        expect(watched.leaseEndMs).toBeLessThan(grantedAtMs);
        // This process hears of both: one that stood still meanwhile may hear of the grant first.
        if (watched.longestTurnMs < 100) expect(watched.lostAtMs).toBeLessThan(grantedAtMs);
        await until('the holder to be told', () => watched.lostAtMs < Number.POSITIVE_INFINITY);
        expect(lease.signal.reason).toMatchObject({ code: 'LOCK_LOST' });
        expect(next.token).toBeGreaterThan(lease.token);
        // The fault was real: a client that is content with pings has seen nothing of it, nor has its server.
        expect(bystander.zk.session.state).toBe('connected');
        expect(await bystander.zk.exists(path), 'the lost node, as the follower has it').toBeDefined();
        // Its fence still has the old token as the largest: what it says decides nothing.
        await new ZooKeeperFence(other.zk, '/fences/m').admit(next.token);
        expect(String((await bystander.zk.get('/fences/m')).data)).toBe(String(lease.token));
        const late = fence.admit(lease.token).then(
          () => 'admitted',
          ({ code }) => code,
        );

        await next.release();
        ensemble.heal();
        expect(await late).toMatch(/^ZK_(STALE_TOKEN|CONNECTION_LOSS|SESSION_LOST)$/);
        await Promise.all([holder, bystander, other].map((each) => each.close()));
        await ensemble.waitUntilServing();
        await until('the follower to follow', async () => (await ensemble.followers()).length === 2);
      }
      if (ROUNDS > 1) {
        const sorted = marginsMs.sort((a, b) => a - b).map(Math.round);
        console.log(`leases had ended before the next grant by ${sorted.join(', ')} ms`);
      }
    },
    30_000 + ROUNDS * 30_000,
  );
});

describe('a member of the ensemble that is killed', () => {
  // M2, L4, E11: the leader, and then one that followed it
  test('under held locks and waiters costs nobody a lock or a place', async () => {
    await using _ends = looseEnds();
    await using space = await workspace();
    const clients = await space.holdfasts(4, { sessionTimeoutMs: 20_000 });
    const mutex = await clients[0]!.mutex('m').acquire();
    const permits = await clients[1]!.semaphore('s', { permits: 2 }).acquire({ permits: 2 });
    const writing = await clients[2]!.readWriteLock('rw').write.acquire();
    const leadership = await clients[3]!.election('e', { id: 'first' }).campaign();
    const held = [mutex, permits, writing, leadership];

    const witness = new Witness();
    const order: number[] = [];
    const waiting: Promise<unknown>[] = [];
    for (const [index, client] of [...clients, ...clients].entries()) {
      waiting.push(
        client.mutex('m').use((lease) => {
          order.push(index);
          return witness.during(lease, () => turns());
        }),
      );
      await space.untilEntries('m', 2 + index);
    }
    const others = clients.flatMap((client) => [
      client.semaphore('s', { permits: 2 }).use(() => turns()),
      client.readWriteLock('rw').write.use(() => turns()),
      client.election('e').use(() => turns()),
    ]);
    await Promise.all([
      space.untilEntries('s/locks', 4),
      space.untilEntries('rw', 5),
      space.untilEntries('e', 5),
    ]);
    const folders = ['m', 'rw', 'e', 's/locks', 's/leases'];
    const queues = () => Promise.all(folders.map((name) => space.entries(name)));
    const before = await queues();

    const leader = await ensemble.leader();
    for (const victim of [leader, ensemble.servers.find((server) => server !== leader)!]) {
      await victim.kill();
      await until('everyone to be connected', async () => {
        const answers = clients.map(({ zk }) => zk.exists('/locks', { timeoutMs: 1_000 }));
        return (await Promise.allSettled(answers)).every(({ status }) => status === 'fulfilled');
      });
      expect(await queues()).toEqual(before);
      for (const lease of held) lease.assertHeld();
      await victim.start();
      await victim.waitUntilServing();
    }

    await Promise.all(held.map((lease) => lease.release()));
    await Promise.all([...waiting, ...others]);
    expect(witness).toMatchObject({ seenMax: 1, tokensRise: true });
    expect(order).toEqual(order.toSorted((a, b) => a - b));
    expect(order).toHaveLength(2 * clients.length);
    expect(witness.tokens[0]).toBeGreaterThan(mutex.token);
    await space.expectNoResidue();
  }, 90_000);
});
