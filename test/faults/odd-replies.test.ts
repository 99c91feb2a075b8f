import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { FaultProxy } from '../../src/testing.ts';
import {
  ConnectionLossError,
  connect,
  ProtocolError,
  type ServerCondition,
  ServerError,
} from '../../src/zookeeper.ts';
import { looseEnds } from '../support/loose-ends.ts';
import {
  BLANK_STAT,
  lengthPrefix,
  type RawConnection,
  type RawRequest,
  RawServer,
  replyBytes,
} from '../support/raw-server.ts';
import { sharedStandalone } from '../support/shared-servers.ts';
import { until } from '../support/until.ts';

const NODE = { data: Buffer.from('fine'), stat: BLANK_STAT };

/** A server whose connections are all in order, except for what `first` does to the requests of the first one. */
function startServer(first: (connection: RawConnection) => unknown): Promise<RawServer> {
  let connectionCount = 0;
  return RawServer.start(async (connection) => {
    const isFirst = connectionCount++ === 0;
    await connection.grant();
    if (isFirst) await first(connection);
    for await (const request of connection.requests()) answerWell(connection, request);
  });
}

function answerWell(connection: RawConnection, request: RawRequest): void {
  connection.answer(request, request.operation === 'getData' ? NODE : { path: '/' });
}

describe('an error code', () => {
  test.for<[code: number, condition: ServerCondition, name: string]>([
    [-9999, 'unknown', 'ZK_UNKNOWN'],
    [-126, 'unknown', 'ZK_UNKNOWN'],
    [7, 'unknown', 'ZK_UNKNOWN'],
    [-125, 'quota-exceeded', 'ZK_QUOTA_EXCEEDED'],
    [-127, 'throttled-op', 'ZK_THROTTLED_OP'],
  ])('of %i is the error %s of its request, and no more than that', async ([code, condition, name]) => {
    await using _ends = looseEnds();
    await using server = await startServer(async (connection) => {
      const [request] = await connection.take(1);
      connection.refuse(request!, code);
    });
    await using zk = await connect(server.connectString);
    const error = await rejection(zk.get('/some/node'));
    expect(error).toBeInstanceOf(ServerError);
    expect(error).toMatchObject({
      condition,
      code: name,
      serverCode: code,
      path: '/some/node',
      outcome: 'not-applied',
    });
    expect((await zk.get('/some/node')).data?.toString()).toBe('fine');
    expect(server.connections).toHaveLength(1);
  });

  test('of a session that moved is the error of its request, and sends the client to a server anew', async () => {
    await using _ends = looseEnds();
    await using server = await startServer(async (connection) => {
      const [request] = await connection.take(1);
      connection.refuse(request!, -118);
    });
    await using zk = await connect(server.connectString);
    const { session } = zk;
    const error = await rejection(zk.set('/some/node', ''));
    expect(error).toBeInstanceOf(ServerError);
    expect(error).toMatchObject({ condition: 'session-moved', serverCode: -118 });
    expect((await zk.get('/some/node')).data?.toString()).toBe('fine');
    expect(server.connections).toHaveLength(2);
    expect(await server.connections[1]!.opening).toMatchObject({ sessionId: session.id });
    expect(zk.session).toBe(session);
  });

  test('of a session that moved makes void what comes behind it in one piece', async () => {
    await using _ends = looseEnds();
    await using server = await RawServer.start((connection) => connection.grant());
    const failedAttempts: unknown[] = [];
    // Named twice, so that the next server is dialled at once.
    await using zk = await connect(`${server.connectString},${server.connectString}`, {
      log: (_level, message, details) => {
        if (message === 'connection attempt failed') failedAttempts.push(details);
      },
    });
    const moved = rejection(zk.set('/some/node', ''));
    const next = zk.get('/some/node');
    const [before] = server.connections;
    const [first, second] = await before!.take(2);
    const refusal = replyBytes({ xid: first!.xid, zxid: 1n, err: -118 });
    before!.send(Buffer.concat([refusal, before!.answerBytes(second!, NODE)]));
    expect(await moved).toMatchObject({ condition: 'session-moved' });
    await until('a second connection', () => server.connections.length === 2);
    const [, after] = server.connections;
    const [again] = await after!.take(1);
    expect(again?.operation).toBe('getData');
    after!.answer(again!, NODE);
    expect((await next).data?.toString()).toBe('fine');
    // The connection made next is not to blame for what the one before it still had to say.
    expect(failedAttempts).toEqual([]);
    expect(server.connections).toHaveLength(2);
  });
});

describe('a reply that is not the protocol', () => {
  const cases: [what: string, spoil: (connection: RawConnection, request: RawRequest) => void][] = [
    ['an xid that nobody waits for', (connection) => connection.refuse({ xid: 4711 }, 0)],
    ['the xid of a request behind it', (connection, { xid }) => connection.refuse({ xid: xid + 1 }, 0)],
    ['an answer to a ping that was not sent', (connection) => connection.refuse({ xid: -2 }, 0)],
    ['an answer to an auth packet that was not sent', (connection) => connection.refuse({ xid: -4 }, 0)],
    ['an event of no known type', (connection) => connection.notify({ type: 77, path: '/a' })],
    ['a frame of 2^31 - 1 bytes', (connection) => connection.send(lengthPrefix(0x7fff_ffff))],
    ['a frame of -1 bytes', (connection) => connection.send(lengthPrefix(-1))],
    ['a frame of -2^31 bytes', (connection) => connection.send(lengthPrefix(0x8000_0000))],
    ['a frame without a header', (connection) => connection.send(lengthPrefix(0))],
    [
      'a body that ends too soon',
      (connection, { xid }) => connection.send(replyBytes({ xid, zxid: 1n, err: 0 })),
    ],
    [
      'a body that claims more than it has',
      (connection, { xid }) =>
        connection.send(replyBytes({ xid, zxid: 1n, err: 0 }, (out) => out.int(0x7fff_ffff))),
    ],
  ];

  test.for(cases)('costs the connection and nothing else: %s', async ([, spoil]) => {
    await using _ends = looseEnds();
    await using server = await startServer(async (connection) => {
      const [first] = await connection.take(2);
      spoil(connection, first!);
    });
    await using zk = await connect(server.connectString);
    const { session } = zk;
    const states: string[] = [];
    for (const name of ['connected', 'suspended', 'lost'] as const) zk.on(name, () => states.push(name));
    const [first, second] = await Promise.allSettled([zk.get('/a'), zk.get('/b')]);
    // The one whose answer it may have been fails, since asking again might go on for ever.
    if (first.status === 'rejected') {
      expect(first.reason).toBeInstanceOf(ConnectionLossError);
      expect(first.reason.cause).toBeInstanceOf(ProtocolError);
    }
    expect(second).toMatchObject({ status: 'fulfilled', value: { data: Buffer.from('fine') } });
    expect((await zk.get('/c')).data?.toString()).toBe('fine');
    expect(zk.session).toBe(session);
    expect(states).toEqual(['suspended', 'connected']);
    expect(server.connections).toHaveLength(2);
    expect(server.connections[0]!.closed).toBe(true);
  });

  test('to the handshake makes the client try again', async () => {
    await using _ends = looseEnds();
    let connectionCount = 0;
    await using server = await RawServer.start(async (connection) => {
      const count = ++connectionCount;
      if (count === 1) connection.send(lengthPrefix(-1));
      else if (count === 2) connection.send(replyBytes({ xid: 1, zxid: 1n, err: 0 }));
      else if (count === 3) await connection.expire();
      else await connection.grant();
    });
    await using zk = await connect(server.connectString);
    expect(zk.session.id).toBe(0x1000n);
    expect(server.connections).toHaveLength(4);
  });
});

describe('a reply that is longer than allowed', () => {
  test('fails the read it is for, once, and nothing else', async () => {
    await using _ends = looseEnds();
    await using proxy = await FaultProxy.start({ target: sharedStandalone() });
    await using zk = await connect(proxy.connectString, { replyBytesMax: 5_000 });
    const { session } = zk;
    const path = `/${randomUUID()}`;
    await zk.create(path, Buffer.alloc(10_000), { mode: 'ephemeral' });
    const error = await rejection(zk.get(path));
    expect(error).toBeInstanceOf(ConnectionLossError);
    expect((error as Error).cause).toBeInstanceOf(ProtocolError);
    expect(await zk.exists(path)).toMatchObject({ dataLength: 10_000, ephemeralOwner: session.id });
    expect(proxy.acceptedCount).toBe(2);
  });

  test('does not fail the reads whose answers came before it in one piece, nor those behind it', async () => {
    await using _ends = looseEnds();
    const long = { data: Buffer.alloc(10_000), stat: BLANK_STAT };
    const isLong = ({ record }: RawRequest) => (record as { path: string }).path === '/long';
    await using server = await RawServer.start(async (connection) => {
      await connection.grant();
      for (;;) {
        const requests = await connection.take(connection === server.connections[0] ? 4 : 1);
        if (requests.length === 0) return;
        const answers = requests.map((each) => connection.answerBytes(each, isLong(each) ? long : NODE));
        connection.send(Buffer.concat(answers));
      }
    });
    await using zk = await connect(server.connectString, { replyBytesMax: 5_000 });
    const [first, second, third, fourth] = await Promise.allSettled(
      ['/a', '/b', '/long', '/c'].map((path) => zk.get(path)),
    );
    expect(third).toMatchObject({ status: 'rejected' });
    expect((third as PromiseRejectedResult).reason).toBeInstanceOf(ConnectionLossError);
    expect([first, second, fourth]).toMatchObject(Array(3).fill({ status: 'fulfilled' }));
    expect(server.connections).toHaveLength(2);
  });
});

async function rejection(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    (value) => expect.fail(`resolved with ${String(value)}`),
    (reason: unknown) => reason,
  );
}
