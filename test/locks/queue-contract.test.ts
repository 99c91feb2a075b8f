import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { systemRandom } from '../../src/base/random.ts';
import type { LockQueue, Place } from '../../src/queue/lock-queue.ts';
import { Neighbours } from '../../src/queue/neighbours.ts';
import { ZooKeeperQueue } from '../../src/queue/zookeeper-queue.ts';
import { ZooKeeperStore } from '../../src/queue/zookeeper-store.ts';
import { startServer } from '../../src/server.ts';
import { MemoryQueues } from '../../src/testing.ts';
import { connect } from '../../src/zookeeper.ts';
import { sharedStandalone } from '../support/shared-servers.ts';
import { until } from '../support/until.ts';

/** A store with several participants, each with a session of its own. */
interface World extends AsyncDisposable {
  /** The same queue, as the nth participant has it. */
  queue(participant: number): LockQueue;
  remove(place: Place): Promise<void>;
  revoke(place: Place): Promise<void>;
}

const PARTICIPANTS = 3;
const FOLDER = '/locks/contract';

async function onMemory(): Promise<World> {
  const store = new MemoryQueues();
  const sessions = Array.from({ length: PARTICIPANTS }, () => store.session());
  return {
    queue: (participant) => sessions[participant]!.queue(FOLDER),
    remove: async (place) => store.remove(FOLDER, place.entry.name),
    revoke: async (place) => store.revoke(FOLDER, place.entry.name),
    [Symbol.asyncDispose]: async () => {},
  };
}

async function onZooKeeper(embedded: boolean): Promise<World> {
  const server = embedded ? await startServer() : undefined;
  const { connectString } = server ?? sharedStandalone();
  const admin = await connect(connectString);
  const { path } = await admin.create('/contract-', '', { mode: 'persistent-sequential' });
  const clients = await Promise.all(
    Array.from({ length: PARTICIPANTS }, () => connect(`${connectString}${path}`)),
  );
  await clients[0]!.ensurePath('/holdfast/batons');
  return {
    queue: (participant) =>
      new ZooKeeperQueue(
        new ZooKeeperStore({
          zk: clients[participant]!,
          clock: systemClock,
          random: systemRandom,
          batonFolder: '/holdfast/batons',
          neighbours: new Neighbours(),
        }),
        FOLDER,
      ),
    remove: (place) => admin.delete(`${path}${place.path}`),
    revoke: async (place) => void (await admin.set(`${path}${place.path}`, '__REVOKE__')),
    async [Symbol.asyncDispose]() {
      await Promise.all(clients.map((zk) => zk.close()));
      await admin.deleteTree(path);
      await admin.close();
      await server?.stop();
    },
  };
}

const join = (queue: LockQueue, role: 'exclusive' | 'read' | 'write' = 'exclusive') =>
  queue.join({ role, data: '' });

describe.each([
  ['in memory', onMemory],
  ['on the embedded server', () => onZooKeeper(true)],
  ['on ZooKeeper', () => onZooKeeper(false)],
] as const)('a queue %s', (_name, start) => {
  test('shows who joins the queue as it was then, in order of arrival', async () => {
    await using world = await start();
    const first = await join(world.queue(0));
    const second = await join(world.queue(1));
    expect(first.view.entries.map(({ name }) => name)).toEqual([first.place.entry.name]);
    expect(second.view.entries.map(({ name }) => name)).toEqual([
      first.place.entry.name,
      second.place.entry.name,
    ]);
    expect(second.place.token).toBeGreaterThan(first.place.token);
    expect((await world.queue(2).view()).entries).toHaveLength(2);
  });

  test('lets one stand right before another that is still there, and behind all ahead of it', async () => {
    await using world = await start();
    const [first, second, third] = [
      await join(world.queue(0), 'read'),
      await join(world.queue(1), 'read'),
      await join(world.queue(2), 'write'),
    ].map(({ place }) => place);
    const inserted = await first!.before(third!.entry, 'upgraded', '');
    const names = async () => (await world.queue(1).view()).entries.map(({ name }) => name);
    expect(await names()).toEqual([first, second, inserted, third].map((place) => place!.entry.name));
    expect(inserted!.token).toBe(first!.token);
    await inserted!.leave();
    await third!.leave();
    expect(await first!.before(third!.entry, 'upgraded', '')).toBeUndefined();
    expect(await names()).toEqual([first, second].map((place) => place!.entry.name));
  });

  test('is empty before anyone has joined', async () => {
    await using world = await start();
    expect(await world.queue(0).view()).toEqual({ entries: [], foreign: [] });
  });

  test('tells of a release by the baton, and of a departure without it', async () => {
    await using world = await start();
    const places = [await join(world.queue(0)), await join(world.queue(1)), await join(world.queue(2))];
    const [first, second, third] = places.map(({ place }) => place) as [Place, Place, Place];
    const secondHears = second.listen(first.entry, { baton: true });
    const thirdHears = third.listen(second.entry, { baton: true });
    await third.watchSelf();
    await second.watchSelf();
    await first.leave({ baton: true });
    expect(await secondHears).toBe('released');
    await second.leave();
    expect(await thirdHears).toBe('gone');
  });

  test('tells at once of an entry that is gone already', async () => {
    await using world = await start();
    const [first, second] = [await join(world.queue(0)), await join(world.queue(1))];
    await first.place.leave({ baton: true });
    expect(await second.place.listen(first.place.entry, { baton: true })).toBe('absent');
  });

  test('says no more than gone to one whose own entry is gone too', async () => {
    await using world = await start();
    const [first, second] = [await join(world.queue(0)), await join(world.queue(1))];
    await world.remove(second.place);
    await first.place.leave({ baton: true });
    expect(await second.place.listen(first.place.entry, { baton: true })).toBe('gone');
    expect(second.place.evicted).toBe(true);
  });

  test('tells a holder of others: of those who are there, and of the first who comes', async () => {
    await using world = await start();
    const first = await join(world.queue(0));
    const told: string[] = [];
    await first.place.watchForOthers(() => told.push('first'));
    expect(told).toEqual([]);
    const second = await join(world.queue(1));
    await until('the first to be told', () => told.length > 0);
    await first.place.leave();
    told.length = 0;
    const third = await join(world.queue(2));
    await second.place.watchForOthers(() => told.push('second'));
    expect(told[0]).toBe('second');
    await third.place.leave();
    await second.place.leave();
  });

  test('tells a holder that is removed while it looks out for others', async () => {
    await using world = await start();
    const { place } = await join(world.queue(0));
    let evicted = false;
    place.attend({ evicted: () => (evicted = true), revoked: () => {} });
    await place.watchForOthers(() => {});
    await world.remove(place);
    await until('it to be told', () => evicted);
  });

  test('gives up listening with the reason of the signal', async () => {
    await using world = await start();
    const [first, second] = [await join(world.queue(0)), await join(world.queue(1))];
    const controller = new AbortController();
    const listening = second.place.listen(first.place.entry, { baton: true, signal: controller.signal });
    const reason = new Error('enough');
    controller.abort(reason);
    await expect(listening).rejects.toBe(reason);
  });

  test('tells an entry that it was removed by someone else, before any baton', async () => {
    await using world = await start();
    const [first, second] = [await join(world.queue(0)), await join(world.queue(1))];
    const told: string[] = [];
    second.place.attend({ evicted: () => told.push('evicted'), revoked: () => told.push('revoked') });
    const hears = second.place.listen(first.place.entry, { baton: true });
    await second.place.watchSelf();
    await world.remove(second.place);
    await first.place.leave({ baton: true });
    await hears;
    expect(second.place.evicted).toBe(true);
    expect(told).toEqual(['evicted']);
  });

  test('tells an entry that it is asked for', async () => {
    await using world = await start();
    const { place } = await join(world.queue(0));
    let revoked = false;
    place.attend({
      evicted: () => {},
      revoked: () => {
        revoked = true;
      },
    });
    await place.watchSelf();
    await world.revoke(place);
    await until('it is asked for', () => revoked);
    expect(place.evicted).toBe(false);
  });

  test('makes several entries in one step', async () => {
    await using world = await start();
    const { place, others, view } = await world.queue(0).join({ role: 'lease', data: '', count: 3 });
    expect(others).toHaveLength(2);
    expect(view.entries).toHaveLength(3);
    expect(new Set([place, ...others].map(({ token }) => token)).size).toBe(1);
  });

  test('keeps a spot for who goes on beside itself, and passes no baton then', async () => {
    await using world = await start();
    const writer = await join(world.queue(0), 'write');
    const behind = await join(world.queue(1), 'write');
    const hears = behind.place.listen(writer.place.entry, { baton: true });
    await behind.place.watchSelf();
    const reader = await writer.place.beside('read', '');
    expect(reader?.token).toBe(writer.place.token);
    await writer.place.leave({ baton: true });
    expect(await hears).toBe('gone');
    const { entries } = await behind.place.view();
    expect(entries.map(({ role }) => role)).toEqual(['read', 'write']);
  });

  test('lets nobody go on beside a place that is gone', async () => {
    await using world = await start();
    const writer = await join(world.queue(0), 'write');
    await world.remove(writer.place);
    expect(await writer.place.beside('read', '')).toBeUndefined();
    expect((await world.queue(1).view()).entries).toEqual([]);
  });

  test('lets one look again whenever it changes', async () => {
    await using world = await start();
    const [first, second] = [await join(world.queue(0)), await join(world.queue(1))];
    const alone = second.place.awaitView(({ entries }) => entries.length === 1);
    await first.place.leave();
    expect((await alone).entries).toEqual([expect.objectContaining({ name: second.place.entry.name })]);
  });

  test('may be left twice', async () => {
    await using world = await start();
    const { place } = await join(world.queue(0));
    await Promise.all([place.leave(), place.leave({ baton: true })]);
    await place.leave();
    expect((await world.queue(1).view()).entries).toEqual([]);
  });

  test('grants a hold that lasts until it is released', async () => {
    await using world = await start();
    const { place } = await join(world.queue(0));
    const hold = await place.hold();
    expect(hold.remainingMs()).toBeGreaterThan(0);
    hold.release();
    expect(hold.remainingMs()).toBe(0);
  });
});
