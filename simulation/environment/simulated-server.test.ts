// The real client and the real server core in one simulated world: no socket, no timer, no disk, one seed.
import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { Log } from '../../src/base/log.ts';
import { fraction, type Random, seededRandom } from '../../src/base/random.ts';
import { connect, type ZooKeeper } from '../../src/client/zookeeper.ts';
import { ZkError } from '../../src/protocol/errors.ts';
import type { DataTree } from '../../src/server/data-tree.ts';
import { VirtualClock } from '../../src/testing/virtual-clock.ts';
import { SimulatedFolder } from './simulated-folder.ts';
import { SimulatedNetwork, type SimulatedUplink } from './simulated-network.ts';
import { type SimulatedServer, startSimulatedServer } from './simulated-server.ts';

const LIVES = Number(process.env['HOLDFAST_SIMULATED_LIVES'] ?? 5);
const ADDRESS = { host: 'simulated', port: 2181 };
const SESSION_TIMEOUT_MS = 4_000;
const LIMITS = { tickMs: 500, sessionTimeoutMsMin: 1_000 };

interface Client {
  readonly name: string;
  readonly zk: ZooKeeper;
  readonly uplink: SimulatedUplink;
}

/** Everything of one run: its clock, its randomness, its network, and all that was seen. */
class World {
  readonly clock = new VirtualClock();
  readonly #seed: number;
  readonly #transcript = createHash('sha256');
  lineCount = 0;
  readonly network: SimulatedNetwork;
  server!: SimulatedServer;
  folder = new SimulatedFolder();
  readonly log: Log = (level, message, fields) =>
    this.tell(
      `server ${level} ${message} ${JSON.stringify(fields, (_key, value) => (value instanceof Error ? value.message : value))}`,
    );

  constructor(seed: number) {
    this.#seed = seed;
    this.network = new SimulatedNetwork({
      clock: this.clock,
      random: this.random(1),
      onArrival: ({ link, to, bytes }) => this.tell(`${link} to ${to} ${bytes.toString('hex')}`),
    });
  }

  /** Each part has its own, so that one more number drawn here changes nothing there. */
  random(part: number): Random {
    return seededRandom(this.#seed * 1_000 + part);
  }

  tell(line: string): void {
    this.lineCount++;
    this.#transcript.update(`${this.clock.nowMs()} ${line}\n`);
  }

  digest(): string {
    return this.#transcript.copy().digest('hex');
  }

  async startServer(random: Random): Promise<void> {
    const { clock, network, folder, log } = this;
    const starting = startSimulatedServer({
      ...{ clock, network, folder, log, random },
      address: ADDRESS,
      limits: LIMITS,
      logBytesMax: 2_000,
      syncMsMax: 60, // Much longer than a reply takes: an answer that did not wait for it would be seen to be wrong.
    });
    this.server = await this.until(starting);
  }

  async connect(number: number): Promise<Client> {
    const uplink = this.network.attach();
    const connecting = connect(`${ADDRESS.host}:${ADDRESS.port}`, {
      clock: this.clock,
      random: this.random(100 + number),
      transport: uplink,
      sessionTimeoutMs: SESSION_TIMEOUT_MS,
    });
    return { name: `client-${number}`, zk: await this.until(connecting), uplink };
  }

  /** Lets time pass until it is settled. */
  async until<T>(promise: Promise<T>): Promise<T> {
    let settled = false;
    const done = () => {
      settled = true;
    };
    promise.then(done, done);
    for (let steps = 0; !settled; steps++) {
      if (steps > 10_000) throw new Error('nothing comes of it');
      await this.clock.advance(10);
    }
    return promise;
  }
}

/** What a client was told is there; where it was not told, all that may be, with a bar between. */
type Ledger = Map<string, string>;

/** Makes and writes nodes until its time is over; a request that fails is told, and the next one made. */
async function work(world: World, { name, zk }: Client, ledger: Ledger, random: Random): Promise<void> {
  const untilMs = world.clock.nowMs() + 4_000;
  for (let step = 0; world.clock.nowMs() < untilMs; step++) {
    const path = `/data/${name}-${Math.floor(fraction(random) * 5)}`;
    const value = `${name}-${step}`;
    try {
      if (ledger.has(path)) {
        // From here on either value may be there; which one, the answer says.
        ledger.set(path, `${ledger.get(path)}|${value}`);
        await zk.set(path, value);
      } else {
        ledger.set(path, `|${value}`);
        await zk.create(path, value);
      }
      ledger.set(path, value);
      world.tell(`${name} wrote ${path} ${value}`);
    } catch (error) {
      if (!(error instanceof ZkError)) throw error;
      world.tell(`${name} failed ${path} ${error.code} ${error.outcome}`);
      if (error.code === 'ZK_NO_NODE') ledger.delete(path);
    }
    await new Promise<void>((resolve) => {
      world.clock.at(world.clock.nowMs() + fraction(random) * 60, resolve);
    });
  }
}

function expectKept(tree: DataTree, ledger: Ledger): void {
  for (const [path, values] of ledger) {
    const found = Buffer.from(tree.get(path)?.data ?? []).toString();
    expect(values.split('|'), `${path} is what was acknowledged`).toContain(found);
  }
}

interface Outcome {
  readonly digest: string;
  readonly lineCount: number;
  readonly expiredCount: number;
}

/**
 * Three clients write; connections break at random; one client vanishes and its session expires; the server loses power
 * and starts again on what the disk has left. Throws if anything that was acknowledged is gone.
 */
async function life(seed: number): Promise<Outcome> {
  const world = new World(seed);
  await world.startServer(world.random(2));
  const clients = [await world.connect(0), await world.connect(1), await world.connect(2)];
  const vanishing = await world.connect(3);
  const observer = clients[0]!;
  await world.until(observer.zk.create('/data', ''));
  for (const { zk, name } of [...clients, vanishing]) {
    await world.until(zk.create(`/alive-${name}`, '', { mode: 'ephemeral' }));
  }
  const ids = clients.map(({ zk }) => zk.session.id);

  const ledgers = clients.map((): Ledger => new Map());
  const working = Promise.all(
    clients.map((client, index) => work(world, client, ledgers[index]!, world.random(200 + index))),
  );
  const trouble = world.random(3);
  const interrupted = (async () => {
    await world.clock.advance(500 + fraction(trouble) * 500);
    for (const { uplink } of clients) if (fraction(trouble) < 0.5) uplink.reset();
    vanishing.uplink.cut();
    await world.clock.advance(fraction(trouble) * 2_000);
    world.tell('the power goes');
    world.folder = world.server.crash();
    await world.clock.advance(fraction(trouble) * 1_000);
    await world.startServer(world.random(4));
    for (const ledger of ledgers) expectKept(world.server.core.tree, ledger);
    world.tell(`back with ${world.server.core.tree.nodeCount} nodes`);
  })();
  await interrupted;
  await world.until(working);

  // The vanished one's session was kept over the crash with a full timeout, and is over by now.
  await world.clock.advance(SESSION_TIMEOUT_MS + 2 * LIMITS.tickMs);
  expect(await world.until(observer.zk.exists('/alive-client-3'))).toBeUndefined();
  for (const [index, { zk, name }] of clients.entries()) {
    expect(zk.session.id, `${name} is in the session it began with`).toBe(ids[index]);
    const { stat } = await world.until(observer.zk.get(`/alive-${name}`));
    expect(stat.ephemeralOwner).toBe(ids[index]);
    expectKept(world.server.core.tree, ledgers[index]!);
  }
  const { expiredSessionCount } = world.server.core.statistics.counts;
  vanishing.uplink.restore();
  for (const { zk } of [...clients, vanishing]) await world.until(zk.close());
  world.server.crash();
  return { digest: world.digest(), lineCount: world.lineCount, expiredCount: expiredSessionCount };
}

describe('a simulated world', () => {
  for (let seed = 1; seed <= LIVES; seed++) {
    test(`keeps what it acknowledged, and repeats to the byte: seed ${seed}`, async () => {
      const first = await life(seed);
      expect(first.lineCount).toBeGreaterThan(300);
      expect(first.expiredCount).toBe(1);
      expect(await life(seed)).toEqual(first);
    });
  }

  test('is another for another seed', async () => {
    expect((await life(1)).digest).not.toBe((await life(2)).digest);
  });

  test('leaves no alarm behind but the server’s own once all have left', async () => {
    const world = new World(9);
    await world.startServer(world.random(2));
    const client = await world.connect(0);
    await world.until(client.zk.close());
    world.server.crash();
    await world.clock.advance(60_000);
    expect(world.clock.alarmCount).toBe(0);
  });

  test('tells of a disk that fails, cuts off who waits for it, refuses writes, and goes on reading', async () => {
    const world = new World(10);
    const lines: string[] = [];
    const { clock, network, folder } = world;
    const server = await world.until(
      startSimulatedServer({
        ...{ clock, network, folder, random: world.random(2), address: ADDRESS, limits: LIMITS },
        log: (level, message, fields) => lines.push(`${level} ${message} ${fields?.['reason'] ?? ''}`.trim()),
      }),
    );
    const client = await world.connect(0);
    await world.until(client.zk.create('/a', 'before'));
    let full = true;
    folder.fault = ({ kind }) =>
      full && kind === 'sync' ? new Error('ENOSPC: no space left on device') : undefined;
    await expect(world.until(client.zk.set('/a', 'after'))).rejects.toMatchObject({ outcome: 'unknown' });
    expect(Buffer.from((await world.until(client.zk.get('/a'))).data ?? []).toString()).toBe('before');
    await expect(world.until(client.zk.set('/a', 'again'))).rejects.toMatchObject({
      condition: 'not-read-only',
    });
    expect(server.core.writeFault).toBe('ENOSPC: no space left on device');
    expect(server.core.statistics.counts.dropped.disk).toBe(1);
    full = false;
    await world.clock.advance(3_000);
    expect(server.core.writeFault).toBeUndefined();
    await world.until(client.zk.set('/a', 'at last'));
    expect(lines.filter((line) => !line.startsWith('debug'))).toEqual([
      'info session opened',
      'error the log cannot be written: writes are refused',
      'info connection dropped the disk took no more',
      'info session renewed',
      'warn the log can be written again',
    ]);
  });

  test('tells of a disk that is slow', async () => {
    const world = new World(11);
    const { clock, network, folder } = world;
    const slow = { ...world.random(2), u32: () => 2 ** 32 - 1 };
    const lines: string[] = [];
    const server = await world.until(
      startSimulatedServer({
        ...{ clock, network, folder, random: slow, address: ADDRESS, limits: LIMITS, syncMsMax: 1_200 },
        log: (level, message, fields) => lines.push(`${level} ${message} ${fields?.['syncMs'] ?? ''}`.trim()),
      }),
    );
    const client = await world.connect(0); // Its session is a transaction too.
    await world.until(client.zk.create('/a', ''));
    expect(lines.filter((line) => line === 'warn the disk is slow 1200')).toHaveLength(2);
    expect(server.disk).toMatchObject({ syncCount: 2, slowSyncCount: 2 });
    expect(server.disk.syncMsSum).toBeCloseTo(2_400, 3);
  });
});
