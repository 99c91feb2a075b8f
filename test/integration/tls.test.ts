import { readFile } from 'node:fs/promises';
import { createServer } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connect as connectLocks } from '../../src/holdfast.ts';
import { FaultProxy } from '../../src/testing.ts';
import { connect, type TlsOptions } from '../../src/zookeeper.ts';
import { type Certificates, type KeyPair, makeCertificates } from '../support/certificates.ts';
import { startZooKeeper, type ZooKeeperProcess } from '../support/zookeeper-process.ts';

let certificates: Certificates;
let server: ZooKeeperProcess;

beforeAll(async () => {
  certificates = await makeCertificates();
  const { caFile, server: pair } = certificates;
  server = await startZooKeeper({ tls: { ...pair, caFile, clientAuth: 'need' } });
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await certificates[Symbol.asyncDispose]();
});

async function options(ca: string, pair?: KeyPair): Promise<TlsOptions> {
  if (!pair) return { ca: await readFile(ca) };
  return { ca: await readFile(ca), cert: await readFile(pair.certFile), key: await readFile(pair.keyFile) };
}

describe('TLS to a real server that asks for a certificate', () => {
  test.each(['127.0.0.1', 'localhost'])('serves a client that has one, by the name %s', async (host) => {
    const tls = await options(certificates.caFile, certificates.client);
    await using zk = await connect(`${host}:${server.securePort}`, { tls });
    await zk.create(`/tls-${host}`, 'secret', { mode: 'ephemeral' });
    expect((await zk.get(`/tls-${host}`)).data).toEqual(Buffer.from('secret'));
    expect(await zk.whoAmI()).toContainEqual({ authScheme: 'x509', user: 'CN=client,O=Holdfast' });
  });

  test('carries a megabyte', async () => {
    const tls = await options(certificates.caFile, certificates.client);
    await using zk = await connect(`127.0.0.1:${server.securePort}`, { tls });
    await zk.create('/large', Buffer.alloc(1_000_000, 1), { mode: 'ephemeral' });
    expect((await zk.get('/large')).data?.byteLength).toBe(1_000_000);
  });

  test('turns away a client that has none, or one of another authority', async () => {
    for (const pair of [undefined, certificates.otherCaClient]) {
      const tls = await options(certificates.caFile, pair);
      const connecting = connect(`127.0.0.1:${server.securePort}`, { tls, timeoutMs: 1_500 });
      await expect(connecting).rejects.toMatchObject({ code: 'ZK_UNREACHABLE' });
    }
  });
});

describe('an authority that did not sign the server’s certificate', () => {
  const UNSIGNED = /unable to (verify|get)|self-signed certificate in certificate chain/;

  test('is what `connect` ends with, as its cause', async () => {
    const tls = await options(certificates.otherCaFile, certificates.client);
    const error = await connectLocks({
      servers: `127.0.0.1:${server.securePort}`,
      tls,
      timeoutMs: 500,
    }).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: 'ZK_UNREACHABLE', message: expect.stringMatching(UNSIGNED) });
    const [first] = (error as { cause: AggregateError }).cause.errors as Error[];
    expect(first?.cause).toMatchObject({ code: expect.stringMatching(/CERT|SIGNATURE/) });
  });

  test('is what `acquire` ends with when the servers come back with another one', async () => {
    const tls = await options(certificates.caFile, certificates.client);
    const other = certificates.otherCaServer;
    const [cert, key] = await Promise.all([readFile(other.certFile), readFile(other.keyFile)]);
    const impostor = createServer({ cert, key }).on('tlsClientError', () => {});
    await new Promise<void>((resolve) => impostor.listen(0, '127.0.0.1', resolve));
    await using proxy = await FaultProxy.start({ target: { host: '127.0.0.1', port: server.securePort! } });
    try {
      await using holdfast = await connectLocks({ servers: proxy.connectString, tls });
      proxy.retarget({ host: '127.0.0.1', ...(impostor.address() as { port: number }) });
      proxy.resetAll();
      const acquired = holdfast.mutex('tls').acquire({ timeoutMs: 1_000 });
      await expect(acquired).rejects.toMatchObject({
        code: 'LOCK_UNREACHABLE',
        message: expect.stringMatching(UNSIGNED),
        cause: { cause: { errors: expect.anything() } },
      });
    } finally {
      impostor.close();
    }
  });

  test('is not needed by a check of one’s own, which refuses the server by throwing', async () => {
    const tls = {
      ...(await options(certificates.caFile, certificates.client)),
      checkServerIdentity: () => {
        throw new Error('not one of ours');
      },
    };
    const failed = connect(`127.0.0.1:${server.securePort}`, { tls, timeoutMs: 500 });
    await expect(failed).rejects.toMatchObject({
      code: 'ZK_UNREACHABLE',
      message: expect.stringContaining('not one of ours'),
    });
  });
});

describe('a server is turned away', () => {
  const bad: [string, (all: Certificates) => KeyPair, RegExp][] = [
    ['that has an expired certificate', (all) => all.expiredServer, /certificate has expired/],
    ['that has a certificate for another host', (all) => all.wrongHostServer, /does not match|altnames/],
    ['that signed its certificate itself', (all) => all.selfSignedServer, /self-signed/],
    ['whose authority is unknown', (all) => all.otherCaServer, /unable to (verify|get)/],
  ];

  test.each(bad)('%s', async (_what, pick, reason) => {
    const pair = pick(certificates);
    let served = false;
    const impostor = createServer(
      { cert: await readFile(pair.certFile), key: await readFile(pair.keyFile) },
      (socket) => socket.on('data', () => (served = true)).on('error', () => {}),
    );
    impostor.on('tlsClientError', () => {});
    await new Promise<void>((resolve) => impostor.listen(0, '127.0.0.1', resolve));
    const { port } = impostor.address() as { port: number };
    try {
      const tls = await options(certificates.caFile);
      const failed = connect(`127.0.0.1:${port}`, { tls, timeoutMs: 1_000 });
      await expect(failed).rejects.toMatchObject({
        code: 'ZK_UNREACHABLE',
        message: expect.stringMatching(reason),
      });
      expect(served).toBe(false); // Not a byte of ours before it has shown who it is.
    } finally {
      impostor.close();
    }
  });
});
