import { describe, expect } from 'vitest';
import {
  ContenderEvictedError,
  type Holdfast,
  type HoldfastOptions,
  type LockLease,
  LockLostError,
} from '../../src/holdfast.ts';
import { Neighbours } from '../../src/queue/neighbours.ts';
import { seededRandom } from '../../src/testing.ts';
import { CountingTransport } from '../support/counting-transport.ts';
import { type LockWorkspace, onEveryLockBackend } from '../support/lock-backends.ts';
import { until } from '../support/until.ts';

/** A connection whose every request is counted. */
async function counted(
  workspace: LockWorkspace,
  neighbours = new Neighbours(),
  options: HoldfastOptions = {},
) {
  const transport = new CountingTransport();
  const holdfast = await workspace.holdfast({ transport, neighbours, sessionTimeoutMs: 30_000, ...options });
  return { holdfast, transport };
}

/** Acquires, and resolves when it is in the queue and waits. */
async function waiting(
  holdfast: Holdfast,
  name: string,
  signal?: AbortSignal,
): Promise<Promise<LockLease>[]> {
  const lock = holdfast.mutex(name);
  const waits = new Promise<void>((resolve) => {
    const stop = lock.on('waiting', () => {
      stop();
      resolve();
    });
  });
  const acquiring = lock.acquire(signal ? { signal } : {});
  acquiring.catch(() => {});
  await waits;
  return [acquiring]; // In an array, or it would be waited for.
}

describe('two of one process, one behind the other', () => {
  onEveryLockBackend('hand over before a server has heard of it, by one request', async (workspace) => {
    const { holdfast, transport } = await counted(workspace);
    const held = await holdfast.mutex('m').acquire();
    const [acquiring] = await waiting(holdfast, 'm');
    transport.reset();
    const releasing = held.release();
    const next = await acquiring!;
    expect(transport.traffic.requests).toEqual([]);
    expect(next.token).toBeGreaterThan(held.token);
    await releasing;
    expect(transport.traffic).toMatchObject({ requests: ['multi'], eventCount: 0 });
    expect(await workspace.entries('m')).toHaveLength(1);
    await next.release();
    expect(await workspace.entries('m')).toEqual([]);
  });

  onEveryLockBackend('do so over different connections too', async (workspace) => {
    const neighbours = new Neighbours();
    const [one, two] = [await counted(workspace, neighbours), await counted(workspace, neighbours)];
    const held = await one.holdfast.mutex('m').acquire();
    const [acquiring] = await waiting(two.holdfast, 'm');
    await two.holdfast.zk.sync(); // By now it knows that there is no other server that could be behind.
    one.transport.reset();
    two.transport.reset();
    const releasing = held.release();
    const next = await acquiring!;
    expect(one.transport.traffic.requests).toEqual([]);
    expect(two.transport.traffic.requests).toEqual([]);
    await releasing;
    expect(one.transport.traffic.requests).toEqual(['multi']);
    await next.release();
  });

  onEveryLockBackend('ask once for each connection whether there are other servers', async (workspace) => {
    const neighbours = new Neighbours();
    const [one, two] = [await counted(workspace, neighbours), await counted(workspace, neighbours)];
    const lookCounts: number[] = [];
    for (let round = 0; round < 3; round++) {
      const held = await one.holdfast.mutex('m').acquire();
      two.transport.reset();
      const [acquiring] = await waiting(two.holdfast, 'm');
      await two.holdfast.zk.sync();
      lookCounts.push(two.transport.traffic.requests.filter((name) => name === 'getData').length);
      await held.release();
      await (await acquiring!).release();
    }
    expect(lookCounts).toEqual([1, 0, 0]);
  });

  onEveryLockBackend(
    'catch up by one transaction where there are other servers, within one session by none',
    async (workspace) => {
      const neighbours = new Neighbours();
      const [one, two] = [await counted(workspace, neighbours), await counted(workspace, neighbours)];
      const held = await one.holdfast.mutex('m').acquire();
      const [second] = await waiting(two.holdfast, 'm');
      const [third] = await waiting(two.holdfast, 'm');
      await two.holdfast.zk.sync();
      two.transport.reset();
      const releasing = held.release();
      const next = await second!;
      expect(two.transport.traffic.requests).toEqual(['multi']);
      await releasing;
      two.transport.reset();
      const letGo = next.release();
      const last = await third!;
      expect(two.transport.traffic.requests).toEqual([]);
      await letGo;
      await last.release();
    },
    ['ZooKeeper ensemble'],
  );

  onEveryLockBackend(
    'catch up only with what the other has seen, where connections are declared to carry all writes',
    async (workspace) => {
      const neighbours = new Neighbours();
      const declared = { writesUnderLocks: 'this-connection' } as const;
      const [one, two] = [
        await counted(workspace, neighbours, declared),
        await counted(workspace, neighbours, declared),
      ];
      await one.holdfast.zk.create('/x', '0');
      const held = await one.holdfast.mutex('m').acquire();
      const [acquiring] = await waiting(two.holdfast, 'm');
      await two.holdfast.zk.sync();
      two.transport.reset();
      const releasing = held.release(); // Its session has seen nothing that the other has not: it joined before.
      const next = await acquiring!;
      expect(two.transport.traffic.requests).toEqual([]);
      await releasing;
      const [again] = await waiting(one.holdfast, 'm');
      await two.holdfast.zk.set('/x', '1');
      one.transport.reset();
      const handingOver = next.release();
      const last = await again!;
      expect(one.transport.traffic.requests).toEqual(['multi']);
      expect(String((await one.holdfast.zk.get('/x')).data)).toBe('1');
      await handingOver;
      await last.release();
    },
    ['ZooKeeper ensemble'],
  );

  // The releaser checks that the next one's node is there: by a path of its own, whatever the other's chroot.
  onEveryLockBackend('hand over in one folder that they see by different chroots', async (workspace) => {
    const neighbours = new Neighbours();
    await workspace.admin.ensurePath('/app/locks');
    const { connectString } = workspace.servers;
    const inside = await counted(workspace, neighbours, {
      servers: `${connectString}${workspace.root}/app`,
      batonFolder: '/batons',
    });
    const outside = await counted(workspace, neighbours, { root: '/app/locks', batonFolder: '/app/batons' });
    for (const [first, second] of [
      [inside, outside],
      [outside, inside],
    ] as const) {
      const held = await first.holdfast.mutex('m').acquire();
      const [acquiring] = await waiting(second.holdfast, 'm');
      await second.holdfast.zk.sync();
      const releasing = held.release();
      const next = await acquiring!;
      await releasing;
      next.assertHeld();
      expect(await workspace.admin.children('/app/locks/m')).toHaveLength(1);
      await next.release();
    }
  });

  onEveryLockBackend('of the same path in two folders know nothing of each other', async (workspace) => {
    const neighbours = new Neighbours();
    for (const folder of ['/one', '/two']) await workspace.admin.ensurePath(folder);
    const at = (folder: string) =>
      counted(workspace, neighbours, {
        servers: `${workspace.servers.connectString}${workspace.root}${folder}`,
        random: seededRandom(7), // Their entries have the same names.
      });
    const [one, two] = [await at('/one'), await at('/two')];
    const [first, second] = [
      await one.holdfast.mutex('m').acquire(),
      await two.holdfast.mutex('m').acquire(),
    ];
    const [name] = await workspace.admin.children('/one/locks/m');
    expect(await workspace.admin.children('/two/locks/m')).toEqual([name]);
    const [acquiring] = await waiting(one.holdfast, 'm');
    let granted = false;
    void acquiring!.then(() => {
      granted = true;
    });
    await second.release();
    await one.holdfast.zk.sync();
    expect(granted).toBe(false);
    await first.release();
    await (await acquiring!).release();
  });

  onEveryLockBackend('and many: in order, by few requests, with nothing left', async (workspace) => {
    const { holdfast, transport } = await counted(workspace);
    const COUNT = 200;
    const held = await holdfast.mutex('m').acquire();
    let waitingCount = 0;
    holdfast.mutex('m').on('waiting', () => waitingCount++);
    const tokens: bigint[] = [];
    const done = Array.from({ length: COUNT }, async () => {
      await using lease = await holdfast.mutex('m').acquire();
      tokens.push(lease.token);
    });
    await until('all wait', () => waitingCount === COUNT);
    await holdfast.zk.sync();
    transport.reset();
    await held.release();
    await Promise.all(done);
    expect(tokens).toEqual([...tokens].sort((a, b) => (a < b ? -1 : 1)));
    const { requests } = transport.traffic;
    const writes = requests.filter((name) => name === 'multi' || name === 'delete');
    expect(writes.length, requests.join(' ')).toBeLessThanOrEqual(COUNT / 8);
    expect(requests).not.toContain('getChildren');
    expect(await workspace.entries('m')).toEqual([]);
    await until('no watch is left', async () => (await workspace.watchedPaths()).length === 0);
  });

  onEveryLockBackend(
    'over many connections by one transaction of each, whoever is first',
    async (workspace) => {
      const neighbours = new Neighbours();
      const connections = await Promise.all(Array.from({ length: 4 }, () => counted(workspace, neighbours)));
      await connections[0]!.holdfast.zk.ensurePath('/holdfast/batons'); // The last one passes a baton, to nobody.
      const held = await connections[0]!.holdfast.mutex('m').acquire();
      const done: Promise<void>[] = [];
      for (let index = 0; index < 16; index++) {
        const [acquiring] = await waiting(connections[index % 4]!.holdfast, 'm');
        done.push(acquiring!.then((lease) => lease.release()));
      }
      for (const { holdfast, transport } of connections) {
        await holdfast.zk.sync();
        transport.reset();
      }
      await held.release();
      await Promise.all(done);
      // Each would be refused, and sent again in parts, if it asked for nodes that another of them deletes.
      const requests = connections.map(({ transport }) => [...transport.traffic.requests]);
      expect(requests).toEqual(Array.from({ length: 4 }, () => ['multi']));
      expect(await workspace.entries('m')).toEqual([]);
    },
  );

  onEveryLockBackend('know one who gives up from one who lets go', async (workspace) => {
    const { holdfast } = await counted(workspace);
    const held = await holdfast.mutex('m').acquire();
    const giveUp = new AbortController();
    const [between] = await waiting(holdfast, 'm', giveUp.signal);
    const [last] = await waiting(holdfast, 'm');
    let granted = false;
    void last!.then(() => {
      granted = true;
    });
    giveUp.abort(new Error('enough'));
    await expect(between).rejects.toThrow('enough');
    await workspace.untilEntries('m', 2);
    await holdfast.zk.sync();
    expect(granted).toBe(false);
    held.assertHeld();
    await held.release();
    await (await last!).release();
  });

  onEveryLockBackend('let one of another process in when it is its turn', async (workspace) => {
    const { holdfast } = await counted(workspace);
    const other = await counted(workspace);
    const held = await holdfast.mutex('m').acquire();
    const order: string[] = [];
    const run = async (name: string, acquiring: Promise<LockLease>) => {
      const lease = await acquiring;
      order.push(name);
      await lease.release();
    };
    const runs: Promise<void>[] = [];
    for (const [name, at] of [
      ['one', holdfast],
      ['two', other.holdfast],
      ['three', other.holdfast],
      ['four', holdfast],
    ] as const) {
      const [acquiring] = await waiting(at, 'm');
      runs.push(run(name, acquiring!));
    }
    await held.release();
    await Promise.all(runs);
    expect(order).toEqual(['one', 'two', 'three', 'four']);
  });

  onEveryLockBackend('let readers of this and of another process in together', async (workspace) => {
    const { holdfast } = await counted(workspace);
    const other = await counted(workspace);
    const written = await holdfast.readWriteLock('rw').write.acquire();
    const here = holdfast.readWriteLock('rw').read.acquire();
    await workspace.untilEntries('rw', 2);
    const there = other.holdfast.readWriteLock('rw').read.acquire();
    await workspace.untilEntries('rw', 3);
    await written.release();
    const leases = await Promise.all([here, there]);
    for (const lease of leases) lease.assertHeld();
    for (const lease of leases) await lease.release();
  });

  onEveryLockBackend('have the server watch over a wait that lasts', async (workspace) => {
    const { holdfast } = await counted(workspace);
    const held = await holdfast.mutex('m').acquire();
    const [acquiring] = await waiting(holdfast, 'm');
    const [, own] = await workspace.entries('m');
    await until('it is watched', async () => (await workspace.watchedPaths()).includes(`/locks/m/${own}`));
    await workspace.admin.delete(`/locks/m/${own}`);
    await expect(acquiring).rejects.toBeInstanceOf(ContenderEvictedError);
    held.assertHeld();
    await held.release();
  });

  // The lock goes on only when the one that was told is known to be in the queue, or knows that it is not.
  onEveryLockBackend('lose what was taken away unheard, before anyone else holds', async (workspace) => {
    const { holdfast, proxy } = await workspace.faulty({ neighbours: new Neighbours() });
    const other = await counted(workspace);
    const held = await holdfast.mutex('m').acquire();
    const [acquiring] = await waiting(holdfast, 'm');
    const [third] = await waiting(other.holdfast, 'm');
    const [, own] = await workspace.untilEntries('m', 3);
    proxy.delay({ toClientMs: 300 }); // It does not hear of its removal before it is granted.
    await workspace.admin.delete(`/locks/m/${own}`);
    const releasing = held.release();
    const lease = await acquiring!;
    const told: string[] = [];
    lease.signal.addEventListener('abort', () => told.push(lease.signal.reason.constructor.name));
    void third!.then(() => told.push('the next holds'));
    await releasing;
    await (await third!).release();
    expect(told).toEqual([LockLostError.name, 'the next holds']);
    await lease.release();
  });
});
