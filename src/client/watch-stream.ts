import { type Deferred, deferred } from '../base/deferred.ts';
import type { WatchEvent } from '../session/watch-registry.ts';

/** Events that nobody has taken yet: beyond this, the reader is told of a gap instead. */
export const BUFFERED_EVENTS_MAX = 10_000;

/**
 * Turns pushed events into an async iterator. A reader that falls behind by more than the limit finds the
 * backlog replaced by one `watch-gap`: it must look again, as after a reconnect, and memory stays bounded.
 */
export class WatchStream implements AsyncIterableIterator<WatchEvent> {
  readonly #bufferedMax: number;
  readonly #path: string;
  readonly #stop: () => Promise<void>;
  #buffer: WatchEvent[] = [];
  #waiting: Deferred<IteratorResult<WatchEvent, undefined>> | undefined;
  #end: { readonly error: unknown } | 'done' | undefined;

  constructor(path: string, bufferedMax: number, stop: () => Promise<void>) {
    this.#path = path;
    this.#bufferedMax = bufferedMax;
    this.#stop = stop;
  }

  push(event: WatchEvent): void {
    if (this.#end) return;
    if (event.type === 'session-lost') return this.fail(event.error);
    if (this.#waiting) {
      this.#waiting.resolve({ value: event, done: false });
      this.#waiting = undefined;
    } else if (this.#buffer.length >= this.#bufferedMax) {
      this.#buffer = [{ type: 'watch-gap', path: this.#path }];
    } else {
      this.#buffer.push(event);
    }
  }

  /** Ends the stream with an error, once what is buffered has been read. */
  fail(error: unknown): void {
    if (this.#end) return;
    this.#end = { error };
    this.#waiting?.reject(error);
    this.#waiting = undefined;
  }

  async next(): Promise<IteratorResult<WatchEvent, undefined>> {
    const event = this.#buffer.shift();
    if (event) return { value: event, done: false };
    if (this.#end === 'done') return { value: undefined, done: true };
    if (this.#end) {
      const { error } = this.#end;
      this.#end = 'done';
      throw error;
    }
    this.#waiting = deferred();
    return this.#waiting.promise;
  }

  async return(): Promise<IteratorResult<WatchEvent, undefined>> {
    const ended = this.#end;
    this.#end = 'done';
    this.#buffer = [];
    this.#waiting?.resolve({ value: undefined, done: true });
    this.#waiting = undefined;
    if (!ended) await this.#stop();
    return { value: undefined, done: true };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }
}
