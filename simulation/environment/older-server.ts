import type { Clock } from '../../src/base/clock.ts';
import type { Random } from '../../src/base/random.ts';
import { FrameDecoder } from '../../src/protocol/frame-decoder.ts';
import { Connect } from '../../src/protocol/handshake.ts';
import { JuteReader } from '../../src/protocol/jute-reader.ts';
import type { Peer, ServerConnection, ServerLink } from '../../src/server/server-connection.ts';
import { ServerCore } from '../../src/server/server-core.ts';
import type { ServerLimits } from '../../src/server/server-limits.ts';
import { Ticker } from '../../src/server/ticker.ts';
import { framed } from './sasl-gate.ts';
import type { SimulatedListener } from './simulated-network.ts';

const FRAME_BYTES_MAX = 4 * 1024 * 1024;
/** How much earlier its history ends. */
const OLDER_MS = 1_000_000;

interface OlderConnection {
  readonly inner: ServerConnection;
  readonly frames: FrameDecoder;
  greeted: boolean;
}

/** A server of another ensemble, which is behind: as after a restore from a backup, or a mistake in a list of servers. */
export class OlderServer implements SimulatedListener {
  readonly #core: ServerCore;
  readonly #ticker: Ticker;
  readonly #looks: boolean;

  /** `looks`: it turns away clients that have seen more than it knows, as ZooKeeper does and others do not. */
  constructor({ clock, random, limits, looks }: OlderServerOptions) {
    const earlier: Clock = {
      nowMs: () => clock.nowMs(),
      wallMs: () => clock.wallMs() - OLDER_MS,
      at: (atMs, run) => clock.at(atMs, run),
      endOfTick: (run) => clock.endOfTick(run),
      afterTick: (run) => clock.afterTick(run),
      afterInput: (run) => clock.afterInput(run),
    };
    this.#core = new ServerCore({ clock: earlier, random, limits });
    this.#ticker = new Ticker(this.#core, clock);
    this.#looks = looks;
  }

  stop(): void {
    this.#ticker.stop();
  }

  accept(link: ServerLink, peer: Peer): OlderConnection | undefined {
    const inner = this.#core.accept(link, peer);
    return inner && { inner, frames: new FrameDecoder(FRAME_BYTES_MAX), greeted: false };
  }

  receive(connection: OlderConnection, chunk: Buffer): void {
    if (this.#looks || connection.greeted) return this.#core.receive(connection.inner, chunk);
    const [frame] = this.#framesOf(connection, chunk);
    if (!frame) return;
    connection.greeted = true; // A client sends nothing behind its handshake before that is answered.
    const request = { ...Connect.read(new JuteReader(frame)), lastZxidSeen: 0n };
    this.#core.receive(
      connection.inner,
      framed((out) => Connect.write(out, request)),
    );
  }

  #framesOf(connection: OlderConnection, chunk: Buffer): Buffer[] {
    try {
      return connection.frames.push(chunk);
    } catch {
      connection.greeted = true; // A four-letter word.
      this.#core.receive(connection.inner, chunk);
      return [];
    }
  }

  closed(connection: OlderConnection): void {
    this.#core.closed(connection.inner);
  }

  drained(connection: OlderConnection): void {
    this.#core.drained(connection.inner);
  }

  stepped(): void {
    this.#ticker.arm();
  }
}

interface OlderServerOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly limits: Partial<ServerLimits>;
  readonly looks: boolean;
}
