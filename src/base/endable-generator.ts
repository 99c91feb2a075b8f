/** What ends the code of a generator whose caller has called `return` or `throw`; never seen by a caller. */
const ENDED = Symbol('ended');

/**
 * An async generator whose `return` ends at once a `next` that still waits. A plain async generator queues `return`
 * behind the `next` that waits, which may be for ever.
 *
 * `make` is given a signal that fires on `return` and `throw`: whatever the generator awaits must be given up by it.
 */
export function endableGenerator<T>(
  make: (ended: AbortSignal) => AsyncGenerator<T, void, void>,
): AsyncGenerator<T, void, void> {
  return new EndableGenerator(make);
}

class EndableGenerator<T> implements AsyncGenerator<T, void, void> {
  readonly #ending = new AbortController();
  readonly #inner: AsyncGenerator<T, void, void>;

  constructor(make: (ended: AbortSignal) => AsyncGenerator<T, void, void>) {
    this.#inner = make(this.#ending.signal);
  }

  async next(): Promise<IteratorResult<T, void>> {
    try {
      return await this.#inner.next();
    } catch (error) {
      if (error !== ENDED) throw error;
      return { value: undefined, done: true };
    }
  }

  async return(): Promise<IteratorResult<T, void>> {
    this.#ending.abort(ENDED);
    await this.#inner.return().catch(() => {}); // What ended it is `return` itself.
    return { value: undefined, done: true };
  }

  async throw(error: unknown): Promise<never> {
    await this.return();
    throw error;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }
}
