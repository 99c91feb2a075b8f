import type { Link, LinkHandlers, Transport } from '../../src/client/transport.ts';
import type { ServerAddress } from '../../src/session/session-io.ts';

/** What a server does: everything, nothing but to accept connections, or nothing but to grant sessions. */
export type ServerManner = 'works' | 'accepts and stays silent' | 'greets and never answers';

/** A way to a server, which can stop to answer: what it says is dropped, and nobody is told. */
export class UnansweringTransport implements Transport {
  readonly #transport: Transport;
  manner: ServerManner = 'works';

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  dial(server: ServerAddress, handlers: LinkHandlers): Link {
    const greeting = new FirstFrame();
    return this.#transport.dial(server, {
      opened: () => handlers.opened(),
      received: (chunk) => {
        const first = greeting.partOf(chunk);
        const heard = {
          works: chunk,
          'accepts and stays silent': NOTHING,
          'greets and never answers': first,
        };
        if (heard[this.manner].byteLength > 0) handlers.received(heard[this.manner]);
      },
      closed: (error) => {
        if (this.manner === 'works') handlers.closed(error);
      },
    });
  }
}

const NOTHING = Buffer.alloc(0);

/** Tells the first frame of a connection, which is the answer to its handshake, from what follows. */
class FirstFrame {
  #head = NOTHING;
  #bytesLeft: number | undefined;

  partOf(chunk: Buffer): Buffer {
    if (this.#bytesLeft === undefined) {
      this.#head = Buffer.concat([this.#head, chunk]);
      if (this.#head.byteLength < 4) return chunk;
      this.#bytesLeft = 4 + this.#head.readInt32BE(0) - (this.#head.byteLength - chunk.byteLength);
    }
    const part = chunk.subarray(0, this.#bytesLeft);
    this.#bytesLeft -= part.byteLength;
    return part;
  }
}
