/** A lock, or what stands for several sides of one. */
type LockObject = object;

/**
 * The lock objects of one connection: the same parts give the same object for as long as anything refers to it.
 *
 * The registry itself keeps an object only while a listener is registered on it, since a program that has only the
 * listener must hear of the lock again. A holder keeps its lock by the hold that its session knows of, one that waits by
 * the answer that it waits for, and the program by its variables. An object that nothing refers to has no state that is
 * missed: what it knew of its folder costs one list to find out again.
 */
export class LockRegistry {
  readonly #objects = new Map<string, WeakRef<LockObject>>();
  readonly #listenedTo = new Set<LockObject>();
  readonly #collected = new FinalizationRegistry<string>((key) => {
    // A new object may have been made for the key before this was called.
    if (this.#objects.get(key)?.deref() === undefined) this.#objects.delete(key);
  });

  /** How many keys have an entry; those of objects that were collected go soon after. */
  get size(): number {
    return this.#objects.size;
  }

  /** The object of these parts, made if there is none. Lists of parts that differ have different keys. */
  get<T extends LockObject>(parts: readonly string[], make: () => T): T {
    const key = JSON.stringify(parts);
    const present = this.#objects.get(key)?.deref() as T | undefined;
    if (present) return present;
    const made = make();
    this.#objects.set(key, new WeakRef(made));
    this.#collected.register(made, key);
    return made;
  }

  /** From now on, or no longer, a listener is registered on the object. */
  setListenedTo(object: LockObject, isListenedTo: boolean): void {
    if (isListenedTo) this.#listenedTo.add(object);
    else this.#listenedTo.delete(object);
  }
}
