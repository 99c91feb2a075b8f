import { describe, expect, test } from 'vitest';
import { MemoryQueues, type MemorySession } from '../testing/memory-queue.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';
import { type Grant, PlaceGrant } from './grant.ts';
import type { LockContext } from './lock-context.ts';
import { readMutexOptions, type SharingPolicy } from './mutex-options.ts';
import { SharedPlace } from './shared-place.ts';
import { TaskQueue } from './task-queue.ts';

const FOLDER = '/locks/m';
const policyOf = (options: Parameters<typeof readMutexOptions>[0]) => readMutexOptions(options)!;
const HAND_OFF = policyOf({ handOff: { grantsMax: 2, ms: 1_000 } });
const CACHE = policyOf({ cache: { idleMs: 500 } });

class Scene {
  readonly store = new MemoryQueues();
  readonly clock = new VirtualClock();
  readonly changes: string[] = [];
  readonly session: MemorySession = this.store.session();
  suspend = () => {};

  /** What the lease of the place says of itself, where it is not the session's. */
  remainingMs: number | undefined;

  async place(policy: SharingPolicy): Promise<SharedPlace> {
    const { place } = await this.session.queue(FOLDER).join({ role: 'exclusive', data: '' });
    const zk = {
      on: (_name: string, listener: () => void) => {
        this.suspend = listener;
        return () => {};
      },
    };
    const context = { zk, clock: this.clock, lockDelayMs: 0 } as unknown as LockContext;
    const hold = await place.hold();
    const remainingMs = () => this.remainingMs ?? hold.remainingMs();
    const told = { remainingMs, onEnded: hold.onEnded.bind(hold), release: () => hold.release() };
    const shared = new SharedPlace(context, new PlaceGrant(place, told, false), policy, {
      changed: () => void this.changes.push('changed'),
      freed: async ({ baton }) => void this.changes.push(baton ? 'freed, others seen' : 'freed'),
    });
    shared.open();
    return shared;
  }

  async newcomer(): Promise<void> {
    await this.store.session().queue(FOLDER).join({ role: 'exclusive', data: '' });
    await undefined;
  }

  names(): readonly string[] {
    return this.store.view(FOLDER).entries.map(({ name }) => name);
  }
}

/** Enters and leaves. */
async function section(place: SharedPlace): Promise<Grant> {
  const grant = place.enter();
  await grant.leave({ baton: false });
  return grant;
}

describe('a place that tasks share', () => {
  test('has a first section at once, and others when it is known that nobody waits', async () => {
    const scene = new Scene();
    const place = await scene.place(CACHE);
    expect(place.next()).toBe('enter');
    const first = await section(place);
    expect(place.next()).toBe('wait');
    await place.known();
    expect(scene.changes).toEqual(['freed', 'changed']);
    for (let round = 1; round < 5; round++) {
      expect(place.next()).toBe('enter');
      expect(await section(place)).toMatchObject({ token: first.token, section: round });
    }
    await place.leave();
  });

  test('is left when its lease has ended by the clock, before anybody is told', async () => {
    const scene = new Scene();
    const place = await scene.place(CACHE);
    await section(place);
    await place.known();
    expect(place.next()).toBe('enter');
    scene.remainingMs = 0;
    expect(place.next()).toBe('leave');
    expect(place.isKept).toBe(false);
  });

  test('is passed on so many times while others wait, counted from when that is known', async () => {
    const scene = new Scene();
    const place = await scene.place(HAND_OFF);
    await section(place);
    await place.watch();
    for (let round = 0; round < 10; round++) await section(place);
    await scene.newcomer();
    expect(place.next()).toBe('enter');
    await section(place);
    expect(place.next()).toBe('enter');
    await section(place);
    expect(place.next()).toBe('leave');
  });

  test('is passed on as if others waited while that is unknown', async () => {
    const scene = new Scene();
    const place = await scene.place(HAND_OFF);
    await section(place);
    const watching = place.watch();
    void section(place);
    void section(place);
    expect(place.next()).toBe('wait');
    await watching;
    expect(place.next()).toBe('enter');
    await scene.newcomer();
    await section(place);
    await section(place); // Those that were none after all do not count.
    expect(place.next()).toBe('leave');
  });

  test('is passed on to nobody after its node was removed, though it might be while others wait', async () => {
    const scene = new Scene();
    const place = await scene.place(HAND_OFF);
    await section(place);
    await place.watch();
    scene.store.remove(FOLDER, scene.names()[0]!);
    await undefined;
    expect(place.next()).toBe('leave');
  });

  test('is passed on for so long while others wait', async () => {
    const scene = new Scene();
    const place = await scene.place(HAND_OFF);
    await section(place);
    await place.watch();
    await scene.clock.advance(5_000);
    await scene.newcomer();
    await section(place);
    await scene.clock.advance(999);
    expect(place.next()).toBe('enter');
    await scene.clock.advance(1);
    expect(place.next()).toBe('leave');
  });

  test('is kept while nobody else comes, and for so long', async () => {
    const scene = new Scene();
    const place = await scene.place(CACHE);
    await section(place);
    await place.keep();
    await scene.clock.advance(400);
    await section(place);
    await place.keep();
    await scene.clock.advance(400);
    expect(place.isKept).toBe(true);
    await scene.clock.advance(100);
    expect(place.isKept).toBe(false);
    expect(scene.changes.at(-1)).toBe('changed');
    await place.leave();
    expect(scene.names()).toEqual([]);
  });

  const ends: readonly [string, (scene: Scene) => void | Promise<void>][] = [
    ['its connection is down', ({ suspend }) => suspend()],
    ['its session is over', ({ session }) => session.end()],
    ['its node was removed', (scene) => scene.store.remove(FOLDER, scene.names()[0]!)],
    ['somebody asks for it', (scene) => scene.store.revoke(FOLDER, scene.names()[0]!)],
    ['somebody comes', (scene) => scene.newcomer()],
  ];
  test.each(ends)('is of no use to anyone once %s', async (_what, end) => {
    const scene = new Scene();
    const place = await scene.place(CACHE);
    await section(place);
    await place.keep();
    scene.changes.length = 0;
    await end(scene);
    expect(scene.changes[0]).toBe('changed');
    expect(place.isKept).toBe(false);
    expect(place.next()).toBe('leave');
  });

  test('tells the section that runs, also one that listens late', async () => {
    const scene = new Scene();
    const place = await scene.place(HAND_OFF);
    const told: string[] = [];
    const grant = place.enter();
    scene.store.revoke(FOLDER, scene.names()[0]!);
    scene.store.remove(FOLDER, scene.names()[0]!);
    grant.attend({ evicted: () => told.push('evicted'), revoked: () => told.push('revoked') });
    expect(told.sort()).toEqual(['evicted', 'revoked']);
    expect(scene.changes).toEqual([]); // Somebody is in it.
    await grant.leave({ baton: true });
    expect(scene.changes).toEqual(['freed, others seen']);
    expect(place.next()).toBe('leave');
  });

  test('is not granted on and on in one turn of the event loop', async () => {
    const scene = new Scene();
    const place = await scene.place(CACHE);
    await section(place);
    await place.known();
    let turned = () => {};
    scene.clock.afterInput = (run) => {
      turned = run;
    };
    let nowMs = scene.clock.nowMs();
    scene.clock.nowMs = () => nowMs;
    expect(place.next()).toBe('enter');
    await section(place);
    nowMs += 2;
    expect(place.next()).toBe('enter');
    await section(place);
    nowMs += 1;
    expect(place.next()).toBe('wait');
    scene.changes.length = 0;
    turned();
    await place.known();
    expect(scene.changes).toEqual(['changed']);
    expect(place.next()).toBe('enter');
  });
});

describe('tasks that wait in a process', () => {
  test('go in the order in which they came, without those who have given up', async () => {
    const queue = new TaskQueue<string, number>();
    const controller = new AbortController();
    let gone = 0;
    const first = queue.wait('first', undefined, () => {});
    const second = queue.wait('second', controller.signal, () => gone++);
    const third = queue.wait('third', undefined, () => {});
    const reason = new Error('no time');
    controller.abort(reason);
    await expect(second).rejects.toBe(reason);
    expect(gone).toBe(1);
    queue.shift()!.grant(1);
    queue.shift()!.grant(3);
    expect([await first, await third]).toEqual([1, 3]);
    expect(queue.length).toBe(0);
  });
});

describe('options of a mutex', () => {
  test('left out are none', () => {
    expect(readMutexOptions({})).toBeUndefined();
    expect(readMutexOptions({ cache: false, handOff: false })).toBeUndefined();
  });

  test('have defaults', () => {
    expect(readMutexOptions({ cache: true })).toEqual({ idleMs: 60_000, grantsMax: 0, passMs: 0 });
    expect(readMutexOptions({ handOff: true })).toEqual({ idleMs: 0, grantsMax: 16, passMs: 100 });
    expect(readMutexOptions({ handOff: { grantsMax: 3 } })).toMatchObject({ grantsMax: 3, passMs: 100 });
  });

  test.each([
    [{ cache: 1 }, TypeError, /^cache: 1 given/],
    [{ handOff: 'yes' }, TypeError, /^handOff: yes given/],
    [{ cache: null }, TypeError, /^cache: null given/],
    [{ cache: { idleMs: 0 } }, RangeError, /^cache.idleMs: 0 given/],
    [{ handOff: { grantsMax: 0 } }, RangeError, /^handOff.grantsMax: 0 given/],
    [{ handOff: { grantsMax: 1.5 } }, RangeError, /^handOff.grantsMax: 1.5 given/],
    [{ handOff: { ms: -1 } }, RangeError, /^handOff.ms: -1 given/],
  ] as const)('%o are refused', (options, kind, message) => {
    expect(() => readMutexOptions(options as never)).toThrow(kind);
    expect(() => readMutexOptions(options as never)).toThrow(message);
  });
});
