import { lookup } from 'node:dns/promises';
import { connect as connectTcp, isIP, type OnReadOpts, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { fraction, type Random } from '../base/random.ts';
import type { ServerAddress } from '../session/session-io.ts';
import { readTlsOptions, type TlsOptions, type TlsSettings } from './tcp-tls-options.ts';
import type { Link, LinkHandlers, Transport } from './transport.ts';

/** The addresses of a host name. Asked anew for every connection, since they change while a client lives. */
export type Resolve = (host: string) => Promise<readonly string[]>;

const resolveBySystem: Resolve = async (host) =>
  (await lookup(host, { all: true, verbatim: true })).map(({ address }) => address);

export class TcpTransport implements Transport {
  readonly #tls: TlsSettings | undefined;
  readonly #random: Random;
  readonly #resolve: Resolve;

  /** @throws TypeError for certificates and keys that are none. */
  constructor(options: {
    readonly tls?: TlsOptions | undefined;
    readonly random: Random;
    readonly resolve?: Resolve | undefined;
  }) {
    this.#tls = options.tls === undefined ? undefined : readTlsOptions(options.tls);
    this.#random = options.random;
    this.#resolve = options.resolve ?? resolveBySystem;
  }

  dial(server: ServerAddress, handlers: LinkHandlers): Link {
    let socket: Socket | undefined;
    let address: string | undefined;
    let destroyed = false;
    const open = (found: string) => {
      if (destroyed) return;
      address = found;
      const received = (chunk: Buffer) => {
        if (!destroyed) handlers.received(chunk);
      };
      socket = this.#connect(server, address, received);
      if (this.#tls) socket.on('data', received);
      attach(socket, this.#tls ? 'secureConnect' : 'connect', handlers, () => destroyed);
    };
    // Whatever it is that cannot be opened (an address that is none): the attempt has failed, and nothing else.
    this.#addressOf(server)
      .then(open)
      .catch((error: Error) => {
        if (!destroyed) handlers.closed(error);
      });
    return {
      get address() {
        return address;
      },
      write: (bytes) => void socket?.write(bytes),
      destroy() {
        destroyed = true;
        socket?.destroy();
      },
    };
  }

  /** One of a name's addresses at random, so that the clients of a fleet spread over them. */
  async #addressOf({ host, address: wanted }: ServerAddress): Promise<string> {
    if (wanted !== undefined) return wanted;
    if (isIP(host) || isSocketPath(host)) return host;
    const addresses = await this.#resolve(host);
    const address = addresses[Math.floor(fraction(this.#random) * addresses.length)];
    if (address === undefined) throw new Error(`${host} has no address`);
    return address;
  }

  #connect({ host, port }: ServerAddress, address: string, received: (chunk: Buffer) => void): Socket {
    const where = isSocketPath(host) ? { path: host } : { host: address, port };
    if (!this.#tls) return connectTcp({ ...where, noDelay: true, onread: readInto(received) });
    // The certificate is checked against the name that was asked for, not the address it led to.
    const servername = this.#tls.servername ?? (isIP(host) || isSocketPath(host) ? undefined : host);
    const named = servername === undefined ? {} : { servername };
    return connectTls({ ...this.#tls, ...where, ...named }).setNoDelay(true);
  }
}

/** No host name has a slash. */
function isSocketPath(host: string): boolean {
  return host.startsWith('/');
}

function attach(socket: Socket, openEvent: string, handlers: LinkHandlers, destroyed: () => boolean): void {
  let failure: Error | undefined;
  socket.on(openEvent, () => {
    if (!destroyed()) handlers.opened();
  });
  socket.on('error', (error) => {
    failure = error;
  });
  socket.on('close', () => {
    if (!destroyed()) handlers.closed(failure);
  });
}

const READ_BYTES = 64 * 1024;

/**
 * Reads everything into one buffer: answers are mostly small, and a stream makes a buffer of this size, and goes
 * through its queue, for each of them.
 */
function readInto(received: (chunk: Buffer) => void): OnReadOpts {
  const buffer = Buffer.allocUnsafeSlow(READ_BYTES);
  return {
    buffer,
    callback(byteCount) {
      received(buffer.subarray(0, byteCount));
      return true;
    },
  };
}
