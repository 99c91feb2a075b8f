import { systemRandom } from '../../src/base/random.ts';
import { TcpTransport } from '../../src/client/tcp-transport.ts';
import type { Link, LinkHandlers, Transport } from '../../src/client/transport.ts';
import { FrameDecoder } from '../../src/protocol/frame-decoder.ts';
import { operations } from '../../src/protocol/operations.ts';

const MAKING: ReadonlySet<number> = new Set(
  [
    operations.create,
    operations.create2,
    operations.createContainer,
    operations.createTtl,
    operations.multi,
  ].map(({ opcode }) => opcode),
);

/** The real transport with a switch: while it is off, no server can be reached. Counts what could make a node. */
export class SwitchedTransport implements Transport {
  readonly #inner = new TcpTransport({ random: systemRandom });
  readonly #links = new Set<() => void>();
  #isOff = false;
  /** Requests sent that make nodes, or several things at once. */
  makingCount = 0;

  off(): void {
    this.#isOff = true;
    for (const cut of [...this.#links]) cut();
  }

  on(): void {
    this.#isOff = false;
  }

  dial(server: Parameters<Transport['dial']>[0], handlers: LinkHandlers): Link {
    const unreachable = new Error('no server can be reached');
    if (this.#isOff) {
      setImmediate(() => handlers.closed(unreachable));
      return { write: () => {}, destroy: () => {} };
    }
    const outgoing = new FrameDecoder(2 ** 26);
    let isGreeted = false;
    const link = this.#inner.dial(server, {
      opened: () => handlers.opened(),
      received: (chunk) => {
        isGreeted = true;
        handlers.received(chunk);
      },
      closed: (error) => {
        this.#links.delete(cut);
        handlers.closed(error);
      },
    });
    const destroy = () => {
      this.#links.delete(cut);
      link.destroy();
    };
    const cut = () => {
      destroy();
      handlers.closed(unreachable);
    };
    this.#links.add(cut);
    return {
      write: (bytes) => {
        if (isGreeted) {
          for (const frame of outgoing.push(Buffer.from(bytes))) {
            if (MAKING.has(frame.readInt32BE(4))) this.makingCount++;
          }
        }
        link.write(bytes);
      },
      destroy,
    };
  }
}
