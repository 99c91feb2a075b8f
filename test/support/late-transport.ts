import { systemRandom } from '../../src/base/random.ts';
import { TcpTransport } from '../../src/client/tcp-transport.ts';
import type { Link, LinkHandlers, Transport } from '../../src/client/transport.ts';

/**
 * The real transport, whose bytes can be kept on their way to the server, also beyond the end of the connection for its
 * client: what a network with long queues does.
 */
export class LateTransport implements Transport {
  readonly #inner = new TcpTransport({ random: systemRandom });
  #late: (() => void)[] | undefined;
  #drop: ((error: Error) => void) | undefined;

  /** From now on nothing that is sent arrives, neither do new connections, until `deliver`. */
  hold(): void {
    this.#late = [];
  }

  /** The client is told that its connection is over; what it has sent is still on its way. */
  drop(): void {
    this.#drop?.(new Error('the connection is over for its client'));
  }

  /** All of it arrives, in order. */
  deliver(): void {
    const late = this.#late ?? [];
    this.#late = undefined;
    for (const arrive of late) arrive();
  }

  dial(server: Parameters<Transport['dial']>[0], handlers: LinkHandlers): Link {
    let isOver = false;
    let inner: Link | undefined;
    const arrive = (run: () => void) => {
      if (this.#late) this.#late.push(run);
      else run();
    };
    const close = (error?: Error) => {
      if (isOver) return;
      isOver = true;
      handlers.closed(error);
    };
    arrive(() => {
      if (isOver) return;
      inner = this.#inner.dial(server, {
        opened: () => !isOver && handlers.opened(),
        received: (chunk) => !isOver && handlers.received(chunk),
        closed: close,
      });
    });
    this.#drop = close;
    return {
      write: (bytes) => {
        const copy = Buffer.from(bytes);
        arrive(() => inner?.write(copy));
      },
      destroy: () => {
        isOver = true;
        arrive(() => inner?.destroy());
      },
    };
  }
}
