import type { Follower } from './neighbours.ts';

const NOBODY: readonly Follower[] = [];

/**
 * Whom a place has told that it was let go of.
 *
 * Those ahead ask for it as long as the server has not heard that they have left. Then it is forgotten: the places of a
 * lock that is handed on would otherwise be a chain, each leading to the next, of which an old one keeps all later ones
 * alive until a full collection.
 */
export class Succession {
  #heirs: readonly Follower[] | undefined;
  /** Those ahead who have told this one, and may ask whom this one has told. */
  #askedByCount = 0;
  #isSettled = false;

  /** Undefined before the place is left. */
  get heirs(): readonly Follower[] | undefined {
    return this.#heirs;
  }

  /** The one ahead, of the same process, has let go. */
  begin(): void {
    this.#askedByCount++;
  }

  /** The place is left, to these. */
  passTo(heirs: readonly Follower[]): void {
    this.#heirs = heirs;
  }

  /** The place is gone, or nothing more is tried. */
  settle(): void {
    this.#isSettled = true;
    // Step by step, not by recursion: while a server is out of reach, a chain of hand-overs has no bound.
    const free = [...this.#forget()];
    for (let follower = free.pop(); follower; follower = free.pop()) free.push(...follower.aheadSettled());
  }

  /** One ahead asks no more. Returns for whom that holds then, too. */
  aheadSettled(): readonly Follower[] {
    this.#askedByCount--;
    return this.#forget();
  }

  #forget(): readonly Follower[] {
    if (this.#askedByCount > 0 || !this.#isSettled) return NOBODY;
    const heirs = this.#heirs ?? NOBODY;
    this.#heirs = NOBODY;
    return heirs;
  }
}
