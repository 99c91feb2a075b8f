const COMPACT_AFTER = 1024;

/** What stands where an item was removed from the middle. */
const REMOVED = Symbol('removed');

/**
 * A first-in-first-out queue with O(1) ends; `Array.shift` moves every element once a queue is long.
 *
 * Removing from the middle is O(1) too, on average: the first removal notes where every item stands, which is kept until
 * the queue is empty, and removed items leave a gap that is closed when there are as many gaps as items. A queue from
 * which nothing is removed pays nothing for that. No item may be in it twice.
 */
export class Fifo<T> {
  #items: (T | typeof REMOVED)[] = [];
  /** Where the first item stands; never a gap. */
  #head = 0;
  #gapCount = 0;
  /** How many items have been cut off in front of `#items[0]`: positions stay valid when the front is cut off. */
  #cutCount = 0;
  /** The position of each item, counted from the first that ever was; undefined until an item is removed. */
  #positions: Map<T, number> | undefined;

  get length(): number {
    return this.#items.length - this.#head - this.#gapCount;
  }

  first(): T | undefined {
    return this.#items[this.#head] as T | undefined;
  }

  push(item: T): void {
    this.#positions?.set(item, this.#cutCount + this.#items.length);
    this.#items.push(item);
  }

  shift(): T | undefined {
    if (this.#head === this.#items.length) return undefined;
    const item = this.#items[this.#head] as T;
    this.#positions?.delete(item);
    this.#items[this.#head++] = undefined as T;
    this.#skipGaps();
    return item;
  }

  /** Takes everything out, in order. */
  drain(): T[] {
    const items = this.#list();
    this.#reset([]);
    return items;
  }

  /** Puts items before everything else, keeping their order. */
  prepend(items: readonly T[]): void {
    this.#reset([...items, ...this.#list()]);
  }

  /** Removes one item wherever it is; false if it is not in the queue. */
  remove(item: T): boolean {
    const position = this.#positionsNow().get(item);
    if (position === undefined) return false;
    this.#positions!.delete(item);
    this.#items[position - this.#cutCount] = REMOVED;
    this.#gapCount++;
    this.#skipGaps();
    if (this.#gapCount > COMPACT_AFTER && this.#gapCount > this.length) this.#reset(this.#list());
    return true;
  }

  #positionsNow(): Map<T, number> {
    if (!this.#positions) {
      this.#positions = new Map();
      for (let index = this.#head; index < this.#items.length; index++) {
        this.#positions.set(this.#items[index] as T, this.#cutCount + index);
      }
    }
    return this.#positions;
  }

  #skipGaps(): void {
    while (this.#gapCount > 0 && this.#items[this.#head] === REMOVED) {
      this.#items[this.#head++] = undefined as T;
      this.#gapCount--;
    }
    if (this.#head === this.#items.length) this.#reset([]);
    else if (this.#head >= COMPACT_AFTER && this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#cutCount += this.#head;
      this.#head = 0;
    }
  }

  #list(): T[] {
    const items = this.#items.slice(this.#head);
    return (this.#gapCount === 0 ? items : items.filter((item) => item !== REMOVED)) as T[];
  }

  #reset(items: T[]): void {
    this.#items = items;
    this.#head = 0;
    this.#gapCount = 0;
    this.#cutCount = 0;
    this.#positions = undefined;
  }
}
