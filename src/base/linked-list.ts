/** The place of one item in a list. */
export interface Link<T> {
  readonly item: T;
  /** Takes it out; false if it was out already. */
  remove(): boolean;
}

/**
 * Items in the order in which they were added, each of which can be taken out in no time.
 *
 * For what comes and goes many thousand times a second. A `Set` of that makes table after table, each of which points to
 * the next: one that has grown old keeps all later ones alive, with whatever was in them, until a full collection.
 */
export class LinkedList<T> {
  readonly #ends = new ListLink<T>(undefined as T);

  get first(): Link<T> | undefined {
    const { later } = this.#ends;
    return later === this.#ends ? undefined : later;
  }

  add(item: T): Link<T> {
    const link = new ListLink(item);
    link.insertBefore(this.#ends);
    return link;
  }

  /** Takes all of them out, in order. */
  drain(): T[] {
    const items: T[] = [];
    for (let link = this.first; link; link = this.first) {
      items.push(link.item);
      link.remove();
    }
    return items;
  }
}

/** In a ring: what stands for both ends, and each item's. One that is out leads to itself only. */
class ListLink<T> implements Link<T> {
  readonly item: T;
  earlier: ListLink<T> = this;
  later: ListLink<T> = this;

  constructor(item: T) {
    this.item = item;
  }

  insertBefore(other: ListLink<T>): void {
    this.earlier = other.earlier;
    this.later = other;
    this.earlier.later = this;
    other.earlier = this;
  }

  remove(): boolean {
    if (this.later === this) return false;
    this.earlier.later = this.later;
    this.later.earlier = this.earlier;
    this.earlier = this;
    this.later = this;
    return true;
  }
}
