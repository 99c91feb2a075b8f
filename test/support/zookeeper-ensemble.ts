import { setTimeout as delay } from 'node:timers/promises';
import { freePorts } from './free-port.ts';
import { QuorumLinks } from './quorum-links.ts';
import { type QuorumMember, type ZooKeeperOptions, ZooKeeperProcess } from './zookeeper-process.ts';

const SERVER_COUNT = 3;
const PORTS_PER_SERVER = 3;
const POLL_INTERVAL_MS = 20;
const TIMEOUT_MS_DEFAULT = 30_000;

/** How a test wants its ensemble to be; every server gets the same options. */
export interface EnsembleOptions extends ZooKeeperOptions {
  /** Ticks a follower may take to connect to the leader and catch up. */
  readonly initLimitTicks?: number;
  /** Ticks a follower may be out of touch with the leader before it gives up on it. */
  readonly syncLimitTicks?: number;
  /** Whether members talk to each other through proxies, so that `isolate` can cut them off. */
  readonly severable?: boolean;
}

/** Three real ZooKeeper servers that elect a leader. */
export class ZooKeeperEnsemble implements AsyncDisposable {
  readonly servers: readonly ZooKeeperProcess[];
  readonly #links: QuorumLinks | undefined;

  private constructor(servers: readonly ZooKeeperProcess[], links: QuorumLinks | undefined) {
    this.servers = servers;
    this.#links = links;
  }

  /** Writes the configuration of three servers without starting them. */
  static async create(options: EnsembleOptions = {}): Promise<ZooKeeperEnsemble> {
    const { initLimitTicks = 10, syncLimitTicks = 4, severable = false, ...serverOptions } = options;
    const ports = await freePorts(SERVER_COUNT * PORTS_PER_SERVER);
    const members = Array.from({ length: SERVER_COUNT }, (_, index): QuorumMember => {
      const [clientPort, quorumPort, electionPort] = ports.slice(index * PORTS_PER_SERVER);
      return { id: index + 1, clientPort: clientPort!, quorumPort: quorumPort!, electionPort: electionPort! };
    });
    const links = severable ? await QuorumLinks.among(members) : undefined;
    const servers = members.map((self) =>
      ZooKeeperProcess.create(serverOptions, {
        self,
        members: links?.membersAsSeenBy(self) ?? members,
        initLimitTicks,
        syncLimitTicks,
      }),
    );
    return new ZooKeeperEnsemble(await Promise.all(servers), links);
  }

  /** All three servers, for a client that may use any of them. */
  get connectString(): string {
    return this.servers.map((server) => server.connectString).join(',');
  }

  /** Starts the servers that are down; they serve once `waitUntilServing` says so. */
  async start(): Promise<void> {
    await Promise.all(this.servers.filter((server) => !server.running).map((server) => server.start()));
  }

  /** Waits for every server that is neither down nor paused. */
  async waitUntilServing(timeoutMs = TIMEOUT_MS_DEFAULT): Promise<void> {
    const awake = this.servers.filter((server) => server.running && !server.paused);
    await Promise.all(awake.map((server) => server.waitUntilServing(timeoutMs)));
  }

  /**
   * The server that leads, waiting for an election under way.
   *
   * Two may claim it for a moment, when a paused leader wakes up after its successor was elected; the answer
   * then waits until the old one has noticed.
   */
  async leader(timeoutMs = TIMEOUT_MS_DEFAULT): Promise<ZooKeeperProcess> {
    const deadlineMs = performance.now() + timeoutMs;
    for (;;) {
      const modes = await Promise.all(this.servers.map((server) => server.mode()));
      const leaders = this.servers.filter((_, index) => modes[index] === 'leader');
      if (leaders.length === 1) return leaders[0]!;
      if (performance.now() >= deadlineMs) {
        const claims = this.servers.map(
          (server, index) => `${server.connectString} ${modes[index] ?? 'silent'}`,
        );
        throw new Error(`no single leader after ${timeoutMs} ms: ${claims.join(', ')}`);
      }
      await delay(POLL_INTERVAL_MS);
    }
  }

  /** The servers that follow the leader at the moment; those down or looking for one are left out. */
  async followers(): Promise<ZooKeeperProcess[]> {
    const modes = await Promise.all(this.servers.map((server) => server.mode()));
    return this.servers.filter((_, index) => modes[index] === 'follower');
  }

  /** The links among the members, of an ensemble made `severable`. */
  get links(): QuorumLinks {
    if (!this.#links) throw new Error('the members of this ensemble talk directly: make it severable');
    return this.#links;
  }

  /** Cuts a server off from the others, silently; clients still reach it. Until `links.heal()`. */
  isolate(server: ZooKeeperProcess): void {
    this.links.isolate(this.servers.indexOf(server) + 1);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.servers.map((server) => server[Symbol.asyncDispose]()));
    await this.#links?.[Symbol.asyncDispose]();
  }
}

/** Starts three servers and waits until all of them serve. */
export async function startEnsemble(options: EnsembleOptions = {}): Promise<ZooKeeperEnsemble> {
  const ensemble = await ZooKeeperEnsemble.create(options);
  try {
    await ensemble.start();
    await ensemble.waitUntilServing();
    return ensemble;
  } catch (error) {
    await ensemble[Symbol.asyncDispose]();
    throw error;
  }
}
