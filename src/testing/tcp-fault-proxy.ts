import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

const HOST = '127.0.0.1';
/** Bytes that may be on their way in one direction of one connection before the sender is held up. */
const IN_FLIGHT_BYTES_MAX = 16 * 1024 * 1024;
/** A timer set further ahead than this fires at once in Node. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/** Where a connection goes. */
export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

/** Which way bytes travel through a proxy. */
export type Direction = 'to-server' | 'to-client';

/** What became of bytes that reached a proxy. */
export type BytesFate = 'forwarded' | 'dropped';

/** Sees every piece of traffic at the moment the proxy forwards or drops it. */
export type BytesListener = (direction: Direction, chunk: Buffer, fate: BytesFate) => void;

/** Everything that is wrong with the network at the moment. A value: every change makes a new one. */
export interface Faults {
  /** What happens to connections that are made from now on. */
  readonly admission: 'forward' | 'refuse' | 'silent';
  /** Latency added in each direction. */
  readonly delayMs: Readonly<Record<Direction, number>>;
  /** Directions whose bytes vanish. */
  readonly dropped: Readonly<Record<Direction, boolean>>;
  /** The reset that is set to happen, if any. */
  readonly cut: Cut | undefined;
  /** The longest piece that is forwarded in one write; undefined is any. */
  readonly sliceBytesMax: number | undefined;
}

/** A reset due once so many bytes have passed in one direction of one connection. */
export interface Cut {
  readonly direction: Direction;
  readonly bytes: number;
}

/** A network with nothing wrong. */
export const NO_FAULTS: Faults = Object.freeze({
  admission: 'forward',
  delayMs: Object.freeze({ 'to-server': 0, 'to-client': 0 }),
  dropped: Object.freeze({ 'to-server': false, 'to-client': false }),
  cut: undefined,
  sliceBytesMax: undefined,
});

/**
 * A TCP proxy on 127.0.0.1 that goes wrong on demand, to put between a client and a server under test.
 *
 * Faults add up, apply to connections that are open as well as to new ones unless said otherwise, and last
 * until `heal()`. The proxy knows nothing of the protocol it carries.
 *
 * @example
 * ```ts
 * await using proxy = await FaultProxy.start({ target: { host: '127.0.0.1', port: 2181 } });
 * const client = await connect(proxy.connectString);
 * proxy.blackhole('to-client');
 * // ... the client's requests arrive, their replies do not ...
 * proxy.heal();
 * ```
 */
export class FaultProxy implements AsyncDisposable {
  /** Always 127.0.0.1. */
  readonly host = HOST;
  /** The port clients connect to. */
  readonly port: number;
  readonly #listener: Server;
  readonly #links = new Set<Link>();
  readonly #bytesListeners = new Set<BytesListener>();
  #target: Endpoint;
  #faults: Faults = NO_FAULTS;
  #cutProgress: { readonly link: Link; bytesLeft: number } | undefined;
  #acceptedCount = 0;
  #disposed: Promise<void> | undefined;

  private constructor(listener: Server, target: Endpoint) {
    this.port = (listener.address() as AddressInfo).port;
    this.#listener = listener;
    this.#target = target;
    listener.on('connection', (socket) => this.#accept(socket));
    listener.on('error', () => {}); // One connection that could not be accepted; its client will notice.
  }

  /** Listens on a free port of 127.0.0.1 and forwards what arrives there to `target`. */
  static async start(options: { readonly target: Endpoint }): Promise<FaultProxy> {
    // Half-open sockets are allowed so that each end's FIN is passed on when it comes, and not before.
    const listener = createServer({ allowHalfOpen: true, noDelay: true });
    await new Promise<void>((resolve, reject) => {
      listener.once('error', reject);
      listener.listen({ host: HOST, port: 0 }, () => {
        listener.off('error', reject);
        resolve();
      });
    });
    return new FaultProxy(listener, options.target);
  }

  /** `host:port`, as a ZooKeeper client takes it. */
  get connectString(): string {
    return `${this.host}:${this.port}`;
  }

  /** Connections that are open on at least one side, those accepted silently included. */
  get connectionCount(): number {
    return this.#links.size;
  }

  /** Connections clients have made since the start, those refused included. */
  get acceptedCount(): number {
    return this.#acceptedCount;
  }

  /** What is wrong with the network at the moment. */
  get faults(): Faults {
    return this.#faults;
  }

  /** Delays every byte by so much; order is kept, and any number of bytes is on its way at once. */
  delay(delays: { readonly toServerMs?: number; readonly toClientMs?: number }): void {
    const { toServerMs = 0, toClientMs = 0 } = delays;
    requireCount('toServerMs', toServerMs);
    requireCount('toClientMs', toClientMs);
    this.#change({ delayMs: { 'to-server': toServerMs, 'to-client': toClientMs } });
  }

  /**
   * Drops all bytes of a direction without a sign of it: sockets stay open.
   *
   * The end of a connection goes unnoticed as well, until `heal()`.
   */
  blackhole(direction: Direction | 'both'): void {
    this.#change({
      dropped: { 'to-server': direction !== 'to-client', 'to-client': direction !== 'to-server' },
    });
  }

  /** Resets every new connection at once; those open are left alone. */
  refuse(): void {
    this.#change({ admission: 'refuse' });
  }

  /**
   * Accepts new connections but neither forwards nor answers; those open are left alone.
   *
   * What clients send is kept, and reaches the target on `heal()`, as with a server that hung for a while.
   */
  acceptSilently(): void {
    this.#change({ admission: 'silent' });
  }

  /**
   * Forwards exactly so many more bytes of a direction, then resets the connection that carried them.
   *
   * The connection meant is the one that next carries a byte that way; others are left alone. If it ends too
   * soon the next one is counted afresh. With 0 bytes the reset comes when the first byte would pass, so the
   * request is served and nothing of its reply seen. Happens once; calling it again counts afresh.
   *
   * A receiver that is behind with reading may lose the last bytes to the reset, as on any network.
   */
  cutAfter(cut: Cut): void {
    requireCount('bytes', cut.bytes);
    this.#cutProgress = undefined;
    this.#change({ cut: { direction: cut.direction, bytes: cut.bytes } });
  }

  /** Forwards in pieces of at most so many bytes, each in a write and a turn of the event loop of its own. */
  slice(bytesMax: number): void {
    requireCount('bytesMax', bytesMax);
    if (bytesMax === 0) throw new RangeError('bytesMax is 0; must be at least 1');
    this.#change({ sliceBytesMax: bytesMax });
  }

  /** Resets every connection now (RST). */
  resetAll(): void {
    for (const link of [...this.#links]) link.reset();
  }

  /** Closes every connection in an orderly way now (FIN, to both sides). Bytes still delayed are dropped. */
  closeAll(): void {
    for (const link of [...this.#links]) link.close();
  }

  /** Undoes all faults, for new and open connections. Bytes dropped stay dropped; bytes delayed go at once. */
  heal(): void {
    this.#cutProgress = undefined;
    this.#change(NO_FAULTS);
  }

  /** Sends new connections to another server; those open stay where they are. */
  retarget(target: Endpoint): void {
    this.#target = target;
  }

  /** Calls `listener` for every piece of traffic; returns the function that stops it. */
  onBytes(listener: BytesListener): () => void {
    this.#bytesListeners.add(listener);
    return () => {
      this.#bytesListeners.delete(listener);
    };
  }

  /** Stops listening and resets every connection; settles when no socket or timer is left. */
  [Symbol.asyncDispose](): Promise<void> {
    this.#disposed ??= this.#dispose();
    return this.#disposed;
  }

  async #dispose(): Promise<void> {
    const stopped = new Promise<void>((resolve) => this.#listener.close(() => resolve()));
    const links = [...this.#links];
    this.resetAll();
    await Promise.all([stopped, ...links.map((link) => link.closed)]);
  }

  #change(change: Partial<Faults>): void {
    this.#faults = Object.freeze({ ...this.#faults, ...change });
    for (const link of [...this.#links]) {
      if (this.#faults.admission === 'forward') link.dial(this.#target);
      link.pump();
    }
  }

  #accept(socket: Socket): void {
    this.#acceptedCount++;
    if (this.#disposed !== undefined || this.#faults.admission === 'refuse') {
      socket.on('error', () => {});
      socket.resetAndDestroy();
      return;
    }
    const link: Link = new Link(socket, {
      faults: () => this.#faults,
      report: (direction, chunk, fate) => this.#report(direction, chunk, fate),
      bytesUntilCut: (direction) => this.#bytesUntilCut(link, direction),
      countForwarded: (direction, bytes) => this.#countForwarded(link, direction, bytes),
    });
    this.#links.add(link);
    void link.closed.then(() => this.#forget(link));
    if (this.#faults.admission === 'forward') link.dial(this.#target);
  }

  #forget(link: Link): void {
    this.#links.delete(link);
    if (this.#cutProgress?.link === link) this.#cutProgress = undefined;
  }

  #report(direction: Direction, chunk: Buffer, fate: BytesFate): void {
    for (const listener of [...this.#bytesListeners]) {
      try {
        listener(direction, chunk, fate);
      } catch (error) {
        // The listener's bug must be seen, but not by leaving a socket's event half handled.
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }

  #bytesUntilCut(link: Link, direction: Direction): number {
    const { cut } = this.#faults;
    if (cut === undefined || cut.direction !== direction) return Number.POSITIVE_INFINITY;
    this.#cutProgress ??= { link, bytesLeft: cut.bytes };
    return this.#cutProgress.link === link ? this.#cutProgress.bytesLeft : Number.POSITIVE_INFINITY;
  }

  /** True if these were the last bytes before the cut, which has then been used up. */
  #countForwarded(link: Link, direction: Direction, bytes: number): boolean {
    const progress = this.#cutProgress;
    if (progress?.link !== link || this.#faults.cut?.direction !== direction) return false;
    progress.bytesLeft -= bytes;
    if (progress.bytesLeft > 0) return false;
    this.#cutProgress = undefined;
    this.#faults = Object.freeze({ ...this.#faults, cut: undefined });
    return true;
  }
}

/** What a connection asks of the proxy it belongs to. */
interface LinkOwner {
  faults(): Faults;
  report: BytesListener;
  bytesUntilCut(direction: Direction): number;
  countForwarded(direction: Direction, bytes: number): boolean;
}

/**
 * One client's connection and the connection to the target made for it.
 *
 *   client  ──▶  toServer  ──▶  server
 *   client  ◀──  toClient  ◀──  server
 */
class Link {
  /** Settles when no socket of the link is open. */
  readonly closed: Promise<void>;
  readonly #client: Socket;
  readonly #toServer: Pipe;
  readonly #toClient: Pipe;
  #server: Socket | undefined;
  #settleClosed: () => void = () => {};
  #ending = false;

  constructor(client: Socket, owner: LinkOwner) {
    this.#client = client;
    this.closed = new Promise((resolve) => {
      this.#settleClosed = resolve;
    });
    const reset = () => this.reset();
    this.#toServer = new Pipe('to-server', owner, reset);
    this.#toClient = new Pipe('to-client', owner, reset);
    this.#toClient.attachSink(client);
    this.#attach(client, this.#toServer);
  }

  /** Connects to the target, unless that was done before. */
  dial(target: Endpoint): void {
    if (this.#server !== undefined || this.#ending) return;
    const server = connect({ host: target.host, port: target.port, allowHalfOpen: true, noDelay: true });
    this.#server = server;
    this.#attach(server, this.#toClient);
    server.once('connect', () => {
      this.#toServer.attachSink(server);
      this.#toServer.pump();
    });
  }

  pump(): void {
    this.#toServer.pump();
    this.#toClient.pump();
  }

  reset(): void {
    this.#end();
    for (const socket of this.#sockets()) {
      // A socket still connecting would first wait for the connection, then reset it; one whose FIN is on its way
      // would be left open for good (Node 20).
      const finishing = socket.writableEnded && !socket.writableFinished;
      if (socket.connecting || finishing) socket.destroy();
      else socket.resetAndDestroy();
    }
  }

  close(): void {
    this.#end();
    for (const socket of this.#sockets()) {
      if (socket.connecting) socket.destroy();
      else socket.end();
      socket.resume(); // Unread bytes would turn the FIN into an RST, and hide the other end's FIN.
    }
  }

  #end(): void {
    this.#ending = true;
    this.#toServer.stop();
    this.#toClient.stop();
  }

  #attach(source: Socket, pipe: Pipe): void {
    pipe.attachSource(source);
    // With nothing dialled there is nobody to tell that the client has gone.
    const gone = () => {
      if (this.#server === undefined) this.reset();
    };
    source.on('end', gone);
    source.on('error', gone);
    source.on('close', () => {
      if (this.#sockets().every((socket) => socket.closed)) {
        this.#end();
        this.#settleClosed();
      }
    });
  }

  #sockets(): Socket[] {
    return this.#server === undefined ? [this.#client] : [this.#client, this.#server];
  }
}

/** What travels through a pipe, in order. */
type Parcel =
  | { readonly kind: 'data'; readonly arrivedAtMs: number; chunk: Buffer }
  | { readonly kind: 'end'; readonly arrivedAtMs: number }
  | { readonly kind: 'reset'; readonly arrivedAtMs: number };

/** One direction of a link: takes from one socket, gives to the other what the faults let through. */
class Pipe {
  readonly #direction: Direction;
  readonly #owner: LinkOwner;
  readonly #resetLink: () => void;
  readonly #parcels: Parcel[] = [];
  #queuedBytes = 0;
  #source: Socket | undefined;
  #sink: Socket | undefined;
  #sinkFull = false;
  #stopped = false;
  #timer: NodeJS.Timeout | undefined;
  #nextTurn: NodeJS.Immediate | undefined;

  constructor(direction: Direction, owner: LinkOwner, resetLink: () => void) {
    this.#direction = direction;
    this.#owner = owner;
    this.#resetLink = resetLink;
  }

  attachSource(source: Socket): void {
    this.#source = source;
    source.on('data', (chunk: Buffer) => {
      if (this.#stopped) return;
      this.#queuedBytes += chunk.length;
      this.#take({ kind: 'data', arrivedAtMs: performance.now(), chunk });
    });
    source.on('end', () => this.#take({ kind: 'end', arrivedAtMs: performance.now() }));
    source.on('error', () => this.#take({ kind: 'reset', arrivedAtMs: performance.now() }));
  }

  attachSink(sink: Socket): void {
    this.#sink = sink;
    sink.on('drain', () => {
      this.#sinkFull = false;
      this.pump();
    });
  }

  /** Moves what can be moved now, and sees to being called again for the rest. */
  pump(): void {
    clearTimeout(this.#timer);
    // A slice waits for its turn even if something else calls in between, or it would join the one before.
    if (this.#nextTurn !== undefined) return;
    while (this.#moveFirst());
    this.#applyBackpressure();
  }

  /** Forgets what is queued and takes nothing more. */
  stop(): void {
    this.#stopped = true;
    this.#parcels.length = 0;
    this.#queuedBytes = 0;
    clearTimeout(this.#timer);
    clearImmediate(this.#nextTurn);
  }

  #take(parcel: Parcel): void {
    if (this.#stopped) return;
    this.#parcels.push(parcel);
    this.pump();
  }

  /** True if the first parcel, or a piece of it, is gone and the next may follow at once. */
  #moveFirst(): boolean {
    const parcel = this.#parcels[0];
    if (parcel === undefined || this.#stopped) return false;
    if (this.#isDropping()) {
      // The end of the connection stays queued: TCP repeats a FIN until it gets through.
      if (parcel.kind !== 'data') return false;
      this.#owner.report(this.#direction, this.#takeBytes(parcel, parcel.chunk.length), 'dropped');
      return true;
    }
    if (this.#isWaiting(parcel)) return false;
    if (parcel.kind === 'data') return this.#forward(parcel);
    if (parcel.kind === 'end' && this.#sink === undefined) return false;
    this.#parcels.shift();
    if (parcel.kind === 'end') this.#sink?.end();
    else this.#resetLink();
    return true;
  }

  #isDropping(): boolean {
    return this.#owner.faults().dropped[this.#direction] || this.#sink?.destroyed === true;
  }

  #isWaiting(parcel: Parcel): boolean {
    const delayMs = this.#owner.faults().delayMs[this.#direction];
    const waitMs = parcel.arrivedAtMs + delayMs - performance.now();
    if (waitMs <= 0) return false;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.pump(), Math.min(Math.ceil(waitMs), TIMER_MS_MAX));
    return true;
  }

  #forward(parcel: Parcel & { kind: 'data' }): boolean {
    const sink = this.#sink;
    if (sink === undefined || this.#sinkFull) return false;
    const { sliceBytesMax } = this.#owner.faults();
    const bytesUntilCut = this.#owner.bytesUntilCut(this.#direction);
    const bytes = Math.min(parcel.chunk.length, sliceBytesMax ?? bytesUntilCut, bytesUntilCut);
    const piece = this.#takeBytes(parcel, bytes);
    const isLast = this.#owner.countForwarded(this.#direction, bytes);
    if (isLast) this.stop();
    if (bytes === 0) this.#resetLink();
    else this.#sinkFull = !sink.write(piece, isLast ? () => this.#resetSoon() : undefined);
    if (!isLast && sliceBytesMax !== undefined) {
      this.#nextTurn = setImmediate(() => {
        this.#nextTurn = undefined;
        this.pump();
      });
    }
    // Comes last because a listener may change the faults, and so come back in here.
    if (bytes > 0) this.#owner.report(this.#direction, piece, 'forwarded');
    return this.#nextTurn === undefined;
  }

  /**
   * Lets a receiver in this process read the last bytes first: were they to come in one turn of the event
   * loop with the reset, Node would tell it of an orderly end.
   */
  #resetSoon(): void {
    this.#nextTurn = setImmediate(() => {
      this.#nextTurn = setImmediate(this.#resetLink);
    });
  }

  #takeBytes(parcel: Parcel & { kind: 'data' }, bytes: number): Buffer {
    const piece = parcel.chunk.subarray(0, bytes);
    if (bytes === parcel.chunk.length) this.#parcels.shift();
    else parcel.chunk = parcel.chunk.subarray(bytes);
    this.#queuedBytes -= bytes;
    return piece;
  }

  /** Delayed bytes are on their way and hold nobody up; bytes the receiver does not take do. */
  #applyBackpressure(): void {
    if (this.#stopped || this.#source === undefined) return;
    const full = !this.#isDropping() && (this.#sinkFull || this.#queuedBytes >= IN_FLIGHT_BYTES_MAX);
    if (full) this.#source.pause();
    else this.#source.resume();
  }
}

function requireCount(name: string, value: number): void {
  if (!Number.isSafeInteger(value) || value < 0) {
    throw new RangeError(`${name} is ${value}; must be a whole number of at least 0`);
  }
}
