import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { type Clock, FaultProxy } from '../../src/testing.ts';
import { AuthFailedError, ClosedError, connect, ZooKeeper } from '../../src/zookeeper.ts';
import { looseEnds } from '../support/loose-ends.ts';
import { RawServer } from '../support/raw-server.ts';
import { sharedStandalone } from '../support/shared-servers.ts';
import { until } from '../support/until.ts';

// That no socket and no timer is left is what the guard of every one of these tests looks at.
describe('closing a client', () => {
  test('before its first connection: rejects what waited for it', async () => {
    await using _ends = looseEnds();
    const zk = ZooKeeper.open(sharedStandalone().connectString);
    const waiting = [zk.get('/'), zk.connected(), zk.addAuth('digest', 'a:b')];
    const closed = closeInTime(zk);
    await expectClosed(waiting, 'not-applied');
    await closed;
    expect(zk.session.state).toBe('closed');
  });

  test('while a host name is looked up: does not wait for that', async () => {
    await using _ends = looseEnds();
    let answer: (addresses: string[]) => void = () => {};
    const resolve = () => new Promise<string[]>((settle) => (answer = settle));
    const zk = ZooKeeper.open(`zookeeper.example:${sharedStandalone().port}`, { resolve });
    const waiting = [zk.get('/'), zk.connected()];
    const closed = closeInTime(zk);
    await expectClosed(waiting, 'not-applied');
    await closed;
    answer(['127.0.0.1']); // Too late: nobody is called any more.
  });

  test('while a server does not answer the handshake: does not wait for that', async () => {
    await using _ends = looseEnds();
    await using proxy = await FaultProxy.start({ target: sharedStandalone() });
    proxy.acceptSilently();
    const zk = ZooKeeper.open(proxy.connectString);
    const waiting = [zk.get('/'), zk.connected()];
    await until('the connection', () => proxy.connectionCount === 1);
    const closed = closeInTime(zk);
    await expectClosed(waiting, 'not-applied');
    await closed;
    await until('the connection to go', () => proxy.connectionCount === 0);
  });

  test('while `connect` waits and is given up: leaves nothing behind', async () => {
    await using _ends = looseEnds();
    await using proxy = await FaultProxy.start({ target: sharedStandalone() });
    proxy.acceptSilently();
    const giveUp = new AbortController();
    const connecting = connect(proxy.connectString, { signal: giveUp.signal });
    await until('the connection', () => proxy.connectionCount === 1);
    giveUp.abort(new Error('enough'));
    await expect(connecting).rejects.toThrow('enough');
  });

  test('while it has no connection: rejects what waited for one', async () => {
    await using _ends = looseEnds();
    await using proxy = await FaultProxy.start({ target: sharedStandalone() });
    const zk = await connect(proxy.connectString);
    const hold = zk.session.hold();
    proxy.refuse();
    proxy.resetAll();
    await until('the connection to be known as down', () => zk.session.state === 'suspended');
    const waiting = [zk.get('/'), zk.create('/never'), zk.connected(), zk.addAuth('digest', 'a:b')];
    const closed = closeInTime(zk);
    await expectClosed(waiting, 'not-applied');
    await closed;
    expect(zk.session.lost.aborted).toBe(true);
    expect([hold.signal.aborted, hold.remainingMs()]).toEqual([true, 0]);
  });

  test('with requests in flight: lets the server answer them first', async () => {
    await using _ends = looseEnds();
    await using observer = await connect(sharedStandalone().connectString);
    const zk = await connect(sharedStandalone().connectString);
    const path = `/${randomUUID()}`;
    const written = zk.create(path, 'last words', { mode: 'ephemeral' });
    const read = zk.get(path);
    await closeInTime(zk);
    expect((await written).path).toBe(path);
    expect((await read).data?.toString()).toBe('last words');
    // The session is over at the server too: its nodes are gone without a timeout.
    expect(await observer.exists(path)).toBeUndefined();
  });

  test('with requests in flight that are never answered: rejects them as unknown', async () => {
    await using _ends = looseEnds();
    await using proxy = await FaultProxy.start({ target: sharedStandalone() });
    const zk = await connect(proxy.connectString);
    proxy.blackhole('both');
    const pending = [zk.get('/'), zk.set('/zookeeper', '')];
    await delay(0); // They have left.
    const closed = closeInTime(zk);
    const late = zk.get('/');
    await Promise.all([expectClosed(pending, 'unknown'), expectClosed([late], 'not-applied'), closed]);
  });

  test('more than once, at once and later: is the same as once', async () => {
    await using _ends = looseEnds();
    const zk = await connect(sharedStandalone().connectString);
    let closedCount = 0;
    zk.on('closed', () => closedCount++);
    await Promise.all([closeInTime(zk), closeInTime(zk)]);
    await closeInTime(zk);
    await zk[Symbol.asyncDispose]();
    expect(closedCount).toBe(1);
  });

  test('after the credentials were refused: has nothing left to do', async () => {
    await using _ends = looseEnds();
    const zk = await connect(sharedStandalone().connectString);
    await expect(zk.addAuth('no-such-scheme', 'x')).rejects.toBeInstanceOf(AuthFailedError);
    await closeInTime(zk);
    await closeInTime(zk);
  });

  test('on hearing of a loss: is not followed by another session', async () => {
    await using _ends = looseEnds();
    await using server = await RawServer.start(async (connection) => {
      if (server.connections.length === 1) await connection.grant();
      else await connection.expire();
    });
    const zk = await connect(server.connectString);
    const closed = new Promise<void>((resolve) => {
      zk.on('lost', () => void closeInTime(zk).then(resolve));
    });
    server.connections[0]!.destroy();
    await closed;
    await delay(200); // Longer than the wait before another attempt.
    expect(server.connections.length).toBeLessThanOrEqual(3);
    expect(server.connections.every((connection) => connection.closed)).toBe(true);
  });

  test('on a connection that has fallen silent: waits for the server without spinning', async () => {
    await using _ends = looseEnds();
    await using proxy = await FaultProxy.start({ target: sharedStandalone() });
    let timerCount = 0;
    const clock: Clock = {
      ...systemClock,
      at(atMs, run) {
        timerCount++;
        return systemClock.at(atMs, run);
      },
    };
    const zk = await connect(proxy.connectString, { sessionTimeoutMs: 1_500, clock });
    proxy.blackhole('both');
    await delay(800); // The connection would be given up at 1000 ms, while the close may take until 1300 ms.
    timerCount = 0;
    await closeInTime(zk);
    expect(timerCount).toBeLessThan(10);
  });

  test('tells its watchers that there is nothing more to come', async () => {
    await using _ends = looseEnds();
    const zk = await connect(sharedStandalone().connectString);
    const events: string[] = [];
    await zk.exists(`/${randomUUID()}`, { watch: ({ type }) => events.push(type) });
    await closeInTime(zk);
    expect(events).toEqual(['session-lost']);
  });
});

describe('a closed client', () => {
  test('refuses every call at once', async () => {
    await using _ends = looseEnds();
    const zk = await connect(sharedStandalone().connectString);
    await zk.close();
    await expectClosed([zk.get('/'), zk.create('/never'), zk.sync()], 'not-applied');
  });

  test('refuses at once to wait for a connection', async () => {
    await using _ends = looseEnds();
    const zk = await connect(sharedStandalone().connectString);
    await zk.close();
    await expectClosed([zk.connected({ timeoutMs: 1_000 })], 'not-applied');
  });

  test('refuses further credentials at once', async () => {
    await using _ends = looseEnds();
    const zk = await connect(sharedStandalone().connectString);
    await zk.close();
    await expectClosed([zk.addAuth('digest', 'a:b')], 'not-applied');
  });

  test('holds nothing', async () => {
    await using _ends = looseEnds();
    const zk = await connect(sharedStandalone().connectString);
    const { session } = zk;
    await zk.close();
    expect(session.hold().remainingMs()).toBe(0);
  });
});

async function closeInTime(zk: ZooKeeper): Promise<void> {
  const startedAtMs = performance.now();
  await zk.close();
  expect(performance.now() - startedAtMs).toBeLessThan(2_500);
}

/** All of them have rejected, or do so in a moment; none is left pending. */
async function expectClosed(calls: readonly Promise<unknown>[], outcome: string): Promise<void> {
  const settled = Promise.allSettled(calls);
  const results = await Promise.race([settled, delay(3_000, 'still pending', { ref: false })]);
  expect(results).toMatchObject(calls.map(() => ({ status: 'rejected', reason: { outcome } })));
  for (const { reason } of results as PromiseRejectedResult[]) expect(reason).toBeInstanceOf(ClosedError);
}
