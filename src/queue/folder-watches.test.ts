import { expect, test } from 'vitest';
import type { WatchListener } from '../client/request-options.ts';
import type { Session } from '../client/session.ts';
import type { ZooKeeper } from '../client/zookeeper.ts';
import { ConnectionLossError } from '../protocol/errors.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';
import { BatchedWatches } from './batched-watches.ts';
import { FolderWatches } from './folder-watches.ts';

/** A server that keeps watches. */
class Scene {
  readonly clock = new VirtualClock();
  readonly session = { lastZxid: 7n } as Session;
  readonly set = new Map<string, WatchListener>();
  readonly log: string[] = [];
  reachable = true;
  readonly watches: FolderWatches;

  constructor() {
    const zk = this as unknown as ZooKeeper;
    const { clock, session } = this;
    const watches = new BatchedWatches(zk, session, clock);
    this.watches = new FolderWatches(zk, session, { clock, watches });
  }

  async watchSince(zxid: bigint, watches: readonly { path: string; listener: WatchListener }[]) {
    this.log.push(`watch ${watches.map(({ path }) => path).join(' ')} since ${zxid}`);
    if (!this.reachable) throw new ConnectionLossError('setWatches', 'unknown');
    for (const { path, listener } of watches) this.set.set(path, listener);
  }

  async unwatch(path: string, kind: string, listener: WatchListener) {
    expect(kind).toBe('data');
    if (this.set.get(path) === listener) this.set.delete(path);
    this.log.push(`unwatch ${path}`);
  }
}

test('is set once the server has answered, those of one tick by one request', async () => {
  const { watches, clock, log } = new Scene();
  const [a, b] = [watches.watch('/a')!, watches.watch('/b')!];
  expect([a.isSet, b.isSet]).toEqual([false, false]);
  await clock.advance(1);
  expect([a.isSet, b.isSet]).toEqual([true, true]);
  expect(log).toEqual(['watch /a /b since 7']);
});

test('is over with whatever it is told', async () => {
  const { watches, clock, set } = new Scene();
  for (const type of ['node-deleted', 'node-data-changed', 'watch-removed', 'session-lost'] as const) {
    const watch = watches.watch('/a')!;
    await clock.advance(1);
    set.get('/a')!({ type, path: '/a' } as Parameters<WatchListener>[0]);
    expect([watch.isSet, watch.isOver]).toEqual([false, true]);
  }
  await clock.advance(10_000);
  expect(clock.alarmCount).toBe(0);
});

test('is over if it cannot be set, and taken away in case it was', async () => {
  const scene = new Scene();
  scene.reachable = false;
  const watch = scene.watches.watch('/a')!;
  await scene.clock.advance(1);
  expect([watch.isSet, watch.isOver]).toEqual([false, true]);
  expect(scene.log.slice(1)).toEqual(['unwatch /a']);
  expect(scene.clock.alarmCount).toBe(0);
});

test('is taken away when nobody has relied on it for a while, and no timer is left', async () => {
  const { watches, clock, log } = new Scene();
  const [idle, busy] = [watches.watch('/idle')!, watches.watch('/busy')!];
  for (let ms = 0; ms < 3_000; ms += 100) {
    busy.use();
    await clock.advance(100);
  }
  expect([idle.isOver, busy.isSet]).toEqual([true, true]);
  expect(log.slice(1)).toEqual(['unwatch /idle']);
  await clock.advance(1_001);
  expect(log.slice(2)).toEqual(['unwatch /busy']);
  expect(clock.alarmCount).toBe(0);
});

test('there are no more than a thousand', async () => {
  const { watches } = new Scene();
  for (let count = 0; count < 1_000; count++) expect(watches.watch(`/${count}`)).toBeDefined();
  expect(watches.watch('/one-more')).toBeUndefined();
});
