import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FaultProxy } from '../../src/testing/tcp-fault-proxy.ts';
import { connect } from '../../src/zookeeper.ts';
import { until } from '../support/until.ts';
import { startZooKeeper, type ZooKeeperProcess } from '../support/zookeeper-process.ts';

let server: ZooKeeperProcess;
beforeAll(async () => {
  server = await startZooKeeper({ saslUsers: { bob: 'bob"s pässword', alice: 'alicepw' } });
});
afterAll(() => server[Symbol.asyncDispose]());

describe('SASL DIGEST-MD5', () => {
  test('makes the user known to the server, and its nodes its own', async () => {
    await using bob = await connect(server.connectString, {
      sasl: { username: 'alice', password: 'alicepw' },
    });
    expect(await bob.whoAmI()).toContainEqual({ authScheme: 'sasl', user: 'alice' });
    const acl = [{ scheme: 'sasl', id: 'alice', permissions: ['all'] }] as const;
    await bob.create('/alice', 'hers', { acl, mode: 'ephemeral' });
    await using anyone = await connect(server.connectString);
    await expect(anyone.get('/alice')).rejects.toMatchObject({ code: 'ZK_NO_AUTH' });
    expect((await bob.get('/alice')).data).toEqual(Buffer.from('hers'));
  });

  test('is repeated on every connection', async () => {
    await using proxy = await FaultProxy.start({ target: { host: server.host, port: server.port } });
    await using zk = await connect(proxy.connectString, { sasl: { username: 'alice', password: 'alicepw' } });
    const { id } = zk.session;
    let reconnected = false;
    zk.on('connected', () => {
      reconnected = true;
    });
    proxy.resetAll();
    await until('the client is back', () => reconnected);
    expect(zk.session.id).toBe(id);
    expect(await zk.whoAmI()).toContainEqual({ authScheme: 'sasl', user: 'alice' });
  });

  test('fails for a wrong password, once and for all', async () => {
    await using proxy = await FaultProxy.start({ target: { host: server.host, port: server.port } });
    const failed = connect(proxy.connectString, { sasl: { username: 'alice', password: 'wrong' } });
    await expect(failed).rejects.toMatchObject({ code: 'ZK_AUTH_FAILED', outcome: 'not-applied' });
    expect(proxy.acceptedCount).toBe(1);
  });
});
