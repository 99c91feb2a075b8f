/** Most paths have one entry, which then needs no set of its own: it halves the memory of a watch. */
type Entries<T> = T | Set<T>;

/** Sets of entries (watchers, requested watches) by path. */
export class PathTable<T extends object> {
  readonly #entries = new Map<string, Entries<T>>();

  get pathCount(): number {
    return this.#entries.size;
  }

  has(path: string): boolean {
    return this.#entries.has(path);
  }

  paths(): IterableIterator<string> {
    return this.#entries.keys();
  }

  /** False if it was there already. */
  add(path: string, entry: T): boolean {
    const present = this.#entries.get(path);
    if (present === entry) return false;
    if (present === undefined) this.#entries.set(path, entry);
    else if (!(present instanceof Set)) this.#entries.set(path, new Set([present, entry]));
    else if (present.has(entry)) return false;
    else present.add(entry);
    return true;
  }

  includes(path: string, entry: T): boolean {
    const present = this.#entries.get(path);
    return present === entry || (present instanceof Set && present.has(entry));
  }

  remove(path: string, entry: T): boolean {
    const present = this.#entries.get(path);
    if (present === entry) return this.#entries.delete(path);
    if (!(present instanceof Set) || !present.delete(entry)) return false;
    if (present.size === 0) this.#entries.delete(path);
    return true;
  }

  collect(path: string, into: Set<T>): void {
    const present = this.#entries.get(path);
    if (present instanceof Set) for (const entry of present) into.add(entry);
    else if (present !== undefined) into.add(present);
  }

  take(path: string, into: Set<T>): void {
    this.collect(path, into);
    this.#entries.delete(path);
  }

  of(path: string): ReadonlySet<T> {
    const found = new Set<T>();
    this.collect(path, found);
    return found;
  }
}
