import { describe, expect } from 'vitest';
import { LockTimeoutError } from '../../src/holdfast.ts';
import { ServerError } from '../../src/zookeeper.ts';
import { everyBackend, onEveryLockBackend } from '../support/lock-backends.ts';
import { until } from '../support/until.ts';
import { turns, Witness } from '../support/witness.ts';

const ANYONE = { scheme: 'world', id: 'anyone' } as const;

describe('a mutex', () => {
  // M1, M5
  onEveryLockBackend(
    'is held inside its scope and free after it',
    async (workspace) => {
      const holdfast = await workspace.holdfast();
      const lock = holdfast.mutex('m');
      {
        await using lease = await lock.acquire({ timeoutMs: 5_000 });
        lease.assertHeld();
        expect(lease.remainingMs()).toBeGreaterThan(0);
        expect(await workspace.entries('m')).toHaveLength(1);
      }
      expect(await workspace.entries('m')).toEqual([]);
    },
    everyBackend,
  );

  // M6; kazoo: many threads get it one by one, and reacquire after release
  onEveryLockBackend('lets tasks of one process in one at a time, in order of arrival', async (workspace) => {
    const lock = (await workspace.holdfast()).mutex('m');
    const first = await lock.acquire();
    const order: number[] = [];
    const witness = new Witness();
    const rounds = [0, 1, 2, 3, 4, 5, 6, 7, 8].map(async (number) => {
      for (const round of [0, 1]) {
        await using lease = await lock.acquire();
        order.push(round * 10 + number);
        await witness.during(lease, () => turns());
      }
    });
    await workspace.untilEntries('m', 10);
    expect(order).toEqual([]);
    await first.release();
    await Promise.all(rounds);
    expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 16, 17, 18]);
    expect(witness).toMatchObject({ seenMax: 1, tokensRise: true });
  });

  // M9; ZooKeeper's WriteLock: three locks, only the first owns, unlock passes to the second
  onEveryLockBackend(
    'passes from client to client in order of arrival',
    async (workspace) => {
      const clients = await workspace.holdfasts(4);
      const witness = new Witness();
      const order: number[] = [];
      const first = await clients[0]!.mutex('m').acquire();
      const waiting: Promise<void>[] = [];
      for (const [index, client] of clients.entries()) {
        waiting.push(
          client.mutex('m').use(async (lease) => {
            order.push(index);
            await witness.during(lease, () => turns());
          }),
        );
        await workspace.untilEntries('m', index + 2);
      }
      expect(order).toEqual([]);
      await first.release();
      await Promise.all(waiting);
      expect(order).toEqual([0, 1, 2, 3]);
      expect(witness).toMatchObject({ seenMax: 1, tokensRise: true });
      expect(witness.tokens[0]).toBeGreaterThan(first.token);
    },
    everyBackend,
  );

  // kazoo: non-blocking fails and leaves only the holder; many threads, exactly one non-blocking winner
  onEveryLockBackend(
    'is tried without queueing: one of many wins, and the rest leave nothing',
    async (workspace) => {
      const clients = await workspace.holdfasts(5);
      const attempts = clients.map((client) => client.mutex('m').tryAcquire());
      const won = (await Promise.all(attempts)).filter((lease) => lease !== null);
      expect(won.length).toBeLessThanOrEqual(1);
      await Promise.all(won.map((lease) => lease.release()));
      await using held = (await clients[0]!.mutex('m').tryAcquire())!;
      held.assertHeld();
      for (const client of clients) expect(await client.mutex('m').tryAcquire()).toBeNull();
      expect(await clients[1]!.mutex('m').attempt()).toEqual({ ok: false, reason: 'busy' });
      expect(await workspace.entries('m')).toHaveLength(1);
    },
  );

  // kazoo: timeout raises and leaves nothing; a second acquire of a held lock is another contender
  onEveryLockBackend('gives up after its time, leaves the queue, and goes on to work', async (workspace) => {
    const holdfast = await workspace.holdfast();
    const lock = holdfast.mutex('m');
    const held = await lock.acquire();
    const error = await lock.acquire({ timeoutMs: 1_000 }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(LockTimeoutError);
    const [holder] = await workspace.untilEntries('m', 1);
    expect(error).toMatchObject({ ahead: 1, behind: holder });
    expect(await lock.attempt({ timeoutMs: 50 })).toEqual({ ok: false, reason: 'timeout' });
    const gaveUp = new AbortController();
    const waiting = lock.acquire({ signal: gaveUp.signal });
    let granted = false;
    const behind = lock.acquire().then((lease) => {
      granted = true;
      return lease;
    });
    await workspace.untilEntries('m', 3);
    // Neighbours of one process: no batons, and the server watches over who waits for longer.
    await until('all watches', async () => (await workspace.watchedPaths()).length === 3);
    gaveUp.abort(new Error('changed my mind'));
    await expect(waiting).rejects.toThrow('changed my mind');
    await workspace.untilEntries('m', 2);
    await until('the one behind to look', async () => (await workspace.watchedPaths()).length === 2);
    expect(granted).toBe(false); // The one ahead has gone, the holder has not.
    held.assertHeld();
    await held.release();
    await (await behind).release();
    const again = await lock.attempt({ timeoutMs: 5_000 });
    expect(again.ok).toBe(true);
    if (again.ok) await again.lease.release();
  });

  // kazoo: contenders list order
  onEveryLockBackend('shows who holds it and who waits, in order', async (workspace) => {
    const clients = await Promise.all(
      ['a', 'b', 'c'].map((app) => workspace.holdfast({ app, labels: { team: app } })),
    );
    expect(await clients[0]!.inspect('m')).toMatchObject({ kind: 'free', holders: [], queue: [] });
    const held = await clients[0]!.mutex('m').acquire({ reason: 'first' });
    const waiting = [];
    for (const [index, client] of clients.slice(1).entries()) {
      waiting.push(client.mutex('m').acquire());
      await workspace.untilEntries('m', index + 2);
    }
    const info = await clients[2]!.inspect('m');
    expect(info).toMatchObject({ name: 'm', kind: 'mutex', foreign: [] });
    expect(info.holders).toMatchObject([
      { token: held.token, session: clients[0]!.zk.session.id, owner: { app: 'a', reason: 'first' } },
    ]);
    expect(info.queue.map(({ owner }) => owner.labels?.['team'])).toEqual(['b', 'c']);
    expect((await clients[0]!.list()).map(({ name }) => name)).toEqual(['m']);
    await held.release();
    for (const turn of waiting) await (await turn).release();
  });

  // M4; "tokens still rise" where numbers begin again
  onEveryLockBackend('goes on with larger tokens when its empty folder was removed', async (workspace) => {
    const lock = (await workspace.holdfast()).mutex('m');
    const tokens: bigint[] = [];
    const numbers: string[] = [];
    for (let round = 0; round < 3; round++) {
      await using lease = await lock.acquire();
      tokens.push(lease.token);
      numbers.push((await workspace.entries('m'))[0]!.slice(-10));
      await lease.release();
      await workspace.admin.delete('/locks/m');
    }
    expect(numbers).toEqual(['0000000000', '0000000000', '0000000000']);
    expect(tokens[1]).toBeGreaterThan(tokens[0]!);
    expect(tokens[2]).toBeGreaterThan(tokens[1]!);
  });

  // M15, M16
  onEveryLockBackend('gives its folders and its nodes the access lists it was given', async (workspace) => {
    const acl = [{ ...ANYONE, permissions: ['read', 'write'] }] as const;
    const folderAcl = [{ ...ANYONE, permissions: ['read', 'create', 'delete'] }] as const;
    const holdfast = await workspace.holdfast({ acl, folderAcl });
    await using _lease = await holdfast.mutex('m').acquire();
    const [entry] = await workspace.entries('m');
    expect((await workspace.admin.getAcl(`/locks/m/${entry}`)).acl).toEqual(acl);
    expect((await workspace.admin.getAcl('/locks/m')).acl).toEqual(folderAcl);
    expect((await workspace.admin.getAcl('/locks')).acl).toEqual(folderAcl);
  });

  // M13: what comes after the creation fails
  onEveryLockBackend('leaves nothing behind when the folder may not be listed', async (workspace) => {
    const holdfast = await workspace.holdfast();
    await workspace.admin.create('/locks');
    const acl = [{ ...ANYONE, permissions: ['create', 'delete', 'admin'] }] as const;
    await workspace.admin.create('/locks/m', '', { acl });
    await expect(holdfast.mutex('m').acquire()).rejects.toMatchObject({ code: 'ZK_NO_AUTH' });
    await workspace.admin.setAcl('/locks/m', [{ ...ANYONE, permissions: ['all'] }] as never);
    await workspace.untilEntries('m', 0);
    await (await holdfast.mutex('m').acquire()).release();
  });

  // L23's kind: no right to create
  onEveryLockBackend('says that it may not join', async (workspace) => {
    const holdfast = await workspace.holdfast();
    await workspace.admin.create('/locks', '', { acl: [{ ...ANYONE, permissions: ['read'] }] });
    await expect(holdfast.mutex('m').acquire()).rejects.toBeInstanceOf(ServerError);
    await expect(holdfast.mutex('m').attempt()).rejects.toMatchObject({ code: 'ZK_NO_AUTH' });
  });
});
