// The endpoint of operators, asked over real HTTP, and compared with ZooKeeper's own AdminServer.
import { mkdtemp, rm } from 'node:fs/promises';
import { get as httpGet, type IncomingMessage } from 'node:http';
import { connect as connectTcp } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { silentLog } from '../../src/base/log.ts';
import { ServerCore } from '../../src/server/server-core.ts';
import { assembleServer, type RunningServer, startServer } from '../../src/server/start-server.ts';
import { TcpAdmin } from '../../src/server/tcp-admin.ts';
import { connect, type ZooKeeper } from '../../src/zookeeper.ts';
import { until } from '../support/until.ts';
import { startZooKeeper, type ZooKeeperProcess } from '../support/zookeeper-process.ts';

type Parsed = Record<string, unknown>;

interface Side {
  readonly server: RunningServer | ZooKeeperProcess;
  readonly url: string;
  readonly zk: ZooKeeper;
}
let ours: Side;
let theirs: Side;
let folder: string;

/** Both with one client that did the same on each. */
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-admin-'));
  const limits = { tickMs: 500, sessionTimeoutMsMin: 1_000 };
  const [own, real] = await Promise.all([
    startServer({ folder, fourLetterWords: '*', limits, admin: {} }),
    startZooKeeper({ tickTimeMs: 500, adminServer: true }),
  ]);
  const side = async (server: Side['server'], url: string): Promise<Side> => {
    // With so long a timeout no ping is sent while this runs, which would be the last operation of one side only.
    const zk = await connect(server.connectString, { sessionTimeoutMs: 40_000 });
    await zk.create('/e', 'x', { mode: 'ephemeral' });
    await zk.create('/p', 'x');
    await zk.addWatch('/p', 'persistent', () => {});
    return { server, url, zk };
  };
  ours = await side(own, own.adminUrl!);
  theirs = await side(real, `http://127.0.0.1:${real.adminPort}`);
});
afterAll(async () => {
  for (const { zk, server } of [ours, theirs]) {
    await zk.close();
    await server[Symbol.asyncDispose]();
  }
  await rm(folder, { recursive: true, force: true });
});

async function ask({ url }: { url: string }, name: string): Promise<Parsed> {
  const response = await fetch(`${url}/commands/${name}`);
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toBe('application/json');
  return (await response.json()) as Parsed;
}

/** The fields, in any order, with the kind of each value. Keys that are ids or paths become a letter. */
function shape(value: unknown): unknown {
  if (value === null || typeof value !== 'object') return value === null ? 'null' : typeof value;
  if (Array.isArray(value)) return value.map(shape);
  const entries = Object.entries(value).map(([key, entry]) => [
    /^[\d/]/.test(key) ? 'KEY' : key,
    shape(entry),
  ]);
  return Object.fromEntries(entries.sort(([a], [b]) => (String(a) < String(b) ? -1 : 1)));
}

/** What ZooKeeper counts and this server does not. */
const NOT_COUNTED = [
  'client_response',
  'client_response_stats',
  'auth_failed_count',
  'non_mtlsremote_conn_count',
  'non_mtlslocal_conn_count',
];

function without(value: unknown, keys: readonly string[]): unknown {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => !keys.includes(key))
      .map(([key, entry]) => [key, without(entry, keys)]),
  );
}

describe('commands answer as those of ZooKeeper’s AdminServer', () => {
  test.each([
    'ruok',
    'connections',
    'cons',
    'watches',
    'watches_by_path',
    'watch_summary',
    'dump',
    'configuration',
    'is_read_only',
    'last_snapshot',
    'dirs',
    'no_such_command',
  ])('%s', async (name) => {
    expect(shape(await ask(ours, name))).toEqual(shape(await ask(theirs, name)));
  });

  test.each(['server_stats', 'srvr', 'stats', 'stat'])(
    '%s, but for what is not counted here',
    async (name) => {
      expect(shape(await ask(ours, name))).toEqual(shape(without(await ask(theirs, name), NOT_COUNTED)));
    },
  );

  test('environment, but for what only a JVM has', async () => {
    const names = async (side: Side, own: string) =>
      Object.keys(await ask(side, 'environment')).filter((name) => !name.startsWith(own));
    expect(await names(ours, 'node.')).toEqual(await names(theirs, 'java.'));
  });

  test('monitor, as far as it goes', async () => {
    const [own, real] = [shape(await ask(ours, 'monitor')), shape(await ask(theirs, 'monitor'))];
    expect(Object.keys(own as Parsed).length).toBeGreaterThan(25);
    expect(real).toMatchObject(own as Parsed);
  });

  test('all that are listed here are listed there', async () => {
    const listed = async ({ url }: Side) =>
      [...(await (await fetch(`${url}/commands`)).text()).matchAll(/<a href="(\/commands\/\w+)">/g)].map(
        ([, path]) => path,
      );
    const [own, real] = [await listed(ours), await listed(theirs)];
    expect(own).toHaveLength(14);
    expect(real).toEqual(expect.arrayContaining(own));
  });

  test('session ids are whole', async () => {
    const text = await (await fetch(`${ours.url}/commands/dump`)).text();
    expect(text).toContain(`[\n      ${ours.zk.session.id}\n    ]`);
    expect(text).toContain(`"${ours.zk.session.id}": [\n      "/e"\n    ]`);
  });
});

describe('metrics', () => {
  test('are in Prometheus’ text format, each with its help and type', async () => {
    const response = await fetch(`${ours.url}/metrics`);
    expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    const text = await response.text();
    const declared = new Map<string, string>();
    const seen = new Set<string>();
    for (const line of text.trimEnd().split('\n')) {
      const type = /^# TYPE ([a-z_]+) (gauge|counter|summary)$/.exec(line);
      if (type) {
        expect(declared.has(type[1]!), `${type[1]} is declared once`).toBe(false);
        declared.set(type[1]!, type[2]!);
      } else if (!/^# HELP [a-z_]+ \S.*$/.test(line)) {
        const sample = /^([a-z_]+?)(_count|_sum)?(\{reason="[a-z-]+"\})? -?\d+(\.\d+)?(e[+-]\d+)?$/.exec(
          line,
        );
        expect(sample, line).not.toBeNull();
        const full = `${sample![1]}${sample![2] ?? ''}`;
        const name = declared.has(full) ? full : sample![1]!;
        expect(declared.has(name), `${line} is declared before`).toBe(true);
        expect(seen.has(line.split(' ')[0]!), `${line} is there once`).toBe(false);
        seen.add(line.split(' ')[0]!);
      }
    }
    expect(declared.size).toBeGreaterThan(30);
  });

  test('bear ZooKeeper’s names where it has them', async () => {
    const real = Object.keys(await ask(theirs, 'monitor'));
    const text = await (await fetch(`${ours.url}/metrics`)).text();
    const names = [...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)].flatMap(([, name, type]) =>
      type === 'summary' ? [`cnt_${name}`, `sum_${name}`] : [name!],
    );
    const shared = names.filter((name) => !name.includes('holdfast_'));
    expect(shared.length).toBeGreaterThan(20);
    expect(shared.filter((name) => !real.includes(name))).toEqual([]);
    // Nothing is ours that ZooKeeper has under the same name.
    const own = names
      .filter((name) => name.startsWith('holdfast_'))
      .map((name) => name.slice('holdfast_'.length));
    expect(own.filter((name) => real.includes(name.replace(/_total$/, '')))).toEqual([]);
  });

  test('count what happens', async () => {
    await using server = await startServer({
      admin: {},
      limits: { tickMs: 100, sessionTimeoutMsMin: 200, connectionsMax: 2 },
    });
    const value = async (name: string) => {
      const text = await (await fetch(`${server.adminUrl}/metrics`)).text();
      return Number(
        text
          .split('\n')
          .find((line) => line.startsWith(`${name} `))!
          .split(' ')[1],
      );
    };
    const zk = await connect(server.connectString);
    await zk.create('/a', 'x', { mode: 'ephemeral' });
    expect(await value('ephemerals_count')).toBe(1);
    expect(await value('znode_count')).toBe(5);
    expect(await value('num_alive_connections')).toBe(1);
    await using other = await connect(server.connectString);
    await other.exists('/', { watch: () => {} });
    expect(await value('watch_count')).toBe(1);
    const third = connectTcp({ host: server.host, port: server.port });
    third.on('error', () => {});
    await new Promise((resolve) => third.once('close', resolve));
    expect(await value('connection_rejected')).toBe(1);
    await zk.close();
    // The one that has left may keep its place for a moment longer.
    await until('a stranger is let in, and dropped for what it says', async () => {
      const babble = connectTcp({ host: server.host, port: server.port }, () => babble.write('not a frame'));
      babble.on('error', () => {});
      await new Promise((resolve) => babble.once('close', resolve));
      return (await value('connection_drop_count')) > 0;
    });
    expect(await value('connection_drop_count')).toBe(1);
    expect(await value('holdfast_connections_dropped_total{reason="protocol"}')).toBe(1);
    expect(await value('holdfast_sessions_opened_total')).toBe(2);
    expect(await value('holdfast_sessions_closed_total')).toBe(1);
    expect(await value('ephemerals_count')).toBe(0);
    expect(await value('holdfast_writes_refused')).toBe(0);
  });

  test('tell of the disk', async () => {
    const text = await (await fetch(`${ours.url}/metrics`)).text();
    const value = (name: string) => Number(new RegExp(`^${name} (.*)$`, 'm').exec(text)?.[1]);
    expect(value('fsynctime_count')).toBeGreaterThanOrEqual(3);
    expect(value('fsynctime_sum')).toBeGreaterThan(0);
    expect(value('holdfast_log_bytes_total')).toBeGreaterThan(100);
    expect(value('holdfast_folder_bytes')).toBeGreaterThan(value('holdfast_log_bytes_total'));
  });
});

test('health is bad once the disk takes no writes, and says why', async () => {
  const { core, running } = await assembleServer({ admin: {} });
  await using server = running;
  const healthy = await fetch(`${server.adminUrl}/healthz`);
  expect([healthy.status, await healthy.json()]).toEqual([200, { status: 'ok' }]);
  core.storeFailed(new Error('ENOSPC: no space left on device, write'));
  const sick = await fetch(`${server.adminUrl}/healthz`);
  expect([sick.status, await sick.json()]).toEqual([
    503,
    { status: 'writes are refused', reason: 'ENOSPC: no space left on device, write' },
  ]);
  expect(await (await fetch(`${server.adminUrl}/metrics`)).text()).toContain('\nholdfast_writes_refused 1\n');
});

describe('who may ask, and what', () => {
  test('nobody unless it is turned on', async () => {
    await using server = await startServer();
    expect(server.adminUrl).toBeUndefined();
  });

  test('commands that name clients or paths, only where their four-letter words are answered', async () => {
    await using server = await startServer({ admin: {} });
    const statuses: Record<string, number> = {};
    for (const { name } of await commandNames()) {
      statuses[name] = (await fetch(`${server.adminUrl}/commands/${name}`)).status;
    }
    const allowed = Object.keys(statuses).filter((name) => statuses[name] === 200);
    expect(allowed).toEqual(['is_read_only', 'last_snapshot', 'monitor', 'ruok', 'server_stats']);
    expect(Object.values(statuses).filter((status) => status === 403)).toHaveLength(9);
    const refused = await fetch(`${server.adminUrl}/commands/cons`);
    expect(await refused.json()).toEqual({
      command: 'connections',
      error: 'cons is not executed because it is not in the whitelist.',
    });
    expect((await (await fetch(`${server.adminUrl}/commands`)).text()).match(/<a /g)).toHaveLength(5);
    expect((await fetch(`${server.adminUrl}/metrics`)).status).toBe(200);
  });

  test('GET and HEAD, and nothing else', async () => {
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']) {
      const response = await fetch(`${ours.url}/commands/ruok`, { method });
      expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
    }
    const head = await fetch(`${ours.url}/metrics`, { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
    expect(Number(head.headers.get('content-length'))).toBeGreaterThan(1_000);
    expect((await fetch(`${ours.url}/`)).status).toBe(404);
  });

  test.each([
    ['127.0.0.1:1', 200],
    ['localhost', 200],
    ['LOCALHOST:8080', 200],
    ['[::1]:80', 200],
    ['evil.example', 403],
    ['127.0.0.1.evil.example:80', 403],
    ['localhost.evil.example', 403],
    ['[::1].evil.example', 403],
  ])('under the name %j: %i', async (host, status) => {
    const port = Number(new URL(ours.url).port);
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      httpGet({ host: '127.0.0.1', port, path: '/metrics', headers: { host } }, resolve).on('error', reject);
    });
    response.resume();
    expect(response.statusCode).toBe(status);
  });

  test('at an address of IPv6', async () => {
    await using server = await startServer({ host: '::1', admin: { host: '::1' } });
    await using _zk = await connect(server.connectString);
    expect(server.connectString).toMatch(/^\[::1\]:\d+$/);
    expect((await fetch(`${server.adminUrl}/healthz`)).status).toBe(200);
  });

  test('under the name it was given', async () => {
    await using server = await startServer({ admin: { host: 'localhost' } });
    expect(server.adminUrl).toMatch(/^http:\/\/localhost:\d+$/);
    expect((await fetch(`${server.adminUrl}/healthz`)).status).toBe(200);
  });

  test('no password is ever told', async () => {
    const passwords: string[] = [];
    const random = {
      u32: () => 7,
      bytes: (count: number) => {
        passwords.push('p'.repeat(count));
        return Buffer.alloc(count, 'p');
      },
    };
    await using server = await startServer({ admin: {}, fourLetterWords: '*', random });
    await using zk = await connect(server.connectString, {
      auth: [{ scheme: 'digest', auth: 'ann:canary-4711' }],
    });
    await zk.create('/e', 'canary-4712', { mode: 'ephemeral' });
    let text = await (await fetch(`${server.adminUrl}/metrics`)).text();
    for (const { name } of await commandNames()) {
      text += await (await fetch(`${server.adminUrl}/commands/${name}`)).text();
    }
    expect(text).toContain('"/e"');
    for (const secret of ['canary', ...passwords, Buffer.alloc(16, 'p').toString('base64'), '70707070']) {
      expect(text).not.toContain(secret);
    }
  });
});

async function commandNames(): Promise<readonly { readonly name: string }[]> {
  return (await import('../../src/server/admin-commands.ts')).adminCommands;
}

describe('a peer that takes its time holds nothing for long', () => {
  async function impatient() {
    const core = new ServerCore({ clock: systemClock, fourLetterWords: '*' });
    let overdueCount = 0;
    const clock: Clock = {
      ...systemClock,
      at: (atMs, run) =>
        systemClock.at(atMs, () => {
          overdueCount++;
          run();
        }),
    };
    const admin = new TcpAdmin(core, {
      host: '127.0.0.1',
      clock,
      log: silentLog,
      limits: { connectionsMax: 2, headerBytesMax: 2_048, headersMs: 300, answerMs: 500 },
    });
    const port = Number(new URL(await admin.listen(0)).port);
    return { core, port, overdueCount: () => overdueCount, [Symbol.asyncDispose]: () => admin.close() };
  }
  /** What a connection that sends these bytes is told before it is closed from the other side. */
  const toldUntilClosed = (port: number, bytes: string) =>
    new Promise<string>((resolve) => {
      let text = '';
      const socket = connectTcp({ host: '127.0.0.1', port }, () => socket.write(bytes));
      socket.on('data', (chunk) => {
        text += chunk.toString('latin1');
      });
      socket.on('error', () => {});
      socket.on('close', () => resolve(text));
    });

  test.each([
    ['says nothing', ''],
    ['does not end its headers', 'GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-Slow: '],
    ['keeps its connection for another day', 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n'],
    [
      'never sends the body it promised',
      'GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n',
    ],
  ])('one that %s', async (_what, bytes) => {
    await using admin = await impatient();
    await toldUntilClosed(admin.port, bytes);
  });

  test('one whose headers are too long', async () => {
    await using admin = await impatient();
    const told = await toldUntilClosed(admin.port, `GET / HTTP/1.1\r\nX: ${'x'.repeat(4_096)}\r\n\r\n`);
    expect(told).toMatch(/^HTTP\/1\.1 431 /);
  });

  test('one that does not read a long answer', async () => {
    await using admin = await impatient();
    for (let index = 0; index < 100_000; index++) {
      admin.core.watches.watchData(`/a/rather/long/path/${'x'.repeat(100)}/${index}`, {} as never);
    }
    const socket = connectTcp({ host: '127.0.0.1', port: admin.port });
    socket.on('error', () => {});
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.pause();
    socket.write('GET /commands/watches HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await until('its time is over', () => admin.overdueCount() === 1);
    const chunks: Buffer[] = [];
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.resume();
    await closed;
    const told = Buffer.concat(chunks);
    expect(told.toString('latin1', 0, 20)).toMatch(/^HTTP\/1\.1 200 /);
    expect(told.byteLength).toBeLessThan(10_000_000);
    expect(told.toString('latin1').endsWith('\r\n0\r\n\r\n')).toBe(false); // As an answer ends that is whole.
  });

  test('more than may be are turned away, and do not keep those that are served', async () => {
    await using admin = await impatient();
    const ends: Promise<string>[] = [];
    for (let index = 0; index < 5; index++) ends.push(toldUntilClosed(admin.port, ''));
    await Promise.all(ends);
    await until('it answers again', async () => {
      const response = await fetch(`http://127.0.0.1:${admin.port}/healthz`).catch(() => undefined);
      return response?.status === 200;
    });
  });
});

test('a port that is taken ends the start, and gives everything back', async () => {
  const taken = Number(new URL(ours.url).port);
  const own = await mkdtemp(join(tmpdir(), 'holdfast-admin-taken-'));
  try {
    await expect(startServer({ folder: own, admin: { port: taken } })).rejects.toThrow('EADDRINUSE');
    await (await startServer({ folder: own })).stop(); // The folder is free again.
  } finally {
    await rm(own, { recursive: true, force: true });
  }
});

test('what is very long is shown whole, in parts', async () => {
  await using server = await startServer({ admin: {}, fourLetterWords: '*' });
  await using zk = await connect(server.connectString);
  const paths = Array.from({ length: 3_000 }, (_, index) => `/nowhere/${'x'.repeat(30)}-${index}`);
  await Promise.all(paths.map((path) => zk.exists(path, { watch: () => {} })));
  const { path_to_session_ids: shown } = await ask({ url: server.adminUrl! }, 'watches_by_path');
  expect(Object.keys(shown as Parsed).sort()).toEqual([...paths].sort());
  const socket = connectTcp({ host: server.host, port: server.port });
  socket.write('wchp');
  let text = '';
  for await (const chunk of socket) text += chunk;
  expect(
    text
      .split('\n')
      .filter((line) => line.startsWith('/'))
      .sort(),
  ).toEqual([...paths].sort());
});
