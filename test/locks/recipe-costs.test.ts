import { describe, expect, test } from 'vitest';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { connect, type Holdfast, ops } from '../../src/holdfast.ts';
import { Neighbours } from '../../src/queue/neighbours.ts';
import { type RunningServer, startServer } from '../../src/server.ts';
import { CountingTransport } from '../support/counting-transport.ts';
import { sharedStandalone } from '../support/shared-servers.ts';
import { until } from '../support/until.ts';

// The figures of the tables in docs/recipes.

/** Keeps a slow machine from turning a short hold into a long one, whose node is watched. */
const noShortTimers: Clock = {
  ...systemClock,
  at(atMs, run) {
    const delayMs = atMs - systemClock.nowMs();
    return delayMs > 50 && delayMs < 1_000 ? () => {} : systemClock.at(atMs, run);
  },
};

interface Client {
  readonly holdfast: Holdfast;
  readonly transport: CountingTransport;
}

/** Two clients in a chroot of their own, whose every frame is counted. */
class Pair implements AsyncDisposable {
  readonly embedded: RunningServer | undefined;
  readonly clients: readonly Client[];

  private constructor(embedded: RunningServer | undefined, clients: readonly Client[]) {
    this.embedded = embedded;
    this.clients = clients;
  }

  static async on(backend: 'embedded server' | 'ZooKeeper', clock: Clock = noShortTimers): Promise<Pair> {
    const embedded = backend === 'ZooKeeper' ? undefined : await startServer();
    const { connectString } = embedded ?? sharedStandalone();
    await using admin = await connect({ servers: connectString });
    const { path } = await admin.zk.create('/costs-', '', { mode: 'persistent-sequential' });
    await admin.zk.ensurePath(`${path}/holdfast/batons`);
    const clients = [0, 1].map(async () => {
      const transport = new CountingTransport();
      const servers = `${connectString}${path}`;
      const neighbours = new Neighbours(); // As of a process of its own.
      const holdfast = await connect({ servers, transport, sessionTimeoutMs: 30_000, clock, neighbours });
      return { transport, holdfast };
    });
    return new Pair(embedded, await Promise.all(clients));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.clients.map(({ holdfast }) => holdfast.close()));
    await this.embedded?.stop();
  }
}

/** What `act` sends until it resolves, and in how many writes. */
async function cost<T>({ transport }: Client, act: () => Promise<T>): Promise<{ cost: string; result: T }> {
  const log = recorded(transport);
  const result = await act();
  return { cost: log(), result };
}

function recorded(transport: CountingTransport): () => string {
  transport.reset();
  return () => `${transport.traffic.requests.join(' ')}; ${transport.traffic.writeCount}`;
}

describe.each(['embedded server', 'ZooKeeper'] as const)('what a recipe sends, %s', (backend) => {
  test('a mutex that is held for long has its node watched, off everyone’s way', async () => {
    await using pair = await Pair.on(backend, systemClock);
    const [client] = pair.clients as [Client, Client];
    const held = recorded(client.transport);
    const lease = await client.holdfast.mutex('m').acquire();
    await until('it is watched', () => held().endsWith('create2 getChildren exists getData; 3'));
    await lease.release();
  });

  test('a mutex that is tried, re-entered, guarded', async () => {
    await using pair = await Pair.on(backend);
    const [client] = pair.clients as [Client, Client];
    const lock = client.holdfast.mutex('m');
    await (await lock.acquire()).release();
    const { cost: tried, result: lease } = await cost(client, () => lock.tryAcquire());
    expect(tried).toBe('getChildren create2 getChildren; 2');
    const again = await cost(client, async () => (await lock.acquire({ within: lease! })).release());
    expect(again.cost).toBe('; 0');
    const guarded = await cost(client, () => lease!.guard([ops.set('/holdfast', 'x')]));
    expect(guarded.cost).toBe('multi; 1');
    expect((await cost(client, () => lease!.release())).cost).toBe('delete; 1');
  });

  test('a waiter: two round trips until it waits, and a look when there was no baton', async () => {
    await using pair = await Pair.on(backend);
    const [holder, waiter] = pair.clients as [Client, Client];
    const lease = await holder.holdfast.mutex('m').acquire();
    const waits = recorded(waiter.transport);
    const granted = waiter.holdfast.mutex('m').acquire();
    await until('it waits', () => waiter.transport.traffic.requests.length === 3);
    expect(waits()).toBe('create2 getChildren setWatches; 2');
    await waiter.holdfast.zk.sync();
    const woken = recorded(waiter.transport);
    await holder.holdfast.zk.delete(`/locks/m/${(await holder.holdfast.inspect('m')).holders[0]!.id}`);
    await granted;
    // The baton is watched no more, and the queue is listed: both leave in one write.
    expect(woken()).toBe('removeWatches getChildren; 1');
    await lease.release();
  });

  test('a reader, a writer, a downgrade', async () => {
    await using pair = await Pair.on(backend);
    const [client, other] = pair.clients as [Client, Client];
    const lock = client.holdfast.readWriteLock('rw');
    await (await lock.read.acquire()).release();
    const read = await cost(client, () => lock.read.acquire());
    expect(read.cost).toBe('create2 getChildren; 1');
    const second = await cost(other, () => other.holdfast.readWriteLock('rw').read.acquire());
    expect(second.cost).toBe('create2 getChildren; 1');
    await second.result.release();
    await read.result.release();
    const write = await cost(client, () => lock.write.acquire());
    expect(write.cost).toBe('create2 getChildren; 1');
    const downgraded = await cost(client, () => lock.downgrade(write.result));
    expect(downgraded.cost).toBe('multi delete; 2');
    await downgraded.result.release();
  });

  test('an upgrade: one round trip more if a writer waits', async () => {
    await using pair = await Pair.on(backend);
    const [client, other] = pair.clients as [Client, Client];
    const lock = client.holdfast.readWriteLock('rw');
    await (await lock.read.acquire()).release();
    const upgradable = await cost(client, () => lock.upgradable.acquire());
    expect(upgradable.cost).toBe('create2 getChildren; 1');
    const upgraded = await cost(client, () => upgradable.result.upgrade());
    expect(upgraded.cost).toBe('getChildren create2 getChildren; 2');
    expect((await cost(client, () => upgraded.result.release())).cost).toBe('delete; 1');
    const queued = other.holdfast.readWriteLock('rw').write.acquire();
    await until('a writer waits', async () => (await client.holdfast.inspect('rw')).queue.length === 1);
    const before = await cost(client, () => upgradable.result.upgrade());
    expect(before.cost).toBe('getChildren multi getChildren; 3');
    await before.result.release();
    await upgradable.result.release();
    await (await queued).release();
  });

  test('a semaphore', async () => {
    await using pair = await Pair.on(backend);
    const [client, other] = pair.clients as [Client, Client];
    const semaphore = client.holdfast.semaphore('s', { permits: 3 });
    const theirs = other.holdfast.semaphore('s', { permits: 3 });
    await (await semaphore.acquire()).release();
    await client.holdfast.zk.sync(); // The turnstile is left behind one's back.
    const one = await cost(client, async () => {
      const lease = await semaphore.acquire();
      expect(client.transport.traffic.writeCount).toBe(2);
      await until('the turnstile is left', () => client.transport.traffic.requests.length === 5);
      return lease;
    });
    expect(one.cost).toBe('create2 getChildren create2 getChildren delete; 3');
    expect((await cost(client, () => one.result.release())).cost).toBe('delete; 1');
    const all = await cost(client, async () => {
      const lease = await semaphore.acquire({ permits: 3 });
      await until('the turnstile is left', () => client.transport.traffic.requests.length === 5);
      return lease;
    });
    expect(all.cost).toBe('create2 getChildren multi getChildren delete; 3');
    expect((await cost(other, () => theirs.tryAcquire())).cost).toBe('getChildren getChildren; 1');
    const waits = recorded(other.transport);
    const granted = theirs.acquire();
    await until('it waits', () => other.transport.traffic.requests.length === 5);
    expect(waits()).toBe('create2 getChildren create2 getChildren getChildren; 3');
    await other.holdfast.zk.sync();
    const woken = recorded(other.transport);
    expect((await cost(client, () => all.result.release())).cost).toBe('multi; 1');
    await granted;
    expect(woken()).toMatch(/^getChildren/);
  });

  test('several locks that are tried and let go', async () => {
    await using pair = await Pair.on(backend);
    const [client] = pair.clients as [Client, Client];
    const lock = client.holdfast.multiLock(['a', 'b', 'c']);
    await (await lock.acquire()).release();
    const tried = await cost(client, () => lock.tryAcquire());
    expect(tried.cost).toBe(
      'getChildren getChildren getChildren multi getChildren getChildren getChildren; 2',
    );
    expect((await cost(client, () => tried.result!.release())).cost).toBe('multi; 1');
  });

  test('an election', async () => {
    await using pair = await Pair.on(backend);
    const [client, other] = pair.clients as [Client, Client];
    const election = client.holdfast.election('e');
    await (await election.campaign()).resign();
    const campaign = await cost(client, () => election.campaign());
    expect(campaign.cost).toBe('create2 getChildren; 1');
    const watching = other.holdfast.election('e').observe();
    expect((await cost(other, () => watching.next())).cost).toBe('getChildren getData; 2');
    await watching.return();
    expect((await cost(client, () => campaign.result.resign())).cost).toBe('delete; 1');
  });

  test('a simple lock', async () => {
    await using pair = await Pair.on(backend);
    const [client, other] = pair.clients as [Client, Client];
    const lock = client.holdfast.simpleLock('x');
    await (await lock.acquire()).release();
    const free = await cost(client, () => lock.acquire());
    expect(free.cost).toBe('create2; 1');
    expect((await cost(other, () => other.holdfast.simpleLock('x').tryAcquire())).cost).toBe('exists; 1');
    const waits = recorded(other.transport);
    const granted = other.holdfast.simpleLock('x').acquire();
    await until('it waits', () => other.transport.traffic.requests.length === 2);
    expect(waits()).toBe('create2 exists; 2');
    await other.holdfast.zk.sync();
    const woken = recorded(other.transport);
    expect((await cost(client, () => free.result.release())).cost).toBe('delete; 1');
    await granted;
    expect(woken()).toMatch(/^create2/);
  });
});
