import { lstat, rm } from 'node:fs/promises';
import {
  connect,
  createServer as createTcpServer,
  type ListenOptions,
  type Server,
  type Socket,
} from 'node:net';
import { createServer as createTlsServer, TLSSocket, type TlsOptions } from 'node:tls';
import type { Cancel, Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { givenOf } from '../base/option-names.ts';
import { processFacts } from '../base/process-facts.ts';
import type { Identity } from './access.ts';
import { DescriptorWatch } from './descriptor-watch.ts';
import type { ServerLink } from './server-connection.ts';
import type { ServerCore } from './server-core.ts';
import { principalOfCertificate } from './x509-principal.ts';

/** Certificates of the server; with `requestCert`, clients show theirs and are known by its subject. */
export type ServerTlsOptions = Pick<
  TlsOptions,
  'ca' | 'cert' | 'key' | 'passphrase' | 'pfx' | 'minVersion' | 'requestCert' | 'rejectUnauthorized'
>;

/** The address of whoever comes over a unix socket. */
const LOOPBACK = '127.0.0.1';

export interface ListenerOptions {
  readonly tls?: ServerTlsOptions | undefined;
  readonly clock: Clock;
  readonly log: Log;
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
  readonly #descriptors: DescriptorWatch;
  #closing = false;
  #paused = false;
  /** It listens on a unix socket, whose peers have no address: they are on this machine. */
  #isLocal = false;

  constructor(core: ServerCore, { tls, clock, log, onStep }: ListenerOptions) {
    this.#core = core;
    const descriptorsMax = processFacts().openFilesMax ?? Number.POSITIVE_INFINITY;
    this.#descriptors = new DescriptorWatch({ clock, log, descriptorsMax });
    this.#clock = clock;
    this.#onStep = onStep;
    const handshakeTimeout = core.limits.tlsHandshakeMs;
    this.#server = tls
      ? createTlsServer({ minVersion: 'TLSv1.2', ...givenOf(tls), handshakeTimeout })
      : createTcpServer({ noDelay: true });
    // Before a TLS handshake: one that never ends costs as much as a connection that works.
    this.#server.prependListener('connection', (socket: Socket) => this.#admit(socket));
    this.#server.on(tls ? 'secureConnection' : 'connection', (socket: Socket) => {
      if (!socket.destroyed) this.#accept(socket);
    });
    // A client that fails the TLS handshake hurts nobody else.
    this.#server.on('tlsClientError', (_error, socket: Socket) => socket.destroy());
  }

  /** A unix socket that a dead server left behind is replaced; any other file at its path is left alone. */
  async listen(where: Pick<ListenOptions, 'host' | 'port' | 'path'>): Promise<void> {
    const { path } = where;
    this.#isLocal = path !== undefined;
    try {
      await this.#listen(where);
    } catch (error) {
      const taken = (error as NodeJS.ErrnoException).code === 'EADDRINUSE';
      if (!taken || path === undefined || !(await isDeadSocket(path))) throw error;
      await rm(path, { force: true });
      await this.#listen(where);
    }
  }

  /** Once more, at a path whose socket was removed. Connections stay. */
  async listenAnew(where: Pick<ListenOptions, 'path'>): Promise<void> {
    this.#server.close(); // Takes the path's name away, whatever is there.
    await this.listen(where);
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

  /**
   * A peer that has gone already has no address any more, although all it sent is there to be read. Nothing of it is
   * read: access lists go by the address, and there is none that it could be given.
   */
  #admit(socket: Socket): void {
    this.#descriptors.opened(descriptorOf(socket));
    const address = this.#addressOf(socket);
    const leave = address === undefined ? undefined : this.#core.admit(address);
    if (!leave) return void socket.destroy();
    this.#sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      this.#sockets.delete(socket);
      leave();
    });
  }

  /** In Java's form, for which IPv4 addresses that come in over an IPv6 socket are IPv4 addresses. */
  #addressOf({ remoteAddress }: Socket): string | undefined {
    if (this.#isLocal) return LOOPBACK;
    return remoteAddress?.startsWith('::ffff:') ? remoteAddress.slice('::ffff:'.length) : remoteAddress;
  }

  #accept(socket: Socket): void {
    socket.on('error', () => socket.destroy());
    const address = this.#addressOf(socket);
    if (address === undefined) return void socket.destroy();
    const link = new SocketLink(socket, this.#clock, this.#core.limits.lingerMs);
    this.#links.add(link);
    if (this.#paused) link.hold();
    const connection = this.#core.accept(link, {
      address,
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

/** Node has it, and has no public way to it; -1 if it is not there any more. */
function descriptorOf(socket: Socket): number {
  return (socket as { readonly _handle?: { readonly fd?: number } | null })._handle?.fd ?? -1;
}

/** Whether the path is a unix socket on which no process listens: the file of a socket outlives its process. */
async function isDeadSocket(path: string): Promise<boolean> {
  // A regular file refuses connections as well, and `lstat` does not follow a link to what is not the server's.
  const isSocket = await lstat(path).then(
    (file) => file.isSocket(),
    () => false,
  );
  if (!isSocket) return false;
  return new Promise((resolve) => {
    const socket = connect(path);
    const settle = (dead: boolean) => {
      socket.destroy();
      resolve(dead);
    };
    socket.once('connect', () => settle(false));
    socket.once('error', (error: NodeJS.ErrnoException) => settle(error.code === 'ECONNREFUSED'));
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

/** The principal of a certificate that an authority of the server has signed. */
function certificateIdentities(socket: Socket): Identity[] {
  if (!(socket instanceof TLSSocket) || !socket.authorized) return [];
  const { raw } = socket.getPeerCertificate();
  const principal = raw ? principalOfCertificate(raw) : undefined;
  return principal === undefined ? [] : [{ scheme: 'x509', id: principal }];
}
