import { describe, expect, test } from 'vitest';
import { connect, type ZooKeeper } from '../client/zookeeper.ts';
import { startTestServer } from './start-test-server.ts';

const observations = [
  ['observe', '/observed', (zk: ZooKeeper) => zk.observe('/observed')],
  ['observe a node that is not there', '/absent', (zk: ZooKeeper) => zk.observe('/absent')],
  ['observeChildren', '/observed', (zk: ZooKeeper) => zk.observeChildren('/observed')],
  ['events', '/observed', (zk: ZooKeeper) => zk.events('/observed')],
] as const;

/** Polls `condition`; the time limit of the test bounds it. */
async function until(_what: string, condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setImmediate(resolve));
}

/** A client, and another one that changes what the first observes. */
async function pair() {
  const server = await startTestServer();
  const zk = await connect(server.connectString);
  const other = await connect(server.connectString);
  await other.create('/observed', 'a');
  return {
    server,
    zk,
    other,
    async [Symbol.asyncDispose]() {
      await Promise.all([zk.close(), other.close()]);
      await server[Symbol.asyncDispose]();
    },
  };
}

describe.each(observations)('%s', (kind, path, observe) => {
  test('removes its watch at the server when return ends a next that waits', async () => {
    await using scene = await pair();
    const { zk } = scene;
    const states = observe(zk);
    if (kind !== 'events') await states.next();
    const waiting = states.next();
    await until('the watch to be set', () => zk.hasWatches(path));
    const ended = await Promise.all([states.return(undefined), waiting]);
    expect(ended.map(({ done }) => done)).toEqual([true, true]);
    expect(await zk.hasWatches(path)).toBe(false);
  });

  test('removes its watch when return comes while the watch is being set', async () => {
    await using scene = await pair();
    const { zk } = scene;
    for (let turns = 0; turns < 6; turns++) {
      const states = observe(zk);
      const first = states.next();
      for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
      await states.return(undefined);
      await first;
      await until('no watch to be left', async () => !(await zk.hasWatches(path)));
    }
  });
});

test('an observation that is aborted removes its watch at the server', async () => {
  await using scene = await pair();
  const { zk } = scene;
  for (const kind of ['observe', 'observeChildren', 'events'] as const) {
    const stop = new AbortController();
    const states: AsyncIterable<unknown> = zk[kind]('/observed', { signal: stop.signal });
    const ended = expect(
      (async () => {
        for await (const _ of states);
      })(),
    ).rejects.toThrow('stop');
    await until('the watch to be set', () => zk.hasWatches('/observed'));
    stop.abort(new Error('stop'));
    await ended;
    expect(await zk.hasWatches('/observed')).toBe(false);
  }
});

test('an observation has one watch, however often the node changes', async () => {
  await using scene = await pair();
  const { zk, other } = scene;
  const states = zk.observe('/observed');
  await states.next();
  for (let change = 0; change < 20; change++) {
    const next = states.next();
    await other.set('/observed', String(change));
    await next;
  }
  await states.return(undefined);
  await until('no watch to be left', async () => !(await zk.hasWatches('/observed')));
});

test('an observation that ends leaves the watch of another one on the same node', async () => {
  await using scene = await pair();
  const { zk, other } = scene;
  const [one, two] = [zk.observe('/observed'), zk.observe('/observed')];
  await Promise.all([one.next(), two.next()]);
  await one.return(undefined);
  const next = two.next();
  await other.set('/observed', 'b');
  expect((await next).value).toMatchObject({ data: Buffer.from('b') });
  await two.return(undefined);
});

test('a read with a watch that is given up on its way leaves no watch at the server', async () => {
  await using scene = await pair();
  const { zk } = scene;
  const stop = new AbortController();
  const reading = zk.get('/observed', { watch: () => {}, signal: stop.signal });
  const adding = zk.addWatch('/observed', 'persistent', () => {}, { signal: stop.signal });
  await new Promise((resolve) => process.nextTick(() => process.nextTick(resolve)));
  stop.abort(new Error('stop'));
  await expect(reading).rejects.toThrow('stop');
  await expect(adding).rejects.toThrow('stop');
  await until('no watch to be left', async () => !(await zk.hasWatches('/observed')));
});
