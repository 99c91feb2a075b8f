import { systemRandom } from '../../src/base/random.ts';
import { TcpTransport } from '../../src/client/tcp-transport.ts';
import type { Link, LinkHandlers, Transport } from '../../src/client/transport.ts';
import { FrameDecoder } from '../../src/protocol/frame-decoder.ts';
import { operationOf, xids } from '../../src/protocol/operations.ts';

/** A four-letter word is asked on a connection of its own, and has no frames. */
const WORD_BYTES = 4;

/** What went over one or several connections. */
export interface Traffic {
  /** Names of the requests in the order they went out, without pings and what keeps a session alive. */
  readonly requests: string[];
  /** How often something was written to a socket with a request in it: what one waits for leaves in one write. */
  writeCount: number;
  eventCount: number;
  sentBytes: number;
  receivedBytes: number;
}

/** The real transport, with every frame counted. */
export class CountingTransport implements Transport {
  readonly #inner = new TcpTransport({ random: systemRandom });
  traffic: Traffic = noTraffic();
  /** Of the longest request that was ever sent: what a server refuses if it is too much. */
  largestRequestBytes = 0;

  /** Forgets what was counted. */
  reset(): void {
    this.traffic = noTraffic();
  }

  dial(server: Parameters<Transport['dial']>[0], handlers: LinkHandlers): Link {
    const incoming = new FrameDecoder(2 ** 26);
    const outgoing = new FrameDecoder(2 ** 26);
    let greeted = false;
    let asksWord = false;
    const link = this.#inner.dial(server, {
      ...handlers,
      received: (chunk) => {
        this.traffic.receivedBytes += chunk.byteLength;
        for (const frame of asksWord ? [] : incoming.push(Buffer.from(chunk))) {
          if (frame.byteLength >= 4 && frame.readInt32BE(0) === xids.notification) this.traffic.eventCount++;
        }
        handlers.received(chunk);
      },
    });
    return {
      write: (bytes) => {
        this.traffic.sentBytes += bytes.byteLength;
        let carriesRequest = false;
        asksWord ||= !greeted && bytes.byteLength === WORD_BYTES;
        for (const frame of asksWord ? [] : outgoing.push(Buffer.from(bytes))) {
          if (!greeted) {
            greeted = true; // The connect request has no header.
            continue;
          }
          this.largestRequestBytes = Math.max(this.largestRequestBytes, frame.byteLength);
          if (frame.readInt32BE(0) < 0) continue;
          carriesRequest = true;
          this.traffic.requests.push(operationOf(frame.readInt32BE(4))?.name ?? 'unknown');
        }
        if (carriesRequest) this.traffic.writeCount++;
        link.write(bytes);
      },
      destroy: () => link.destroy(),
    };
  }
}

function noTraffic(): Traffic {
  return { requests: [], writeCount: 0, eventCount: 0, sentBytes: 0, receivedBytes: 0 };
}
