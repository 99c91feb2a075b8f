import { orAbort } from '../base/abort.ts';

interface Look<T> {
  readonly controller: AbortController;
  readonly promise: Promise<T>;
  askerCount: number;
}

/** Looks at names, where all who ask for one name at a time share one look. It is given up with the last of them. */
export class SharedLooks<T> {
  readonly #looks = new Map<string, Look<T>>();

  async of(name: string, signal: AbortSignal, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    let look = this.#looks.get(name);
    if (!look) {
      const controller = new AbortController();
      look = { controller, promise: run(controller.signal), askerCount: 0 };
      this.#looks.set(name, look);
      look.promise.catch(() => {}); // Those who asked may have gone.
    }
    look.askerCount++;
    try {
      return await orAbort(look.promise, signal);
    } finally {
      if (--look.askerCount === 0) {
        this.#looks.delete(name);
        look.controller.abort();
      }
    }
  }
}
