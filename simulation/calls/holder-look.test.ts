import { afterEach, beforeEach, describe, expect, type MockInstance, test, vi } from 'vitest';
import { silentLog } from '../../src/base/log.ts';
import { seededRandom } from '../../src/base/random.ts';
import { ZooKeeper } from '../../src/client/zookeeper.ts';
import { Holdfast, type HoldfastOptions } from '../../src/locks/holdfast.ts';
import { Inspection } from '../../src/locks/inspection.ts';
import type { AcquireOptions } from '../../src/locks/lock.ts';
import type { LockLease } from '../../src/locks/lock-lease.ts';
import { Neighbours } from '../../src/queue/neighbours.ts';
import { VirtualClock } from '../../src/testing/virtual-clock.ts';
import { SimulatedFolder } from '../environment/simulated-folder.ts';
import { SimulatedNetwork } from '../environment/simulated-network.ts';
import { startSimulatedServer } from '../environment/simulated-server.ts';
import { UnansweringTransport } from './unanswering-transport.test-data.ts';

const ADDRESS = { host: 'simulated', port: 2181 };
const FACTS = { root: '/locks', batonFolder: '/b', auditFolder: '/a', servers: 'simulated:2181' };
const ASKED_AFTER_MS = 750;

/** A holder and a waiter, connected to one server, under one clock. */
class Scene {
  readonly clock = new VirtualClock();
  readonly network = new SimulatedNetwork({
    ...{ clock: this.clock, random: seededRandom(1), delayMsMax: 1, splitChance: 0 },
  });
  readonly transport = new UnansweringTransport(this.network.attach());
  readonly holder: Holdfast;
  readonly waiter: Holdfast;

  constructor(others: Pick<HoldfastOptions, 'lockDelayMs'>) {
    this.holder = this.#holdfast('billing', 4711, others);
    this.waiter = this.#holdfast('other', 4712, others);
  }

  static async open(others: Pick<HoldfastOptions, 'lockDelayMs'> = {}): Promise<Scene> {
    const scene = new Scene(others);
    const { clock, network } = scene;
    const starting = startSimulatedServer({
      ...{ clock, network, address: ADDRESS, random: seededRandom(3), syncMsMax: 0 },
      ...{ folder: new SimulatedFolder(), limits: { tickMs: 500, sessionTimeoutMsMin: 1_000 } },
    });
    await scene.during(starting);
    return scene;
  }

  #holdfast(app: string, pid: number, others: object): Holdfast {
    const transport = app === 'other' ? this.transport : this.network.attach();
    const options = {
      clock: this.clock,
      transport,
      random: seededRandom(pid),
      sessionTimeoutMs: 10_000,
    };
    const zk = ZooKeeper.open('simulated:2181', { ...options, log: silentLog });
    const process = { host: 'h', pid };
    return new Holdfast(zk, { ...options, ...others, app, process, neighbours: new Neighbours() }, FACTS);
  }

  /** Lets time pass until it has settled. */
  async during<T>(promise: Promise<T>): Promise<T> {
    let settled = false;
    const end = () => {
      settled = true;
    };
    promise.then(end, end);
    for (let ms = 0; !settled && ms < 60_000; ms++) await this.clock.advance(1);
    return promise;
  }
}

type Acquire = (holdfast: Holdfast, options?: AcquireOptions) => Promise<LockLease>;

const recipes: Record<string, Acquire> = {
  'a mutex': (h, options) => h.mutex('m').acquire(options),
  'a mutex that is passed on': (h, options) => h.mutex('p', { cache: true, handOff: true }).acquire(options),
  'a writer': (h, options) => h.readWriteLock('rw').write.acquire(options),
  'a semaphore': (h, options) => h.semaphore('s', { permits: 2 }).acquire({ ...options, permits: 2 }),
  'a multi-lock': (h, options) => h.multiLock(['x', 'y']).acquire(options),
  'a simple lock': (h, options) => h.simpleLock('one').acquire(options),
};

let inspecting: MockInstance<Inspection['glance']>;
beforeEach(() => {
  inspecting = vi.spyOn(Inspection.prototype, 'glance');
});
afterEach(() => vi.restoreAllMocks());

describe('a wait that runs out of time', () => {
  test.each(Object.entries(recipes))(
    'says who holds it, since when, and how many wait: %s',
    async (_, acquire) => {
      const scene = await Scene.open();
      const madeAfterMs = scene.clock.wallMs();
      await scene.during(acquire(scene.holder));
      const madeBeforeMs = scene.clock.wallMs();
      const startedAtMs = scene.clock.nowMs();
      const error = await scene.during(acquire(scene.waiter, { timeoutMs: 1_000 }).catch((e) => e));
      expect(error).toMatchObject({ code: 'LOCK_TIMEOUT', holder: 'billing@h:4711' });
      expect(error.waiting).toBe(error.lockName === 'one' ? 0 : 1);
      expect(error.message).toContain('not granted within 1000 ms: held by billing@h:4711 (node made 2026-');
      expect(error.since.getTime()).toBeGreaterThanOrEqual(madeAfterMs);
      expect(error.since.getTime()).toBeLessThanOrEqual(madeBeforeMs);
      expect(scene.clock.nowMs() - startedAtMs).toBeLessThanOrEqual(1_001);
      expect(inspecting).toHaveBeenCalledTimes(1);
    },
  );

  test('names the holder of that lock of several that it still waits for', async () => {
    const scene = await Scene.open();
    const first = await scene.during(scene.waiter.mutex('x').acquire());
    await scene.during(scene.holder.mutex('y').acquire());
    const acquiring = scene.waiter
      .multiLock(['x', 'y'])
      .acquire({ timeoutMs: 1_000 })
      .catch((e) => e);
    await scene.clock.advance(100);
    await scene.during(first.release());
    expect(await scene.during(acquiring)).toMatchObject({ holder: 'billing@h:4711' });
    expect(inspecting).toHaveBeenCalledWith('y', expect.anything(), expect.anything());
  });

  test('names the reader that an upgrade waits for, and not itself', async () => {
    const scene = await Scene.open();
    const upgradable = await scene.during(scene.waiter.readWriteLock('rw').upgradable.acquire());
    await scene.during(scene.holder.readWriteLock('rw').read.acquire());
    const error = await scene.during(upgradable.upgrade({ timeoutMs: 1_000 }).catch((e) => e));
    expect(error).toMatchObject({ holder: 'billing@h:4711', waiting: 1 });
  });

  test.each([true, false])(
    'names the one who came first where the numbers are the same: %s',
    async (isFirstByName) => {
      const scene = await Scene.open();
      // The number that the waiter gets, too.
      const uuid = (digit: string) => `${digit.repeat(8)}-1111-4111-8111-111111111111`;
      const nameOf = (digit: string) => `/locks/m/_c_${uuid(digit)}-lock-0000000002`;
      const { zk } = scene.holder;
      await scene.during(zk.ensurePath('/locks/m'));
      const digits = isFirstByName ? ['0', 'f'] : ['f', '0'];
      for (const [index, digit] of digits.entries()) {
        const owner = JSON.stringify({ host: 'h', pid: index, app: index === 0 ? 'first' : 'second' });
        await scene.during(zk.create(nameOf(digit), owner, { mode: 'ephemeral' }));
      }
      const acquiring = scene.waiter.mutex('m').acquire({ timeoutMs: 1_000 });
      const error = await scene.during(acquiring.catch((e) => e));
      expect(error).toMatchObject({ code: 'LOCK_TIMEOUT', holder: 'first@h:0' });
    },
  );

  test('does not name itself while it holds back', async () => {
    const scene = await Scene.open({ lockDelayMs: 10_000 });
    const lease = await scene.during(scene.holder.mutex('m').acquire());
    const acquiring = scene.waiter
      .mutex('m')
      .acquire({ timeoutMs: 1_000 })
      .catch((e) => e);
    await scene.clock.advance(100);
    await scene.during(scene.holder.zk.delete(lease.holding.paths[0]!));
    const error = await scene.during(acquiring);
    expect(error).toMatchObject({ code: 'LOCK_TIMEOUT' });
    expect(error).not.toHaveProperty('holder');
  });

  test('says nothing of a holder, and ends in time, where nothing is answered any more', async () => {
    const scene = await Scene.open();
    await scene.during(scene.holder.mutex('m').acquire());
    const startedAtMs = scene.clock.nowMs();
    const acquiring = scene.waiter
      .mutex('m')
      .acquire({ timeoutMs: 1_000 })
      .catch((e) => e);
    await scene.clock.advance(ASKED_AFTER_MS - 50);
    scene.transport.manner = 'greets and never answers';
    const error = await scene.during(acquiring);
    expect(scene.clock.nowMs() - startedAtMs).toBeLessThanOrEqual(1_001);
    expect(error).toMatchObject({ code: 'LOCK_TIMEOUT', ahead: 1 });
    expect(error).not.toHaveProperty('holder');
    expect(error.message).toMatch(/^lock m: not granted within 1000 ms: 1 ahead when last looked at/);
  });
});

describe('nobody is asked', () => {
  test('by a wait that ends before three quarters of its time', async () => {
    const scene = await Scene.open();
    const lease = await scene.during(scene.holder.mutex('m').acquire());
    const acquiring = scene.waiter.mutex('m').acquire({ timeoutMs: 1_000 });
    await scene.clock.advance(ASKED_AFTER_MS - 50);
    await scene.during(lease.release());
    await scene.during(acquiring);
    await scene.clock.advance(2_000);
    expect(inspecting).not.toHaveBeenCalled();
  });

  test('for a lock that is free, and no timer is set for it', async () => {
    const scene = await Scene.open();
    const at = vi.spyOn(scene.clock, 'at');
    const lease = await scene.during(scene.waiter.mutex('m').acquire({ timeoutMs: 1_000_000 }));
    expect(at.mock.calls.filter(([atMs]) => atMs > 700_000)).toHaveLength(1); // The bound itself.
    await scene.during(lease.release());
    expect(inspecting).not.toHaveBeenCalled();
  });

  test('by a wait without a bound, or one that was given up', async () => {
    const scene = await Scene.open();
    await scene.during(scene.holder.mutex('m').acquire());
    const controller = new AbortController();
    const { signal } = controller;
    const waits = [{ signal }, { signal, timeoutMs: 1_000 }].map((options) =>
      scene.waiter
        .mutex('m')
        .acquire(options)
        .catch((e) => e),
    );
    await scene.clock.advance(ASKED_AFTER_MS - 50);
    controller.abort(new Error('enough'));
    await scene.during(Promise.all(waits));
    await scene.clock.advance(2_000);
    expect(inspecting).not.toHaveBeenCalled();
  });
});
