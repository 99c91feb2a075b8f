const COMPACT_AFTER = 1024;

/** A first-in-first-out queue with O(1) ends; `Array.shift` moves every element once a queue is long. */
export class Fifo<T> {
  #items: T[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  first(): T | undefined {
    return this.#items[this.#head];
  }

  push(item: T): void {
    this.#items.push(item);
  }

  shift(): T | undefined {
    if (this.#head === this.#items.length) return undefined;
    const item = this.#items[this.#head] as T;
    this.#items[this.#head++] = undefined as T;
    if (this.#head === this.#items.length) {
      this.#items = [];
      this.#head = 0;
    } else if (this.#head >= COMPACT_AFTER && this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  /** Takes everything out, in order. */
  drain(): T[] {
    const items = this.#items.slice(this.#head);
    this.#items = [];
    this.#head = 0;
    return items;
  }

  /** Puts items before everything else, keeping their order. */
  prepend(items: readonly T[]): void {
    this.#items = [...items, ...this.drain()];
  }

  /** Removes one item wherever it is; O(n), for the rare request that is given up while queued. */
  remove(item: T): boolean {
    const index = this.#items.indexOf(item, this.#head);
    if (index < 0) return false;
    this.#items.splice(index, 1);
    return true;
  }
}
