import type { Link, LinkHandlers, Transport } from '../../client/transport.ts';
import { FrameDecoder } from '../../protocol/frame-decoder.ts';
import { operations, xids } from '../../protocol/operations.ts';

const FRAME_BYTES_MAX = 2 ** 26;
/** A four-letter word is asked on a connection of its own, and has no frames. */
const WORD_BYTES = 4;

/** What went over all connections that were counted. */
export interface Traffic {
  /** Frames with a request; what keeps a session alive is left out, since it depends on how long things take. */
  requestCount: number;
  /** Frames that told of a watch. */
  eventCount: number;
}

/** Another transport, with what goes over it counted. */
export class CountingTransport implements Transport {
  readonly #inner: Transport;
  readonly #traffic: Traffic;

  constructor(inner: Transport, traffic: Traffic) {
    this.#inner = inner;
    this.#traffic = traffic;
  }

  dial(server: Parameters<Transport['dial']>[0], handlers: LinkHandlers): Link {
    const incoming = new FrameDecoder(FRAME_BYTES_MAX);
    const outgoing = new FrameDecoder(FRAME_BYTES_MAX);
    let greeted = false;
    let asksWord = false;
    const link = this.#inner.dial(server, {
      ...handlers,
      received: (chunk) => {
        for (const frame of asksWord ? [] : incoming.push(chunk)) {
          if (frame.readInt32BE(0) === xids.notification) this.#traffic.eventCount++;
        }
        handlers.received(chunk);
      },
    });
    return {
      write: (bytes) => {
        asksWord ||= !greeted && bytes.byteLength === WORD_BYTES;
        for (const frame of asksWord ? [] : outgoing.push(bytes)) {
          const keepsAlive = frame.readInt32BE(0) < 0 || frame.readInt32BE(4) === operations.sync.opcode;
          if (greeted && !keepsAlive) this.#traffic.requestCount++;
          greeted = true; // The first frame of a connection is the handshake, which has no number.
        }
        link.write(bytes);
      },
      destroy: () => link.destroy(),
    };
  }
}
