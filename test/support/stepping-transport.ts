import { systemRandom } from '../../src/base/random.ts';
import { TcpTransport } from '../../src/client/tcp-transport.ts';
import type { Link, LinkHandlers, Transport } from '../../src/client/transport.ts';
import { FrameDecoder } from '../../src/protocol/frame-decoder.ts';

/**
 * The real transport, one step at a time: every write that goes out is a step, and so is every single frame that comes
 * in, each in a turn of the event loop of its own. Something can be made to happen at a given step.
 */
export class SteppingTransport implements Transport {
  readonly #inner = new TcpTransport({ random: systemRandom });
  #stepCount = 0;
  #unanswered = 0;
  #onStep: ((step: number) => void) | undefined;
  #isSilent = false;
  /** What was written, and came in, while it was silent. */
  #held: (() => void)[] = [];

  /** Counts from 0 again; `onStep` is called right after each step, before what follows from it. */
  watch(onStep: (step: number) => void): void {
    this.#stepCount = 0;
    this.#onStep = onStep;
  }

  /** From now on nothing goes out and nothing comes in, though the connection stays. */
  silence(): void {
    this.#isSilent = true;
  }

  /** What was held back goes on, in order. */
  speak(): void {
    this.#isSilent = false;
    const held = this.#held;
    this.#held = [];
    for (const run of held) run();
  }

  get isSilent(): boolean {
    return this.#isSilent;
  }

  /** Whether every request has its answer: the next step can only be a new request or an event. */
  get idle(): boolean {
    return this.#unanswered === 0;
  }

  dial(server: Parameters<Transport['dial']>[0], handlers: LinkHandlers): Link {
    const incoming = new FrameDecoder(2 ** 26);
    const outgoing = new FrameDecoder(2 ** 26);
    const waiting: (() => void)[] = [];
    let greeted = false;
    let asksWord = false;
    let ended = false;
    // One at a time, so that what a frame sets off is over before the next one is seen.
    const next = () => {
      if (this.#isSilent) return void this.#held.push(next);
      if (!ended) waiting[0]!();
      waiting.shift();
      if (waiting.length > 0) setImmediate(next);
    };
    const inTurn = (deliver: () => void) => {
      if (waiting.push(deliver) === 1) setImmediate(next);
    };
    const link = this.#inner.dial(server, {
      opened: () => handlers.opened(),
      received: (chunk) => {
        if (asksWord) return handlers.received(chunk);
        for (const frame of incoming.push(Buffer.from(chunk))) {
          const bytes = Buffer.alloc(4 + frame.byteLength);
          bytes.writeInt32BE(frame.byteLength);
          frame.copy(bytes, 4);
          const answers = greeted && frame.readInt32BE(0) > 0;
          greeted = true; // The answer to the connect request has no number.
          inTurn(() => {
            if (answers) this.#unanswered--;
            handlers.received(bytes);
            this.#step();
          });
        }
      },
      closed: (error) => inTurn(() => handlers.closed(error)),
    });
    const write = (bytes: Buffer) => {
      if (this.#isSilent) {
        const copy = Buffer.from(bytes);
        return void this.#held.push(() => write(copy));
      }
      // A four-letter word is asked on a connection of its own, and has no frames.
      asksWord ||= !greeted && bytes.byteLength === 4;
      if (asksWord) return link.write(bytes);
      const frames = outgoing.push(Buffer.from(bytes));
      this.#unanswered += frames.filter((frame) => greeted && frame.readInt32BE(0) > 0).length;
      link.write(bytes);
      this.#step();
    };
    return {
      write,
      destroy: () => {
        ended = true;
        link.destroy();
      },
    };
  }

  #step(): void {
    this.#onStep?.(this.#stepCount++);
  }
}
