import { FrameDecoder } from '../../src/protocol/frame-decoder.ts';
import { Connect, Connected, SESSION_PASSWORD_BYTES } from '../../src/protocol/handshake.ts';
import { JuteReader } from '../../src/protocol/jute-reader.ts';
import type { Peer, ServerLink } from '../../src/server/server-connection.ts';
import { framed } from './sasl-gate.ts';
import type { SimulatedListener } from './simulated-network.ts';

const FRAME_BYTES_MAX = 4 * 1024 * 1024;

interface DeceivedConnection {
  readonly link: ServerLink;
  readonly frames: FrameDecoder;
  greeted: boolean;
}

/** Answers at a server's address, grants every session, or none, for as long as it likes, and proves nothing. */
export class Impostor implements SimulatedListener {
  readonly #timeoutMs: number;

  /** `timeoutMs` is what it grants; 0 says that the session is over. */
  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  accept(link: ServerLink, _peer: Peer): DeceivedConnection {
    return { link, frames: new FrameDecoder(FRAME_BYTES_MAX), greeted: false };
  }

  receive(connection: DeceivedConnection, chunk: Buffer): void {
    if (connection.greeted) return; // Whatever else is asked is not answered.
    const frame = this.#frameOf(connection, chunk);
    if (!frame) return;
    connection.greeted = true;
    const { sessionId } = Connect.read(new JuteReader(frame));
    const isOver = this.#timeoutMs === 0;
    connection.link.write(
      framed((out) =>
        Connected.write(out, {
          protocolVersion: 0,
          timeOut: this.#timeoutMs,
          sessionId: isOver ? 0n : sessionId || 1n,
          passwd: Buffer.alloc(SESSION_PASSWORD_BYTES),
          readOnly: false,
        }),
      ),
    );
    if (isOver) connection.link.end();
  }

  #frameOf({ link, frames }: DeceivedConnection, chunk: Buffer): Buffer | undefined {
    try {
      return frames.push(chunk)[0];
    } catch {
      link.destroy(); // A four-letter word.
      return undefined;
    }
  }

  closed(): void {}
  drained(): void {}
  stepped(): void {}
}
