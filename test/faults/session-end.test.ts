import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect as connectTcp } from 'node:net';
import { describe, expect, test } from 'vitest';
import { Connect, Connected } from '../../src/protocol/handshake.ts';
import { JuteReader } from '../../src/protocol/jute-reader.ts';
import { operations } from '../../src/protocol/operations.ts';
import { RequestHeader } from '../../src/protocol/records.ts';
import { type Endpoint, FaultProxy } from '../../src/testing.ts';
import {
  connect,
  type Session,
  SessionLostError,
  type WatchEvent,
  type ZooKeeper,
} from '../../src/zookeeper.ts';
import { looseEnds } from '../support/loose-ends.ts';
import { frameBytes, RawServer } from '../support/raw-server.ts';
import { sharedStandalone } from '../support/shared-servers.ts';
import { until } from '../support/until.ts';

describe('a session that ends while calls wait for a connection', () => {
  test('by the local clock: rejects them as not applied, is told of once, and is followed by another', async () => {
    await using _ends = looseEnds();
    await using proxy = await FaultProxy.start({ target: sharedStandalone() });
    await using observer = await connect(sharedStandalone().connectString);
    await using zk = await connect(proxy.connectString, { sessionTimeoutMs: 1_000 });
    const path = `/${randomUUID()}`;
    await zk.create(path, '', { mode: 'ephemeral' });
    const { session } = zk;
    const { id } = session;
    const states = recordStates(zk);
    // A request made on hearing of the loss is one of the next session.
    const reaction = new Promise<Session>((resolve) => {
      zk.on('lost', () => void zk.sync().then(() => resolve(zk.session)));
    });

    proxy.refuse();
    proxy.resetAll();
    await until('the connection to be known as down', () => session.state === 'suspended');
    await expectAllLost(queueCalls(zk, path), 'local-clock');
    await until('the server to end the session', async () => !(await observer.exists(path)));
    proxy.heal();

    const next = await reaction;
    expect(next).not.toBe(session);
    expect(next.id).not.toBe(id);
    expect(await zk.exists(`${path}-made`)).toBeUndefined();
    expect(states).toEqual([
      ['suspended', session],
      ['lost', session],
      ['connected', next],
    ]);
  });

  test('by the word of the server: does the same', async () => {
    await using _ends = looseEnds();
    await using proxy = await FaultProxy.start({ target: sharedStandalone() });
    const granted = new Promise<Buffer>((resolve) => {
      proxy.onBytes((direction, chunk) => direction === 'to-client' && resolve(chunk));
    });
    await using zk = await connect(proxy.connectString, { sessionTimeoutMs: 20_000 });
    const path = `/${randomUUID()}`;
    await zk.create(path, '', { mode: 'ephemeral' });
    const { session } = zk;
    const states = recordStates(zk);
    const events: WatchEvent['type'][] = [];
    await zk.get(path, { watch: ({ type }) => events.push(type) });

    proxy.refuse();
    proxy.resetAll();
    await until('the connection to be known as down', () => session.state === 'suspended');
    const calls = queueCalls(zk, path);
    await endSession(sharedStandalone(), await granted);
    proxy.heal();
    await expectAllLost(calls, 'expired-by-server');

    expect(await zk.exists(path)).toBeUndefined();
    expect(events).toEqual(['session-lost']);
    expect(session.lost.reason).toMatchObject({ lossCause: 'expired-by-server' });
    expect(states).toEqual([
      ['suspended', session],
      ['lost', session],
      ['connected', zk.session],
    ]);
  });
});

describe('a session that ends under an open connection', () => {
  test('rejects what was answered so as not applied, what was not answered as unknown', async () => {
    await using _ends = looseEnds();
    let connectionCount = 0;
    await using server = await RawServer.start(async (connection) => {
      await connection.grant({ newId: BigInt(++connectionCount) });
      if (connectionCount > 1) {
        for await (const request of connection.requests()) connection.answer(request, { path: '/' });
      }
      const [first] = await connection.take(2);
      connection.refuse(first!, -112);
    });
    await using zk = await connect(server.connectString);
    const { session } = zk;
    const states = recordStates(zk);
    const [first, second] = await Promise.allSettled([zk.set('/a', ''), zk.set('/b', '')]);
    expect(first).toMatchObject({ reason: { code: 'ZK_SESSION_LOST', outcome: 'not-applied' } });
    expect(second).toMatchObject({ reason: { code: 'ZK_SESSION_LOST', outcome: 'unknown' } });
    await zk.sync();
    expect(zk.session.id).toBe(2n);
    expect(states).toEqual([
      ['lost', session],
      ['connected', zk.session],
    ]);
  });
});

describe('a session that is over', () => {
  test('holds nothing, from the first moment on', async () => {
    await using _ends = looseEnds();
    let connectionCount = 0;
    await using server = await RawServer.start(async (connection) => {
      if (++connectionCount === 2) await connection.expire();
      else await connection.grant();
    });
    await using zk = await connect(server.connectString, { sessionTimeoutMs: 20_000 });
    const { session } = zk;
    const before = session.hold();
    server.connections[0]!.destroy();
    await until('the loss', () => session.lost.aborted);
    const after = session.hold();
    expect([before.remainingMs(), after.remainingMs()]).toEqual([0, 0]);
    await until('both holds to be told', () => before.signal.aborted && after.signal.aborted);
    expect(before.signal.reason).toBeInstanceOf(SessionLostError);
  });

  test('refuses the calls that are bound to it', async () => {
    await using _ends = looseEnds();
    let connectionCount = 0;
    await using server = await RawServer.start(async (connection) => {
      if (++connectionCount === 2) await connection.expire();
      else await connection.grant();
    });
    await using zk = await connect(server.connectString);
    const { session } = zk;
    const queued = (async () => {
      await until('the connection to be known as down', () => session.state === 'suspended');
      return zk.get('/a', { session });
    })();
    server.connections[0]!.destroy();
    await expectAllLost([queued], 'expired-by-server');
    await expect(zk.get('/a', { session })).rejects.toBeInstanceOf(SessionLostError);
    await zk.connected();
    await expect(zk.get('/a', { session })).rejects.toMatchObject({ outcome: 'not-applied' });
  });
});

function recordStates(zk: ZooKeeper): [name: string, session: Session][] {
  const states: [string, Session][] = [];
  for (const name of ['connected', 'suspended', 'lost'] as const) {
    zk.on(name, ({ session }) => states.push([name, session]));
  }
  return states;
}

function queueCalls(zk: ZooKeeper, path: string): Promise<unknown>[] {
  return [
    zk.get(path),
    zk.exists(path),
    zk.set(path, 'x'),
    zk.create(`${path}-made`),
    zk.delete(path),
    zk.multi([]),
    zk.sync(),
    zk.addWatch(path, 'persistent', () => {}),
  ];
}

async function expectAllLost(calls: readonly Promise<unknown>[], lossCause: string): Promise<void> {
  for (const result of await Promise.allSettled(calls)) {
    expect(result.status).toBe('rejected');
    const { reason } = result as PromiseRejectedResult;
    expect(reason).toBeInstanceOf(SessionLostError);
    expect(reason).toMatchObject({ outcome: 'not-applied', lossCause });
  }
}

/** Ends a session over a connection of its own, with what the server sent when it granted it. */
async function endSession({ host, port }: Endpoint, grant: Buffer): Promise<void> {
  const { sessionId, passwd } = Connected.read(new JuteReader(grant.subarray(4)));
  const socket = connectTcp({ host, port });
  socket.write(
    frameBytes((out) =>
      Connect.write(out, {
        protocolVersion: 0,
        lastZxidSeen: 0n,
        timeOut: 20_000,
        sessionId,
        passwd,
        readOnly: false,
      }),
    ),
  );
  await once(socket, 'data');
  const close = frameBytes((out) =>
    RequestHeader.write(out, { xid: 1, type: operations.closeSession.opcode }),
  );
  socket.end(close);
  await once(socket, 'close');
}
