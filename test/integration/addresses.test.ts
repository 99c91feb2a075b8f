import { createServer, connect as dial, type Server } from 'node:net';
import { describe, expect, test } from 'vitest';
import { FaultProxy } from '../../src/testing/tcp-fault-proxy.ts';
import { connect } from '../../src/zookeeper.ts';
import { sharedStandalone } from '../support/shared-servers.ts';
import { until } from '../support/until.ts';

/** Listens on an IPv6 address and passes everything on to the shared server. */
async function onIpv6(): Promise<Server & AsyncDisposable> {
  const { host, port } = sharedStandalone();
  const server = createServer((socket) => {
    const upstream = dial(port, host);
    socket.pipe(upstream).pipe(socket);
    socket.on('error', () => upstream.destroy());
    upstream.on('error', () => socket.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '::1', resolve));
  return Object.assign(server, {
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => server.close(() => resolve())),
  });
}

describe('server addresses', () => {
  test('may be IPv6', async () => {
    await using server = await onIpv6();
    const { port } = server.address() as { port: number };
    await using zk = await connect(`[::1]:${port}`);
    expect(await zk.exists('/')).toBeDefined();
  });

  test('are asked for anew at every connection', async () => {
    const { host, port } = sharedStandalone();
    await using proxy = await FaultProxy.start({ target: { host, port } });
    const asked: string[] = [];
    // The first two times the name leads nowhere: to nothing, then to an address where nobody listens.
    const answers = [[], ['127.0.0.2'], ['127.0.0.1']];
    const resolve = async (name: string) => {
      asked.push(name);
      return answers[Math.min(asked.length, answers.length) - 1]!;
    };
    await using zk = await connect(`zk.internal:${proxy.port}`, { resolve, dialTimeoutMs: 1_000 });
    expect(asked).toEqual(['zk.internal', 'zk.internal', 'zk.internal']);
    let reconnected = false;
    zk.on('connected', () => {
      reconnected = true;
    });
    proxy.resetAll();
    await until('the client is back', () => reconnected);
    expect(asked).toHaveLength(4);
  });
});
