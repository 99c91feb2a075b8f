import { once } from 'node:events';
import { connect as dial, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { type Random, seededRandom } from '../../src/base/random.ts';
import { connectFrame } from '../../src/server/memory-client.test-data.ts';
import { type RunningServer, startServer } from '../../src/server/start-server.ts';
import { connect } from '../../src/zookeeper.ts';
import { until } from '../support/until.ts';
import { fuzzCore } from './fuzz-core.ts';
import { below, fuzzedFrame } from './fuzzed-frames.ts';

const FRAMES = Number(process.env['HOLDFAST_FUZZ_FRAMES'] ?? 200_000);
const TCP_FRAMES = 24_000;
const SEED = Number(process.env['HOLDFAST_FUZZ_SEED'] ?? 1);
const MEBIBYTE = 2 ** 20;

test(`a server core lives through ${FRAMES} fuzzed frames from seed ${SEED} on, and a healthy client with it`, {
  timeout: 300_000,
}, () => {
  const result = fuzzCore({ frames: FRAMES, seed: SEED });
  expect(result.frames).toBeGreaterThanOrEqual(FRAMES);
  expect(result.answered).toBeGreaterThan(FRAMES / 2);
  expect(result.dropped).toBeGreaterThan(FRAMES / 100);
  expect(result.rssGrowthBytes).toBeLessThan(100 * MEBIBYTE);
});

/** Sends fuzzed frames over one socket after the other, until it has sent its share. */
async function attack({ host, port }: RunningServer, random: Random, share: number): Promise<number> {
  let sent = 0;
  let sockets = 0;
  while (sent < share) {
    const socket = dial({ host, port });
    socket.on('error', () => {}); // The server hung up: `close` follows.
    socket.resume();
    sockets++;
    await once(socket, 'connect');
    socket.write(connectFrame());
    while (sent < share && !socket.closed && socket.writable) {
      const frames = Array.from(
        { length: 1 + below(random, 30) },
        () => fuzzedFrame(random, 1 + sent++).bytes,
      );
      await written(socket, Buffer.concat(frames));
    }
    socket.destroy();
  }
  return sockets;
}

function written(socket: Socket, bytes: Buffer): Promise<void> {
  return new Promise((resolve) => {
    socket.write(bytes, () => setImmediate(resolve));
  });
}

test(`a server lives through ${TCP_FRAMES} fuzzed frames over TCP, and a healthy client with it`, {
  timeout: 120_000,
}, async () => {
  await using server = await startServer({ limits: { nodesMax: 5_000 } });
  await using zk = await connect(server.connectString);
  const { path } = await zk.create('/the-home-of-the-healthy', '0', {
    acl: [{ scheme: 'world', id: 'anyone', permissions: ['read', 'write', 'create', 'delete'] }],
  });
  const attacks = Array.from({ length: 8 }, (_, index) =>
    attack(server, seededRandom(SEED + index), TCP_FRAMES / 8),
  );
  let over = false;
  const done = Promise.all(attacks).finally(() => {
    over = true;
  });
  let rounds = 0;
  while (!over) {
    const stat = await zk.set(path, `${rounds + 1}`, { version: rounds });
    expect(stat.version).toBe(++rounds);
    expect((await zk.get(path)).data?.toString()).toBe(`${rounds}`);
  }
  const sockets = await done;
  expect(sockets.reduce((sum, count) => sum + count)).toBeGreaterThan(100);
  expect(rounds).toBeGreaterThan(0);
  await until('the hostile connections are gone', async () => (await connections(server)) === 2);
});

/** As the server counts them, the one that asks included. */
async function connections({ host, port }: RunningServer): Promise<number> {
  const socket = dial({ host, port });
  socket.write('srvr');
  let text = '';
  for await (const chunk of socket) text += chunk;
  return Number(/Connections: (\d+)/.exec(text)?.[1]);
}
