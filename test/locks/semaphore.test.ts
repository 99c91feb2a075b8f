import { describe, expect } from 'vitest';
import { ContenderEvictedError, type Holdfast, LockTimeoutError } from '../../src/holdfast.ts';
import { waitGraph } from '../../src/locks/wait-graph.ts';
import { seededRandom } from '../../src/testing.ts';
import { onEveryLockBackend } from '../support/lock-backends.ts';
import { until } from '../support/until.ts';
import { turns, Witness } from '../support/witness.ts';

const at = (holdfast: Holdfast, permits: number) => holdfast.semaphore('s', { permits });

describe('a semaphore', () => {
  // S1, S2, S12
  onEveryLockBackend(
    'has as many holders as permits, and one more when one is returned',
    async (workspace) => {
      const clients = await workspace.holdfasts(4);
      const held = await Promise.all(clients.slice(0, 3).map((client) => at(client, 3).acquire()));
      expect(await at(clients[3]!, 3).tryAcquire()).toBeNull();
      await expect(at(clients[3]!, 3).acquire({ timeoutMs: 100 })).rejects.toBeInstanceOf(LockTimeoutError);
      const waiting = at(clients[3]!, 3).acquire();
      await until(
        'the waiter to have its node',
        async () => (await workspace.entries('s/leases')).length === 4,
      );
      const info = await clients[0]!.inspect('s');
      expect(info).toMatchObject({ kind: 'semaphore', foreign: [] });
      expect(info.holders.map(({ token }) => token).sort()).toEqual(
        held.map(({ token }) => token as bigint).sort(),
      );
      expect(info.queue).toHaveLength(1);
      await held[1]!.release();
      const late = await waiting;
      for (const lease of [...held, late]) await lease.release();
    },
  );

  onEveryLockBackend(
    'held by some tasks of one process while others wait shows each of them',
    async (workspace) => {
      const [holdfast, operator] = await workspace.holdfasts(2);
      const tasks = Array.from({ length: 5 }, () => at(holdfast!, 3).acquire());
      const leases = await Promise.all(tasks.slice(0, 3));
      await until(
        'the fourth to have its node',
        async () => (await workspace.entries('s/leases')).length === 4,
      );
      const info = await operator!.inspect('s');
      expect(info.holders.map(({ token }) => token)).toEqual(leases.map(({ token }) => token));
      expect(info.queue).toHaveLength(2);
      expect(await operator!.list()).toEqual([info]);
      const [graph] = waitGraph([info]).waits;
      expect(graph?.blockers).toEqual(info.holders);
      expect(await operator!.revoke('s')).toBe(3);
      await until('all three to be asked', () => leases.every(({ revocation }) => revocation.aborted));
      const { id } = info.holders[1]!;
      await operator!.forceRelease('s', { holder: id, reason: 'it is stuck' });
      await tasks[3];
      await leases[0]!.release();
      await tasks[4];
      expect((await operator!.inspect('s')).holders).toHaveLength(3);
      for (const task of tasks) await (await task).release();
    },
  );

  // S3, S4
  onEveryLockBackend('is used by all who want it, and to the full', async (workspace) => {
    const clients = await workspace.holdfasts(5);
    for (const permits of [1, 3]) {
      const witness = new Witness();
      const rounds = [...clients, ...clients].map(async (client) => {
        await using lease = await client.semaphore(`s${permits}`, { permits }).acquire({ timeoutMs: 20_000 });
        await witness.during(lease, async () => {
          await until('the others', () => witness.seenMax === permits || witness.tokens.length >= permits);
          await turns(5);
        });
      });
      await Promise.all(rounds);
      expect(witness.tokens).toHaveLength(10);
      expect(witness.seenMax).toBe(permits);
    }
  });

  // S5, S6
  onEveryLockBackend('gives several permits at once, all or none, and never too many', async (workspace) => {
    const clients = await workspace.holdfasts(4);
    const random = seededRandom(5);
    let used = 0;
    let usedMax = 0;
    await Promise.all(
      clients.map(async (client) => {
        for (let round = 0; round < 12; round++) {
          const permits = 1 + (random.u32() % 4);
          await using _lease = await at(client, 5).acquire({ permits, timeoutMs: 20_000 });
          used += permits;
          usedMax = Math.max(usedMax, used);
          await turns(random.u32() % 4);
          used -= permits;
        }
      }),
    );
    expect(used).toBe(0);
    expect(usedMax).toBeLessThanOrEqual(5);
    expect(usedMax).toBeGreaterThan(1);
  });

  onEveryLockBackend(
    'serves in order of arrival: many permits are not passed by for few',
    async (workspace) => {
      const [one, two, three] = await workspace.holdfasts(3);
      const held = await at(one!, 3).acquire({ permits: 2 });
      const order: string[] = [];
      const big = at(two!, 3).use(async () => order.push('big'), { permits: 3 });
      await until('the big one', async () => (await workspace.entries('s/leases')).length === 5);
      const small = at(three!, 3).use(async () => order.push('small'));
      await until('the small one', async () => (await workspace.entries('s/locks')).length === 2);
      expect(await at(one!, 3).tryAcquire()).toBeNull();
      await held.release();
      await Promise.all([big, small]);
      expect(order).toEqual(['big', 'small']);
    },
  );

  // S7
  onEveryLockBackend('is free when its holder closes its client', async (workspace) => {
    const [one, two] = await workspace.holdfasts(2);
    const held = await at(one!, 1).acquire();
    const waiting = at(two!, 1).acquire();
    await until('the waiter', async () => (await workspace.entries('s/leases')).length === 2);
    const lost = new Promise((resolve) => held.signal.addEventListener('abort', resolve));
    await one!.close();
    await lost;
    expect(held.signal.reason).toMatchObject({ code: 'LOCK_LOST' });
    await (await waiting).release();
  });

  // S10 (CURATOR-315), with one permit and with several
  for (const permits of [1, 2]) {
    onEveryLockBackend(
      `tells a waiter whose node was removed, and serves the next: ${permits} wanted`,
      async (workspace) => {
        const [one, two] = await workspace.holdfasts(2);
        const held = await at(one!, 2).acquire({ permits: 2 });
        const waiting = at(two!, 2).acquire({ permits });
        const caught = expect(waiting).rejects.toBeInstanceOf(ContenderEvictedError);
        let names: string[] = [];
        await until('the waiter', async () => {
          names = await workspace.entries('s/leases');
          return names.length === 2 + permits;
        });
        await workspace.admin.delete(`/locks/s/leases/${names.at(-1)}`);
        await caught;
        const next = at(two!, 2).acquire();
        await held.release();
        await (await next).release();
      },
    );
  }

  // Where counting all nodes would make two wait for each other
  onEveryLockBackend('serves both when one was put out of the turnstile by hand', async (workspace) => {
    const clients = await workspace.holdfasts(3);
    const held = await at(clients[0]!, 1).acquire();
    const served: number[] = [];
    const waiting = [1, 2].map((index) => at(clients[index]!, 1).use(async () => served.push(index)));
    let turnstile: string[] = [];
    await until('both at the turnstile', async () => {
      turnstile = await workspace.entries('s/locks');
      return turnstile.length === 2 && (await workspace.entries('s/leases')).length === 2;
    });
    await workspace.admin.delete(`/locks/s/locks/${turnstile[0]}`);
    await until(
      'both to have made their nodes',
      async () => (await workspace.entries('s/leases')).length === 3,
    );
    await held.release();
    await Promise.all(waiting);
    expect(served).toHaveLength(2);
  });

  // S11 (CURATOR-462); kazoo: cancel, acquire after cancel
  onEveryLockBackend(
    'is left by a waiter that gives up, at the turnstile and behind it',
    async (workspace) => {
      const holdfast = await workspace.holdfast();
      const held = await at(holdfast, 1).acquire();
      const gaveUp = new AbortController();
      const waiting = [0, 1].map(() => at(holdfast, 1).acquire({ signal: gaveUp.signal }));
      const caught = waiting.map((each) => expect(each).rejects.toThrow('enough'));
      await until('both in line', async () => (await workspace.entries('s/locks')).length === 2);
      await until('one behind the turnstile', async () => (await workspace.entries('s/leases')).length === 2);
      gaveUp.abort(new Error('enough'));
      await Promise.all(caught);
      await until('them to be gone', async () => (await workspace.livingNodes()).length === 1);
      const next = at(holdfast, 1).acquire();
      await held.release();
      await (await next).release();
    },
  );

  // kazoo: waiter with expired session gets the lease later; S9's kind
  onEveryLockBackend('lets a waiter in whose session ended, under its next session', async (workspace) => {
    const { holdfast, expire } = await workspace.faulty();
    const other = await workspace.holdfast();
    const held = await at(other, 1).acquire();
    const waiting = at(holdfast, 1).acquire();
    await until('the waiter', async () => (await workspace.entries('s/leases')).length === 2);
    const { session } = holdfast.zk;
    await expire();
    await until('a new session', () => holdfast.zk.session !== session);
    await until('the waiter again', async () => (await workspace.entries('s/leases')).length === 2);
    await held.release();
    const lease = await waiting;
    lease.assertHeld();
    await lease.release();
  });

  // kazoo: foreign data is ignored; what is no lease takes a permit, as for Curator
  onEveryLockBackend('counts whatever is among its leases', async (workspace) => {
    const holdfast = await workspace.holdfast();
    await (await at(holdfast, 2).acquire()).release();
    await workspace.admin.create('/locks/s/leases/stranger', 'of unknown kind');
    await using _lease = await at(holdfast, 2).acquire();
    expect(await at(holdfast, 2).tryAcquire()).toBeNull();
    await expect(at(holdfast, 2).acquire({ timeoutMs: 100 })).rejects.toBeInstanceOf(LockTimeoutError);
    await workspace.admin.delete('/locks/s/leases/stranger');
    await (await at(holdfast, 2).acquire()).release();
  });

  onEveryLockBackend('goes on when its turnstile was reaped while a lease is held', async (workspace) => {
    const holdfast = await workspace.holdfast();
    await using _held = await at(holdfast, 2).acquire();
    await workspace.untilEntries('s/locks', 0);
    await workspace.admin.delete('/locks/s/locks');
    await (await at(holdfast, 2).acquire()).release();
  });
});
