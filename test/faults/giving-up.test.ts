import { getEventListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ClosedError, connect, RequestTimeoutError, ZooKeeper } from '../../src/zookeeper.ts';
import { looseEnds } from '../support/loose-ends.ts';
import { BLANK_STAT, type RawRequest, RawServer } from '../support/raw-server.ts';
import { until } from '../support/until.ts';

const HOUR_MS = 3_600_000;

/** A server that answers nothing by itself but the handshake; and that only once `open` is called. */
async function startScene() {
  let open: () => void = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const server = await RawServer.start(async (connection) => {
    await opened;
    await connection.grant();
  });
  const zk = ZooKeeper.open(server.connectString);
  return {
    zk,
    server,
    open,
    async connected() {
      open();
      await zk.connected();
      return server.connections[0]!;
    },
    async [Symbol.asyncDispose]() {
      await zk.close();
      await server[Symbol.asyncDispose]();
    },
  };
}

const paths = (requests: readonly RawRequest[]) =>
  requests.map(({ record }) => (record as { path: string }).path);
const listenerCount = (signal: AbortSignal) => getEventListeners(signal, 'abort').length;
const node = (text: string) => ({ data: Buffer.from(text), stat: BLANK_STAT });

describe('a request that is given up by a signal', () => {
  const reason = new Error('changed my mind');
  let controller = new AbortController();
  beforeEach(() => {
    controller = new AbortController();
  });
  afterEach(() => expect(listenerCount(controller.signal)).toBe(0));

  test('before it is made: is not made', async () => {
    await using _ends = looseEnds();
    await using scene = await startScene();
    const connection = await scene.connected();
    controller.abort(reason);
    await expect(scene.zk.create('/never', '', { signal: controller.signal })).rejects.toBe(reason);
    void scene.zk.get('/next').catch(() => {});
    expect(paths(await connection.take(1))).toEqual(['/next']);
  });

  test('while it waits for a connection: is never sent', async () => {
    await using _ends = looseEnds();
    await using scene = await startScene();
    const before = scene.zk.get('/before');
    const never = scene.zk.create('/never', '', { signal: controller.signal });
    const after = scene.zk.get('/after');
    expect(listenerCount(controller.signal)).toBe(1);
    controller.abort(reason);
    await expect(never).rejects.toBe(reason);
    const connection = await scene.connected();
    const requests = await connection.take(2);
    expect(paths(requests)).toEqual(['/before', '/after']);
    for (const request of requests) connection.answer(request, node(paths([request])[0]!));
    expect((await before).data?.toString()).toBe('/before');
    expect((await after).data?.toString()).toBe('/after');
  });

  test('in flight: rejects at once, and the answers behind it still find their requests', async () => {
    await using _ends = looseEnds();
    await using scene = await startScene();
    const connection = await scene.connected();
    const before = scene.zk.get('/before');
    const given = scene.zk.get('/given-up', { signal: controller.signal });
    const after = scene.zk.get('/after');
    const requests = await connection.take(3);
    controller.abort(reason);
    await expect(given).rejects.toBe(reason);
    for (const request of requests) connection.answer(request, node(paths([request])[0]!));
    expect((await before).data?.toString()).toBe('/before');
    expect((await after).data?.toString()).toBe('/after');
    expect(scene.server.connections).toHaveLength(1);
  });

  test('in flight, with a watch: does not hear of it any more', async () => {
    await using _ends = looseEnds();
    await using scene = await startScene();
    const connection = await scene.connected();
    const events: unknown[] = [];
    const watch = (event: unknown) => events.push(event);
    const given = scene.zk.get('/given-up', { watch, signal: controller.signal });
    const [request] = await connection.take(1);
    controller.abort(reason);
    await expect(given).rejects.toBe(reason);
    connection.answer(request!, node('x'));
    connection.notify({ type: 3, path: '/given-up' });
    const next = scene.zk.get('/next');
    connection.answer((await connection.take(1))[0]!, node('y'));
    await next;
    expect(events).toEqual([]);
  });

  test('in flight when the connection goes: is not sent again', async () => {
    await using _ends = looseEnds();
    await using scene = await startScene();
    const connection = await scene.connected();
    const given = scene.zk.get('/given-up', { signal: controller.signal });
    const next = scene.zk.get('/next');
    await connection.take(2);
    controller.abort(reason);
    await expect(given).rejects.toBe(reason);
    connection.destroy();
    await until('another connection', () => scene.server.connections.length === 2);
    const again = scene.server.connections[1]!;
    const [request] = await again.take(1);
    expect(paths([request!])).toEqual(['/next']);
    again.answer(request!, node('y'));
    expect((await next).data?.toString()).toBe('y');
  });

  test('after its answer: is answered', async () => {
    await using _ends = looseEnds();
    await using scene = await startScene();
    const connection = await scene.connected();
    const answered = scene.zk.get('/answered', { signal: controller.signal, timeoutMs: HOUR_MS });
    const refused = scene.zk.get('/refused', { signal: controller.signal, timeoutMs: HOUR_MS });
    const [first, second] = await connection.take(2);
    connection.answer(first!, node('x'));
    connection.refuse(second!, -101);
    expect((await answered).data?.toString()).toBe('x');
    await expect(refused).rejects.toMatchObject({ condition: 'no-node' });
    expect(listenerCount(controller.signal)).toBe(0);
    controller.abort(reason);
    await delay(0);
  });

  test('that is lost with its connection or its client: leaves no listener on the signal', async () => {
    await using _ends = looseEnds();
    await using scene = await startScene();
    const { signal } = controller;
    const connection = await scene.connected();
    const lost = scene.zk.set('/lost', '', { signal, timeoutMs: HOUR_MS });
    await connection.take(1);
    connection.destroy();
    await expect(lost).rejects.toMatchObject({ code: 'ZK_CONNECTION_LOSS' });
    expect(listenerCount(signal)).toBe(0);
    const closed = scene.zk.get('/closed', { signal, timeoutMs: HOUR_MS });
    expect(listenerCount(signal)).toBe(1);
    void scene.zk.close();
    await expect(closed).rejects.toBeInstanceOf(ClosedError);
  });

  test('of a client that refuses it at once: leaves no listener and no timer', async () => {
    await using _ends = looseEnds();
    await using scene = await startScene();
    await scene.zk.close();
    const refused = scene.zk.get('/refused', { signal: controller.signal, timeoutMs: HOUR_MS });
    await expect(refused).rejects.toBeInstanceOf(ClosedError);
    expect(listenerCount(controller.signal)).toBe(0);
  });
});

describe('waiting for a connection', () => {
  test('leaves no listener on a signal, whether it came, was given up or took too long', async () => {
    await using _ends = looseEnds();
    await using scene = await startScene();
    const { signal } = new AbortController();
    await expect(scene.zk.connected({ signal, timeoutMs: 1 })).rejects.toMatchObject({
      code: 'ZK_UNREACHABLE',
    });
    expect(listenerCount(signal)).toBe(0);
    const controller = new AbortController();
    const given = scene.zk.connected({ signal: controller.signal });
    expect(listenerCount(controller.signal)).toBe(1);
    controller.abort(new Error('enough'));
    await expect(given).rejects.toThrow('enough');
    const connecting = scene.zk.connected({ signal });
    scene.open();
    await connecting;
    expect([signal, controller.signal].map(listenerCount)).toEqual([0, 0]);
  });
});

describe('a request whose time runs out', () => {
  test('while it waits for a connection: has not happened, and never will', async () => {
    await using _ends = looseEnds();
    await using scene = await startScene();
    const error = await scene.zk.create('/never', '', { timeoutMs: 20 }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(RequestTimeoutError);
    expect(error).toMatchObject({ outcome: 'not-applied', message: 'create /never: no answer within 20 ms' });
    const next = scene.zk.get('/next');
    const connection = await scene.connected();
    const requests = await connection.take(1);
    expect(paths(requests)).toEqual(['/next']);
    connection.answer(requests[0]!, node('x'));
    await next;
  });

  test('in flight: may have happened, and the answers behind it still find their requests', async () => {
    await using _ends = looseEnds();
    await using scene = await startScene();
    const connection = await scene.connected();
    const error = await scene.zk.set('/slow', '', { timeoutMs: 20 }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(RequestTimeoutError);
    expect(error).toMatchObject({ outcome: 'unknown' });
    const next = scene.zk.get('/next');
    const [slow, request] = await connection.take(2);
    connection.answer(slow!, { stat: BLANK_STAT });
    connection.answer(request!, node('x'));
    expect((await next).data?.toString()).toBe('x');
    expect(scene.server.connections).toHaveLength(1);
  });

  test('after its answer: has its answer, and no timer any more', async () => {
    await using _ends = looseEnds();
    await using server = await RawServer.start(async (connection) => {
      await connection.grant();
      for await (const request of connection.requests()) connection.answer(request, node('x'));
    });
    await using zk = await connect(server.connectString);
    await Promise.all(Array.from({ length: 100 }, () => zk.get('/a', { timeoutMs: HOUR_MS })));
  });
});
