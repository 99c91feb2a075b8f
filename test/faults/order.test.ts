import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { systemRandom } from '../../src/base/random.ts';
import { TcpTransport } from '../../src/client/tcp-transport.ts';
import type { Transport } from '../../src/client/transport.ts';
import { FaultProxy } from '../../src/testing.ts';
import { connect, type ZooKeeper } from '../../src/zookeeper.ts';
import { looseEnds } from '../support/loose-ends.ts';
import { RawServer } from '../support/raw-server.ts';
import { sharedEnsemble, sharedStandalone } from '../support/shared-servers.ts';
import { until } from '../support/until.ts';

describe('an event', () => {
  test('comes before every read that shows the change, whoever made it', async () => {
    await using _ends = looseEnds();
    const [watching, writing] = sharedEnsemble().servers;
    await using other = await connect(writing!.connectString);
    await using zk = await connect(watching!.connectString);
    const path = `/${randomUUID()}`;
    await other.create(path, '0', { mode: 'ephemeral' });
    await zk.sync();

    for (let round = 1; round <= 50; round++) {
      const happened: string[] = [];
      await zk.get(path, { watch: () => happened.push('event') });
      const written = other.set(path, String(round));
      // Reads go out without a pause, so that some are on their way whenever the event comes.
      let seen = 0;
      const reads: Promise<void>[] = [];
      while (seen < round) {
        for (let burst = 0; burst < 10; burst++) {
          reads.push(
            zk.get(path).then(({ data }) => {
              seen = Number(data);
              if (seen >= round) happened.push('read');
            }),
          );
        }
        await Promise.race(reads.slice(-10));
      }
      await Promise.all([written, ...reads]);
      expect(happened[0]).toBe('event');
      expect(happened.filter((what) => what === 'event')).toHaveLength(1);
    }
  });

  test('comes before the answer to the own write that caused it', async () => {
    await using _ends = looseEnds();
    await using zk = await connect(sharedStandalone().connectString);
    const path = `/${randomUUID()}`;
    for (let round = 0; round < 50; round++) {
      const happened: string[] = [];
      const watch = ({ type }: { type: string }) => happened.push(type);
      await zk.exists(path, { watch });
      await zk.create(path, '', { mode: 'ephemeral' });
      happened.push('created');
      await zk.get(path, { watch });
      await zk.set(path, 'changed').then(() => happened.push('changed'));
      await zk.get(path, { watch });
      await Promise.all([zk.delete(path).then(() => happened.push('deleted')), zk.sync()]);
      expect(happened).toEqual([
        'node-created',
        'created',
        'node-data-changed',
        'changed',
        'node-deleted',
        'deleted',
      ]);
    }
  });

  test('keeps its place among the answers when the bytes come in crumbs', async () => {
    await using _ends = looseEnds();
    await using proxy = await FaultProxy.start({ target: sharedStandalone() });
    await using zk = await connect(proxy.connectString);
    const path = `/${randomUUID()}`;
    await zk.create(path, '', { mode: 'ephemeral' });
    for (const bytesMax of [1, 7, 64]) {
      proxy.slice(bytesMax);
      const happened: string[] = [];
      await zk.get(path, { watch: () => happened.push('event') });
      await Promise.all([
        zk.get(path).then(() => happened.push('read before')),
        zk.set(path, 'changed').then(() => happened.push('written')),
        zk.get(path).then(() => happened.push('read after')),
      ]);
      expect(happened).toEqual(['read before', 'event', 'written', 'read after']);
    }
  });
});

describe('requests made in one tick', () => {
  const COUNT = 100;

  test('leave in one write and arrive as one piece', async () => {
    await using _ends = looseEnds();
    await using proxy = await FaultProxy.start({ target: sharedStandalone() });
    const transport = countingTransport();
    await using zk = await connect(proxy.connectString, { transport });
    const [writes, pieces] = [transport.countWrites(), countPieces(proxy)];
    await Promise.all(Array.from({ length: COUNT }, () => zk.exists('/')));
    expect([writes(), pieces()]).toEqual([1, 1]);
  });

  test('leave in one write when promise reactions of that tick make them', async () => {
    await using _ends = looseEnds();
    const transport = countingTransport();
    await using zk = await connect(sharedStandalone().connectString, { transport });
    const writes = transport.countWrites();
    const afterHops = async (hops: number) => {
      for (let hop = 0; hop < hops; hop++) await null;
      return zk.exists('/');
    };
    // From plain code, not from a promise reaction: only there would the first one leave before the others.
    await new Promise((resolve) => {
      setImmediate(() => resolve(Promise.all(Array.from({ length: COUNT }, (_, hops) => afterHops(hops)))));
    });
    expect(writes()).toBe(1);
  });

  test('leave in one write when the answers that came in one piece make them', async () => {
    await using _ends = looseEnds();
    await using server = await RawServer.start((connection) => connection.grant());
    const transport = countingTransport();
    await using zk = await connect(server.connectString, { transport });
    const writes = transport.countWrites();
    const chains = Array.from({ length: COUNT }, async () => {
      await zk.sync();
      await zk.sync();
    });
    const connection = server.connections[0]!;
    for (let round = 1; round <= 2; round++) {
      const requests = await connection.take(COUNT);
      expect(writes()).toBe(round);
      const answers = requests.map((request) => connection.answerBytes(request, { path: '/' }));
      connection.send(Buffer.concat(answers));
    }
    await Promise.all(chains);
  });

  test('are carried out in the order they were made, whether they waited for a connection or not', async () => {
    await using _ends = looseEnds();
    await using proxy = await FaultProxy.start({ target: sharedStandalone() });
    await using zk = await connect(proxy.connectString, { sessionTimeoutMs: 10_000 });
    const parent = `/${randomUUID()}`;
    await zk.create(parent);
    proxy.resetAll();
    await until('the connection to be known as down', () => zk.session.state === 'suspended');
    const queued = makeNumbered(zk, parent, 0, COUNT);
    await zk.connected();
    await Promise.all([queued, makeNumbered(zk, parent, COUNT, 2 * COUNT)]);
    const names = (await zk.children(parent)).sort();
    const states = await Promise.all(names.map((name) => zk.get(`${parent}/${name}`)));
    expect(states.map(({ data }) => Number(data))).toEqual(names.map((_, index) => index));
    await zk.deleteTree(parent);
  });
});

/** TCP, which also says how often it was written to since it was asked to count. */
function countingTransport(): Transport & { countWrites(): () => number } {
  const tcp = new TcpTransport({ random: systemRandom });
  let count = 0;
  return {
    dial(server, handlers) {
      const link = tcp.dial(server, handlers);
      return {
        write(bytes) {
          count++;
          link.write(bytes);
        },
        destroy: () => link.destroy(),
      };
    },
    countWrites() {
      count = 0;
      return () => count;
    },
  };
}

function countPieces(proxy: FaultProxy): () => number {
  let count = 0;
  proxy.onBytes((direction) => {
    if (direction === 'to-server') count++;
  });
  return () => count;
}

async function makeNumbered(zk: ZooKeeper, parent: string, from: number, to: number): Promise<void> {
  const numbers = Array.from({ length: to - from }, (_, index) => from + index);
  await Promise.all(
    numbers.map((number) => zk.create(`${parent}/n-`, String(number), { mode: 'persistent-sequential' })),
  );
}
