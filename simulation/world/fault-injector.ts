import type { Cancel } from '../../src/base/clock.ts';
import { parseEntry } from '../../src/queue/entry-name.ts';
import { Impostor } from '../environment/impostor.ts';
import { OlderServer } from '../environment/older-server.ts';
import type { Heading, SimulatedListener } from '../environment/simulated-network.ts';
import { SimulatedProcess } from '../environment/simulated-process.ts';
import type { Fault } from '../scenario/scenario.ts';
import type { HoldMonitor } from './hold-monitor.ts';
import { ASKER, OPEN, raiseTokens } from './raise-tokens.ts';
import { describe, SERVER_LIMITS, type SimulatedClient, type World } from './world.ts';

/** Makes things go wrong, and well again. */
export class FaultInjector {
  readonly #world: World;
  readonly #monitor: HoldMonitor;
  /** What is wrong now, and what mends it. */
  readonly #mending = new Set<() => void>();
  /** Writes down how long a process that stands still has stood still. */
  readonly #endStall = new Map<SimulatedClient['process'], () => void>();
  #planned: readonly Cancel[] = [];
  #faultCount = 0;
  #healed = false;

  constructor(world: World, monitor: HoldMonitor) {
    this.#world = world;
    this.#monitor = monitor;
  }

  plan(faults: readonly Fault[]): void {
    const { scheduler } = this.#world;
    this.#planned = faults.map((fault) => scheduler.at(fault.atMs, () => this.#inject(fault)));
  }

  /** Everything is well from here on; the dead stay dead. */
  heal(): void {
    this.#healed = true;
    for (const cancel of this.#planned) cancel();
    for (const mend of [...this.#mending]) mend();
    for (const { uplink } of this.#world.clients) {
      uplink.cutAfter('to-client', Number.POSITIVE_INFINITY);
      uplink.cutAfter('to-server', Number.POSITIVE_INFINITY);
    }
  }

  #inject(fault: Fault): void {
    const world = this.#world;
    const name = `fault-${++this.#faultCount}`;
    const target = 'client' in fault ? fault.client : 'lock' in fault ? fault.lock : 'server';
    world.record({ kind: 'fault-began', atMs: world.nowMs, fault: name, what: fault.kind, target });
    const mend = this.#begin(fault);
    if (!mend || !('forMs' in fault)) return;
    this.#last(fault.forMs, () => {
      mend();
      world.record({ kind: 'fault-ended', atMs: world.nowMs, fault: name });
    });
  }

  /** Mends something after a while, or when all is healed. */
  #last(forMs: number, mend: () => void): void {
    const { scheduler, nowMs } = this.#world;
    const end = () => {
      if (this.#mending.delete(end)) mend();
    };
    this.#mending.add(end);
    scheduler.at(nowMs + forMs, end);
  }

  /** Returns what ends it, if it lasts. */
  #begin(fault: Fault): (() => void) | undefined {
    const world = this.#world;
    switch (fault.kind) {
      case 'reset':
        this.#client(fault.client).uplink.reset(fault);
        return undefined;
      case 'cut':
        this.#client(fault.client).uplink.cutAfter(fault.heading, fault.bytes);
        return undefined;
      case 'partition':
        return this.#partition(this.#client(fault.client), fault.heading);
      case 'refuse': {
        const { uplink } = this.#client(fault.client);
        uplink.cut(fault);
        return () => uplink.restore();
      }
      case 'delay': {
        const { uplink } = this.#client(fault.client);
        uplink.delayMsMax = fault.delayMsMax;
        return () => {
          uplink.delayMsMax = undefined;
        };
      }
      case 'stall':
        return this.#stall(this.#client(fault.client), fault.first);
      case 'kill':
        this.#kill(this.#client(fault.client), fault.silently);
        return undefined;
      case 'expire':
        this.#expire(this.#client(fault.client));
        return undefined;
      case 'remove':
        if (fault.atHandOver) world.atHandOver(fault.lock, () => this.#remove(fault.lock, fault.which));
        else this.#remove(fault.lock, fault.which);
        return undefined;
      case 'remove-folder':
        this.#removeFolder(fault.lock, fault.anew ?? false);
        return undefined;
      case 'crash':
        return this.#crash();
      case 'stall-server':
        return this.#stallServer();
      case 'disk-full':
        world.disk.full = true;
        return () => {
          world.disk.full = false;
        };
      case 'slow-disk': {
        const before = world.scenario.syncMsMax;
        world.disk.syncMsMax = fault.syncMsMax;
        return () => {
          world.disk.syncMsMax = before;
        };
      }
      case 'raise-tokens':
        this.#raiseTokens(fault.by);
        return undefined;
      case 'limit':
        return this.#limit(fault);
      case 'impostor':
        return this.#divert(this.#client(fault.client), new Impostor(fault.timeoutMs));
      case 'restore':
        return this.#restore(this.#client(fault.client), fault.looks);
      case 'isolate':
        return world.followers[fault.follower - 1]?.isolate();
      case 'lag':
        return world.followers[fault.follower - 1]?.lag(fault.lagMs);
    }
  }

  #client(name: string): SimulatedClient {
    return this.#world.clients.find(({ plan }) => plan.name === name)!;
  }

  #partition({ uplink }: SimulatedClient, heading: Heading | 'both'): () => void {
    const headings: Heading[] = heading === 'both' ? ['to-client', 'to-server'] : [heading];
    for (const each of headings) uplink.hold(each);
    return () => {
      for (const each of headings) uplink.letGo(each);
    };
  }

  /** The handshake arrives, and is carried out; its answer is lost. */
  #limit({ client, sessionTimeoutMsMax, unheardMs }: Extract<Fault, { kind: 'limit' }>): () => void {
    const { uplink } = this.#client(client);
    this.#setLimit(sessionTimeoutMsMax);
    uplink.reset();
    uplink.deaf = true;
    this.#last(unheardMs, () => {
      uplink.deaf = false;
      uplink.reset();
    });
    return () => this.#setLimit(SERVER_LIMITS.sessionTimeoutMsMax);
  }

  #setLimit(sessionTimeoutMsMax: number): void {
    const limits = this.#world.server?.core.limits;
    if (limits) Object.assign(limits, { sessionTimeoutMsMax });
  }

  /** All its connections lead to this one from now on. */
  #divert({ uplink }: SimulatedClient, listener: SimulatedListener): () => void {
    uplink.diverted = listener;
    uplink.reset();
    return () => {
      if (uplink.diverted === listener) uplink.diverted = undefined;
      uplink.reset();
    };
  }

  /** A client that has seen nothing yet would take it for its ensemble, and rightly so. */
  #restore(client: SimulatedClient, looks: boolean): (() => void) | undefined {
    if (!client.holdfast || client.holdfast.zk.session.lastZxid === 0n) return undefined;
    const clock = new SimulatedProcess(this.#world.scheduler);
    const random = this.#world.random(10_000 + this.#faultCount);
    const server = new OlderServer({ clock, random, limits: SERVER_LIMITS, looks });
    const mend = this.#divert(client, server);
    return () => {
      mend();
      server.stop();
    };
  }

  #stall({ process }: SimulatedClient, first: 'alarms' | 'inputs'): (() => void) | undefined {
    if (process.state !== 'running') return undefined;
    const world = this.#world;
    const fromMs = world.nowMs;
    const stalled = world.clientsOf(process);
    // What it could have seen last: heartbeats have prolonged its leases since they were granted.
    for (const { attempt, lease } of stalled.flatMap(({ plan }) => this.#monitor.leasesOf(plan.name))) {
      if (lease.remainingMs() <= 0) continue;
      const leaseEndsAtMs = fromMs + process.worldSpanMs(lease.remainingMs());
      world.record({ kind: 'looked', atMs: fromMs, attempt, leaseEndsAtMs });
    }
    process.stall();
    this.#endStall.set(process, () => {
      for (const { plan } of stalled) {
        world.record({ kind: 'stalled', fromMs, atMs: world.nowMs, client: plan.name });
      }
    });
    return () => {
      if (process.state !== 'stalled') return;
      this.#recordStall(process);
      process.resume(first);
    };
  }

  /** Also of one that is killed while it stands still: it could not be told anything until then. */
  #recordStall(process: SimulatedClient['process']): void {
    this.#endStall.get(process)?.();
    this.#endStall.delete(process);
  }

  #kill({ process }: SimulatedClient, silently: boolean): void {
    if (process.state === 'dead') return;
    const world = this.#world;
    const killed = world.clientsOf(process);
    this.#recordStall(process);
    for (const { plan } of killed) {
      world.record({ kind: 'ended', atMs: world.nowMs, client: plan.name, how: 'killed' });
    }
    process.die();
    for (const { plan, uplink } of killed) {
      this.#monitor.clientDied(plan.name);
      if (silently) uplink.vanish();
      else uplink.reset();
    }
  }

  #expire({ holdfast }: SimulatedClient): void {
    const core = this.#world.server?.core;
    const id = holdfast?.zk.session.id;
    const session = id === undefined ? undefined : core?.sessions.get(id);
    if (!core || !session || core.readOnly) return;
    for (const path of core.tree.ephemeralsOf(session.id)) this.#tellOfRemoval(path);
    this.#monitor.sessionEnded(session.id);
    core.expire(session);
  }

  #remove(lock: string, which: 'first' | 'second' | 'last'): void {
    const core = this.#world.server?.core;
    if (!core || core.readOnly || this.#healed) return;
    const folders = [`/locks/${lock}`, `/locks/${lock}/leases`, `/locks/${lock}/locks`];
    const paths = folders.flatMap((folder) =>
      [...(core.tree.get(folder)?.children ?? [])].filter(parseEntry).map((name) => `${folder}/${name}`),
    );
    const own = core.tree.get(folders[0]!);
    if (own && own.owner > 0n) paths.push(folders[0]!); // A simple lock is its own node.
    const czxidOf = (path: string) => core.tree.get(path)!.czxid;
    paths.sort((a, b) => (czxidOf(a) < czxidOf(b) ? -1 : 1));
    const path = which === 'first' ? paths[0] : which === 'second' ? paths[1] : paths.at(-1);
    if (path === undefined) return;
    const { owner } = core.tree.get(path)!;
    const client = this.#world.clients.find(({ latest }) => latest?.zk.session.id === owner);
    if (client) this.#monitor.clientPutOut(client.plan.name, lock);
    this.#tellOfRemoval(path);
    this.#delete(path);
  }

  #removeFolder(lock: string, anew: boolean): void {
    const core = this.#world.server?.core;
    const node = core?.tree.get(`/locks/${lock}`);
    if (!core || core.readOnly || !node || (node.children?.size ?? 0) > 0 || node.owner > 0n) return;
    this.#delete(`/locks/${lock}`);
    if (!anew) return;
    const moment = core.nextMoment();
    const request = { path: `/locks/${lock}`, data: null, acl: OPEN, flags: 0 };
    core.commit(core.writes.create(request, 'container', ASKER, moment), moment);
    core.tick();
  }

  #tellOfRemoval(path: string): void {
    const world = this.#world;
    const node = world.server!.core.tree.get(path)!;
    this.#monitor.nodeRemoved(path);
    const lock = path.split('/')[2]!;
    // A reader that stands beside a writer has the writer's token, not that of its own node.
    const own = world.tokenOf(node.czxid);
    for (const token of new Set([own, ...this.#monitor.tokensOf(path), ...this.#tokensBeside(path)])) {
      world.record({ kind: 'removed-by-hand', atMs: world.nowMs, lock, token });
    }
  }

  /** Of those whose spot it shares: who is about to hold by it, and does not know yet that it is there. */
  #tokensBeside(path: string): bigint[] {
    const { tree } = this.#world.server!.core;
    const folder = path.slice(0, path.lastIndexOf('/'));
    const { owner, czxid } = tree.get(path)!;
    const sequence = parseEntry(path.slice(folder.length + 1))?.sequence;
    if (sequence === undefined) return [];
    return [...(tree.get(folder)?.children ?? [])]
      .filter((name) => parseEntry(name)?.sequence === sequence)
      .map((name) => tree.get(`${folder}/${name}`)!)
      .filter((node) => node.owner === owner && node.czxid < czxid)
      .map((node) => this.#world.tokenOf(node.czxid));
  }

  #delete(path: string): void {
    const core = this.#world.server!.core;
    const moment = core.nextMoment();
    core.commit(core.writes.remove(path, moment), moment);
    core.tick(); // Sends what this has to tell.
  }

  #raiseTokens(by: number): void {
    const core = this.#world.server?.core;
    if (core && !core.readOnly && !this.#healed) raiseTokens(core, by);
  }

  #crash(): (() => void) | undefined {
    const world = this.#world;
    if (!world.server) return undefined;
    world.crashServer();
    return () => {
      world.startServer().catch((error) => world.fail('S2', `the server does not start: ${describe(error)}`));
    };
  }

  #stallServer(): (() => void) | undefined {
    const world = this.#world;
    const { server } = world;
    if (!server) return undefined;
    const mends = world.clients.map((client) => this.#partition(client, 'both'));
    server.pause();
    return () => {
      server.resume();
      for (const mend of mends) mend();
    };
  }
}
