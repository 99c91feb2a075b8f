import { describe, expect, test } from 'vitest';
import { connect, type Holdfast, type LockLease } from '../../src/holdfast.ts';
import { Neighbours } from '../../src/queue/neighbours.ts';
import { type RunningServer, startServer } from '../../src/server.ts';
import { CountingTransport, type Traffic } from '../support/counting-transport.ts';
import { sharedStandalone } from '../support/shared-servers.ts';
import { Strangers } from '../support/strangers.ts';
import { until } from '../support/until.ts';

/** Clients whose every frame is counted, in a chroot of their own. */
class CountedWorld implements AsyncDisposable {
  readonly #servers: string;
  readonly #embedded: RunningServer | undefined;
  readonly #clients: { readonly holdfast: Holdfast; readonly transport: CountingTransport }[] = [];

  private constructor(servers: string, embedded: RunningServer | undefined) {
    this.#servers = servers;
    this.#embedded = embedded;
  }

  static async on(backend: 'embedded server' | 'ZooKeeper'): Promise<CountedWorld> {
    const embedded = backend === 'ZooKeeper' ? undefined : await startServer();
    const { connectString } = embedded ?? sharedStandalone();
    await using admin = await connect({ servers: connectString });
    const { path } = await admin.zk.create('/counts-', '', { mode: 'persistent-sequential' });
    await using inside = await connect({ servers: `${connectString}${path}` });
    await inside.zk.ensurePath('/holdfast/batons');
    return new CountedWorld(`${connectString}${path}`, embedded);
  }

  /** A client as of a process of its own. */
  async client(
    neighbours = new Neighbours(),
  ): Promise<{ readonly holdfast: Holdfast; readonly transport: CountingTransport }> {
    const transport = new CountingTransport();
    const options = { servers: this.#servers, transport, neighbours, sessionTimeoutMs: 30_000 };
    const holdfast = await connect(options);
    const client = { holdfast, transport };
    this.#clients.push(client);
    return client;
  }

  /** What all clients together have sent and received. */
  total(): Omit<Traffic, 'requests'> & { readonly requests: readonly string[] } {
    const all = this.#clients.map(({ transport }) => transport.traffic);
    const sum = (pick: (traffic: Traffic) => number) => all.reduce((total, each) => total + pick(each), 0);
    return {
      requests: all.flatMap(({ requests }) => requests),
      writeCount: sum(({ writeCount }) => writeCount),
      eventCount: sum(({ eventCount }) => eventCount),
      sentBytes: sum(({ sentBytes }) => sentBytes),
      receivedBytes: sum(({ receivedBytes }) => receivedBytes),
    };
  }

  reset(): void {
    for (const { transport } of this.#clients) transport.reset();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#clients.map(({ holdfast }) => holdfast.close()));
    await this.#embedded?.stop();
  }
}

function counts(values: readonly string[]): Record<string, number> {
  const result: Record<string, number> = {};
  for (const value of values) result[value] = (result[value] ?? 0) + 1;
  return result;
}

describe.each(['embedded server', 'ZooKeeper'] as const)('requests and round trips, %s', (backend) => {
  test('a free mutex costs one round trip and two requests, its release one', async () => {
    await using world = await CountedWorld.on(backend);
    const { holdfast, transport } = await world.client();
    const lock = holdfast.mutex('free');
    const first = await lock.acquire();
    expect(transport.traffic).toMatchObject({
      requests: [
        'exists', // Once for each session: the floor of its tokens.
        ...['create2', 'getChildren'],
        ...['createContainer', 'createContainer', 'create2', 'getChildren'],
      ],
      writeCount: 2,
    });
    await first.release();
    transport.reset();
    const lease = await lock.acquire();
    expect(transport.traffic).toMatchObject({
      requests: ['create2', 'getChildren'],
      writeCount: 1,
      eventCount: 0,
    });
    transport.reset();
    await lease.release();
    expect(transport.traffic).toMatchObject({ requests: ['delete'], writeCount: 1, eventCount: 0 });
  });

  test('trying a lock that is taken costs one read', async () => {
    await using world = await CountedWorld.on(backend);
    const [holder, other] = [await world.client(), await world.client()];
    await using _lease = await holder.holdfast.mutex('taken').acquire();
    other.transport.reset();
    expect(await other.holdfast.mutex('taken').tryAcquire()).toBeNull();
    expect(transportOf(other)).toMatchObject({ requests: ['getChildren'], writeCount: 1 });
  });

  test('a hand-over under contention costs the successor nothing', async () => {
    await using world = await CountedWorld.on(backend);
    const [first, second, third] = [await world.client(), await world.client(), await world.client()];
    const opening = await first.holdfast.mutex('m').acquire();
    const behind = await waiting(second.holdfast, 'm', 1);
    const last = await waiting(third.holdfast, 'm', 2);
    await opening.release();
    const held = await behind.granted;
    third.transport.reset();
    second.transport.reset();
    await held.release();
    const lease = await last.granted;
    expect(transportOf(second).requests).toEqual(['multi']);
    // The baton is the grant; that the node has gone may come in a later packet.
    await until('both events', () => transportOf(third).eventCount >= 2);
    expect(transportOf(third)).toMatchObject({ requests: [], eventCount: 2 });
    await lease.release();
  });

  test('many locks at once are taken and released by fewer requests than one by one', async () => {
    await using world = await CountedWorld.on(backend);
    const { holdfast, transport } = await world.client();
    const locks = Array.from({ length: 32 }, (_, index) => holdfast.mutex(`m-${index}`));
    const round = (cycles: number) =>
      Promise.all(
        locks.map(async (lock) => {
          for (let cycle = 0; cycle < cycles; cycle++) await (await lock.acquire()).release();
        }),
      );
    await round(1);
    transport.reset();
    const CYCLES = 20;
    await round(CYCLES);
    const { getChildren = 0, multiRead = 0, ...writes } = counts(transport.traffic.requests);
    // A list for each acquire, and those of one tick by one request.
    expect(getChildren + multiRead).toBeLessThan(16 * CYCLES);
    const writeCount = Object.values(writes).reduce((sum, each) => sum + each, 0);
    expect(writeCount, JSON.stringify(writes)).toBeLessThan(16 * CYCLES); // One by one: two for each cycle.
  });

  test('several locks cost one round trip', async () => {
    await using world = await CountedWorld.on(backend);
    const { holdfast, transport } = await world.client();
    const lock = holdfast.multiLock(['a', 'b', 'c', 'd', 'e']);
    await (await lock.acquire()).release();
    transport.reset();
    await using _lease = await lock.acquire();
    expect(transport.traffic.writeCount).toBe(1);
    expect(counts(transport.traffic.requests)).toEqual({ multi: 1, getChildren: 5 });
  });

  test('a thousand waiters are drained with one of them woken by each release', async () => {
    await using world = await CountedWorld.on(backend);
    const sessions = await Promise.all(Array.from({ length: 8 }, () => world.client(new Strangers())));
    const opening = await sessions[0]!.holdfast.mutex('crowd').acquire();
    const COUNT = 1_000;
    let arrived = 0;
    for (const { holdfast } of sessions) holdfast.mutex('crowd').on('waiting', () => arrived++);
    const order: bigint[] = [];
    const done = Array.from({ length: COUNT }, async (_, index) => {
      await using lease = await sessions[index % 8]!.holdfast.mutex('crowd').acquire();
      order.push(lease.token);
    });
    await until('all wait', () => arrived === COUNT, 60_000);
    await Promise.all(sessions.map(({ holdfast }) => holdfast.zk.sync()));
    world.reset();
    await opening.release();
    await Promise.all(done);
    expect(order).toEqual([...order].sort((a, b) => (a < b ? -1 : 1)));
    const total = world.total();
    // All but the opener, who came when the queue was empty, pass the baton, and nobody reads.
    const {
      multi = 0,
      delete: deletes = 0,
      getChildren = 0,
      removeWatches = 0,
      sync: _heartbeats,
      ...rest
    } = counts(total.requests);
    expect(rest).toEqual({});
    expect(multi + deletes).toBe(COUNT + 1);
    expect(deletes).toBeLessThanOrEqual(1);
    // The opener sees the queue if it has held for a while; whoever is behind a plain release looks once, and takes
    // back its watch for the baton that did not come.
    expect(getChildren).toBe(deletes);
    expect(removeWatches).toBe(deletes);
    // Baton, node, and the releaser's own watch: the last two may be one event of one session.
    expect(total.eventCount).toBeLessThanOrEqual(3 * (COUNT + 1));
    expect(total.receivedBytes / COUNT).toBeLessThan(800);
  });
});

describe('the herd', () => {
  /** What n contenders cost from the first release until all have had their turn. */
  async function drainCost(kind: 'mutex' | 'simpleLock', contenders: number): Promise<number> {
    await using world = await CountedWorld.on('embedded server');
    const clients = await Promise.all(Array.from({ length: contenders }, () => world.client()));
    const opening = await clients[0]!.holdfast[kind]('n').acquire();
    let arrived = 0;
    const done = clients.map(async ({ holdfast }) => {
      const lock = holdfast[kind]('n');
      lock.on('waiting', () => arrived++);
      await using _lease = await lock.acquire();
    });
    await until('all wait', () => arrived === contenders, 30_000);
    world.reset();
    await opening.release();
    await Promise.all(done);
    return world.total().requests.length;
  }

  test('grows with the square of its size; a queue grows with its length', async () => {
    const [few, many] = [await drainCost('simpleLock', 10), await drainCost('simpleLock', 40)];
    expect(many / few).toBeGreaterThan(12); // 16 would be the square.
    const [short, long] = [await drainCost('mutex', 10), await drainCost('mutex', 40)];
    expect(long / short).toBeLessThan(5); // 4 would be the line.
    expect(many / long).toBeGreaterThan(10);
  });
});

function transportOf({ transport }: { readonly transport: CountingTransport }): Traffic {
  return transport.traffic;
}

/** A contender that is known to wait behind `ahead` others. */
async function waiting(
  holdfast: Holdfast,
  name: string,
  ahead: number,
): Promise<{ readonly granted: Promise<LockLease> }> {
  const granted = holdfast.mutex(name).acquire();
  await until(`${ahead} wait for ${name}`, async () => (await holdfast.inspect(name)).queue.length === ahead);
  await holdfast.zk.sync(); // Behind it, its watches are set.
  return { granted };
}
