import { describe, expect } from 'vitest';
import type { WatchEvent } from '../../src/zookeeper.ts';
import { onEveryBackend } from '../support/backends.ts';
import { until } from '../support/until.ts';

/** Collects events and lets a test await the nth. */
class Events {
  readonly all: WatchEvent[] = [];
  readonly #waiting: (() => void)[] = [];
  readonly listener = (event: WatchEvent) => {
    this.all.push(event);
    for (const wake of this.#waiting.splice(0)) wake();
  };

  async count(count: number): Promise<WatchEvent[]> {
    while (this.all.length < count) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    return this.all;
  }

  get summary(): string[] {
    return this.all.map(({ type, path }) => `${type} ${path}`);
  }
}

describe('one-shot watches', () => {
  onEveryBackend('fire once for the change they were set for', async (workspace) => {
    const [zk, other] = [await workspace.connect(), await workspace.connect()];
    await zk.create('/node', 'a');
    const [data, children, absent] = [new Events(), new Events(), new Events()];
    await zk.get('/node', { watch: data.listener });
    await zk.children('/node', { watch: children.listener });
    await zk.exists('/later', { watch: absent.listener });
    await other.set('/node', 'b');
    await other.set('/node', 'c');
    await other.create('/node/child');
    await other.create('/later');
    await Promise.all([data.count(1), children.count(1), absent.count(1)]);
    await zk.sync();
    expect(data.summary).toEqual(['node-data-changed /node']);
    expect(children.summary).toEqual(['node-children-changed /node']);
    expect(absent.summary).toEqual(['node-created /later']);
  });

  onEveryBackend('of both tables fire once for a deletion', async (workspace) => {
    const [zk, other] = [await workspace.connect(), await workspace.connect()];
    await zk.create('/node');
    const events = new Events();
    await zk.get('/node', { watch: events.listener });
    await zk.children('/node', { watch: events.listener });
    await other.delete('/node');
    await events.count(1);
    await zk.sync();
    expect(events.summary).toEqual(['node-deleted /node']);
  });

  onEveryBackend('are not set by a read that fails', async (workspace) => {
    const [zk, other] = [await workspace.connect(), await workspace.connect()];
    const events = new Events();
    await expect(zk.get('/none', { watch: events.listener })).rejects.toMatchObject({ code: 'ZK_NO_NODE' });
    await other.create('/none');
    await zk.sync();
    expect(events.all).toEqual([]);
  });

  onEveryBackend('are delivered before the result of a later read', async (workspace) => {
    const zk = await workspace.connect();
    const order: string[] = [];
    await zk.create('/node', 'old');
    await zk.get('/node', { watch: () => order.push('event') });
    const write = zk.set('/node', 'new').then(() => order.push('written'));
    const read = zk.get('/node').then(({ data }) => order.push(`read ${data}`));
    await Promise.all([write, read]);
    expect(order).toEqual(['event', 'written', 'read new']);
  });

  onEveryBackend('can be asked for and taken away', async (workspace) => {
    const zk = await workspace.connect();
    await zk.create('/node');
    const events = new Events();
    expect(await zk.hasWatches('/node')).toBe(false);
    await zk.get('/node', { watch: events.listener });
    expect(await zk.hasWatches('/node', 'data')).toBe(true);
    expect(await zk.hasWatches('/node', 'children')).toBe(false);
    await zk.removeWatches('/node', 'data');
    await events.count(1);
    expect(events.summary).toEqual(['watch-removed /node']);
    await zk.set('/node', 'x');
    expect(events.all).toHaveLength(1);
    await expect(zk.removeWatches('/node', 'data')).rejects.toMatchObject({ code: 'ZK_NO_WATCHER' });
  });
});

describe('persistent watches', () => {
  onEveryBackend('tell of every change of one node and its children list', async (workspace) => {
    const [zk, other] = [await workspace.connect(), await workspace.connect()];
    const events = new Events();
    const watch = await zk.addWatch('/node', 'persistent', events.listener);
    await other.create('/node');
    await other.set('/node', 'a');
    await other.create('/node/child');
    await other.set('/node/child', 'unseen');
    await other.delete('/node/child');
    await other.delete('/node');
    await events.count(5);
    expect(events.summary).toEqual([
      'node-created /node',
      'node-data-changed /node',
      'node-children-changed /node',
      'node-children-changed /node',
      'node-deleted /node',
    ]);
    await watch.remove();
    await watch.remove();
    await other.create('/node');
    await zk.sync();
    expect(events.all).toHaveLength(5);
  });

  onEveryBackend('that are recursive tell of everything below', async (workspace) => {
    const [zk, other] = [await workspace.connect(), await workspace.connect()];
    const events = new Events();
    await using _watch = await zk.addWatch('/', 'persistent-recursive', events.listener);
    await other.ensurePath('/a/b');
    await other.set('/a/b', 'x');
    await other.deleteTree('/a');
    await events.count(5);
    expect(events.summary).toEqual([
      'node-created /a',
      'node-created /a/b',
      'node-data-changed /a/b',
      'node-deleted /a/b',
      'node-deleted /a',
    ]);
  });

  onEveryBackend('are an async iterable; leaving the loop removes the watch', async (workspace) => {
    const [zk, other] = [await workspace.connect(), await workspace.connect()];
    const seen: string[] = [];
    const reading = (async () => {
      for await (const event of zk.events('/', { mode: 'persistent-recursive' })) {
        seen.push(`${event.type} ${event.path}`);
        if (seen.length === 3) break;
      }
    })();
    while (!(await zk.hasWatches('/'))) await zk.sync();
    for (const name of ['a', 'b', 'c', 'd']) await other.create(`/${name}`);
    await reading;
    expect(seen).toEqual(['node-created /a', 'node-created /b', 'node-created /c']);
    expect(await zk.hasWatches('/')).toBe(false);
  });
});

describe('a stream of events', () => {
  onEveryBackend(
    'begun in the tick in which another one on its path ends, gets the events',
    async (workspace) => {
      const [zk, other] = [await workspace.connect(), await workspace.connect()];
      await other.create('/node');
      for (const mode of ['persistent', 'persistent-recursive'] as const) {
        const before = zk.events('/node', { mode });
        before.next().catch(() => {});
        await zk.sync();
        const ending = before.return();
        const stream = zk.events('/node', { mode });
        const next = stream.next();
        await ending;
        await zk.sync();
        await other.create(`/node/${mode}`);
        const { value } = await next;
        expect(value).toMatchObject({
          type: mode === 'persistent' ? 'node-children-changed' : 'node-created',
        });
        await stream.return();
      }
    },
  );

  onEveryBackend('ends when its watch is removed', async (workspace) => {
    const zk = await workspace.connect();
    await zk.create('/node');
    const types: string[] = [];
    const reading = (async () => {
      for await (const { type } of zk.events('/node')) types.push(type);
    })();
    await zk.sync();
    await zk.removeWatches('/node');
    await reading;
    expect(types).toEqual(['watch-removed']);
  });
});

describe('observe', () => {
  onEveryBackend('yields each state of a node, its absence too', async (workspace) => {
    const [zk, other] = [await workspace.connect(), await workspace.connect()];
    const states = zk.observe('/node');
    expect((await states.next()).value).toBeUndefined();
    await other.create('/node', 'a');
    expect((await states.next()).value).toMatchObject({ data: Buffer.from('a') });
    await other.set('/node', 'b');
    expect((await states.next()).value).toMatchObject({ data: Buffer.from('b') });
    await other.delete('/node');
    expect((await states.next()).value).toBeUndefined();
    await states.return(undefined);
  });

  onEveryBackend('yields the children, and ends with the signal’s reason', async (workspace) => {
    const zk = await workspace.connect();
    const controller = new AbortController();
    const lists = zk.observeChildren('/', { signal: controller.signal });
    expect((await lists.next()).value).toEqual([]);
    const next = lists.next();
    await zk.create('/a');
    expect((await next).value).toEqual(['a']);
    const last = lists.next();
    controller.abort(new Error('enough'));
    await expect(last).rejects.toThrow('enough');
  });

  onEveryBackend('take one listener away and leave the others theirs', async (workspace) => {
    const zk = await workspace.connect();
    await zk.create('/a');
    const told: string[] = [];
    const first = (event: WatchEvent) => told.push(`first ${event.type}`);
    const second = (event: WatchEvent) => told.push(`second ${event.type}`);
    await Promise.all([zk.get('/a', { watch: first }), zk.get('/a', { watch: second })]);
    await zk.unwatch('/a', 'data', first);
    expect(await zk.hasWatches('/a')).toBe(true);
    await zk.set('/a', 'x');
    await until('the second is told', () => told.length > 0);
    expect(told).toEqual(['second node-data-changed']);

    // The last one, while another is on its way: the server cannot tell them apart, so that its watch stays.
    await zk.get('/a', { watch: first });
    await Promise.all([zk.get('/a', { watch: second }), zk.unwatch('/a', 'data', first)]);
    await zk.unwatch('/a', 'data', first); // Not there any more: nothing happens.
    await zk.set('/a', 'again');
    await until('the second is told', () => told.length > 1);
    expect(told).toEqual(['second node-data-changed', 'second node-data-changed']);

    // One that is on its way itself: its listener gets nothing, and the server has no watch for it.
    const reading = zk.get('/a', { watch: first });
    await Promise.all([reading, zk.unwatch('/a', 'data', first)]);
    expect(await zk.hasWatches('/a')).toBe(false);

    // One that is set after the other was taken away stays, also if both answers come in one chunk.
    await zk.get('/a', { watch: first });
    await Promise.all([zk.unwatch('/a', 'data', first), zk.get('/a', { watch: second })]);
    await zk.set('/a', 'y');
    await until('the second is told', () => told.length > 2);
    expect(told.slice(2)).toEqual(['second node-data-changed']);
  });

  onEveryBackend('take one kind away and leave the other', async (workspace) => {
    const zk = await workspace.connect();
    await zk.create('/a');
    const told: string[] = [];
    const onData = (event: WatchEvent) => told.push(`data ${event.type}`);
    const onChildren = (event: WatchEvent) => told.push(`children ${event.type}`);
    await Promise.all([zk.get('/a', { watch: onData }), zk.children('/a', { watch: onChildren })]);
    await zk.unwatch('/a', 'data', onData);
    expect(await zk.hasWatches('/a', 'data')).toBe(false);
    expect(await zk.hasWatches('/a', 'children')).toBe(true);
    await zk.get('/a', { watch: onData });
    await zk.unwatch('/a', 'children', onChildren);
    expect(await zk.hasWatches('/a', 'children')).toBe(false);
    await zk.create('/a/b');
    await zk.set('/a', 'x');
    await until('a change is told', () => told.length > 0);
    expect(told).toEqual(['data node-data-changed']);
  });
});
