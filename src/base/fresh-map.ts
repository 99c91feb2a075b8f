/** Copied after at least so many additions. */
const ADDITIONS_MIN = 16;
/** A map that is larger is not copied: it seldom needs another table. */
const SIZE_MAX = 4_096;

/**
 * A map of few keys that come and go many thousand times a second.
 *
 * Deletions leave holes in a `Map`, and when it is full of them it goes on in another table. Each table points to the
 * next: one that has grown old keeps all later ones alive, with whatever was in them, until a full collection. So this
 * one goes on in another map before that, to which nothing leads from the old one.
 */
export class FreshMap<K, V> {
  #map = new Map<K, V>();
  #additionsLeft = ADDITIONS_MIN;

  get size(): number {
    return this.#map.size;
  }

  has(key: K): boolean {
    return this.#map.has(key);
  }

  get(key: K): V | undefined {
    return this.#map.get(key);
  }

  set(key: K, value: V): void {
    if (--this.#additionsLeft < 0) this.#renew();
    this.#map.set(key, value);
  }

  delete(key: K): boolean {
    return this.#map.delete(key);
  }

  #renew(): void {
    const { size } = this.#map;
    this.#additionsLeft = Math.max(ADDITIONS_MIN, size);
    if (size <= SIZE_MAX) this.#map = new Map(this.#map);
  }
}
