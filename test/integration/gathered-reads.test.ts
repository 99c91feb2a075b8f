import { describe, expect, test } from 'vitest';
import { startServer } from '../../src/server.ts';
import { connect } from '../../src/zookeeper.ts';
import { CountingTransport } from '../support/counting-transport.ts';
import { looseEnds } from '../support/loose-ends.ts';
import { sharedStandalone } from '../support/shared-servers.ts';
import { until } from '../support/until.ts';

const READS = 1_000;
const READS_IN_ONE = 32;

describe.each(['embedded server', 'ZooKeeper'] as const)('a thousand reads in one tick, %s', (backend) => {
  const serve = async () => {
    const embedded = backend === 'ZooKeeper' ? undefined : await startServer();
    return {
      servers: (embedded ?? sharedStandalone()).connectString,
      [Symbol.asyncDispose]: async () => embedded?.stop(),
    };
  };

  test('are 32 requests, where the server is known to understand it', async () => {
    await using serving = await serve();
    const transport = new CountingTransport();
    await using zk = await connect(serving.servers, { transport, gatherReads: true });
    const reads = await Promise.all(Array.from({ length: READS }, () => zk.get('/zookeeper')));
    expect(reads).toHaveLength(READS);
    expect(transport.traffic.requests).toEqual(
      Array.from({ length: Math.ceil(READS / READS_IN_ONE) }, () => 'multiRead'),
    );
    expect(transport.traffic.writeCount).toBe(1);
  });

  test('are a thousand the first time, and 32 once the server has said its version', async () => {
    await using serving = await serve();
    const transport = new CountingTransport();
    await using zk = await connect(serving.servers, { transport });
    const read = () => Promise.all(Array.from({ length: READS }, () => zk.get('/zookeeper')));
    await read();
    expect(transport.traffic.requests).toEqual(Array.from({ length: READS }, () => 'getData'));
    await until('reads are gathered', async () => {
      transport.reset();
      await read();
      return transport.traffic.requests.length === Math.ceil(READS / READS_IN_ONE);
    });
  });

  test('leave nothing behind when the client is closed before the server has said its version', async () => {
    await using _ends = looseEnds();
    await using serving = await serve();
    const zk = await connect(serving.servers);
    // A busy machine may answer fewer before the time for closing is up; all are settled either way.
    const reads = Promise.allSettled(Array.from({ length: READS }, () => zk.get('/zookeeper')));
    await zk.close();
    expect(await reads).toHaveLength(READS);
  });
});
