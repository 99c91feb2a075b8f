import { ifAborted, orAbort } from '../base/abort.ts';
import { type Deferred, deferred } from '../base/deferred.ts';
import { endableGenerator } from '../base/endable-generator.ts';
import type { AddWatchMode } from '../protocol/constants.ts';
import type { WatchEvent } from '../session/watch-registry.ts';
import { checkEventsOptions, type EventsOptions, type RequestOptions } from './request-options.ts';

/** Events that nobody has taken yet: beyond this, the reader is told of a gap instead. */
const BUFFERED_EVENTS_MAX = 10_000;

/**
 * Turns pushed events into an async iterator. A reader that falls behind by more than the limit finds the
 * backlog replaced by one `watch-gap`: it must look again, as after a reconnect, and memory stays bounded.
 */
class WatchStream implements AsyncIterableIterator<WatchEvent> {
  readonly #bufferedMax: number;
  readonly #path: string;
  #buffer: WatchEvent[] = [];
  #waiting: Deferred<IteratorResult<WatchEvent, undefined>> | undefined;
  #end: { readonly error: unknown } | 'done' | undefined;

  constructor(path: string, bufferedMax: number) {
    this.#path = path;
    this.#bufferedMax = bufferedMax;
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
    if (event.type === 'watch-removed') this.#end = 'done'; // No further event will come.
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

  /** Ends the stream, and a `next` that waits, at once. */
  async return(): Promise<IteratorResult<WatchEvent, undefined>> {
    this.#end = 'done';
    this.#buffer = [];
    this.#waiting?.resolve({ value: undefined, done: true });
    this.#waiting = undefined;
    return { value: undefined, done: true };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }
}

/** What a stream of events needs of a client. */
interface WatchingClient {
  addWatch(
    path: string,
    mode: AddWatchMode,
    listener: (event: WatchEvent) => void,
    options: RequestOptions,
  ): Promise<{ remove(): Promise<void> }>;
}

/** The events of a persistent watch, which is removed when the iteration ends, however it ends. */
export function watchEvents(
  zk: WatchingClient,
  path: string,
  options: EventsOptions,
): AsyncGenerator<WatchEvent, void, void> {
  checkEventsOptions(options);
  return endableGenerator((ended) => streaming(zk, path, options, ended));
}

async function* streaming(
  zk: WatchingClient,
  path: string,
  { mode = 'persistent', bufferedMax = BUFFERED_EVENTS_MAX, signal, ...bounds }: EventsOptions,
  ended: AbortSignal,
): AsyncGenerator<WatchEvent, void, void> {
  signal?.throwIfAborted();
  const stream = new WatchStream(path, bufferedMax);
  const adding = zk.addWatch(path, mode, (event) => stream.push(event), bounds);
  const stopListening = [
    ifAborted(signal, () => stream.fail(signal!.reason)),
    ifAborted(ended, () => void stream.return()),
  ];
  try {
    await orAbort(adding, signal, ended);
    yield* stream;
  } finally {
    for (const stop of stopListening) stop();
    // Behind its setting, which may not have been answered yet. Not awaited: a server may never answer.
    adding.then((watch) => watch.remove()).catch(() => {});
  }
}
