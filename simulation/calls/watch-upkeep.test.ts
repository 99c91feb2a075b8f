// The watches of one client against those that its server has: any interleaving of adding and removing them, over
// reconnects and lost sessions, on a simulated network.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { seededRandom } from '../../src/base/random.ts';
import { connect, type ZooKeeper } from '../../src/client/zookeeper.ts';
import type { AddWatchMode, WatchType } from '../../src/protocol/constants.ts';
import { watchKinds } from '../../src/server/watch-table.ts';
import type { WatchEvent } from '../../src/session/watch-registry.ts';
import { VirtualClock } from '../../src/testing/virtual-clock.ts';
import { SimulatedFolder } from '../environment/simulated-folder.ts';
import { SimulatedNetwork, type SimulatedUplink } from '../environment/simulated-network.ts';
import { type SimulatedServer, startSimulatedServer } from '../environment/simulated-server.ts';

const RUNS = Number(process.env['HOLDFAST_WATCH_RUNS'] ?? 150);
const SEED = Number(process.env['HOLDFAST_WATCH_SEED'] ?? 31);
const ADDRESS = { host: 'simulated', port: 2181 };
const SESSION_TIMEOUT_MS = 4_000;
const QUIET_MS = 2_000;
const PATHS = ['/a', '/b', '/b/c'] as const;

type Path = (typeof PATHS)[number];
type Read = 'data' | 'exists' | 'children';

type Step =
  | { readonly do: 'read'; readonly kind: Read; readonly path: Path; readonly bounded: boolean }
  | { readonly do: 'since'; readonly kind: 'data' | 'exists'; readonly path: Path; readonly all: boolean }
  | { readonly do: 'add'; readonly mode: AddWatchMode; readonly path: Path; readonly bounded: boolean }
  | { readonly do: 'events'; readonly mode: AddWatchMode; readonly path: Path }
  | { readonly do: 'observe'; readonly children: boolean; readonly path: Path }
  /** Ends what an earlier step began: by its own call, or by its signal if it has one. */
  | { readonly do: 'end'; readonly which: number; readonly abort: boolean }
  | { readonly do: 'remove all'; readonly path: Path; readonly type: WatchType }
  | { readonly do: 'change'; readonly path: Path; readonly how: 'set' | 'make' | 'delete' }
  | { readonly do: 'break' | 'expire' }
  | { readonly do: 'wait'; readonly ms: number | 'microtask' };

const path = fc.constantFrom(...PATHS);
const mode = fc.constantFrom<AddWatchMode>('persistent', 'persistent-recursive');
const boolean = fc.boolean();
const types: readonly WatchType[] = ['any', 'data', 'children', 'persistent', 'persistent-recursive'];
const ms = fc.oneof(fc.constant('microtask' as const), fc.nat(4), fc.nat(40));

/** Each kind of step as often as its weight says. */
const weighted: readonly (readonly [weight: number, step: fc.Arbitrary<Step>])[] = [
  [
    4,
    fc.record({
      ...{ do: fc.constant('read' as const), path, bounded: boolean },
      kind: fc.constantFrom<Read>('data', 'exists', 'children'),
    }),
  ],
  [
    2,
    fc.record({
      ...{ do: fc.constant('since' as const), path, all: boolean },
      kind: fc.constantFrom('data' as const, 'exists' as const),
    }),
  ],
  [3, fc.record({ do: fc.constant('add' as const), mode, path, bounded: boolean })],
  [3, fc.record({ do: fc.constant('events' as const), mode, path })],
  [2, fc.record({ do: fc.constant('observe' as const), children: boolean, path })],
  [8, fc.record({ do: fc.constant('end' as const), which: fc.nat(7), abort: boolean })],
  [1, fc.record({ do: fc.constant('remove all' as const), path, type: fc.constantFrom(...types) })],
  [
    2,
    fc.record({
      ...{ do: fc.constant('change' as const), path },
      how: fc.constantFrom('set' as const, 'make' as const, 'delete' as const),
    }),
  ],
  [1, fc.record({ do: fc.constantFrom('break' as const, 'break' as const, 'expire' as const) })],
  [6, fc.record({ do: fc.constant('wait' as const), ms })],
];
const steps = fc.array(fc.oneof(...weighted.map(([weight, arbitrary]) => ({ weight, arbitrary }))), {
  minLength: 2,
  maxLength: 30,
});

/** One listener, stream or observation, and what is known of it. */
interface Watching {
  readonly path: Path;
  /** What the server must have for it; one of them. */
  readonly needs: readonly (keyof typeof watchKinds)[];
  readonly wakesOn: 'node' | 'children' | 'any';
  isSet: boolean;
  isOver: boolean;
  eventCount: number;
  /** Called after its end. */
  lateCount: number;
  end(abort: boolean): void;
}

class Scene {
  readonly clock = new VirtualClock();
  readonly #network: SimulatedNetwork;
  readonly #seed: number;
  readonly watching: Watching[] = [];
  server!: SimulatedServer;
  uplink!: SimulatedUplink;
  zk!: ZooKeeper;
  other!: ZooKeeper;

  constructor(seed: number) {
    this.#seed = seed;
    this.#network = new SimulatedNetwork({ clock: this.clock, random: seededRandom(seed) });
  }

  async open(): Promise<void> {
    const starting = startSimulatedServer({
      clock: this.clock,
      network: this.#network,
      folder: new SimulatedFolder(),
      random: seededRandom(this.#seed + 1),
      address: ADDRESS,
      limits: { tickMs: 500, sessionTimeoutMsMin: 1_000 },
    });
    this.server = await this.until(starting);
    this.uplink = this.#network.attach();
    this.zk = await this.#connect(this.uplink, 2);
    this.other = await this.#connect(this.#network.attach(), 3);
    await this.until(this.other.create('/a'));
    await this.until(this.other.create('/b'));
  }

  async close(): Promise<void> {
    await this.until(Promise.all([this.zk.close(), this.other.close()]));
    this.server.crash();
  }

  #connect(transport: SimulatedUplink, salt: number): Promise<ZooKeeper> {
    const random = seededRandom(this.#seed + salt);
    const options = { clock: this.clock, random, transport, sessionTimeoutMs: SESSION_TIMEOUT_MS };
    return this.until(connect(`${ADDRESS.host}:${ADDRESS.port}`, options));
  }

  async until<T>(promise: Promise<T>): Promise<T> {
    let isSettled = false;
    const settled = () => {
      isSettled = true;
    };
    promise.then(settled, settled);
    for (let turn = 0; !isSettled && turn < 2_000; turn++) await this.clock.advance(10);
    expect(isSettled, 'it settles').toBe(true);
    return promise;
  }

  async take(step: Step): Promise<void> {
    const { zk, other, server } = this;
    switch (step.do) {
      case 'read':
        return this.#read(step);
      case 'since':
        return this.#watchSince(step);
      case 'add':
        return this.#addWatch(step);
      case 'events':
        return this.#events(step);
      case 'observe':
        return this.#observe(step);
      case 'end':
        return this.watching[step.which]?.end(step.abort);
      case 'remove all':
        return quiet(zk.removeWatches(step.path, step.type));
      case 'change':
        if (step.how === 'set') return quiet(other.set(step.path, ''));
        return quiet(step.how === 'make' ? other.create(step.path) : other.delete(step.path));
      case 'break':
        return this.uplink.reset();
      case 'expire': {
        const session = server.core.sessions.get(zk.session.id);
        return session && server.core.expire(session);
      }
      case 'wait':
        if (step.ms === 'microtask') await null;
        else await this.clock.advance(step.ms);
    }
  }

  #begin(
    path: Path,
    needs: Watching['needs'],
    wakesOn: Watching['wakesOn'],
    end: (abort: boolean) => unknown,
  ): { readonly watching: Watching; readonly listener: (event: WatchEvent) => void } {
    const watching: Watching = {
      ...{ path, needs, wakesOn, isSet: false, isOver: false, eventCount: 0, lateCount: 0 },
      end(abort) {
        if (end(abort) !== 'later') this.isOver = true;
      },
    };
    this.watching.push(watching);
    const isOneShot = needs.some((kind) => kind === 'data' || kind === 'children');
    const listener = ({ type }: WatchEvent) => {
      if (watching.isOver) watching.lateCount++;
      watching.eventCount++;
      if (isOneShot || type === 'watch-removed' || type === 'session-lost') watching.isOver = true;
    };
    return { watching, listener };
  }

  #settle(watching: Watching, setting: Promise<unknown>): void {
    const failed = () => {
      watching.isOver = true;
    };
    setting.then(() => {
      watching.isSet = true;
    }, failed);
  }

  #read({ kind, path, bounded }: Extract<Step, { do: 'read' }>): void {
    const { zk } = this;
    const stop = new AbortController();
    const needs = [kind === 'children' ? 'children' : 'data'] as const;
    const { watching, listener } = this.#begin(
      path,
      needs,
      kind === 'children' ? 'children' : 'node',
      (abort) => {
        if (abort && bounded && !watching.isSet) stop.abort();
        else quiet(zk.unwatch(path, kind, listener));
      },
    );
    const options = { watch: listener, ...(bounded && { signal: stop.signal }) };
    if (kind === 'data') this.#settle(watching, zk.get(path, options));
    else this.#settle(watching, kind === 'exists' ? zk.exists(path, options) : zk.children(path, options));
  }

  #watchSince({ kind, path, all }: Extract<Step, { do: 'since' }>): void {
    const { zk } = this;
    const { watching, listener } = this.#begin(path, ['data'], 'node', () => {
      quiet(zk.unwatch(path, kind, listener));
    });
    this.#settle(watching, zk.watchSince(all ? 0n : zk.session.lastZxid, [{ kind, path, listener }]));
  }

  #addWatch({ mode, path, bounded }: Extract<Step, { do: 'add' }>): void {
    const stop = new AbortController();
    const { watching, listener } = this.#begin(path, [serverKind[mode]], 'any', (abort) => {
      if (abort && bounded && !watching.isSet) stop.abort();
      else {
        quiet(
          adding.then((watch) => {
            watching.isOver = true;
            return watch.remove();
          }),
        );
        return 'later'; // It is only known how to remove it when it has been added.
      }
      return 'now';
    });
    const adding = this.zk.addWatch(path, mode, listener, bounded ? { signal: stop.signal } : {});
    this.#settle(watching, adding);
  }

  #events({ mode, path }: Extract<Step, { do: 'events' }>): void {
    const stop = new AbortController();
    const events = this.zk.events(path, { mode, signal: stop.signal });
    const { watching } = this.#begin(path, [serverKind[mode]], 'any', (abort) => {
      if (abort) stop.abort();
      else quiet(events.return());
    });
    watching.isSet = true; // As far as its reader knows.
    void (async () => {
      for await (const _ of events) watching.eventCount++;
    })()
      .catch(() => {})
      .finally(() => {
        watching.isOver = true;
      });
  }

  #observe({ children, path }: Extract<Step, { do: 'observe' }>): void {
    const stop = new AbortController();
    const { signal } = stop;
    const states: AsyncGenerator<unknown> = children
      ? this.zk.observeChildren(path, { signal })
      : this.zk.observe(path, { signal });
    // Of a node that is not there, it watches that it is made.
    const { watching } = this.#begin(path, children ? ['children', 'data'] : ['data'], 'any', (abort) => {
      if (abort) stop.abort();
      else quiet(states.return(undefined));
    });
    watching.isSet = true;
    void (async () => {
      for await (const _ of states) watching.eventCount++;
    })()
      .catch(() => {})
      .finally(() => {
        watching.isOver = true;
      });
  }

  /** Nothing is under way any more: what the client has and what the server has must fit. */
  expectAgreement(): void {
    const { zk, server } = this;
    expect(zk.session.state).toBe('connected');
    const connection = server.core.sessions.get(zk.session.id)!.connection!;
    const has = (path: Path, kind: keyof typeof watchKinds) =>
      server.core.watches.has(path, connection, watchKinds[kind]) === true;
    for (const path of PATHS) {
      const live = this.watching.filter((each) => each.path === path && each.isSet && !each.isOver);
      for (const { needs } of live)
        expect(
          needs.some((kind) => has(path, kind)),
          `${path}: a listener has its watch (${needs})`,
        ).toBe(true);
      const needed = new Set(live.flatMap(({ needs }) => needs));
      // A persistent watch cannot be removed alone on servers before 3.9, and others go with it: it stays for as long as they.
      if (live.length === 0) expect(has(path, 'any'), `${path}: no watch without a listener`).toBe(false);
      for (const kind of ['data', 'children'] as const) {
        if (needed.has('persistent') || needed.has('recursive')) continue;
        if (!needed.has(kind))
          expect(has(path, kind), `${path}: no ${kind} watch without a listener`).toBe(false);
      }
    }
    expect(
      this.watching.map(({ lateCount }) => lateCount).every((count) => count === 0),
      'an end is one',
    ).toBe(true);
  }

  /** A change of each node and of its children reaches every listener that is live. */
  async expectEvents(): Promise<void> {
    const { other } = this;
    const live = this.watching.filter(({ isSet, isOver }) => isSet && !isOver);
    const before = live.map(({ eventCount }) => eventCount);
    for (const path of PATHS) await this.until(other.ensurePath(path));
    for (const path of PATHS) {
      await this.until(other.set(path, 'changed'));
      await this.until(other.create(`${path}/${this.#seed}`));
    }
    await this.clock.advance(QUIET_MS);
    live.forEach(({ path, eventCount, needs }, index) => {
      expect(eventCount, `${path}: a live listener is notified (${needs})`).toBeGreaterThan(before[index]!);
    });
  }
}

const serverKind = { persistent: 'persistent', 'persistent-recursive': 'recursive' } as const;

function quiet(promise: Promise<unknown>): void {
  promise.catch(() => {});
}

test('every live listener has a watch at the server, and no watch there is without a listener', {
  timeout: 120_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(), steps, async (seed, all) => {
      const scene = new Scene(seed);
      await scene.open();
      for (const step of all) await scene.take(step);
      // A connection that breaks may take a while to be replaced.
      await scene.clock.advance(2 * SESSION_TIMEOUT_MS);
      scene.expectAgreement();
      await scene.expectEvents();
      scene.expectAgreement();
      for (const watching of scene.watching) watching.end(true);
      await scene.clock.advance(QUIET_MS);
      scene.expectAgreement();
      await scene.close();
    }),
    { numRuns: RUNS, seed: SEED },
  );
});
