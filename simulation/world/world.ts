import { type Log, silentLog } from '../../src/base/log.ts';
import { fraction, type Random, seededRandom } from '../../src/base/random.ts';
import { acls } from '../../src/client/acl.ts';
import type { Link, LinkHandlers, Transport } from '../../src/client/transport.ts';
import { connect, type Holdfast } from '../../src/locks/holdfast.ts';
import { decodeFloors, floorPathOf, tokenAt } from '../../src/queue/floor-node.ts';
import { Neighbours } from '../../src/queue/neighbours.ts';
import type { ServerCore } from '../../src/server/server-core.ts';
import type { Transaction } from '../../src/server/transaction.ts';
import type { HistoryEvent } from '../checker/history.ts';
import { Follower, type Leader } from '../environment/follower.ts';
import { OlderServer } from '../environment/older-server.ts';
import { SASL_CREDENTIALS, SaslGate } from '../environment/sasl-gate.ts';
import { Scheduler } from '../environment/scheduler.ts';
import { SimulatedFolder } from '../environment/simulated-folder.ts';
import {
  type SimulatedListener,
  SimulatedNetwork,
  type SimulatedUplink,
} from '../environment/simulated-network.ts';
import { SimulatedProcess } from '../environment/simulated-process.ts';
import { type SimulatedServer, startSimulatedServer } from '../environment/simulated-server.ts';
import { type PlannedClient, type Scenario, SESSION_TIMEOUT_MS_MIN } from '../scenario/scenario.ts';
import { GivenUpAttempts } from './given-up.ts';
import type { Story } from './story.ts';

/** A property that does not hold. */
export interface Violation {
  /** Which: `L1`, or what the checker calls it. */
  readonly property: string;
  readonly message: string;
  readonly atMs: number;
}

/** One client of a simulated world. */
export interface SimulatedClient {
  readonly plan: PlannedClient;
  /** Shared with other clients, where they are connections of one process. */
  readonly process: SimulatedProcess;
  readonly neighbours: Neighbours;
  readonly uplink: SimulatedUplink;
  /** Undefined until it is connected for the first time, and while it makes a new one after a close. */
  holdfast: Holdfast | undefined;
  /** The last that it had, which may be on its way to being closed. */
  latest: Holdfast | undefined;
  connectionCount: number;
}

export const TICK_MS = 500;
export const SERVER_LIMITS = {
  tickMs: TICK_MS,
  sessionTimeoutMsMin: SESSION_TIMEOUT_MS_MIN,
  sessionTimeoutMsMax: 40_000,
  handshakeMs: 3_000,
};
const SERVER_HOST = 'server';
const PORT = 2181;
const ENSEMBLE = Buffer.from('server.1=server:2888:3888:participant');
/** Where batons are passed. */
export const BATON_FOLDER = '/holdfast/batons';
/** Above which tokens are, if anything says so. */
export const FLOOR_NODE = floorPathOf(BATON_FOLDER);
/** Beside the locks, where a scenario has one that no client may read. */
export const CLOSED_FOLDER = '/locks/closed';

/**
 * The real client, the real locks and the real server core in one process, without socket, timer or disk: all of it
 * under one clock and from one seed.
 */
export class World {
  readonly scenario: Scenario;
  readonly scheduler: Scheduler;
  readonly network: SimulatedNetwork;
  readonly clients: readonly SimulatedClient[];
  /** The first is number 1. */
  readonly followers: readonly Follower[];
  readonly history: HistoryEvent[] = [];
  readonly story: Story;
  /** The server's disk: what is on it, and how it behaves. */
  readonly disk: { folder: SimulatedFolder; full: boolean; syncMsMax: number };
  /** Undefined while it is down. */
  server: SimulatedServer | undefined;
  violation: Violation | undefined;
  readonly #givenUp = new GivenUpAttempts((attempt) =>
    this.fail('L5', `${attempt} had given up when a node was asked for on its behalf`),
  );
  /** Told of each transaction, and of what a start found on disk. */
  onTransaction: (transaction: Transaction) => void = () => {};
  onRecovered: (core: ServerCore) => void = () => {};
  /** What the server has done and nobody may see yet. */
  #unsettled: Transaction[] = [];
  /** Waiting for a lock to be handed over. */
  readonly #atHandOver = new Map<string, (() => void)[]>();
  readonly #atStep = new Map<number, (() => void)[]>();
  #serverStarts = 0;

  constructor(scenario: Scenario, story: Story) {
    this.scenario = scenario;
    this.story = story;
    this.scheduler = new Scheduler((error) => this.fail('crash', describe(error)));
    const clock = new SimulatedProcess(this.scheduler);
    this.network = new SimulatedNetwork({
      clock,
      random: this.random(1),
      delayMsMax: scenario.delayMsMax,
      splitChance: scenario.splitChance,
      onArrival: (arrival) => story.arrived(arrival),
    });
    const lag = this.random(2);
    this.followers = Array.from({ length: scenario.followerCount }, (_, index) => {
      const follower = new Follower({
        clock,
        leader: () => this.#leader(),
        lagMs: () => fraction(lag) * scenario.delayMsMax,
        touchLagMs: TICK_MS / 2,
      });
      this.network.listen({ host: serverHost(index + 1), port: PORT }, this.#front(follower));
      return follower;
    });
    this.disk = { folder: new SimulatedFolder(), full: false, syncMsMax: scenario.syncMsMax };
    const processes = new Map<string, Pick<SimulatedClient, 'process' | 'neighbours'>>();
    this.clients = scenario.clients.map((plan) => ({
      plan,
      ...this.#processOf(plan, processes),
      uplink: this.network.attach(plan.name),
      holdfast: undefined,
      latest: undefined,
      connectionCount: 0,
    }));
  }

  /** Where somebody may pass for a server, all of them prove that they are one. */
  get #hasSasl(): boolean {
    return this.scenario.faults.some(({ kind }) => kind === 'impostor');
  }

  readonly #front = (listener: SimulatedListener): SimulatedListener =>
    this.#hasSasl ? new SaslGate(listener) : listener;

  #processOf(
    { name, process = name, clockRate }: PlannedClient,
    processes: Map<string, Pick<SimulatedClient, 'process' | 'neighbours'>>,
  ): Pick<SimulatedClient, 'process' | 'neighbours'> {
    const present = processes.get(process);
    if (present) return present;
    const made = {
      process: new SimulatedProcess(this.scheduler, { clockRate }),
      neighbours: new Neighbours(),
    };
    processes.set(process, made);
    return made;
  }

  /** The clients of one process. */
  clientsOf(process: SimulatedProcess): readonly SimulatedClient[] {
    return this.clients.filter((client) => client.process === process);
  }

  get nowMs(): number {
    return this.scheduler.nowMs;
  }

  /** Each part has its own, so that one more number drawn here changes nothing there. */
  random(part: number): Random {
    return seededRandom(Math.imul(this.scenario.seed, 0x9e3779b1) + part * 0x85ebca6b);
  }

  /** The token of a node that was made by this transaction, as the server's own tree says. */
  tokenOf(czxid: bigint): bigint {
    const node = this.server?.core.tree.get(FLOOR_NODE);
    return node ? tokenAt(decodeFloors(FLOOR_NODE, node.data, node.mzxid), czxid) : czxid;
  }

  record(event: HistoryEvent): void {
    this.history.push(event);
    if (event.kind === 'gave-up') this.#givenUp.add(event.attempt, this.scheduler.stepCount);
    this.story.recorded(event);
  }

  /** Ends the run: only the first is told. */
  fail(property: string, message: string): void {
    this.violation ??= { property, message, atMs: this.nowMs };
  }

  /** Calls `run` beside the next thing after so many have happened. */
  atStep(stepCount: number, run: () => void): void {
    const others = this.#atStep.get(stepCount);
    if (others) others.push(run);
    else this.#atStep.set(stepCount, [run]);
  }

  /** Calls `run` right after the lock was handed over by a baton for the next time. */
  atHandOver(lock: string, run: () => void): void {
    this.#atHandOver.set(lock, [...(this.#atHandOver.get(lock) ?? []), run]);
  }

  #handedOver(transaction: Transaction): void {
    if (this.#atHandOver.size === 0 || transaction.kind === 'open-session') return;
    const { changes } = transaction;
    if (!changes.some(({ kind, path }) => kind === 'create' && path.startsWith(`${BATON_FOLDER}/`))) return;
    for (const { kind, path } of changes) {
      const lock = path.split('/')[2]!;
      if (kind !== 'delete' || !path.startsWith('/locks/')) continue;
      for (const run of this.#atHandOver.get(lock) ?? []) this.scheduler.at(this.nowMs, run);
      this.#atHandOver.delete(lock);
    }
  }

  /** Lets the next thing happen; false if there is none until then. */
  step(untilMs: number): boolean {
    const { scheduler } = this;
    const number = scheduler.stepCount;
    if (!scheduler.step(untilMs, this.#atStep.get(number))) return false;
    this.#atStep.delete(number);
    return true;
  }

  async startServer(): Promise<void> {
    const random = this.random(100 + this.#serverStarts++);
    const process = new SimulatedProcess(this.scheduler);
    const { folder } = this.disk;
    const server = await startSimulatedServer({
      clock: process,
      random,
      network: this.network,
      folder,
      address: { host: SERVER_HOST, port: PORT },
      limits: { ...SERVER_LIMITS, reapMs: this.scenario.reapMs },
      logBytesMax: this.scenario.logBytesMax,
      syncMsMax: () => this.disk.syncMsMax,
      log: this.story.log('server'),
      front: this.#front,
      onTransaction: (transaction) => {
        this.onTransaction(transaction);
        this.#handedOver(transaction);
        this.#unsettled.push(transaction);
      },
      onSettled: (zxid) => this.#settled(zxid),
      onTakenBack: () => {
        this.#unsettled = [];
      },
    });
    folder.fault = ({ kind }) =>
      this.disk.full && (kind === 'write' || kind === 'sync' || kind === 'create')
        ? new Error('ENOSPC: no space left on device')
        : undefined;
    const { crash } = server;
    // By that its clients know that there are others, which may be behind.
    if (this.followers.length > 0) server.core.tree.get('/zookeeper/config')!.data = ENSEMBLE;
    this.onRecovered(server.core);
    this.server = {
      ...server,
      crash: () => {
        process.die();
        return crash();
      },
    };
  }

  #looksAtWrites(): (bytes: Buffer) => void {
    const look = this.#givenUp.watcher();
    return (bytes) => look(bytes, this.scheduler.stepCount);
  }

  #settled(zxid: bigint): void {
    for (let next = this.#unsettled[0]; next && next.zxid <= zxid; next = this.#unsettled[0]) {
      this.#unsettled.shift();
      for (const follower of this.followers) follower.committed(next);
    }
  }

  /** The power of the server's machine goes. */
  crashServer(): void {
    if (!this.server) return;
    this.#unsettled = [];
    this.disk.folder = this.server.crash();
    this.server = undefined;
    for (const follower of this.followers) follower.leaderDied();
  }

  #leader(): Leader | undefined {
    const { server } = this;
    if (!server) return undefined;
    const { core, listener } = server;
    return {
      listener,
      tree: core.tree,
      get zxid() {
        return core.zxid;
      },
      isAlive: () => this.server === server,
      isSettled: () => this.#unsettled.length === 0,
    };
  }

  async connect(client: SimulatedClient): Promise<Holdfast> {
    const { plan, process, neighbours, uplink } = client;
    const number = this.clients.indexOf(client);
    const log: Log = this.story.log(plan.name);
    // One that is made anew has seen nothing, and could not know that server from its own.
    if (uplink.diverted instanceof OlderServer) uplink.diverted = undefined;
    client.holdfast = await connect({
      servers: plan.servers.map((server) => `${serverHost(server)}:${PORT}`).join(','),
      sessionTimeoutMs: plan.sessionTimeoutMs,
      timeoutMs: 10_000,
      clock: process,
      // Another each time: ids must not come again.
      random: this.random(200 + number + 100 * client.connectionCount++),
      transport: new ProcessTransport(uplink, process, () => this.#looksAtWrites()),
      app: 'simulation',
      process: { host: plan.process ?? plan.name, pid: number + 1 },
      neighbours,
      ...(plan.secret && {
        auth: [{ scheme: 'digest', auth: `${plan.name}:secret` }],
        acl: acls.creatorOnly,
      }),
      ...(this.#hasSasl && { sasl: SASL_CREDENTIALS }),
      ...(this.scenario.faults.some(({ kind }) => kind === 'limit') && {
        lease: { grantedTimeoutMsMin: SESSION_TIMEOUT_MS_MIN },
      }),
      ...(log !== silentLog && { log }),
    });
    client.latest = client.holdfast;
    return client.holdfast;
  }
}

function serverHost(number: number): string {
  return number === 0 ? SERVER_HOST : `follower-${number}`;
}

/** A process's own way to the network: what comes in while it stalls waits. */
class ProcessTransport implements Transport {
  readonly #uplink: SimulatedUplink;
  readonly #process: SimulatedProcess;
  readonly #looksAtWrites: () => (bytes: Buffer) => void;

  /** `looksAtWrites` gives who is shown all that is written to one connection. */
  constructor(
    uplink: SimulatedUplink,
    process: SimulatedProcess,
    looksAtWrites: () => (bytes: Buffer) => void,
  ) {
    this.#uplink = uplink;
    this.#process = process;
    this.#looksAtWrites = looksAtWrites;
  }

  dial(server: { readonly host: string; readonly port: number }, handlers: LinkHandlers): Link {
    const process = this.#process;
    let over = false;
    const heard = (run: () => void) =>
      process.input(() => {
        if (!over) run();
      });
    const link = this.#uplink.dial(server, {
      opened: () => heard(() => handlers.opened()),
      received: (chunk) => heard(() => handlers.received(chunk)),
      closed: (error) => heard(() => handlers.closed(error)),
    });
    const look = this.#looksAtWrites();
    return {
      write: (bytes) => {
        look(bytes);
        link.write(bytes);
      },
      destroy: () => {
        over = true;
        link.destroy();
      },
    };
  }
}

/** An error as one line. */
export function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code } = error as { code?: string };
  return `${error.name}${code ? ` ${code}` : ''}: ${error.message}`;
}
