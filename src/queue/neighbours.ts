import type { Clock } from '../base/clock.ts';
import { FreshMap } from '../base/fresh-map.ts';
import type { Departure } from './lock-queue.ts';

/** After so many in one go others get a look in: timers, sockets, heartbeats. */
const IN_ONE_GO_MAX = 64;

/** One who waits behind a place of its own process. */
export interface Follower {
  /** Of its own node. */
  readonly path: string;
  /** The one ahead has left. */
  departed(departure: Departure): void;
  /** Its own node turned out to be gone. */
  evict(): void;
  /** Whom it has told in turn, once it has left; undefined before. */
  heirs(): readonly Follower[] | undefined;
  /** The one ahead, who told it, asks for them no more. Returns of whom that is true by this, too. */
  aheadSettled(): readonly Follower[];
}

/** Of those who were told, and whom they have told since: who has not left yet. */
export function remainingOf(told: readonly Follower[]): readonly Follower[] {
  let remaining = told;
  // Step by step, not by recursion: while a server is out of reach, a chain of hand-overs has no bound.
  while (remaining.some((follower) => follower.heirs() !== undefined)) {
    remaining = remaining.flatMap((follower) => follower.heirs() ?? [follower]);
  }
  return remaining;
}

/**
 * The places that one process has in queues. Of two next to each other, the second is told by the first, without a
 * server between them: names are unique, and only who has a place can say that it is let go of.
 */
export class Neighbours {
  /** By the name of the place that they are behind. */
  readonly #followers = new FreshMap<string, Set<Follower> | undefined>();
  #inOneGo = 0;

  /** A place was taken. */
  arrive(name: string): void {
    this.#followers.set(name, undefined);
  }

  /** Tells the follower when the place is left; undefined if it is none of this process, or is left already. */
  follow(name: string, follower: Follower): (() => void) | undefined {
    let followers = this.#followers.get(name);
    if (!followers) {
      if (!this.#followers.has(name)) return undefined;
      followers = new Set();
      this.#followers.set(name, followers);
    }
    followers.add(follower);
    return () => void followers.delete(follower);
  }

  /** Something to wait for before a place is left that others are behind, where many have been left in one go. */
  pause(name: string, clock: Clock): Promise<void> | undefined {
    if (!this.#followers.get(name)?.size) return undefined;
    if (this.#inOneGo++ === 0) {
      clock.afterInput(() => {
        this.#inOneGo = 0;
      });
    }
    return this.#inOneGo > IN_ONE_GO_MAX ? new Promise((resolve) => clock.afterInput(resolve)) : undefined;
  }

  /** A place is left: `released` by its holder, or just given up. Returns who was there to be told. */
  leave(name: string, departure: Departure): readonly Follower[] {
    const followers = [...(this.#followers.get(name) ?? [])];
    this.#followers.delete(name);
    for (const follower of followers) follower.departed(departure);
    return followers;
  }
}

/** Those of this process, whatever connections it has. */
export const neighboursHere = new Neighbours();
