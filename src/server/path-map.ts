const PART_COUNT = 16;

/**
 * A map by path, in parts. A `Map` that outgrows its room is made anew as a whole, which takes a million entries tens
 * of milliseconds at once; the parts outgrow theirs one after the other, and each is a sixteenth of that.
 */
export class PathMap<V> implements Iterable<[string, V]> {
  readonly #parts: readonly Map<string, V>[] = Array.from({ length: PART_COUNT }, () => new Map<string, V>());
  #size = 0;

  constructor(entries: Iterable<readonly [string, V]> = []) {
    for (const [path, value] of entries) this.set(path, value);
  }

  get size(): number {
    return this.#size;
  }

  get(path: string): V | undefined {
    return this.#part(path).get(path);
  }

  has(path: string): boolean {
    return this.#part(path).has(path);
  }

  set(path: string, value: V): void {
    const part = this.#part(path);
    const before = part.size;
    part.set(path, value);
    this.#size += part.size - before;
  }

  delete(path: string): void {
    if (this.#part(path).delete(path)) this.#size--;
  }

  *keys(): IterableIterator<string> {
    for (const part of this.#parts) yield* part.keys();
  }

  /** As a map's own walk, it goes on through changes: what is deleted is passed over, what is added may be. */
  *[Symbol.iterator](): IterableIterator<[string, V]> {
    for (const part of this.#parts) yield* part;
  }

  /** By the end, in which the names of a folder differ. */
  #part(path: string): Map<string, V> {
    const { length } = path;
    const last = length > 0 ? path.charCodeAt(length - 1) : 0;
    const beforeLast = length > 1 ? path.charCodeAt(length - 2) : 0;
    return this.#parts[(length + 7 * last + 31 * beforeLast) % PART_COUNT]!;
  }
}
