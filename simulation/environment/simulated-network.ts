import type { Clock } from '../../src/base/clock.ts';
import { fraction, type Random } from '../../src/base/random.ts';
import type { Link, LinkHandlers, Transport } from '../../src/client/transport.ts';
import type { Peer, ServerLink } from '../../src/server/server-connection.ts';
import type { ServerAddress } from '../../src/session/session-io.ts';

/** What listens at an address; the server core is one. */
export interface SimulatedListener {
  /** Undefined if it wants no more; what stands for the connection otherwise, to be given with all that follows. */
  accept(link: ServerLink, peer: Peer): object | undefined;
  receive(connection: object, chunk: Buffer): void;
  closed(connection: object): void;
  /** The peer has taken some of its output. */
  drained(connection: object): void;
  /** Called after each of the above, for the timer's sake. */
  stepped(): void;
}

/** Bytes that arrived, for transcripts. */
export interface Arrival {
  readonly atMs: number;
  /** Which connection, counted from the first that was dialled. */
  readonly link: number;
  /** Whose: what `attach` was told. */
  readonly client: string;
  readonly to: 'client' | 'server';
  readonly bytes: Buffer;
}

export interface SimulatedNetworkOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** A chunk takes up to this long, and any two of one direction arrive in order. */
  readonly delayMsMax?: number;
  /** How likely a chunk is to be cut in two, and what is left of it again. */
  readonly splitChance?: number;
  readonly onArrival?: (arrival: Arrival) => void;
}

/** Which way bytes go. */
export type Heading = 'to-client' | 'to-server';

const CLIENT_ADDRESS = '10.0.0.1';
const PORT_MIN = 40_000;
const PIECES_MAX = 3;
const DELAY_MS_MAX = 10;
const SPLIT_CHANCE = 0.3;

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
  attach(name = ''): SimulatedUplink {
    return new SimulatedUplink(
      name,
      (server, handlers, uplink) => {
        const link = new SimulatedLink({
          ...this.#options,
          number: this.#linkCount++,
          handlers,
          uplink,
          listenerNow: () =>
            uplink.cutOff ? undefined : (uplink.diverted ?? this.#listeners.get(keyOf(server))),
          onOver: () => this.#links.delete(link),
        });
        this.#links.add(link);
        return link;
      },
      this.#links,
    );
  }
}

/** One client's way into the network: a transport for `connect`, and all that can go wrong on the way. */
export class SimulatedUplink implements Transport {
  readonly #dial: (server: ServerAddress, handlers: LinkHandlers, uplink: SimulatedUplink) => SimulatedLink;
  readonly #links: ReadonlySet<SimulatedLink>;
  #cutOff = false;
  /** How often each direction is held up: one may be for several reasons. */
  readonly #holdCounts: Record<Heading, number> = { 'to-client': 0, 'to-server': 0 };
  readonly #heldUp: Record<Heading, Set<() => void>> = { 'to-client': new Set(), 'to-server': new Set() };
  /** How many more bytes get through before the connection breaks. */
  readonly #bytesLeft: Record<Heading, number> = {
    'to-client': Number.POSITIVE_INFINITY,
    'to-server': Number.POSITIVE_INFINITY,
  };
  /** It connects, and is heard, and hears nothing: what is sent to it is dropped. Break its connections afterwards. */
  deaf = false;
  /** What answers its connections in place of whatever they were meant for. */
  diverted: SimulatedListener | undefined;
  /** Chunks of this client's take up to this long; the network's own measure if undefined. */
  delayMsMax: number | undefined;

  /** @internal */
  constructor(
    readonly name: string,
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

  /**
   * Resets this client's connections; it may dial again. `late`: only the client hears of it now, and what it has sent
   * still arrives, with the reset behind it.
   */
  reset({ late = false }: { readonly late?: boolean | undefined } = {}): void {
    for (const link of this.#links) if (link.uplink === this) link.reset(late);
  }

  /** Resets this client's connections and refuses every further one, until `restore`. */
  cut(options: { readonly late?: boolean | undefined } = {}): void {
    this.#cutOff = true;
    this.reset(options);
  }

  restore(): void {
    this.#cutOff = false;
  }

  /** From now on what goes this way does not arrive, as behind a router that drops it; neither do hang-ups. */
  hold(heading: Heading): void {
    this.#holdCounts[heading]++;
  }

  /** Takes one `hold` back: what was sent meanwhile arrives, since its senders have repeated it. */
  letGo(heading: Heading): void {
    if (--this.#holdCounts[heading] > 0) return;
    const flows = [...this.#heldUp[heading]];
    this.#heldUp[heading].clear();
    for (const flow of flows) flow();
  }

  /** Calls `flow` once this way is open again. @internal */
  whenLetGo(heading: Heading, flow: () => void): void {
    this.#heldUp[heading].add(flow);
  }

  isHeld(heading: Heading): boolean {
    return this.#holdCounts[heading] > 0;
  }

  /** Lets so many more bytes through this way, then breaks the connection that the next one is on. */
  cutAfter(heading: Heading, bytes: number): void {
    this.#bytesLeft[heading] = bytes;
  }

  /** How many of these bytes get through; fewer than all means that the connection breaks behind them. @internal */
  admit(heading: Heading, bytes: number): number {
    const admitted = Math.min(bytes, this.#bytesLeft[heading]);
    this.#bytesLeft[heading] = admitted < bytes ? Number.POSITIVE_INFINITY : this.#bytesLeft[heading] - bytes;
    return admitted;
  }

  /** The client's machine loses power: its connections are silent from now on, and nobody is told. */
  vanish(): void {
    for (const link of this.#links) if (link.uplink === this) link.clientVanished();
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
  #connection: object | undefined;
  /** The client hears no more: it hung up, or was told that the connection is closed. */
  #clientOver = false;
  /** The server hears no more. */
  #serverOver = false;
  listener: SimulatedListener | undefined;

  constructor(options: LinkOptions) {
    this.#options = options;
    this.#toServer = new Pipe(options, 'to-server');
    this.#toClient = new Pipe(options, 'to-client');
    this.#toServer.send(() => this.#open());
  }

  get uplink(): SimulatedUplink {
    return this.#options.uplink;
  }

  // The client's end

  write(bytes: Buffer): void {
    this.#transmit('to-server', bytes, (piece) => this.#arriveAtServer(piece));
  }

  destroy(): void {
    this.#clientOver = true;
    this.#toServer.send(() => this.#endServer());
  }

  // What happens on the way

  /** The connection breaks: both ends hear of it, and nothing that is on its way arrives; to the server, unless `late`. */
  reset(late = false): void {
    if (late || this.uplink.isHeld('to-server')) this.#toServer.send(() => this.#endServer());
    else this.#endServer();
    this.#endClient(new Error('connection reset'));
  }

  clientVanished(): void {
    this.#clientOver = true;
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
      onArrival?.({ atMs: clock.nowMs(), link: number, client: this.uplink.name, to: 'server', bytes });
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
    onArrival?.({ atMs: clock.nowMs(), link: number, client: this.uplink.name, to: 'client', bytes });
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
    // What is still on its way to a server must not outlive that.
    if (this.#serverOver || !this.#connection) this.#options.onOver();
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
        this.#transmit('to-client', bytes, (piece) => this.#arriveAtClient(piece));
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

  #transmit(heading: Heading, bytes: Buffer, arrive: (piece: Buffer) => void): void {
    if (heading === 'to-client' && this.uplink.deaf) return;
    const pipe = heading === 'to-server' ? this.#toServer : this.#toClient;
    const admitted = this.uplink.admit(heading, bytes.byteLength);
    // A copy: the two ends share nothing.
    const sent = Buffer.from(bytes.subarray(0, admitted));
    if (heading === 'to-client') this.#bufferedBytes += admitted;
    if (admitted > 0) for (const piece of this.#pieces(sent)) pipe.send(() => arrive(piece));
    if (admitted < bytes.byteLength) pipe.send(() => this.reset());
  }

  #pieces(bytes: Buffer): Buffer[] {
    const { random, splitChance = SPLIT_CHANCE } = this.#options;
    const pieces: Buffer[] = [];
    let rest = bytes;
    while (pieces.length < PIECES_MAX - 1 && rest.byteLength > 1 && fraction(random) < splitChance) {
      const at = 1 + Math.floor(fraction(random) * (rest.byteLength - 1));
      pieces.push(rest.subarray(0, at));
      rest = rest.subarray(at);
    }
    return [...pieces, rest];
  }
}

/** One direction: everything takes a random time, and nothing overtakes. */
class Pipe {
  readonly #options: LinkOptions;
  readonly #heading: Heading;
  /** What is on its way, the oldest first. */
  readonly #underway: (() => void)[] = [];
  /** How much of it would have arrived, were the way not held up. */
  #dueCount = 0;
  #lastAtMs = 0;

  constructor(options: LinkOptions, heading: Heading) {
    this.#options = options;
    this.#heading = heading;
  }

  send(arrive: () => void): void {
    const { clock, random, uplink } = this.#options;
    const delayMsMax = uplink.delayMsMax ?? this.#options.delayMsMax ?? DELAY_MS_MAX;
    const atMs = Math.max(this.#lastAtMs, clock.nowMs() + fraction(random) * delayMsMax);
    this.#lastAtMs = atMs;
    this.#underway.push(arrive);
    clock.at(atMs, () => this.#arrive());
  }

  #arrive(): void {
    const { uplink } = this.#options;
    if (!uplink.isHeld(this.#heading)) return this.#underway.shift()?.();
    this.#dueCount++;
    uplink.whenLetGo(this.#heading, this.#flow);
  }

  readonly #flow = () => {
    const { clock } = this.#options;
    const dueCount = this.#dueCount;
    this.#dueCount = 0;
    for (let due = 0; due < dueCount; due++) clock.at(clock.nowMs(), () => this.#arrive());
  };
}

function keyOf({ host, port }: ServerAddress): string {
  return `${host}:${port}`;
}
