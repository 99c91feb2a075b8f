import { describe, expect, test } from 'vitest';
import { connect, Fence, type Holdfast, type LockLease, ZooKeeperFence } from '../../src/holdfast.ts';
import { startServer } from '../../src/server.ts';
import { startTestServer } from '../../src/testing.ts';
import { CountingTransport } from '../support/counting-transport.ts';
import { type LockWorkspace, onEveryLockBackend } from '../support/lock-backends.ts';
import { sharedStandalone } from '../support/shared-servers.ts';
import { until } from '../support/until.ts';

const FLOOR_NODE = '/holdfast/token-floor';

/** A chroot of its own on the shared ZooKeeper: a store in which nobody has locked anything. */
async function freshStore(): Promise<string> {
  await using admin = await connect({ servers: sharedStandalone().connectString });
  const { path } = await admin.zk.create('/floor-', '', { mode: 'persistent-sequential' });
  return `${sharedStandalone().connectString}${path}`;
}

/** Takes every kind of lock, and returns what each says of its token. */
async function everyToken(holdfast: Holdfast): Promise<bigint[]> {
  const { read, write, upgradable } = holdfast.readWriteLock('rw');
  const locks = [
    holdfast.mutex('m'),
    holdfast.mutex('cached', { cache: true }),
    read,
    write,
    upgradable,
    holdfast.semaphore('s', { permits: 3 }),
    holdfast.multiLock(['a', 'b']),
    holdfast.election('e'),
    holdfast.simpleLock('x'),
  ];
  const tokens: bigint[] = [];
  for (const lock of locks) {
    await using lease = await lock.acquire();
    tokens.push(lease.token);
  }
  return tokens;
}

describe('a move from the embedded server to ZooKeeper', () => {
  test('without a floor breaks every fence; with it all tokens go on above the old ones', async () => {
    await using fences = await startServer();
    await using elsewhere = await connect({ servers: fences.connectString });
    const inMemory = new Fence();
    const inAnotherStore = new ZooKeeperFence(elsewhere.zk, '/fence');
    const admit = async (token: bigint) => {
      inMemory.admit(token);
      await inAnotherStore.admit(token);
    };

    let newest: bigint;
    const old: bigint[] = [];
    {
      await using embedded = await startServer();
      await using before = await connect({ servers: embedded.connectString });
      for (const token of await everyToken(before)) {
        await admit(token);
        old.push(token);
      }
      newest = (await before.tokens()).newest;
    }
    expect(old.every((token) => token <= newest)).toBe(true);

    const servers = await freshStore();
    await using first = await connect({ servers });
    const refused = await first.mutex('m').acquire();
    await expect(inAnotherStore.admit(refused.token)).rejects.toMatchObject({ code: 'LOCK_STALE_TOKEN' });
    await refused.release();

    expect(await first.raiseTokens(newest)).toMatchObject({ floor: newest });
    await using second = await connect({ servers });
    for (const holdfast of [first, second]) {
      for (const token of await everyToken(holdfast)) {
        expect(token).toBeGreaterThan(newest);
        await admit(token);
      }
    }
    for (const token of [...old, refused.token]) {
      expect(() => inMemory.admit(token)).toThrow('stale');
      await expect(inAnotherStore.admit(token)).rejects.toMatchObject({ code: 'LOCK_STALE_TOKEN' });
    }
  });

  test('and back again, and on: tokens rise from each store to the next', async () => {
    const fence = new Fence();
    let newest = 0n;
    for (let move = 0; move < 4; move++) {
      await using embedded = move % 2 === 0 ? await startServer() : undefined;
      await using holdfast = await connect({ servers: embedded?.connectString ?? (await freshStore()) });
      await holdfast.raiseTokens(newest);
      for (const token of await everyToken(holdfast)) {
        expect(token).toBeGreaterThan(newest);
        fence.admit(token);
      }
      newest = (await holdfast.tokens()).newest;
    }
  });
});

describe('the floor of tokens', () => {
  onEveryLockBackend(
    'holds from the next entry on, for sessions that know the old one',
    async (workspace) => {
      const [one, other] = await workspace.holdfasts(2);
      const before = await one!.mutex('m').acquire();
      await (await other!.mutex('n').acquire()).release();
      const waiting = other!.mutex('m').acquire();
      await workspace.untilEntries('m', 2);
      const above = before.token + 2n ** 40n;
      await one!.raiseTokens(above);
      const behind = one!.mutex('m').acquire();
      await workspace.untilEntries('m', 3);
      await expectAgreed(workspace, 'm', [before]);
      await before.release();
      // In the queue before the floor was set, and before all that is above it.
      const waited = await waiting;
      expect(waited.token).toBeGreaterThan(before.token);
      expect(waited.token).toBeLessThan(above);
      await expectAgreed(workspace, 'm', [waited]);
      await waited.release();
      const last = await behind;
      expect(last.token).toBeGreaterThan(above);
      await expectAgreed(workspace, 'm', [last]);
      // A second one, while that is held.
      const higher = above + 2n ** 41n;
      await other!.raiseTokens(higher);
      await expectAgreed(workspace, 'm', [last]);
      await using _unaffected = await other!.mutex('n').acquire();
      expect(_unaffected.token).toBeGreaterThan(higher);
      await expectAgreed(workspace, 'n', [_unaffected]);
      await last.release();
    },
  );

  onEveryLockBackend('is in all that shows a token', async (workspace) => {
    const holdfast = await workspace.holdfast();
    await holdfast.raiseTokens(2n ** 50n);
    const heard: bigint[] = [];
    const lock = holdfast.mutex('m');
    lock.on('lockAcquired', ({ lease }) => heard.push(lease.token));
    await using lease = await lock.acquire();
    expect(heard).toEqual([lease.token]);
    const { holders } = await holdfast.inspect('m');
    expect(holders[0]!.token).toBe(lease.token);
    expect((await holdfast.list()).find(({ name }) => name === 'm')!.holders[0]!.token).toBe(lease.token);
    const record = await holdfast.forceRelease('m', { holder: holders[0]!.id, reason: 'test' });
    expect(record.token).toBe(lease.token);
    expect((await holdfast.audit('m')).at(-1)!.token).toBe(lease.token);

    const election = holdfast.election('e');
    await using leadership = await election.campaign();
    expect(leadership.epoch).toBeGreaterThan(2n ** 50n);
    expect((await election.leader())!.epoch).toBe(leadership.epoch);
    await using simple = await holdfast.simpleLock('x').acquire();
    expect((await holdfast.inspect('x')).holders[0]!.token).toBe(simple.token);
    await using permit = await holdfast.semaphore('s', { permits: 2 }).acquire({ permits: 2 });
    const shown = (await holdfast.inspect('s')).holders;
    expect(shown.map(({ token }) => token)).toEqual([permit.token, permit.token]);
    await using write = await holdfast.readWriteLock('rw').write.acquire();
    const { token } = write;
    await using read = await holdfast.readWriteLock('rw').downgrade(write);
    expect(read.token).toBe(token);
  });

  onEveryLockBackend('is raised by nothing that is below what was given already', async (workspace) => {
    const [one, other] = await workspace.holdfasts(2);
    const { floor, newest } = await one!.tokens();
    expect(floor).toBe(0n);
    await using lease = await one!.mutex('m').acquire();
    expect(lease.token).toBeGreaterThan(newest);
    expect(await one!.raiseTokens(lease.token)).toMatchObject({ floor: 0n });
    expect(await one!.zk.exists(FLOOR_NODE)).toBeUndefined();
    const above = lease.token + 2n ** 50n;
    const states = await Promise.all([one!.raiseTokens(above), other!.raiseTokens(2n * above)]);
    expect(states.every((state) => state.floor >= above)).toBe(true);
    expect((await other!.tokens()).floor).toBe(2n * above);
  });

  onEveryLockBackend('is read once for each session, with the first entry', async (workspace) => {
    const transport = new CountingTransport();
    await using holdfast = await workspace.holdfast({ transport });
    for (const name of ['a', 'b', 'c']) await (await holdfast.mutex(name).acquire()).release();
    const count = () => transport.traffic.requests.filter((each) => each === 'exists').length;
    expect(count()).toBe(1);
    const { writeCount } = transport.traffic;
    expect(writeCount).toBe(3 * 3); // No round trip for it: one each to join, to make the folder and join, to leave.
  });

  test.each([
    ['a text', 'high'],
    ['a number without a list', '{"floor":"7"}'],
    ['one beyond 2^62', `{"floor":"${2n ** 62n + 1n}","earlier":[]}`],
    ['one that is not the highest', '{"floor":"7","earlier":[{"floor":"8","since":"1"}]}'],
    ['nothing', ''],
  ])('that is %s grants nothing', async (_what, data) => {
    await using server = await startTestServer();
    await using holdfast = await connect({ servers: server.connectString });
    await holdfast.zk.ensurePath('/holdfast');
    await holdfast.zk.create(FLOOR_NODE, data);
    await expect(holdfast.mutex('m').acquire()).rejects.toMatchObject({ code: 'ZK_FOREIGN_DATA' });
    await expect(holdfast.simpleLock('x').acquire()).rejects.toMatchObject({ code: 'ZK_FOREIGN_DATA' });
    await expect(holdfast.raiseTokens(9n)).rejects.toMatchObject({ code: 'ZK_FOREIGN_DATA' });
    await until('nothing to be left', async () =>
      (await holdfast.zk.children('/locks')).every((name) => name === 'm'),
    );
    expect(await holdfast.zk.children('/locks/m')).toEqual([]);
  });
});

async function expectAgreed(workspace: LockWorkspace, name: string, leases: LockLease[]): Promise<void> {
  await using looker = await workspace.holdfast();
  const { holders } = await looker.inspect(name);
  expect(holders.map(({ token }) => token)).toEqual(leases.map(({ token }) => token));
}
