import { FaultProxy } from 'holdfast/testing';
import type { Contestant, ServerKind } from './contestants.ts';
import { CountingProxy } from './counting-proxy.ts';
import { Peer } from './peer.ts';
import type { Programs } from './programs.ts';
import type { Place } from './scenarios.ts';
import { type BenchServer, startServers, stopServers } from './servers.ts';

/** Servers, the processes of the peers on them, and what was put between; all of it ends with the arena. */
export class Arena implements AsyncDisposable {
  readonly #programs: Programs;
  readonly #servers: ReadonlyMap<ServerKind, BenchServer>;
  readonly #peers = new Map<string, Peer>();
  readonly #counting = new Map<ServerKind, Promise<CountingProxy>>();
  readonly #delaying = new Map<ServerKind, Promise<FaultProxy>>();

  private constructor(programs: Programs, servers: ReadonlyMap<ServerKind, BenchServer>) {
    this.#programs = programs;
    this.#servers = servers;
  }

  static async open(programs: Programs, contestants: readonly Contestant[], place: Place): Promise<Arena> {
    const kinds = new Set(contestants.map(({ server }) => server));
    return new Arena(programs, await startServers(kinds, place));
  }

  server({ server }: Contestant): BenchServer {
    return this.#servers.get(server)!;
  }

  /** Processes of its own for this contestant, the same each time; anew for one that was ended. */
  async peers(contestant: Contestant, count = 1): Promise<Peer[]> {
    const { address } = this.server(contestant);
    return Promise.all(Array.from({ length: count }, (_, index) => this.#peer(contestant, address, index)));
  }

  /** A process whose traffic is counted, and what counts it. */
  async countedPeer(contestant: Contestant): Promise<{ peer: Peer; proxy: CountingProxy }> {
    const { kind, address } = this.server(contestant);
    const starting = this.#counting.get(kind) ?? CountingProxy.start(kind, address);
    this.#counting.set(kind, starting);
    const proxy = await starting;
    return { peer: await this.#peer(contestant, proxy.address), proxy };
  }

  /** A process that is so far away from its server. */
  async distantPeer(contestant: Contestant, roundTripMs: number): Promise<Peer> {
    const { kind, address } = this.server(contestant);
    const [host, port] = address.split(':') as [string, string];
    const starting = this.#delaying.get(kind) ?? FaultProxy.start({ target: { host, port: Number(port) } });
    this.#delaying.set(kind, starting);
    const proxy = await starting;
    proxy.delay({ toServerMs: roundTripMs / 2, toClientMs: roundTripMs / 2 });
    return this.#peer(contestant, proxy.connectString);
  }

  /** The next that is asked for is a new process. */
  async endPeers(): Promise<void> {
    const peers = [...this.#peers.values()];
    this.#peers.clear();
    await Promise.all(peers.map((peer) => peer.stop()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.endPeers();
    for (const starting of [...this.#counting.values(), ...this.#delaying.values()]) {
      const proxy = await starting;
      await proxy[Symbol.asyncDispose]();
    }
    await stopServers(this.#servers);
  }

  async #peer(contestant: Contestant, address: string, index = 0): Promise<Peer> {
    const key = `${contestant.id} ${address} ${index}`;
    const present = this.#peers.get(key);
    if (present && !present.ended) return present;
    const peer = await Peer.start(this.#programs.command(contestant, address));
    this.#peers.set(key, peer);
    return peer;
  }
}
