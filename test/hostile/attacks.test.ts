import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { xids } from '../../src/protocol/operations.ts';
import { connectFrame, node, requestFrame } from '../../src/server/memory-client.test-data.ts';
import { connect } from '../../src/zookeeper.ts';
import { makeCertificates } from '../support/certificates.ts';
import { until } from '../support/until.ts';
import { AttackedServer } from './attacked-server.ts';
import { RawPeer } from './raw-peer.ts';

const MEBIBYTE = 2 ** 20;
/** What the server may grow by under any attack here: what it holds for the peers, and garbage not collected yet. */
const MEMORY_GROWTH_MAX = 300 * MEBIBYTE;
/** The plan says 200 ms on a machine of its own; this one runs other tests. What was measured is printed. */
const P99_MS_MAX = 2_000;
const LIMITS = {
  tickMs: 250,
  sessionTimeoutMsMin: 1_000,
  handshakeMs: 1_500,
  tlsHandshakeMs: 1_000,
  lingerMs: 1_000,
} as const;
/** In two megabytes. */
const PINGS = 100;
const PADDED_PINGS = 1;
/** How late the server may be with something that it does by the clock. */
const LATE_MS = 8_000;

let server: AttackedServer;
let baseFiles: number;
let baseMemory: number;
beforeAll(async () => {
  server = await AttackedServer.start({ limits: LIMITS }, { probed: true });
  for (let index = 0; index < 50; index++)
    await (await RawPeer.connected(server, { timeOut: 1_000 }))[Symbol.asyncDispose](); // Warm.
  await until('the warm-up is over', async () => (await server.ask('srvr')).includes('Connections: 2'));
  baseFiles = server.openFiles;
  baseMemory = server.memoryBytes;
});
afterAll(() => server[Symbol.asyncDispose]());

beforeEach(() => server.probed().then(() => {}));
afterEach(async ({ task }) => {
  const { count, p99Ms, maxMs, lost } = await server.probed();
  const grown = server.memoryBytes - baseMemory;
  await server.untilFilesAreBackTo(baseFiles);
  console.log(
    `${task.name}: ${count} probes, p99 ${p99Ms.toFixed(0)} ms, max ${maxMs.toFixed(0)} ms, ` +
      `memory ${(baseMemory / MEBIBYTE) | 0} + ${(grown / MEBIBYTE) | 0} MiB, ${server.openFiles} of ${baseFiles} files`,
  );
  expect(server.alive).toBe(true);
  expect(lost).toBe(false);
  expect(count).toBeGreaterThan(0);
  expect(p99Ms).toBeLessThan(P99_MS_MAX);
  expect(grown).toBeLessThan(MEMORY_GROWTH_MAX);
});

const length = (bytes: number) => {
  const out = Buffer.alloc(4);
  out.writeInt32BE(bytes);
  return out;
};
const many = <T>(count: number, make: (index: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, index) => make(index)));
const destroyAll = (peers: readonly RawPeer[]) => {
  for (const { socket } of peers) socket.destroy();
};

describe('a server is not hurt by', () => {
  test('length bombs', async () => {
    const bombs = await many(300, () => RawPeer.connected(server, { timeOut: 40_000 }));
    for (const peer of bombs) peer.send(length(0x7fffffff));
    await Promise.all(bombs.map((peer) => peer.close()));
  });

  test('frames that are announced and never sent', async () => {
    const liars = await many(500, () => RawPeer.connected(server, { timeOut: 1_000 }));
    for (const peer of liars) peer.send(Buffer.concat([length(0xfffff), Buffer.alloc(100)]));
    await Promise.all(liars.map((peer) => peer.close(1_000 + LATE_MS)));
  });

  test('thousands of idle sessions', { timeout: 60_000 }, async () => {
    const [, filesMax] = /Max open files\s+\d+\s+(\d+)/.exec(readFileSync('/proc/self/limits', 'utf8'))!;
    const count = Math.min(5_000, Math.floor(Number(filesMax) * 0.4));
    const idle: RawPeer[] = [];
    for (let done = 0; done < count; done += 250)
      idle.push(...(await many(250, () => RawPeer.connected(server, { timeOut: 20_000 }))));
    expect(await server.ask('srvr')).toContain(`Connections: ${idle.length + 2}`);
    expect(server.openFiles).toBeGreaterThanOrEqual(idle.length);
    expect(server.memoryBytes - baseMemory).toBeLessThan(MEMORY_GROWTH_MAX);
    const frame = requestFrame(xids.ping, 'ping');
    for (const peer of idle) peer.send(frame);
    await Promise.all(idle.map((peer) => peer.replies(xids.ping)));
    for (const peer of idle) peer.send(requestFrame(1, 'closeSession'));
    await Promise.all(idle.map((peer) => peer.close(LATE_MS)));
  });

  test('a watcher that never reads', async () => {
    await using zk = await connect(`127.0.0.1:${server.port}`);
    const path = `/${'busy'.repeat(5_000)}`;
    await zk.create(path);
    const watcher = await RawPeer.connected(server, { timeOut: 40_000 });
    watcher.send(requestFrame(1, 'addWatch', { path, mode: 0 }));
    await watcher.replies(1);
    watcher.socket.pause();
    // Some is taken by the machine's own buffers; then it is cut, long before its session would be over.
    let events = 0;
    for (; (await server.ask('srvr')).includes('Connections: 4') && events < 5_000; events += 200)
      await many(200, () => zk.set(path, 'x'));
    expect(events).toBeLessThan(5_000);
    await zk.delete(path);
    watcher.socket.destroy();
  });

  test('readers that ask for much and take nothing', async () => {
    await using zk = await connect(`127.0.0.1:${server.port}`);
    await zk.create('/large', Buffer.alloc(1_000_000));
    const peers = await many(20, () => RawPeer.connected(server, { timeOut: 1_000 }));
    const requests = Buffer.concat(
      Array.from({ length: 1_000 }, (_, index) =>
        requestFrame(index, 'getData', { path: '/large', watch: false }),
      ),
    );
    for (const peer of peers) {
      peer.socket.pause();
      peer.send(requests);
    }
    // Nothing more is heard of them, so their sessions end.
    await server.untilFilesAreBackTo(baseFiles + 1, 1_000 + LATE_MS);
    destroyAll(peers);
    await zk.delete('/large');
  });

  test('64 MB of pings in one go, each of which is answered', { timeout: 60_000 }, async () => {
    const peer = await RawPeer.connected(server, { timeOut: 40_000 });
    const ping = requestFrame(xids.ping, 'ping');
    // A hundred thousand small ones, and a thousand long ones for the weight.
    const padded = Buffer.concat([length(64_000), ping.subarray(4), Buffer.alloc(63_992)]);
    const chunk = Buffer.concat([
      ...Array<Buffer>(PINGS).fill(ping),
      ...Array<Buffer>(PADDED_PINGS).fill(padded),
    ]);
    const rounds = Math.ceil((64 * MEBIBYTE) / chunk.byteLength);
    let answered = 0;
    peer.socket.removeAllListeners('data');
    peer.socket.on('data', (bytes: Buffer) => {
      answered += bytes.byteLength / 20;
    });
    for (let round = 0; round < rounds; round++) peer.send(chunk);
    await until('all are answered', () => answered === rounds * (PINGS + PADDED_PINGS), 50_000);
    peer.socket.destroy();
  });

  test('resets in the middle of a multi, which happens or does not', async () => {
    await using zk = await connect(`127.0.0.1:${server.port}`);
    await zk.create('/resets');
    await many(100, async (index) => {
      const peer = await RawPeer.connected(server, { timeOut: 1_000 });
      const multi = requestFrame(1, 'multi', [
        { op: 'create', request: node(`/resets/${index}-a`) },
        { op: 'create', request: node(`/resets/${index}-b`) },
      ]);
      peer.send(multi.subarray(0, index % 2 === 0 ? multi.byteLength - 1 - (index % 60) : multi.byteLength));
      await new Promise<void>((resolve) => {
        peer.socket.write('', () => resolve());
      });
      peer.socket.resetAndDestroy();
    });
    await server.untilFilesAreBackTo(baseFiles + 1);
    const children = await zk.children('/resets');
    const halves = children.filter(
      (name) => !children.includes(name.replace(/.$/, name.endsWith('a') ? 'b' : 'a')),
    );
    expect(halves).toEqual([]);
    // Cut short, none can have happened.
    expect(children.filter((name) => Number.parseInt(name, 10) % 2 === 0)).toEqual([]);
    await zk.deleteTree('/resets');
  });

  test('thousands who come and go', { timeout: 60_000 }, async () => {
    const sessions = async () => Number(/zk_global_sessions\t(\d+)/.exec(await server.ask('mntr'))?.[1]);
    const before = await sessions(); // Those of earlier attacks may end meanwhile, but are fewer than the new ones.
    for (let done = 0; done < 2_000; done += 100) {
      await many(100, async (index) => {
        const peer = await RawPeer.dial(server);
        if (index % 3 > 0) {
          peer.send(connectFrame({ timeOut: 1_000 }));
          await peer.handshakeAnswer();
        }
        if (index % 3 === 1) {
          peer.send(requestFrame(1, 'closeSession'));
          await peer.close();
        }
        if (index % 2 === 0) peer.socket.resetAndDestroy();
        else peer.socket.destroy();
      });
    }
    await until('their sessions are over', async () => (await sessions()) <= before, 1_000 + LATE_MS);
  });

  test('peers that fall silent, and do not hang up when told to', async () => {
    const silent = await many(100, () => RawPeer.connected(server, { timeOut: 1_000, halfOpen: true }));
    const told = await many(100, () => RawPeer.connected(server, { timeOut: 40_000, halfOpen: true }));
    for (const peer of told) peer.send(requestFrame(1, 'closeSession'));
    await Promise.all(told.map((peer) => peer.replies(1)));
    await Promise.all([...silent, ...told].map((peer) => peer.close(1_000 + LATE_MS)));
    await server.untilFilesAreBackTo(baseFiles, LIMITS.lingerMs + LATE_MS);
    destroyAll([...silent, ...told]);
  });

  test('handshakes at a byte now and then, or none', async () => {
    const slow = await many(200, () => RawPeer.dial(server));
    const silent = await many(200, () => RawPeer.dial(server));
    const frame = connectFrame();
    let at = 0;
    const dribble = setInterval(() => {
      for (const peer of slow) if (!peer.closed) peer.send(frame.subarray(at, at + 1));
      at++;
    }, 200);
    await Promise.all([...slow, ...silent].map((peer) => peer.close(LIMITS.handshakeMs + LATE_MS)));
    clearInterval(dribble);
    expect(at).toBeLessThan(frame.byteLength);
  });
});

describe('a server with TLS', () => {
  test('is not hurt by handshakes that stall, and lets so many in', async () => {
    await using certificates = await makeCertificates();
    const { caFile, server: pair } = certificates;
    const tls = { cert: readFileSync(pair.certFile, 'utf8'), key: readFileSync(pair.keyFile, 'utf8') };
    await using secure = await AttackedServer.start(
      { limits: { ...LIMITS, connectionsMax: 60 }, tls },
      { probed: false },
    );
    const files = secure.openFiles;
    const stalled = await many(50, () => RawPeer.dial(secure));
    for (const peer of stalled.slice(25)) peer.send(Buffer.from('1603010200010001fc0303', 'hex'));
    const zk = await connect(`127.0.0.1:${secure.port}`, { tls: { ca: readFileSync(caFile) } });
    expect(await zk.exists('/')).toBeDefined();
    const more = await many(30, () => RawPeer.dial(secure));
    await until('the excess is closed', () => more.filter((peer) => peer.closed).length >= 21);
    await Promise.all([...stalled, ...more].map((peer) => peer.close(LIMITS.tlsHandshakeMs + LATE_MS)));
    expect(await zk.exists('/')).toBeDefined();
    await zk.close();
    await secure.untilFilesAreBackTo(files);
  });
});
