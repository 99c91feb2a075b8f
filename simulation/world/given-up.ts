import { FrameDecoder } from '../../src/protocol/frame-decoder.ts';
import { operations } from '../../src/protocol/operations.ts';

const MAKING: ReadonlySet<number> = new Set(
  [operations.create, operations.create2, operations.multi].map(({ opcode }) => opcode),
);
const FRAME_BYTES_MAX = 2 ** 24;
/** A four-letter word is asked on a connection of its own, and has no frames. */
const WORD_BYTES = 4;
const REASON = /"reason":"([^"]+)"/g;

/**
 * Looks at what clients send: no request makes a node for an attempt that had been given up before. Which attempt a
 * node is for is in its data, as the reason why the lock is wanted.
 */
export class GivenUpAttempts {
  /** With what was happening then: what had been asked for leaves when that is over. */
  readonly #givenUp = new Map<string, number>();
  readonly #found: (attempt: string) => void;

  constructor(found: (attempt: string) => void) {
    this.#found = found;
  }

  add(attempt: string, stepCount: number): void {
    this.#givenUp.set(attempt, stepCount);
  }

  /** Looks at all that is written to one connection, whose first frame is the connect request. */
  watcher(): (bytes: Buffer, stepCount: number) => void {
    const frames = new FrameDecoder(FRAME_BYTES_MAX);
    let isFirst = true;
    let isWord = false;
    return (bytes, stepCount) => {
      isWord ||= isFirst && bytes.byteLength === WORD_BYTES;
      if (isWord) return;
      for (const frame of frames.push(Buffer.from(bytes))) {
        if (!isFirst && MAKING.has(frame.readInt32BE(4))) this.#check(frame, stepCount);
        isFirst = false;
      }
    };
  }

  #check(frame: Buffer, stepCount: number): void {
    for (const [, attempt] of frame.toString('latin1').matchAll(REASON)) {
      const givenUpAt = this.#givenUp.get(attempt!);
      if (givenUpAt !== undefined && givenUpAt < stepCount) this.#found(attempt!);
    }
  }
}
