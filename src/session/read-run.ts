import { isGatherable } from './gathered-reads.ts';
import type { SessionRequest } from './session-request.ts';

/**
 * Reads in one request. A server does all of one request before it looks at the next, so this is also how long others
 * may have to wait behind it; what a request costs by itself is spread thin enough by 32.
 */
export const GATHERED_READS_MAX = 32;
/** So many reads behind each other in one tick are worth asking the server's version for: a connection of its own. */
export const CROWD_READS = 8;
/**
 * How long the answer to gathered reads may be expected to get. Far below what a client reads (64 MiB) or the embedded
 * server sends (3 MiB), because the next answers can be longer than the last ones.
 */
const ANSWER_BYTES = 1024 * 1024;
/** How much of the length of an answer is still held against the reads one answer later. */
const REMEMBERED = 0.95;
/** What a read takes in a request besides its path, and a request besides its reads. */
const READ_BYTES = 9 + 4 + 1;
const REQUEST_BYTES = 8 + 9;
/** The most that one unit of a string takes in UTF-8. */
const UTF8_BYTES_MAX = 3;

/** The reads of this tick that stand directly behind each other, and have not been encoded yet. */
export class ReadRun {
  readonly #pathLengthMax: number;
  readonly #answerBytes: number;
  #reads: SessionRequest[] = [];
  #startedAtMs = 0;
  #crowdCount = 0;
  #answeredBytes = 0;
  /** Whether reads may be gathered: only a server that is known to understand it may be sent a `multiRead`. */
  gathering = false;
  /** Whether so many reads stood behind each other in a tick that gathering them would have been worth it. */
  sawCrowd = false;

  constructor(requestBytesMax: number, replyBytesMax: number) {
    // So that no run is longer than a request may be, and none has to be measured.
    const readBytesMax = (requestBytesMax - REQUEST_BYTES) / GATHERED_READS_MAX;
    this.#pathLengthMax = (readBytesMax - READ_BYTES) / UTF8_BYTES_MAX;
    this.#answerBytes = Math.min(ANSWER_BYTES, replyBytesMax / 4);
  }

  get length(): number {
    return this.#reads.length;
  }

  get isFull(): boolean {
    return this.#reads.length >= Math.min(GATHERED_READS_MAX, this.#answerBytes / this.#answeredBytes);
  }

  get startedAtMs(): number {
    return this.#startedAtMs;
  }

  /** Takes a read on, if it can be gathered: one that is repeated cannot, since it may be what went wrong. */
  take(request: SessionRequest, nowMs: number): boolean {
    if (!isGatherable(request) || request.attemptCount > 0 || this.#isLong(request)) {
      this.#crowdCount = 0;
      return false;
    }
    if (++this.#crowdCount >= CROWD_READS) this.sawCrowd = true;
    if (!this.gathering) return false;
    if (this.#reads.length === 0) this.#startedAtMs = nowMs;
    this.#reads.push(request);
    return true;
  }

  /** Ends the run, and hands out what is in it. */
  end(): SessionRequest[] {
    const reads = this.#reads;
    this.#reads = [];
    return reads;
  }

  /** The next read stands behind something else, or in another tick. */
  interrupted(): void {
    this.#crowdCount = 0;
  }

  /** An answer to so many reads was this long: what to expect of the next ones. */
  answered(bytes: number, readCount: number): void {
    this.#answeredBytes = Math.max(bytes / readCount, this.#answeredBytes * REMEMBERED);
  }

  /** Gathered reads were refused as a whole, perhaps for the length of their answer: fewer at once, for a while. */
  refused(): void {
    this.#answeredBytes = this.#answerBytes;
  }

  #isLong({ record }: SessionRequest): boolean {
    return (record as { readonly path: string }).path.length > this.#pathLengthMax;
  }
}
