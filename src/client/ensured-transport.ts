import type { ServerAddress } from '../session/session-io.ts';
import type { Link, LinkHandlers, Transport } from './transport.ts';

/** A transport to one server that is made sure of before every connection: it may have ended meanwhile. */
export class EnsuredTransport implements Transport {
  readonly #transport: Transport;
  readonly #ensure: () => Promise<ServerAddress>;
  #ensuring: Promise<ServerAddress> | undefined;

  /** `ready` is what the last `ensure` said, if it was just now: the first connection need not ask again. */
  constructor(transport: Transport, ensure: () => Promise<ServerAddress>, ready?: ServerAddress) {
    this.#transport = transport;
    this.#ensure = ensure;
    this.#ensuring = ready && Promise.resolve(ready);
  }

  dial(_server: ServerAddress, handlers: LinkHandlers): Link {
    let link: Link | undefined;
    let destroyed = false;
    const ensuring = this.#ensuring ?? this.#ensure();
    this.#ensuring = ensuring; // One at a time, also if this connection is given up before it is there.
    const done = () => {
      if (this.#ensuring === ensuring) this.#ensuring = undefined;
    };
    ensuring.then(
      (server) => {
        done();
        if (!destroyed) link = this.#transport.dial(server, handlers);
      },
      (error: Error) => {
        done();
        if (!destroyed) handlers.closed(error);
      },
    );
    return {
      write: (bytes) => link?.write(bytes),
      destroy() {
        destroyed = true;
        link?.destroy();
      },
    };
  }
}
