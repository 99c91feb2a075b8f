import { createServer as createTcpServer, type ListenOptions, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, TLSSocket, type TlsOptions } from 'node:tls';
import type { Identity } from './access.ts';
import type { ServerConnection, ServerLink } from './server-connection.ts';
import type { ServerCore } from './server-core.ts';

/** Certificates of the server; with `requestCert`, clients show theirs and are known by its subject. */
export type ServerTlsOptions = Pick<
  TlsOptions,
  'ca' | 'cert' | 'key' | 'passphrase' | 'pfx' | 'minVersion' | 'requestCert' | 'rejectUnauthorized'
>;

const TLS_HANDSHAKE_MS = 5_000;

/** Listens, and carries bytes between sockets and the core. `onStep` is called after each, for the timer's sake. */
export class TcpListener {
  readonly #core: ServerCore;
  readonly #onStep: () => void;
  readonly #server: Server;
  readonly #links = new Map<Socket, SocketLink>();
  #closing = false;
  #paused = false;

  constructor(
    core: ServerCore,
    options: { readonly tls?: ServerTlsOptions | undefined; readonly onStep: () => void },
  ) {
    this.#core = core;
    this.#onStep = options.onStep;
    const onSocket = (socket: Socket) => this.#accept(socket);
    this.#server = options.tls
      ? createTlsServer(
          { minVersion: 'TLSv1.2', ...options.tls, handshakeTimeout: TLS_HANDSHAKE_MS },
          onSocket,
        )
      : createTcpServer({ noDelay: true }, onSocket);
    // A client that fails the TLS handshake hurts nobody else.
    this.#server.on('tlsClientError', (_error, socket: Socket) => socket.destroy());
  }

  async listen(where: Pick<ListenOptions, 'host' | 'port' | 'path'>): Promise<void> {
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
    for (const socket of this.#links.keys()) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  /** As if the process stood still: connections stay open and are accepted, nothing is read, nothing goes out. */
  pause(): void {
    this.#paused = true;
    for (const link of this.#links.values()) link.hold();
  }

  resume(): void {
    this.#paused = false;
    for (const link of this.#links.values()) link.letGo();
  }

  #accept(socket: Socket): void {
    const link = new SocketLink(socket);
    this.#links.set(socket, link);
    if (this.#paused) link.hold();
    let connection: ServerConnection | undefined;
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      this.#links.delete(socket);
      if (this.#closing) return; // The server is over: that its connections end is no news to the core.
      if (connection) this.#core.closed(connection);
      this.#onStep();
    });
    connection = this.#core.accept(link, {
      address: javaAddress(socket.remoteAddress ?? '127.0.0.1'),
      port: socket.remotePort ?? 0,
      identities: certificateIdentities(socket),
    });
    if (!connection) return;
    const accepted = connection;
    socket.on('data', (chunk: Buffer) => {
      this.#core.receive(accepted, chunk);
      this.#onStep();
    });
    this.#onStep();
  }
}

class SocketLink implements ServerLink {
  readonly #socket: Socket;
  #paused = false;
  #held = false;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  write(bytes: Buffer): void {
    this.#socket.write(bytes);
  }
  end(): void {
    this.#socket.end();
  }
  destroy(): void {
    this.#socket.destroy();
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

/** IPv4 addresses that come in over an IPv6 socket are IPv4 addresses to ZooKeeper. */
function javaAddress(address: string): string {
  return address.startsWith('::ffff:') ? address.slice('::ffff:'.length) : address;
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
