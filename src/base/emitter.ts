type Listener<T> = (event: T) => unknown;

/**
 * Typed events whose listeners cannot hurt the emitter or each other.
 *
 * A listener runs in a microtask of its own, never inside the code that emits; what it throws, or rejects
 * with, goes to `onListenerError`. Listeners of one event run in the order they were added, events in the
 * order they were emitted.
 */
export class Emitter<Events extends object> {
  readonly #listeners = new Map<keyof Events, Set<Listener<never>>>();
  readonly #onListenerError: (error: unknown, name: keyof Events) => void;

  constructor(onListenerError: (error: unknown, name: keyof Events) => void) {
    this.#onListenerError = onListenerError;
  }

  /** Adds a listener and returns the function that removes it. */
  on<K extends keyof Events>(name: K, listener: Listener<Events[K]>): () => void {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners.add(listener));
    return () => this.off(name, listener);
  }

  off<K extends keyof Events>(name: K, listener: Listener<Events[K]>): void {
    const listeners = this.#listeners.get(name);
    if (listeners?.delete(listener) && listeners.size === 0) this.#listeners.delete(name);
  }

  /** Whether there is a listener of any event. */
  get hasListeners(): boolean {
    return this.#listeners.size > 0;
  }

  /** Whether anybody listens: what nobody hears needs not be put together. */
  isHeard(name: keyof Events): boolean {
    return this.#listeners.has(name);
  }

  emit<K extends keyof Events>(name: K, event: Events[K]): void {
    const listeners = this.#listeners.get(name);
    if (!listeners) return;
    for (const listener of [...listeners]) {
      runSafely(listener as Listener<Events[K]>, event, (error) => this.#onListenerError(error, name));
    }
  }

  removeAll(): void {
    this.#listeners.clear();
  }
}

/** Runs foreign code in a microtask; what it throws or rejects with goes to `onError` and no further. */
export function runSafely<T>(run: (value: T) => unknown, value: T, onError: (error: unknown) => void): void {
  queueMicrotask(() => {
    try {
      const result = run(value);
      if (result instanceof Promise) result.catch(onError);
    } catch (error) {
      onError(error);
    }
  });
}
