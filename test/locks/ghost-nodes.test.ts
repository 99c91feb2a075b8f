import { expect, test } from 'vitest';
import { FaultProxy } from '../../src/testing.ts';
import { connect } from '../../src/zookeeper.ts';
import { hauntFollower } from '../support/ghost-node.ts';
import { LockWorkspace, SHORT_SESSION_MS, SUPER_DIGEST } from '../support/lock-backends.ts';
import { looseEnds } from '../support/loose-ends.ts';
import { startEnsemble } from '../support/zookeeper-ensemble.ts';

const UUID = '00000000-0000-4000-8000-000000000000';
const GHOSTS = [
  `m/_c_${UUID}-lock-0000000000`,
  `rw/_c_${UUID}-__WRIT__0000000000`,
  `s/leases/_c_${UUID}-lease-0000000000`,
];

// Seen in an hour of faults: a follower that had crashed showed nodes that its leader had deleted long before.
test('entries that only one follower has keep nobody waiting for long', async () => {
  await using _ends = looseEnds();
  await using ensemble = await startEnsemble({ superDigest: SUPER_DIGEST });
  await using space = await LockWorkspace.on({
    connectString: ensemble.connectString,
    endpoints: ensemble.servers,
  });
  const [follower] = await ensemble.followers();
  const sound = ensemble.servers.filter((server) => server !== follower);
  const proxies = await Promise.all(sound.map((target) => FaultProxy.start({ target })));
  await using _proxies = { [Symbol.asyncDispose]: () => disposeAll(proxies) };
  const at = (servers: readonly { connectString: string }[]) =>
    `${servers.map(({ connectString }) => connectString).join(',')}${space.root}`;

  const far = await space.holdfast({ servers: at(sound) });
  const locksOf = (holdfast: typeof far) => [
    holdfast.mutex('m'),
    holdfast.readWriteLock('rw').read,
    holdfast.semaphore('s', { permits: 1 }),
  ];
  for (const lock of locksOf(far)) await (await lock.acquire()).release();
  await hauntFollower(
    follower!,
    GHOSTS.map((ghost) => `${space.root}/locks/${ghost}`),
  );

  for (const proxy of proxies) proxy.refuse();
  const near = await space.holdfast({
    servers: at([follower!, ...proxies]),
    sessionTimeoutMs: SHORT_SESSION_MS,
  });
  for (const proxy of proxies) proxy.heal();
  const { session } = near.zk;
  const reasons: string[] = [];
  near.zk.on('suspended', ({ error }) => reasons.push(String(error)));

  // The fault is real: the follower shows them, and the others do not.
  await using witness = await connect(at([follower!]));
  for (const ghost of GHOSTS) {
    expect(await witness.exists(`/locks/${ghost}`)).toBeDefined();
    expect(await far.zk.exists(`/locks/${ghost}`)).toBeUndefined();
  }
  const leases = await Promise.all(locksOf(near).map((lock) => lock.acquire({ timeoutMs: 15_000 })));
  for (const lease of leases) await lease.release();
  expect(near.zk.session).toBe(session);
  expect(reasons).toEqual([
    expect.stringMatching(/^Error: \/locks\/.* is shown by this server, and unknown to its leader$/),
  ]);
  expect(proxies.reduce((sum, proxy) => sum + proxy.connectionCount, 0)).toBe(1);
}, 90_000);

async function disposeAll(proxies: readonly FaultProxy[]): Promise<void> {
  await Promise.all(proxies.map((proxy) => proxy[Symbol.asyncDispose]()));
}
