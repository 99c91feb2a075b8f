import { rm } from 'node:fs/promises';
import {
  connect,
  createServer as createTcpServer,
  type ListenOptions,
  type Server,
  type Socket,
} from 'node:net';
import { createServer as createTlsServer, TLSSocket, type TlsOptions } from 'node:tls';
import type { Cancel, Clock } from '../base/clock.ts';
import type { Identity } from './access.ts';
import type { ServerLink } from './server-connection.ts';
import type { ServerCore } from './server-core.ts';

/** Certificates of the server; with `requestCert`, clients show theirs and are known by its subject. */
export type ServerTlsOptions = Pick<
  TlsOptions,
  'ca' | 'cert' | 'key' | 'passphrase' | 'pfx' | 'minVersion' | 'requestCert' | 'rejectUnauthorized'
>;

export interface ListenerOptions {
  readonly tls?: ServerTlsOptions | undefined;
  readonly clock: Clock;
  /** Called after each step of the core, for the timer's sake. */
  readonly onStep: () => void;
}

/** Listens, and carries bytes between sockets and the core. */
export class TcpListener {
  readonly #core: ServerCore;
  readonly #clock: Clock;
  readonly #onStep: () => void;
  readonly #server: Server;
  /** Every socket there is, in a TLS handshake or on its way out included. */
  readonly #sockets = new Set<Socket>();
  readonly #links = new Set<SocketLink>();
  #closing = false;
  #paused = false;

  constructor(core: ServerCore, { tls, clock, onStep }: ListenerOptions) {
    this.#core = core;
    this.#clock = clock;
    this.#onStep = onStep;
    const handshakeTimeout = core.limits.tlsHandshakeMs;
    this.#server = tls
      ? createTlsServer({ minVersion: 'TLSv1.2', ...tls, handshakeTimeout })
      : createTcpServer({ noDelay: true });
    // Before a TLS handshake: one that never ends costs as much as a connection that works.
    this.#server.prependListener('connection', (socket: Socket) => this.#admit(socket));
    this.#server.on(tls ? 'secureConnection' : 'connection', (socket: Socket) => {
      if (!socket.destroyed) this.#accept(socket);
    });
    // A client that fails the TLS handshake hurts nobody else.
    this.#server.on('tlsClientError', (_error, socket: Socket) => socket.destroy());
  }

  /** A unix socket that a dead server left behind is replaced. */
  async listen(where: Pick<ListenOptions, 'host' | 'port' | 'path'>): Promise<void> {
    const { path } = where;
    try {
      await this.#listen(where);
    } catch (error) {
      const taken = (error as NodeJS.ErrnoException).code === 'EADDRINUSE';
      if (!taken || path === undefined || (await isAnswered(path))) throw error;
      await rm(path, { force: true });
      await this.#listen(where);
    }
  }

  async #listen(where: ListenOptions): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(where, () => {
        this.#server.off('error', reject);
        resolve();
      });
    });
  }

  /** The port listened on; undefined for a unix socket. */
  get port(): number | undefined {
    const address = this.#server.address();
    return typeof address === 'object' ? address?.port : undefined;
  }

  async close(): Promise<void> {
    this.#closing = true;
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  /** As if the process stood still: connections stay open and are accepted, nothing is read, nothing goes out. */
  pause(): void {
    this.#paused = true;
    for (const link of this.#links) link.hold();
  }

  resume(): void {
    this.#paused = false;
    for (const link of this.#links) link.letGo();
  }

  #admit(socket: Socket): void {
    const leave = this.#core.admit(addressOf(socket));
    if (!leave) return void socket.destroy();
    this.#sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      this.#sockets.delete(socket);
      leave();
    });
  }

  #accept(socket: Socket): void {
    socket.on('error', () => socket.destroy());
    const link = new SocketLink(socket, this.#clock, this.#core.limits.lingerMs);
    this.#links.add(link);
    if (this.#paused) link.hold();
    const connection = this.#core.accept(link, {
      address: addressOf(socket),
      port: socket.remotePort ?? 0,
      identities: certificateIdentities(socket),
    });
    link.onWritten = () => {
      this.#core.drained(connection);
      this.#onStep();
    };
    socket.on('close', () => {
      link.closed();
      this.#links.delete(link);
      if (this.#closing) return; // The server is over: that its connections end is no news to the core.
      this.#core.closed(connection);
      this.#onStep();
    });
    socket.on('data', (chunk: Buffer) => {
      this.#core.receive(connection, chunk);
      this.#onStep();
    });
    this.#onStep();
  }
}

/** Whether anyone listens there: the file of a socket outlives its process. */
function isAnswered(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    const settle = (answered: boolean) => {
      socket.destroy();
      resolve(answered);
    };
    socket.once('connect', () => settle(true));
    socket.once('error', (error: NodeJS.ErrnoException) => settle(error.code !== 'ECONNREFUSED'));
  });
}

class SocketLink implements ServerLink {
  readonly #socket: Socket;
  #paused = false;
  #held = false;
  readonly #clock: Clock;
  readonly #lingerMs: number;
  #cancelLinger: Cancel | undefined;
  /** Called when the peer's machine has taken what was written. */
  onWritten: () => void = () => {};

  constructor(socket: Socket, clock: Clock, lingerMs: number) {
    this.#socket = socket;
    this.#clock = clock;
    this.#lingerMs = lingerMs;
  }

  write(bytes: Buffer): void {
    this.#socket.write(bytes, () => this.onWritten());
  }
  end(): void {
    this.#socket.end();
    // A peer that neither reads what is left nor hangs up does not keep the socket for ever.
    this.#cancelLinger ??= this.#clock.at(this.#clock.nowMs() + this.#lingerMs, () => this.destroy());
  }
  destroy(): void {
    this.#socket.destroy();
  }
  closed(): void {
    this.#cancelLinger?.();
  }
  pause(): void {
    this.#paused = true;
    this.#socket.pause();
  }
  resume(): void {
    this.#paused = false;
    if (!this.#held) this.#socket.resume();
  }
  /** Holds both directions up, whatever the core does meanwhile. */
  hold(): void {
    this.#held = true;
    this.#socket.pause();
    this.#socket.cork();
  }
  letGo(): void {
    this.#held = false;
    this.#socket.uncork();
    if (!this.#paused) this.#socket.resume();
  }
  get bufferedBytes(): number {
    return this.#socket.writableLength;
  }
}

/** In Java's form, for which IPv4 addresses that come in over an IPv6 socket are IPv4 addresses. */
function addressOf({ remoteAddress = '127.0.0.1' }: Socket): string {
  return remoteAddress.startsWith('::ffff:') ? remoteAddress.slice('::ffff:'.length) : remoteAddress;
}

function certificateIdentities(socket: Socket): Identity[] {
  if (!(socket instanceof TLSSocket) || !socket.authorized) return [];
  const { subject } = socket.getPeerCertificate();
  if (!subject) return [];
  // RFC 2253: most specific first, commas, no spaces.
  const names = Object.entries(subject).flatMap(([key, value]) =>
    [value].flat().map((each) => `${key}=${each}`),
  );
  return [{ scheme: 'x509', id: names.reverse().join(',') }];
}
