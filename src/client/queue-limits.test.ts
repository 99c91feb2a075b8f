import { describe, expect, test } from 'vitest';
import { QueueFullError } from '../protocol/errors.ts';
import type { ConnectOptions } from './connect-options.ts';
import { ScriptedServers } from './scripted-servers.test-data.ts';
import { ZooKeeper } from './zookeeper.ts';

async function cutOff(options: ConnectOptions) {
  const network = new ScriptedServers();
  const server = network.add('zk');
  const { clock } = network;
  const zk = ZooKeeper.open('zk:2181', { transport: network, clock, ...options });
  await clock.advance(100);
  server.mode = 'down';
  network.cut();
  await clock.advance(10);
  expect(zk.session.state).toBe('suspended');
  const answers: unknown[] = [];
  const write = (data: string | Buffer = '', signal?: AbortSignal) =>
    zk.set('/a', data, { ...(signal && { signal }) }).then(
      () => answers.push('done'),
      (error: unknown) => answers.push(error),
    );
  return { network, server, clock, zk, answers, write };
}

describe('while there is no connection', () => {
  test('so many requests wait and no more: the next is refused, and has not happened', async () => {
    const { clock, zk, server, answers, write } = await cutOff({ queuedRequestsMax: 3 });
    for (let count = 0; count < 5; count++) void write();
    await clock.advance(1);
    expect(answers).toHaveLength(2);
    expect(answers[0]).toBeInstanceOf(QueueFullError);
    expect(answers[0]).toMatchObject({ code: 'ZK_QUEUE_FULL', outcome: 'not-applied' });
    expect((answers[0] as Error).message).toMatch(/^set \/a: not sent, .* at most 3 requests /);
    server.mode = 'serving';
    await clock.advance(2_000);
    expect(answers.slice(2)).toEqual(['done', 'done', 'done']);
    for (let count = 0; count < 5; count++) void write(); // With a connection there is no queue.
    await clock.advance(100);
    expect(answers).toHaveLength(10);
    expect(answers.slice(5)).toEqual(Array(5).fill('done'));
    await finish(zk, clock);
  });

  test('so many bytes wait and no more', async () => {
    const { clock, zk, answers, write } = await cutOff({ queuedBytesMax: 10_000 });
    void write(Buffer.alloc(6_000));
    void write(Buffer.alloc(6_000));
    void write(Buffer.alloc(3_000));
    await clock.advance(1);
    expect(answers).toMatchObject([{ code: 'ZK_QUEUE_FULL' }]);
    await finish(zk, clock);
  });

  test('what was given up makes room', async () => {
    const { clock, zk, answers, write } = await cutOff({ queuedRequestsMax: 1, queuedBytesMax: 10_000 });
    for (let round = 0; round < 5; round++) {
      const giveUp = new AbortController();
      void write(Buffer.alloc(6_000), giveUp.signal);
      giveUp.abort('enough');
    }
    await clock.advance(1);
    expect(answers).toEqual(Array(5).fill('enough'));
    void write(Buffer.alloc(6_000));
    await clock.advance(1);
    expect(answers).toHaveLength(5);
    await finish(zk, clock);
  });

  test('the limits are numbers', () => {
    expect(() => ZooKeeper.open('zk:2181', { queuedRequestsMax: 0 })).toThrow('queuedRequestsMax: 0 given');
    expect(() => ZooKeeper.open('zk:2181', { queuedBytesMax: Number.NaN })).toThrow(
      'queuedBytesMax: NaN given',
    );
  });

  test('100 000 requests are the limit where none is given', async () => {
    const { clock, zk, answers, write } = await cutOff({});
    for (let count = 0; count < 100_001; count++) void write();
    await clock.advance(1);
    expect(answers).toMatchObject([{ code: 'ZK_QUEUE_FULL' }]);
    await finish(zk, clock);
  });
});

async function finish(zk: ZooKeeper, clock: ScriptedServers['clock']): Promise<void> {
  const closing = zk.close();
  await clock.advance(5_000);
  await closing;
  expect(clock.alarmCount).toBe(0);
}
