// What an operator reads at night: one life of a server, line by line.
import { createHash } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect as connectTcp } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Log } from '../../src/base/log.ts';
import { systemRandom } from '../../src/base/random.ts';
import { Connected } from '../../src/protocol/handshake.ts';
import { JuteReader } from '../../src/protocol/jute-reader.ts';
import { startServer } from '../../src/server/start-server.ts';
import { acls, connect } from '../../src/zookeeper.ts';
import { FrameConnection } from '../differential/frame-client.ts';
import { until } from '../support/until.ts';
import { fourLetterWord } from '../support/zookeeper-process.ts';

interface Line {
  readonly level: string;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-logs-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

function recorder(): { lines: Line[]; log: Log; has(message: string, count?: number): () => boolean } {
  const lines: Line[] = [];
  return {
    lines,
    log: (level, message, fields = {}) => lines.push({ level, message, fields }),
    has:
      (message, count = 1) =>
      () =>
        lines.filter((line) => line.message === message).length >= count,
  };
}

/** What differs from run to run becomes a letter; times and sizes are checked to be whole numbers. */
function told({ level, message, fields }: Line): string {
  const values = Object.entries(fields).map(([name, value]) => {
    if (/Ms$|^bytes$/.test(name)) expect(Number.isInteger(value), `${name} is a whole number`).toBe(true);
    const text = /^(recoveryMs|tookMs|bytes)$/.test(name) ? 'N' : String(value);
    return `${name}=${text}`;
  });
  return `${level} ${message}: ${values.join(' ')}`
    .replaceAll(/127\.0\.0\.1:\d+/g, 'ADDRESS')
    .replaceAll(/0x[0-9a-f]+/g, 'X')
    .replaceAll(/\.[0-9a-f]{16}/g, '.X')
    .replaceAll(folder, 'FOLDER');
}

const NEW = { protocolVersion: 0, lastZxidSeen: 0n, timeOut: 4_000, sessionId: 0n, readOnly: false };

test('a life of a server is told line by line, and nothing else', async () => {
  const { lines, log, has } = recorder();
  const limits = { tickMs: 100, sessionTimeoutMsMin: 200, connectionsMax: 2 };
  const server = await startServer({ folder, log, limits, logBytesMax: 3_000 });

  // A session that is opened, makes the log long enough for a snapshot, and is closed.
  const zk = await connect(server.connectString, { sessionTimeoutMs: 30_000 });
  await zk.create('/kept', 'x'.repeat(4_000));
  await until('a snapshot', has('snapshot taken'));

  // One that is left, taken up again from elsewhere, then asked for with a wrong password, and expires.
  const first = await FrameConnection.open(server);
  const { frames } = await first.handshake({ ...NEW, passwd: Buffer.alloc(16) });
  const { sessionId, passwd } = Connected.read(new JuteReader(frames[0]!));
  const third = await FrameConnection.open(server); // One too many.
  expect((await third.collect(() => false)).ended).toBe('closed');
  await first.drop();
  await until('its end to be noticed', has('connection closed'));
  const second = await FrameConnection.open(server);
  await second.handshake({ ...NEW, sessionId, passwd });
  await second.drop();
  await until('its end to be noticed', has('connection closed', 2));
  const thief = await FrameConnection.open(server);
  await thief.handshake({ ...NEW, sessionId, passwd: Buffer.alloc(16, 1) });
  await thief.drop();
  await until('the session to expire', has('session expired'));

  // Something that does not speak the protocol.
  const babble = connectTcp({ host: server.host, port: server.port }, () => {
    babble.write(Buffer.from([0, 0, 0, 4, 0, 0, 0, 0]));
  });
  babble.on('error', () => {});
  await until('it to be dropped', has('connection dropped'));

  await zk.close();
  await server.stop();
  await server.stop(); // Stopping is told once.
  await (await startServer({ folder, log })).stop();

  expect(lines.map(told)).toEqual([
    'info server started: address=ADDRESS folder=FOLDER recoveryMs=N nodes=4 sessions=0 zxid=X',
    'info session opened: session=X address=ADDRESS timeoutMs=30000',
    'info snapshot taken: file=snapshot.X bytes=N tookMs=N',
    'info session opened: session=X address=ADDRESS timeoutMs=4000',
    'warn connection refused: address=127.0.0.1 reason=too many connections',
    'info connection closed: session=X address=ADDRESS',
    'info session renewed: session=X address=ADDRESS timeoutMs=4000',
    'info connection closed: session=X address=ADDRESS',
    'info session refused: session=X address=ADDRESS reason=wrong password',
    'info session expired: session=X timeoutMs=4000',
    'info connection dropped: address=ADDRESS reason=not a connect request',
    'info session closed: session=X',
    'info server stopped: sessions=0 zxid=X',
    'info server started: address=ADDRESS folder=FOLDER recoveryMs=N nodes=5 sessions=0 zxid=X',
    'info server stopped: sessions=0 zxid=X',
  ]);
});

test('no secret is in any line, nor in what operators may ask for', async () => {
  const passwords: Uint8Array[] = [];
  const random = {
    u32: () => systemRandom.u32(),
    bytes: (count: number) => {
      const bytes = systemRandom.bytes(count);
      passwords.push(bytes);
      return bytes;
    },
  };
  const { lines, log } = recorder();
  const limits = { tickMs: 100, sessionTimeoutMsMin: 200 };
  const server = await startServer({ folder, log, limits, random, fourLetterWords: '*' });
  const credentials = 'ann:canary-4711';
  const zk = await connect(server.connectString, { auth: [{ scheme: 'digest', auth: credentials }] });
  await zk.create('/secret', 'canary-4712', { acl: acls.creatorOnly });
  let text = '';
  for (const word of ['srvr', 'stat', 'cons', 'dump', 'conf', 'envi', 'mntr', 'wchc', 'wchp', 'dirs']) {
    text += await fourLetterWord(server, word);
  }
  await zk.close();
  await server.stop();

  text += lines.map((line) => JSON.stringify(line)).join('\n');
  expect(passwords.length).toBeGreaterThan(0);
  const forms = (bytes: Uint8Array) => [
    Buffer.from(bytes).toString('hex'),
    Buffer.from(bytes).toString('base64'),
    Buffer.from(bytes).toString('latin1'),
    [...bytes].join(','),
  ];
  const digest = createHash('sha1').update(credentials).digest('base64');
  for (const secret of ['canary', digest, ...passwords.flatMap(forms)]) expect(text).not.toContain(secret);
  expect(text).toContain('session opened'); // The text is what it is thought to be.
});
