import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { type Endpoint, FaultProxy } from '../../src/testing.ts';
import type { QuorumMember } from './zookeeper-process.ts';

const HOST = '127.0.0.1';
/** Of the first message on an election connection: version, id of the sender, length of its address. */
const HELLO_HEADER_BYTES = 20;

/** One member's way to another. */
interface Link {
  readonly from: number;
  readonly to: number;
  readonly quorum: FaultProxy;
  readonly election: FaultProxy;
  readonly hello: HelloRelay;
}

/**
 * The connections among the members of an ensemble, each way of each pair through proxies of its own, so that a member
 * can be cut off from the others while clients still reach it. What is cut is silent, as a dead network is: nothing is
 * closed and nothing arrives.
 */
export class QuorumLinks implements AsyncDisposable {
  readonly #members: readonly QuorumMember[];
  readonly #links: readonly Link[];

  private constructor(members: readonly QuorumMember[], links: readonly Link[]) {
    this.#members = members;
    this.#links = links;
  }

  static async among(members: readonly QuorumMember[]): Promise<QuorumLinks> {
    const links: Link[] = [];
    const wayBack = (from: number, to: number) =>
      links.find((link) => link.from === to && link.to === from)!.hello.port;
    for (const from of members) {
      for (const to of members) {
        if (from.id === to.id) continue;
        const quorum = await FaultProxy.start({ target: { host: HOST, port: to.quorumPort } });
        const election = await FaultProxy.start({ target: { host: HOST, port: to.electionPort } });
        const hello = await HelloRelay.start(election, () => `${HOST}:${wayBack(from.id, to.id)}`);
        links.push({ from: from.id, to: to.id, quorum, election, hello });
      }
    }
    return new QuorumLinks(members, links);
  }

  /** All members, with the ports by which this one is to reach the others. */
  membersAsSeenBy(self: QuorumMember): QuorumMember[] {
    return this.#members.map((member) => {
      const link = this.#links.find(({ from, to }) => from === self.id && to === member.id);
      return link ? { ...member, quorumPort: link.quorum.port, electionPort: link.hello.port } : member;
    });
  }

  /** Cuts a member off from all others, both ways. */
  isolate(id: number): void {
    for (const proxy of this.#proxiesOf((link) => link.from === id || link.to === id)) {
      proxy.blackhole('both');
      proxy.acceptSilently();
    }
  }

  /** Delays every byte among the members, each way. */
  slow(delayMs: number): void {
    for (const proxy of this.#proxiesOf(() => true)) {
      proxy.delay({ toServerMs: delayMs, toClientMs: delayMs });
    }
  }

  /** Delays every byte between one member and the others, each way. */
  slowOne(id: number, delayMs: number): void {
    for (const proxy of this.#proxiesOf((link) => link.from === id || link.to === id)) {
      proxy.delay({ toServerMs: delayMs, toClientMs: delayMs });
    }
  }

  /** Makes all links well again. Connections that bytes have vanished from are closed: nothing can go on behind a gap. */
  heal(): void {
    for (const proxy of this.#proxiesOf(() => true)) {
      if (proxy.faults.dropped['to-server']) proxy.resetAll();
      proxy.heal();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#links.map(({ hello }) => hello[Symbol.asyncDispose]()));
    await Promise.all(this.#proxiesOf(() => true).map((proxy) => proxy[Symbol.asyncDispose]()));
  }

  #proxiesOf(choose: (link: Link) => boolean): FaultProxy[] {
    return this.#links.filter(choose).flatMap(({ quorum, election }) => [quorum, election]);
  }
}

/**
 * Passes election connections on, with another address in their first message. A member says there where it listens,
 * and the other, if its id is larger, hangs up and dials that: past the proxies, were it not changed.
 */
class HelloRelay implements AsyncDisposable {
  readonly port: number;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server, target: Endpoint, address: () => string) {
    this.#server = server;
    this.port = (server.address() as AddressInfo).port;
    server.on('connection', (socket) => this.#accept(socket, target, address));
  }

  static async start(target: Endpoint, address: () => string): Promise<HelloRelay> {
    const server = createServer({ noDelay: true });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ host: HOST, port: 0 }, resolve);
    });
    return new HelloRelay(server, target, address);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #accept(source: Socket, target: Endpoint, address: () => string): void {
    const sink = connect({ host: target.host, port: target.port, noDelay: true });
    const end = () => {
      source.destroy();
      sink.destroy();
    };
    for (const socket of [source, sink]) {
      this.#sockets.add(socket);
      socket.on('error', end);
      socket.on('close', () => {
        this.#sockets.delete(socket);
        end();
      });
    }
    sink.pipe(source);
    let begun = Buffer.alloc(0);
    const onData = (chunk: Buffer) => {
      begun = Buffer.concat([begun, chunk]);
      const hello = withAddress(begun, address());
      if (hello === undefined) return;
      source.off('data', onData);
      sink.write(hello);
      source.pipe(sink);
    };
    source.on('data', onData);
  }
}

/** The first message with another address in it, and what follows; undefined until it is all there. */
function withAddress(begun: Buffer, address: string): Buffer | undefined {
  if (begun.length < HELLO_HEADER_BYTES) return undefined;
  const end = HELLO_HEADER_BYTES + begun.readInt32BE(HELLO_HEADER_BYTES - 4);
  if (begun.length < end) return undefined;
  const header = Buffer.from(begun.subarray(0, HELLO_HEADER_BYTES));
  header.writeInt32BE(Buffer.byteLength(address), HELLO_HEADER_BYTES - 4);
  return Buffer.concat([header, Buffer.from(address), begun.subarray(end)]);
}
