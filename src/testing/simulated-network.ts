import type { Clock } from '../base/clock.ts';
import { fraction, type Random } from '../base/random.ts';
import type { Link, LinkHandlers, Transport } from '../client/transport.ts';
import type { Peer, ServerConnection, ServerLink } from '../server/server-connection.ts';
import type { ServerAddress } from '../session/session-io.ts';

/** What listens at an address; the server core is one. */
export interface SimulatedListener {
  accept(link: ServerLink, peer: Peer): ServerConnection | undefined;
  receive(connection: ServerConnection, chunk: Buffer): void;
  closed(connection: ServerConnection): void;
  /** The peer has taken some of its output. */
  drained(connection: ServerConnection): void;
  /** Called after each of the above, for the timer's sake. */
  stepped(): void;
}

/** Bytes that arrived, for transcripts. */
export interface Arrival {
  readonly atMs: number;
  /** Which connection, counted from the first that was dialled. */
  readonly link: number;
  readonly to: 'client' | 'server';
  readonly bytes: Buffer;
}

export interface SimulatedNetworkOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** A chunk takes up to this long, and any two of one direction arrive in order. */
  readonly delayMsMax?: number;
  readonly onArrival?: (arrival: Arrival) => void;
}

const CLIENT_ADDRESS = '10.0.0.1';
const PORT_MIN = 40_000;
const PIECES_MAX = 3;

/**
 * A network in memory: connects the real client to the server core without a socket, under one clock and from one seed.
 * Chunks are cut anywhere and take a random time, in order. A run repeats to the byte.
 */
export class SimulatedNetwork {
  readonly #options: SimulatedNetworkOptions;
  readonly #listeners = new Map<string, SimulatedListener>();
  readonly #links = new Set<SimulatedLink>();
  #linkCount = 0;

  constructor(options: SimulatedNetworkOptions) {
    this.#options = options;
  }

  /**
   * Opens an address; the function returned closes it as the death of its process does: connections end for their
   * clients, and the listener hears of nothing any more.
   */
  listen(address: ServerAddress, listener: SimulatedListener): () => void {
    this.#listeners.set(keyOf(address), listener);
    return () => {
      if (this.#listeners.get(keyOf(address)) === listener) this.#listeners.delete(keyOf(address));
      for (const link of this.#links) if (link.listener === listener) link.serverDied();
    };
  }

  /** The network as one client has it: it alone can be cut off. */
  attach(): SimulatedUplink {
    return new SimulatedUplink((server, handlers, uplink) => {
      const link = new SimulatedLink({
        ...this.#options,
        number: this.#linkCount++,
        handlers,
        uplink,
        listenerNow: () => (uplink.cutOff ? undefined : this.#listeners.get(keyOf(server))),
        onOver: () => this.#links.delete(link),
      });
      this.#links.add(link);
      return link;
    }, this.#links);
  }
}

/** One client's way into the network: a transport for `connect`. */
export class SimulatedUplink implements Transport {
  readonly #dial: (server: ServerAddress, handlers: LinkHandlers, uplink: SimulatedUplink) => SimulatedLink;
  readonly #links: ReadonlySet<SimulatedLink>;
  #cutOff = false;

  /** @internal */
  constructor(
    dial: (server: ServerAddress, handlers: LinkHandlers, uplink: SimulatedUplink) => SimulatedLink,
    links: ReadonlySet<SimulatedLink>,
  ) {
    this.#dial = dial;
    this.#links = links;
  }

  get cutOff(): boolean {
    return this.#cutOff;
  }

  dial(server: ServerAddress, handlers: LinkHandlers): Link {
    return this.#dial(server, handlers, this);
  }

  /** Resets this client's connections; it may dial again. */
  reset(): void {
    for (const link of this.#links) if (link.uplink === this) link.reset();
  }

  /** Resets this client's connections and refuses every further one, until `restore`. */
  cut(): void {
    this.#cutOff = true;
    this.reset();
  }

  restore(): void {
    this.#cutOff = false;
  }
}

interface LinkOptions extends SimulatedNetworkOptions {
  readonly number: number;
  readonly handlers: LinkHandlers;
  readonly uplink: SimulatedUplink;
  listenerNow(): SimulatedListener | undefined;
  onOver(): void;
}

/** One connection, both ends of it. Neither end is ever called from inside a call of its own. */
class SimulatedLink implements Link {
  readonly #options: LinkOptions;
  readonly #toServer: Pipe;
  readonly #toClient: Pipe;
  readonly #waiting: Buffer[] = [];
  #paused = false;
  #bufferedBytes = 0;
  #connection: ServerConnection | undefined;
  /** The client hears no more: it hung up, or was told that the connection is closed. */
  #clientOver = false;
  /** The server hears no more. */
  #serverOver = false;
  listener: SimulatedListener | undefined;

  constructor(options: LinkOptions) {
    this.#options = options;
    this.#toServer = new Pipe(options);
    this.#toClient = new Pipe(options);
    this.#toServer.send(() => this.#open());
  }

  get uplink(): SimulatedUplink {
    return this.#options.uplink;
  }

  // The client's end

  write(bytes: Buffer): void {
    for (const piece of this.#pieces(bytes)) this.#toServer.send(() => this.#arriveAtServer(piece));
  }

  destroy(): void {
    this.#clientOver = true;
    this.#toServer.send(() => this.#endServer());
  }

  // What happens on the way

  /** The connection breaks: both ends hear of it, and nothing that is on its way arrives. */
  reset(): void {
    this.#endServer();
    this.#endClient(new Error('connection reset'));
  }

  serverDied(): void {
    this.#serverOver = true;
    this.#endClient(new Error('connection reset'));
  }

  #open(): void {
    const { handlers, number } = this.#options;
    if (this.#clientOver || this.#serverOver) return;
    this.listener = this.#options.listenerNow();
    if (!this.listener) return this.#endClient(new Error('connection refused'));
    this.#toClient.send(() => {
      if (!this.#clientOver) handlers.opened();
    });
    const peer = { address: CLIENT_ADDRESS, port: PORT_MIN + number, identities: [] };
    this.#connection = this.listener.accept(this.#serverEnd(), peer);
    this.listener.stepped();
  }

  #arriveAtServer(bytes: Buffer): void {
    this.#waiting.push(bytes);
    this.#drain();
  }

  /** Hands on what has arrived, unless the server has stopped reading. */
  #drain(): void {
    const { clock, number, onArrival } = this.#options;
    while (!this.#paused && !this.#serverOver && this.#connection && this.listener) {
      const bytes = this.#waiting.shift();
      if (!bytes) return;
      onArrival?.({ atMs: clock.nowMs(), link: number, to: 'server', bytes });
      this.listener.receive(this.#connection, bytes);
      this.listener.stepped();
    }
  }

  #arriveAtClient(bytes: Buffer): void {
    this.#bufferedBytes -= bytes.byteLength;
    if (this.#connection && this.listener && !this.#serverOver) {
      this.listener.drained(this.#connection);
      this.listener.stepped();
    }
    if (this.#clientOver) return;
    const { clock, number, onArrival, handlers } = this.#options;
    onArrival?.({ atMs: clock.nowMs(), link: number, to: 'client', bytes });
    handlers.received(bytes);
  }

  #endServer(): void {
    this.#options.onOver();
    if (this.#serverOver) return;
    this.#serverOver = true;
    if (this.#connection) this.listener?.closed(this.#connection);
    this.listener?.stepped();
  }

  /** Tells the client in a step of its own that the connection is over. */
  #endClient(error: Error | undefined): void {
    this.#options.onOver();
    if (this.#clientOver) return;
    this.#clientOver = true;
    this.#toClient.send(() => this.#tellClosed(error));
  }

  #tellClosed(error: Error | undefined): void {
    this.#options.handlers.closed(error);
  }

  // The server's end

  #serverEnd(): ServerLink {
    const bufferedBytes = () => this.#bufferedBytes;
    return {
      write: (bytes) => {
        if (this.#serverOver) return;
        this.#bufferedBytes += bytes.byteLength;
        for (const piece of this.#pieces(bytes)) this.#toClient.send(() => this.#arriveAtClient(piece));
      },
      end: () => {
        this.#serverOver = true;
        // Behind what was written, which still arrives.
        this.#toClient.send(() => {
          this.#options.onOver();
          if (this.#clientOver) return;
          this.#clientOver = true;
          this.#tellClosed(undefined);
        });
      },
      destroy: () => {
        this.#serverOver = true;
        this.#endClient(new Error('connection reset'));
      },
      pause: () => {
        this.#paused = true;
      },
      resume: () => {
        this.#paused = false;
        this.#options.clock.endOfTick(() => this.#drain());
      },
      get bufferedBytes() {
        return bufferedBytes();
      },
    };
  }

  #pieces(bytes: Buffer): Buffer[] {
    const { random } = this.#options;
    const pieces: Buffer[] = [];
    let rest = Buffer.from(bytes); // A copy: the two ends share nothing.
    while (pieces.length < PIECES_MAX - 1 && rest.byteLength > 1 && fraction(random) < 0.3) {
      const at = 1 + Math.floor(fraction(random) * (rest.byteLength - 1));
      pieces.push(rest.subarray(0, at));
      rest = rest.subarray(at);
    }
    return [...pieces, rest];
  }
}

/** One direction: everything takes a random time, and nothing overtakes. */
class Pipe {
  readonly #options: SimulatedNetworkOptions;
  #lastAtMs = 0;

  constructor(options: SimulatedNetworkOptions) {
    this.#options = options;
  }

  send(arrive: () => void): void {
    const { clock, random, delayMsMax = 10 } = this.#options;
    const atMs = Math.max(this.#lastAtMs, clock.nowMs() + fraction(random) * delayMsMax);
    this.#lastAtMs = atMs;
    clock.at(atMs, arrive);
  }
}

function keyOf({ host, port }: ServerAddress): string {
  return `${host}:${port}`;
}
