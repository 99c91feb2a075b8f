// What a test may do to the embedded server, seen by the real client.
import { mkdtemp, rm } from 'node:fs/promises';
import { connect as connectTcp } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { FaultProxy, startTestServer, type TestServer } from '../../src/testing.ts';
import { connect, ops, SessionLostError, type WatchEvent, type ZooKeeper } from '../../src/zookeeper.ts';
import { FrameConnection } from '../differential/frame-client.ts';
import { until } from '../support/until.ts';
import { fourLetterWord } from '../support/zookeeper-process.ts';

/** Of a test server. */
const TICK_MS = 100;

const nextConnected = (zk: ZooKeeper) => new Promise<void>((resolve) => zk.on('connected', () => resolve()));

async function world(options: Parameters<typeof startTestServer>[0] = {}) {
  const server = await startTestServer(options);
  const [zk, other] = await Promise.all([connect(server.connectString), connect(server.connectString)]);
  return {
    server,
    zk,
    other,
    async [Symbol.asyncDispose]() {
      server.resume(); // A client cannot take its leave of a server that does not listen.
      await Promise.all([zk.close(), other.close()]);
      await server.stop();
    },
  };
}

test('sessions are listed with what they hold', async () => {
  await using w = await world();
  await w.zk.create('/a', '', { mode: 'ephemeral' });
  await w.zk.create('/b', '', { mode: 'ephemeral' });
  const { timeoutMs } = w.zk.session;
  expect(new Map(w.server.sessions().map((session) => [session.id, session]))).toEqual(
    new Map([
      [w.zk.session.id, { id: w.zk.session.id, timeoutMs, connected: true, ephemerals: ['/a', '/b'] }],
      [w.other.session.id, { id: w.other.session.id, timeoutMs, connected: true, ephemerals: [] }],
    ]),
  );
});

describe('a session that is expired', () => {
  test('loses its nodes, tells watchers, and its client hears that it is lost', async () => {
    await using w = await world();
    await w.zk.create('/held', '', { mode: 'ephemeral' });
    const events: WatchEvent[] = [];
    await w.other.exists('/held', { watch: (event) => events.push(event) });
    const { session } = w.zk;
    const { id } = session;
    const lost = new Promise<Error>((resolve) => w.zk.on('lost', ({ error }) => resolve(error)));
    const again = nextConnected(w.zk);

    w.server.expireSession(id);

    expect(w.server.sessions().map((each) => each.id)).toEqual([w.other.session.id]);
    expect(await w.other.exists('/held')).toBeUndefined();
    expect(events.map(({ type, path }) => [type, path])).toEqual([['node-deleted', '/held']]);
    const error = await lost;
    expect(error).toBeInstanceOf(SessionLostError);
    expect((error as SessionLostError).lossCause).toBe('expired-by-server');
    await again;
    expect(w.zk.session).not.toBe(session);
    expect(w.zk.session.id).not.toBe(id);
    await w.zk.create('/held', '', { mode: 'ephemeral' });
  });

  test('has its connection cut, without being asked anything', async () => {
    await using server = await startTestServer();
    const connection = await FrameConnection.open(server);
    await connection.handshake({
      ...{ protocolVersion: 0, lastZxidSeen: 0n, timeOut: 30_000, sessionId: 0n, readOnly: false },
      passwd: Buffer.alloc(16),
    });
    server.expireSession(server.sessions()[0]!.id);
    expect((await connection.collect(() => false)).ended).toBe('closed');
  });

  test('is told of at once, though its client is away', async () => {
    await using server = await startTestServer();
    await using proxy = await FaultProxy.start({ target: server });
    // So long a timeout that no heartbeat comes up meanwhile, which would bring the event along.
    await using watcher = await connect(server.connectString, { sessionTimeoutMs: 40_000 });
    const away = await connect(proxy.connectString, { sessionTimeoutMs: 40_000 });
    const { id } = away.session;
    await away.create('/held', '', { mode: 'ephemeral' });
    const events: WatchEvent[] = [];
    await watcher.exists('/held', { watch: (event) => events.push(event) });
    proxy.refuse();
    proxy.resetAll();
    await until('it is away', () => server.sessions().some((each) => each.id === id && !each.connected));
    server.expireSession(id);
    await until('the event', () => events.length === 1, 8_000);
    proxy.heal();
    await away.close();
  });

  test('which there is none of, is a mistake', async () => {
    await using w = await world();
    expect(() => w.server.expireSession(17n)).toThrow(new RangeError('there is no session 0x11'));
    expect(() => w.server.dropConnection(-1n)).toThrow('there is no session 0xffffffffffffffff');
  });

  test('survives nowhere: not in the folder either', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-controls-'));
    try {
      {
        await using server = await startTestServer({ folder });
        const zk = await connect(server.connectString, { sessionTimeoutMs: 30_000 });
        await zk.create('/held', '', { mode: 'ephemeral' });
        const lost = new Promise((resolve) => zk.on('lost', resolve));
        server.expireSession(zk.session.id);
        await lost;
        await zk.close();
      }
      await using server = await startTestServer({ folder });
      expect(server.sessions()).toEqual([]);
      await using zk = await connect(server.connectString);
      expect(await zk.exists('/held')).toBeUndefined();
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
});

test('a connection that is dropped costs no session', async () => {
  await using w = await world();
  await w.zk.create('/held', '', { mode: 'ephemeral' });
  const { id } = w.zk.session;
  const suspended = new Promise<void>((resolve) => w.zk.on('suspended', () => resolve()));
  const again = nextConnected(w.zk);
  w.server.dropConnection(id);
  expect(w.server.sessions().find((session) => session.id === id)).toMatchObject({
    connected: false,
    ephemerals: ['/held'],
  });
  await suspended;
  await again;
  expect(w.zk.session.id).toBe(id);
  expect((await w.other.get('/held')).stat.ephemeralOwner).toBe(id);
});

describe('the sequence counter', () => {
  test('goes on from where it was set', async () => {
    await using w = await world();
    await w.zk.create('/queue', '');
    w.server.setSequence('/queue', 41);
    const made = [];
    for (let index = 0; index < 2; index++) {
      made.push((await w.zk.create('/queue/n-', '', { mode: 'persistent-sequential' })).path);
    }
    expect(made).toEqual(['/queue/n-0000000041', '/queue/n-0000000042']);
  });

  test('stays at its end, where a second child of a prefix is refused', async () => {
    await using w = await world();
    await w.zk.create('/queue', '');
    w.server.setSequence('/queue', 2147483646);
    const make = async (prefix: string) =>
      (await w.zk.create(`/queue/${prefix}`, '', { mode: 'persistent-sequential' })).path;
    expect(await make('n-')).toBe('/queue/n-2147483646');
    expect(await make('n-')).toBe('/queue/n-2147483647');
    await expect(make('n-')).rejects.toMatchObject({ condition: 'node-exists' });
    expect(await make('m-')).toBe('/queue/m-2147483647');
    await w.zk.delete('/queue/n-2147483647');
    expect(await make('n-')).toBe('/queue/n-2147483647');
  });

  test.each([-1, 2147483648, 1.5, Number.NaN])('is no number such as %d', async (next) => {
    await using w = await world();
    expect(() => w.server.setSequence('/', next)).toThrow(RangeError);
    expect(() => w.server.setSequence('/none', 1)).toThrow('there is no node /none');
  });
});

describe('a server that is paused', () => {
  test('neither reads nor answers, on old connections or new ones, until it goes on', async () => {
    await using w = await world();
    w.server.pause();
    expect(w.server.paused).toBe(true);
    let settled = false;
    const created = w.zk.create('/a', '').finally(() => {
      settled = true;
    });
    // Another client gets as far as TCP does, which needs no process.
    const newcomer = connectTcp({ host: w.server.host, port: w.server.port });
    let told = '';
    newcomer.on('data', (chunk) => {
      told += chunk.toString();
    });
    await new Promise<void>((resolve) => newcomer.once('connect', () => resolve()));
    newcomer.write('ruok');
    // Long enough for another server to answer many times over.
    await using witness = await startTestServer();
    for (let index = 0; index < 20; index++) expect(await fourLetterWord(witness, 'ruok')).toBe('imok');
    expect([settled, told]).toEqual([false, '']);

    w.server.resume();
    expect(w.server.paused).toBe(false);
    expect((await created).path).toBe('/a');
    await until('the newcomer is answered', () => told === 'imok');
    newcomer.destroy();
  });

  test('ends no session while it stands, and those whose time is over as soon as it goes on', async () => {
    await using server: TestServer = await startTestServer();
    const [short, long] = await Promise.all([
      connect(server.connectString, { sessionTimeoutMs: 1_500 }),
      connect(server.connectString, { sessionTimeoutMs: 30_000 }),
    ]);
    await short.create('/short', '', { mode: 'ephemeral' });
    await long.create('/long', '', { mode: 'ephemeral' });
    const { session } = short;
    const { id } = session;
    const lost = new Promise<void>((resolve) => short.on('lost', () => resolve()));
    const pausedAtMs = performance.now();
    server.pause();
    await lost; // By its own clock, as nobody answers.
    const dueAtMs = pausedAtMs + session.timeoutMs + TICK_MS;
    await until('its time is over for the server too', () => performance.now() > dueAtMs);
    expect(server.sessions().map((each) => each.id)).toContain(id);
    server.resume();
    expect(server.sessions().map((each) => each.id)).not.toContain(id);
    expect(await long.exists('/short')).toBeUndefined();
    expect((await long.get('/long')).stat.ephemeralOwner).toBe(long.session.id);
    await Promise.all([short.close(), long.close()]);
  });

  test('lets nothing out that comes up meanwhile', async () => {
    await using w = await world();
    await w.other.create('/held', '', { mode: 'ephemeral' });
    const events: WatchEvent[] = [];
    await w.zk.exists('/held', { watch: (event) => events.push(event) });
    w.server.pause();
    w.server.expireSession(w.other.session.id);
    await using witness = await startTestServer();
    for (let index = 0; index < 20; index++) expect(await fourLetterWord(witness, 'ruok')).toBe('imok');
    expect(events).toEqual([]);
    w.server.resume();
    await until('the event', () => events.length === 1);
  });

  test('can be stopped', async () => {
    const server = await startTestServer();
    server.pause();
    await server.stop();
    server.resume();
  });
});

describe('requests that are refused on demand', () => {
  test('have no effect, as many as were ordered', async () => {
    await using w = await world();
    const order = w.server.refuse({ operation: 'create', error: 'throttled-op', times: 2 });
    await expect(w.zk.create('/a', '')).rejects.toMatchObject({
      condition: 'throttled-op',
      outcome: 'not-applied',
    });
    await expect(w.other.create('/a', '')).rejects.toMatchObject({ condition: 'throttled-op' });
    expect(order.count).toBe(2);
    expect(await w.zk.exists('/a')).toBeUndefined();
    await w.zk.create('/a', '');
  });

  test('may be those of one path or one session', async () => {
    await using w = await world();
    const byPath = w.server.refuse({ operation: 'getData', error: 'no-auth', path: '/a', times: 9 });
    const bySession = w.server.refuse({
      operation: 'setData',
      error: 'bad-version',
      session: w.zk.session.id,
    });
    await w.zk.create('/a', '1');
    await w.zk.create('/b', '1');
    await expect(w.zk.get('/a')).rejects.toMatchObject({ condition: 'no-auth' });
    await w.zk.get('/b');
    await w.other.set('/b', '2');
    await expect(w.zk.set('/b', '3')).rejects.toMatchObject({ condition: 'bad-version' });
    await w.zk.set('/b', '4');
    expect([byPath.count, bySession.count]).toEqual([1, 1]);
    byPath.cancel();
    await w.zk.get('/a');
  });

  test('may be a multi that touches a path, as a whole', async () => {
    await using w = await world();
    w.server.refuse({ operation: 'multi', error: 'connection-loss', path: '/b' });
    await w.zk.multi([ops.create('/a', '')]);
    await expect(w.zk.multi([ops.create('/c', ''), ops.create('/b', '')])).rejects.toThrow();
    expect(await w.zk.exists('/c')).toBeUndefined();
    await w.zk.multi([ops.create('/c', ''), ops.create('/b', '')]);
  });

  test('are answered in turn, among those that are not', async () => {
    await using w = await world();
    w.server.refuse({ operation: 'exists', error: 'no-auth', path: '/2' });
    const settled = await Promise.allSettled(['/1', '/2', '/3'].map((path) => w.zk.exists(path)));
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  });

  test('cannot be fewer than one', async () => {
    await using w = await world();
    expect(() => w.server.refuse({ operation: 'sync', error: 'no-auth', times: 0 })).toThrow(RangeError);
  });
});
