// Every public call that takes time, as the types list them, against servers that do not answer.
import { describe, expect, test } from 'vitest';
import { silentLog } from '../../src/base/log.ts';
import { seededRandom } from '../../src/base/random.ts';
import { acls } from '../../src/client/acl.ts';
import type { CallOptions } from '../../src/client/call-options.ts';
import { connect as connectZooKeeper, ZooKeeper } from '../../src/client/zookeeper.ts';
import { ZooKeeperFence } from '../../src/locks/fence.ts';
import { connect, Holdfast } from '../../src/locks/holdfast.ts';
import type { Lock } from '../../src/locks/lock.ts';
import type { LockLease } from '../../src/locks/lock-lease.ts';
import { Neighbours } from '../../src/queue/neighbours.ts';
import { VirtualClock } from '../../src/testing/virtual-clock.ts';
import { SimulatedFolder } from '../environment/simulated-folder.ts';
import { SimulatedNetwork } from '../environment/simulated-network.ts';
import { startSimulatedServer } from '../environment/simulated-server.ts';
import { publicCalls } from './public-calls.test-data.ts';
import { type ServerManner, UnansweringTransport } from './unanswering-transport.test-data.ts';

const SESSION_TIMEOUT_MS = 4_000;
const ADDRESS = { host: 'simulated', port: 2181 };
const FACTS = { root: '/locks', batonFolder: '/b', auditFolder: '/a', servers: 'simulated:2181' };

/** One client of one server. */
class Scene {
  readonly clock: VirtualClock;
  readonly transport: UnansweringTransport;
  readonly zk: ZooKeeper;
  readonly holdfast: Holdfast;
  readonly options;
  #nameCount = 0;

  private constructor(clock: VirtualClock, transport: UnansweringTransport) {
    this.clock = clock;
    this.transport = transport;
    this.options = {
      ...{ clock, transport: this.transport, random: seededRandom(2), sessionTimeoutMs: SESSION_TIMEOUT_MS },
      ...{ gatherReads: false, log: silentLog },
    };
    this.zk = ZooKeeper.open('simulated:2181', this.options);
    this.holdfast = new Holdfast(this.zk, { ...this.options, neighbours: new Neighbours() }, FACTS);
  }

  /** A client that knows its server in this manner only. */
  static async open(manner: ServerManner): Promise<Scene> {
    const clock = new VirtualClock();
    const network = new SimulatedNetwork({ clock, random: seededRandom(1), delayMsMax: 1, splitChance: 0 });
    const starting = startSimulatedServer({
      ...{ clock, network, address: ADDRESS, random: seededRandom(3), syncMsMax: 0 },
      ...{ folder: new SimulatedFolder(), limits: { tickMs: 500, sessionTimeoutMsMin: 1_000 } },
    });
    await whileTimePasses(clock, starting);
    const transport = new UnansweringTransport(network.attach());
    transport.manner = manner;
    return new Scene(clock, transport);
  }

  /** A name that nothing else uses. */
  name(): string {
    return `n${this.#nameCount++}`;
  }
}

/** Lets time pass until something that a working server answers is done. */
async function whileTimePasses<T>(clock: VirtualClock, promise: Promise<T>): Promise<T> {
  let done = false;
  const end = () => {
    done = true;
  };
  promise.then(end, end);
  for (let ms = 0; !done && ms < 60_000; ms++) await clock.advance(1);
  return promise;
}

type Bounds = CallOptions;
type Call = (bounds: Bounds) => Promise<unknown>;
type WithoutBound = 'settles' | 'ends with its session' | 'waits';

/** How a public call is made, and what bounds it. */
interface PublicCall {
  /** Does what comes before the call, which asks no server unless `needs` says so. */
  readonly make: (scene: Scene) => Call | Promise<Call>;
  /** What has to be done before: it is not made while there has never been a server. */
  readonly needs: 'nothing' | 'a server';
  /**
   * Without a bound: `waits` is for what waits in a queue, or goes on until it is told to stop; what ends with its session
   * waits for as long as a server goes on greeting.
   */
  readonly withoutBound: WithoutBound;
  readonly boundedBy: readonly (keyof CallOptions)[];
  /** It ends the client. */
  readonly closes: boolean;
}

const plain = {
  needs: 'nothing',
  withoutBound: 'settles',
  boundedBy: ['timeoutMs', 'signal'],
  closes: false,
} as const;

function call(make: (scene: Scene) => Call, facts: Partial<PublicCall> = {}): PublicCall {
  return { ...plain, make, ...facts };
}

/** Of something that is held already. */
function prepared(make: (scene: Scene) => Promise<Call>, facts: Partial<PublicCall> = {}): PublicCall {
  return { ...plain, needs: 'a server', make, ...facts };
}

/** What is observed until it is told to stop, and has no other bound than that. */
function observed(make: (scene: Scene, bounds: Bounds) => AsyncGenerator<unknown>): PublicCall {
  return call((scene) => (bounds) => make(scene, bounds).next(), {
    withoutBound: 'waits',
    boundedBy: ['signal'],
  });
}

/** The calls of one kind of lock. */
function lockCalls(
  kind: string,
  lockOf: (scene: Scene) => Pick<Lock, 'acquire' | 'tryAcquire' | 'attempt' | 'use'>,
): Record<string, PublicCall> {
  return {
    [`${kind}.acquire`]: call((scene) => (b) => lockOf(scene).acquire(b), { withoutBound: 'waits' }),
    [`${kind}.tryAcquire`]: call((scene) => (b) => lockOf(scene).tryAcquire(b)),
    [`${kind}.attempt`]: call((scene) => (b) => lockOf(scene).attempt(b)),
    [`${kind}.use`]: call((scene) => (b) => lockOf(scene).use(() => {}, b), { withoutBound: 'waits' }),
  };
}

/** The calls of one kind of lease. */
function leaseCalls(kind: string, leaseOf: (scene: Scene) => Promise<LockLease>): Record<string, PublicCall> {
  return {
    [`${kind}.release`]: prepared(
      async (scene) => {
        const lease = await leaseOf(scene);
        return (b) => lease.release(b);
      },
      { withoutBound: 'ends with its session' },
    ),
    [`${kind}.guard`]: prepared(async (scene) => {
      const lease = await leaseOf(scene);
      return (b) => lease.guard([], b);
    }),
  };
}

const listener = () => {};

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** Of one request of the client. */
function request(make: (zk: ZooKeeper, bounds: Bounds) => Promise<unknown>): PublicCall {
  return call(
    ({ zk }) =>
      (bounds) =>
        make(zk, bounds),
  );
}

/** By name; what follows in brackets tells several ways of one call apart. */
const calls: Readonly<Record<string, PublicCall>> = {
  ...lockCalls('Mutex', (s) => s.holdfast.mutex(s.name())),
  ...named(
    'cache',
    lockCalls('Mutex', (s) => s.holdfast.mutex(s.name(), { cache: true })),
  ),
  ...named(
    'handOff',
    lockCalls('Mutex', (s) => s.holdfast.mutex(s.name(), { handOff: true })),
  ),
  ...lockCalls('ReadLock', (s) => s.holdfast.readWriteLock(s.name()).read),
  ...lockCalls('WriteLock', (s) => s.holdfast.readWriteLock(s.name()).write),
  ...lockCalls('UpgradableLock', (s) => s.holdfast.readWriteLock(s.name()).upgradable),
  ...lockCalls('Semaphore', (s) => s.holdfast.semaphore(s.name(), { permits: 2 })),
  ...lockCalls('MultiLock', (s) => s.holdfast.multiLock([s.name(), s.name()])),
  ...lockCalls('SimpleLock', (s) => s.holdfast.simpleLock(s.name())),
  ...lockCalls('LeaderElection', (s) => s.holdfast.election(s.name())),
  ...leaseCalls('LockLease', (s) => s.holdfast.mutex(s.name()).acquire()),
  ...named(
    'multi',
    leaseCalls('LockLease', (s) => s.holdfast.multiLock([s.name(), s.name()]).acquire()),
  ),
  ...named(
    'permits',
    leaseCalls('LockLease', (s) => s.holdfast.semaphore(s.name(), { permits: 2 }).acquire()),
  ),
  ...leaseCalls('UpgradableLease', (s) => s.holdfast.readWriteLock(s.name()).upgradable.acquire()),
  ...leaseCalls('Leadership', (s) => s.holdfast.election(s.name()).campaign()),

  'UpgradableLease.upgrade': prepared(
    async (s) => {
      const lease = await s.holdfast.readWriteLock(s.name()).upgradable.acquire();
      return (b) => lease.upgrade(b);
    },
    { withoutBound: 'waits' },
  ),
  'ReadWriteLock.downgrade': prepared(async (s) => {
    const lock = s.holdfast.readWriteLock(s.name());
    const lease = await lock.write.acquire();
    return (b) => lock.downgrade(lease, b);
  }),
  'ReadLock.acquire (within a writer)': prepared(async (s) => {
    const lock = s.holdfast.readWriteLock(s.name());
    const lease = await lock.write.acquire();
    return (b) => lock.read.acquire({ within: lease, ...b });
  }),
  'Leadership.resign': prepared(
    async (s) => {
      const leadership = await s.holdfast.election(s.name()).campaign();
      return (b) => leadership.resign(b);
    },
    { withoutBound: 'ends with its session' },
  ),
  'LeaderElection.campaign': call((s) => (b) => s.holdfast.election(s.name()).campaign(b), {
    withoutBound: 'waits',
  }),
  'LeaderElection.lead': call(
    (s) => (b) =>
      s.holdfast.election(s.name()).lead((_, signal) => untilAborted(signal), {
        signal: new AbortController().signal,
        ...b,
      }),
    { withoutBound: 'waits' },
  ),
  'LeaderElection.leader': call((s) => (b) => s.holdfast.election(s.name()).leader(b)),
  'LeaderElection.observe': observed((s, b) => s.holdfast.election(s.name()).observe(b)),

  'LockManager.request': call((s) => (b) => s.holdfast.locks.request(s.name(), b, () => {}), {
    withoutBound: 'waits',
  }),
  'LockManager.request (steal)': call(
    (s) => (b) => s.holdfast.locks.request(s.name(), { ...b, steal: true }, () => {}),
    { boundedBy: ['timeoutMs'] },
  ),
  'LockManager.request (ifAvailable)': call(
    (s) => () => s.holdfast.locks.request(s.name(), { ifAvailable: true }, () => {}),
    { boundedBy: [] },
  ),
  'LockManager.query': call((s) => (b) => s.holdfast.locks.query(b)),

  'Holdfast.audit': call((s) => (b) => s.holdfast.audit(s.name(), b)),
  'Holdfast.close': call((s) => (b) => s.holdfast.close(b), { closes: true }),
  'Holdfast.forceRelease': call(
    (s) => (b) => s.holdfast.forceRelease(s.name(), { holder: 'h', reason: 'r', ...b }),
  ),
  'Holdfast.inspect': call((s) => (b) => s.holdfast.inspect(s.name(), b)),
  'Holdfast.list': call((s) => (b) => s.holdfast.list(b)),
  'Holdfast.raiseTokens': call((s) => (b) => s.holdfast.raiseTokens(1n << 50n, b)),
  'Holdfast.tokens': call((s) => (b) => s.holdfast.tokens(b)),
  'Holdfast.revoke': call((s) => (b) => s.holdfast.revoke(s.name(), b)),
  'Holdfast.forceRelease (of a holder)': prepared(async (s) => {
    const name = s.name();
    await s.holdfast.mutex(name).acquire();
    const holder = (await s.holdfast.inspect(name)).holders[0]!.id;
    return (b) => s.holdfast.forceRelease(name, { holder, reason: 'r', ...b });
  }),
  'ZooKeeperFence.admit': call((s) => {
    const fence = new ZooKeeperFence(s.zk, `/${s.name()}`);
    return (b) => fence.admit(1n, 0, b);
  }),
  'holdfast: connect': call((s) => (b) => connect('simulated:2181', { ...s.options, ...b })),
  'zookeeper: connect': call((s) => (b) => connectZooKeeper('simulated:2181', { ...s.options, ...b })),

  'Watch.remove': prepared(async ({ zk }) => {
    const watch = await zk.addWatch('/', 'persistent', () => {});
    return (b) => watch.remove(b);
  }),
  'ZooKeeper.addAuth': request((zk, b) => zk.addAuth('digest', 'a:b', b)),
  'ZooKeeper.addWatch': request((zk, b) => zk.addWatch('/', 'persistent', listener, b)),
  'ZooKeeper.children': request((zk, b) => zk.children('/', b)),
  'ZooKeeper.childrenWithStat': request((zk, b) => zk.childrenWithStat('/', b)),
  'ZooKeeper.close': call(
    ({ zk }) =>
      (b) =>
        zk.close(b),
    { closes: true },
  ),
  'ZooKeeper.config': request((zk, b) => zk.config(b)),
  'ZooKeeper.connected': request((zk, b) => zk.connected(b)),
  'ZooKeeper.countDescendants': request((zk, b) => zk.countDescendants('/', b)),
  'ZooKeeper.create': request((zk, b) => zk.create('/x', '', b)),
  'ZooKeeper.delete': request((zk, b) => zk.delete('/x', b)),
  'ZooKeeper.deleteTree': request((zk, b) => zk.deleteTree('/x', b)),
  'ZooKeeper.ensurePath': request((zk, b) => zk.ensurePath('/x/y', b)),
  'ZooKeeper.ephemerals': request((zk, b) => zk.ephemerals('/', b)),
  'ZooKeeper.events': call(
    ({ zk }) =>
      (b) =>
        zk.events('/', b).next(),
  ),
  'ZooKeeper.exists': request((zk, b) => zk.exists('/', b)),
  'ZooKeeper.get': request((zk, b) => zk.get('/', b)),
  'ZooKeeper.getAcl': request((zk, b) => zk.getAcl('/', b)),
  'ZooKeeper.hasWatches': request((zk, b) => zk.hasWatches('/', 'any', b)),
  'ZooKeeper.multi': request((zk, b) => zk.multi([], b)),
  'ZooKeeper.multiRead': request((zk, b) => zk.multiRead([], b)),
  'ZooKeeper.observe': observed(({ zk }, b) => zk.observe('/', b)),
  'ZooKeeper.observeChildren': observed(({ zk }, b) => zk.observeChildren('/', b)),
  'ZooKeeper.reconfig': request((zk, b) => zk.reconfig({}, b)),
  'ZooKeeper.removeWatches': request((zk, b) => zk.removeWatches('/', 'any', b)),
  'ZooKeeper.set': request((zk, b) => zk.set('/x', '', b)),
  'ZooKeeper.setAcl': request((zk, b) => zk.setAcl('/x', acls.open, b)),
  'ZooKeeper.sync': request((zk, b) => zk.sync('/', b)),
  'ZooKeeper.sync (by a quorum)': request((zk, b) => zk.sync('/', { by: 'quorum', ...b })),
  'ZooKeeper.unwatch': prepared(async ({ zk }) => {
    const watch = () => {};
    await zk.get('/', { watch });
    return (b) => zk.unwatch('/', 'data', watch, b);
  }),
  'ZooKeeper.whoAmI': request((zk, b) => zk.whoAmI(b)),
};

function named(way: string, several: Readonly<Record<string, PublicCall>>): Record<string, PublicCall> {
  return Object.fromEntries(Object.entries(several).map(([name, each]) => [`${name} (${way})`, each]));
}

/** What the server does at first, and what when the calls are made. */
const situations: readonly (readonly [before: ServerManner, during: ServerManner])[] = [
  ['accepts and stays silent', 'accepts and stays silent'],
  ['greets and never answers', 'greets and never answers'],
  ['works', 'accepts and stays silent'],
  ['works', 'greets and never answers'],
];
const TIMEOUT_MS = 500;
const ABORTED_AFTER_MS = 100;
/** When no server has answered for 15 s it is enough, or a quarter of that later. */
const WITHOUT_BOUND_MS = 20_000;

type BoundOf = 'timeoutMs' | 'signal' | 'no bound';

/** Makes calls at the same time; those that have not settled when they should have. */
async function unsettled(
  chosen: readonly (readonly [string, PublicCall])[],
  [before, during]: (typeof situations)[number],
  bound: BoundOf,
): Promise<string[]> {
  const scene = await Scene.open(before);
  const { clock, transport } = scene;
  if (before === 'works') await whileTimePasses(clock, scene.zk.connected());
  const ready: [string, Call][] = [];
  for (const [name, { make }] of chosen) {
    const making = make(scene);
    ready.push([name, making instanceof Promise ? await whileTimePasses(clock, making) : making]);
  }
  transport.manner = during;
  const aborting: AbortController[] = [];
  const left = new Set<string>();
  for (const [name, begin] of ready) {
    left.add(name);
    const settle = () => void left.delete(name);
    const controller = new AbortController();
    aborting.push(controller);
    const { signal } = controller;
    const options = { timeoutMs: { timeoutMs: TIMEOUT_MS }, signal: { signal }, 'no bound': {} };
    begin(options[bound]).then(settle, settle);
  }
  if (bound === 'signal') {
    await clock.advance(ABORTED_AFTER_MS);
    for (const controller of aborting) controller.abort(new Error('given up'));
    await clock.advance(0);
  } else {
    await clock.advance(bound === 'timeoutMs' ? TIMEOUT_MS : WITHOUT_BOUND_MS);
  }
  return [...left];
}

test('every call that the types list is here, and nothing else is', () => {
  const listed = Object.keys(calls).map((name) => name.replace(/ \(.*\)$/, ''));
  expect([...new Set(listed)].sort()).toEqual(publicCalls(['holdfast', 'zookeeper']));
});

describe.each(situations)('a server that first %s, then %s', (before, during) => {
  const possible = Object.entries(calls).filter(([, { needs }]) => needs === 'nothing' || before === 'works');
  const bounds: readonly BoundOf[] = ['timeoutMs', 'signal', 'no bound'];

  test.each(bounds)('bounds every call: by %s', async (bound) => {
    const chosen = possible.filter(([, { boundedBy, withoutBound }]) => {
      if (bound !== 'no bound') return boundedBy.includes(bound);
      const lasts = during === 'greets and never answers';
      return withoutBound === 'settles' || (withoutBound === 'ends with its session' && !lasts);
    });
    const closing = chosen.filter(([, { closes }]) => closes);
    const others = chosen.filter(([, { closes }]) => !closes);
    const found = await unsettled(others, [before, during], bound);
    for (const each of closing) found.push(...(await unsettled([each], [before, during], bound)));
    expect(found).toEqual([]);
  });
});
