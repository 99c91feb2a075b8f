import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { FaultProxy } from '../../src/testing.ts';
import { AuthFailedError, connect, ZooKeeper } from '../../src/zookeeper.ts';
import { looseEnds } from '../support/loose-ends.ts';
import { RawServer } from '../support/raw-server.ts';
import { sharedStandalone } from '../support/shared-servers.ts';
import { until } from '../support/until.ts';

const BAD_SCHEME = 'no-such-scheme';
/** Longer than a client waits before it dials again. */
const RECONNECT_MS_MIN = 500;

describe('credentials that a server refuses', () => {
  test('end the client: every call rejects, it does not dial again, and closes', async () => {
    await using _ends = looseEnds();
    await using proxy = await FaultProxy.start({ target: sharedStandalone() });
    await using zk = await connect(proxy.connectString);
    const { session } = zk;
    const lost: unknown[] = [];
    zk.on('lost', ({ error }) => lost.push(error));
    const refusal = await zk.addAuth(BAD_SCHEME, 'x').catch((reason: unknown) => reason);
    expect(refusal).toBeInstanceOf(AuthFailedError);
    expect(refusal).toMatchObject({ message: expect.stringContaining(BAD_SCHEME) });
    await expectRefused([
      zk.get('/'),
      zk.create('/never'),
      zk.addAuth('digest', 'a:b'),
      zk.connected({ timeoutMs: 2_000 }),
    ]);
    expect(lost).toEqual([refusal]);
    expect(session.lost.reason).toBe(refusal);
    await delay(RECONNECT_MS_MIN);
    expect(proxy.acceptedCount).toBe(1);
    await zk.close();
  });

  test('reject what is in flight at that moment', async () => {
    await using _ends = looseEnds();
    await using server = await RawServer.start(async (connection) => {
      await connection.grant();
      const requests = await connection.take(4);
      connection.refuse(requests.find(({ operation }) => operation === 'auth')!, -115);
      connection.destroy();
    });
    await using zk = await connect(server.connectString);
    const [read, written] = await expectRefused([
      zk.get('/before'),
      zk.set('/before', ''),
      zk.addAuth(BAD_SCHEME, 'x'),
      zk.get('/behind'),
    ]);
    expect([read?.outcome, written?.outcome]).toEqual(['unknown', 'unknown']);
    await delay(RECONNECT_MS_MIN);
    expect(server.connections).toHaveLength(1);
  });

  // A server executes what it has read before the credentials, but closes without answering it.
  test('do not make a write that was sent before them one that has not happened', async () => {
    await using _ends = looseEnds();
    await using observer = await connect(sharedStandalone().connectString);
    await using zk = await connect(sharedStandalone().connectString);
    const parent = `/${randomUUID()}`;
    await zk.create(parent);
    const names = Array.from({ length: 20 }, (_, index) => String(index));
    const writes = names.map((name) => zk.create(`${parent}/${name}`));
    const refused = zk.addAuth(BAD_SCHEME, 'x').catch((reason: unknown) => reason);
    const settled = await Promise.allSettled(writes);
    await refused;
    await zk.close();
    await observer.sync();
    const made = await observer.children(parent);
    const saidNotToBe = names.filter((_, index) => {
      const result = settled[index]!;
      return result.status === 'rejected' && result.reason.outcome === 'not-applied';
    });
    expect(saidNotToBe.filter((name) => made.includes(name))).toEqual([]);
    await observer.deleteTree(parent);
  });

  test('make `connect` reject when it was given them', async () => {
    await using _ends = looseEnds();
    await using proxy = await FaultProxy.start({ target: sharedStandalone() });
    const auth = [
      { scheme: 'digest', auth: 'user:password' },
      { scheme: BAD_SCHEME, auth: 'x' },
    ];
    const result = await connect(proxy.connectString, { auth }).then(
      async (zk) => {
        await zk.close();
        return 'connected';
      },
      (reason: unknown) => reason,
    );
    expect(result).toBeInstanceOf(AuthFailedError);
    await delay(RECONNECT_MS_MIN);
    expect(proxy.acceptedCount).toBe(1);
  });

  test('reject what waited for the first connection, and nothing twice', async () => {
    await using _ends = looseEnds();
    await using proxy = await FaultProxy.start({ target: sharedStandalone() });
    await using zk = ZooKeeper.open(proxy.connectString, { auth: [{ scheme: BAD_SCHEME, auth: 'x' }] });
    const outcomes: string[] = [];
    const calls = Array.from({ length: 10 }, () =>
      zk.set('/zookeeper', '').then(
        () => outcomes.push('resolved'),
        (reason: Error) => outcomes.push(reason.name),
      ),
    );
    await Promise.all(calls);
    // A server refuses credentials ahead of all else, and reads nothing more.
    expect(outcomes).toEqual(Array(10).fill('AuthFailedError'));
    await until('the end of the session', () => zk.session.lost.aborted);
    await delay(RECONNECT_MS_MIN);
    expect(proxy.acceptedCount).toBe(1);
  });

  test('given with a signal that has fired already are nobody’s unheard failure', async () => {
    await using _ends = looseEnds();
    await using zk = await connect(sharedStandalone().connectString);
    const reason = new Error('never mind');
    const signal = AbortSignal.abort(reason);
    await expect(zk.addAuth(BAD_SCHEME, 'x', { signal })).rejects.toBe(reason);
    await zk.get('/').catch(() => {});
  });
});

/** All of them have rejected, or do so in a moment; none is left pending. */
async function expectRefused(calls: readonly Promise<unknown>[]): Promise<AuthFailedError[]> {
  const settled = Promise.allSettled(calls);
  const results = await Promise.race([settled, delay(3_000, 'still pending', { ref: false })]);
  expect(results).toMatchObject(calls.map(() => ({ status: 'rejected' })));
  const reasons = (results as PromiseRejectedResult[]).map(({ reason }) => reason);
  for (const reason of reasons) expect(reason).toBeInstanceOf(AuthFailedError);
  return reasons;
}

describe('credentials that a server accepts', () => {
  test('are presented again on every connection, before what waited for it', async () => {
    await using _ends = looseEnds();
    await using proxy = await FaultProxy.start({ target: sharedStandalone() });
    await using zk = await connect(proxy.connectString, { sessionTimeoutMs: 10_000 });
    await zk.addAuth('digest', 'user:password');
    for (let round = 0; round < 3; round++) {
      proxy.resetAll();
      await until('the connection to be known as down', () => zk.session.state === 'suspended');
      const users = (await zk.whoAmI()).map(({ authScheme, user }) => `${authScheme}:${user}`);
      expect(users).toContain('digest:user');
    }
  });

  test('are not lost when the connection goes before the answer', async () => {
    await using _ends = looseEnds();
    await using proxy = await FaultProxy.start({ target: sharedStandalone() });
    await using zk = await connect(proxy.connectString, { sessionTimeoutMs: 10_000 });
    proxy.cutAfter({ direction: 'to-client', bytes: 0 });
    await zk.addAuth('digest', 'user:password');
    expect((await zk.whoAmI()).map(({ user }) => user)).toContain('user');
    expect(proxy.acceptedCount).toBe(2);
  });
});
