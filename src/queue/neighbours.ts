import type { Clock } from '../base/clock.ts';
import { FreshMap } from '../base/fresh-map.ts';
import type { Session } from '../client/session.ts';
import type { Departure } from './lock-queue.ts';

/** After so many in one go others get a look in: timers, sockets, heartbeats. */
const IN_ONE_GO_MAX = 64;

/**
 * So many hear from a place of their own process that it is left; more than that wait for the server to say so. Each of
 * them is told before the release is sent, in one go, and is checked in its transaction.
 */
const FOLLOWERS_MAX = 256;

/** What a successor must know of the connection of the place ahead of it, to see what was written under the lock. */
export interface LeavingConnection {
  readonly session: Session;
  /** The newest transaction that the session had seen when the place was left. */
  readonly lastZxid: bigint;
  /** Whether the program has declared that all its writes under locks go through this connection. */
  readonly carriesAllWrites: boolean;
}

/** One who waits behind a place of its own process. */
export interface Follower {
  /**
   * The name of its entry. It is in the folder of the place ahead, whose client may have another chroot: no path of
   * another client means anything to it.
   */
  readonly name: string;
  /** The one ahead has left. */
  departed(departure: Departure, by: LeavingConnection): void;
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
 * The places that one process has in the queues of one ensemble, over all its connections. Of two next to each other,
 * the second is told by the first, without a server between them: only who has a place can say that it is let go of.
 *
 * A place is known by its full path at the server: that is the same for clients with different chroots.
 */
export class Neighbours {
  /** The sessions of the places that are taken. */
  readonly #sessions = new FreshMap<string, Session>();
  /** By the path of the place that they are behind. */
  readonly #followers = new FreshMap<string, Set<Follower>>();
  #inOneGo = 0;

  /** A place was taken. */
  arrive(serverPath: string, session: Session): void {
    this.#sessions.set(serverPath, session);
  }

  /** The session of a place; undefined if it is none of this process, or is left already. */
  sessionOf(serverPath: string): Session | undefined {
    return this.#sessions.get(serverPath);
  }

  /**
   * Tells the follower when the place is left; undefined if it is none of this process, is left already, or has as many
   * followers as are told in memory.
   */
  follow(serverPath: string, follower: Follower): (() => void) | undefined {
    if (!this.#sessions.has(serverPath)) return undefined;
    let followers = this.#followers.get(serverPath);
    if (!followers) {
      followers = new Set();
      this.#followers.set(serverPath, followers);
    }
    if (followers.size >= FOLLOWERS_MAX) return undefined;
    followers.add(follower);
    return () => void followers.delete(follower);
  }

  /** Something to wait for before a place is left that others are behind, where many have been left in one go. */
  pause(serverPath: string, clock: Clock): Promise<void> | undefined {
    if (!this.#followers.get(serverPath)?.size) return undefined;
    if (this.#inOneGo++ === 0) {
      clock.afterInput(() => {
        this.#inOneGo = 0;
      });
    }
    return this.#inOneGo > IN_ONE_GO_MAX ? new Promise((resolve) => clock.afterInput(resolve)) : undefined;
  }

  /** A place is left: `released` by its holder, or just given up. Returns who was there to be told. */
  leave(serverPath: string, departure: Departure, by: LeavingConnection): readonly Follower[] {
    this.#sessions.delete(serverPath);
    const waiting = this.#followers.get(serverPath);
    if (waiting === undefined) return NO_FOLLOWERS;
    this.#followers.delete(serverPath);
    const followers = [...waiting];
    for (const follower of followers) follower.departed(departure, by);
    return followers;
  }
}

const NO_FOLLOWERS: readonly Follower[] = [];
const byServers = new Map<string, WeakRef<Neighbours>>();

/**
 * The places of this process in the ensemble of these servers. Connections whose lists of servers differ share none: what
 * they hand over to each other goes through the servers, which is slower and as right.
 */
export function neighboursAt(servers: readonly string[]): Neighbours {
  const key = [...new Set(servers)].sort().join(',');
  const present = byServers.get(key)?.deref();
  if (present) return present;
  for (const [other, reference] of byServers) if (!reference.deref()) byServers.delete(other);
  const made = new Neighbours();
  byServers.set(key, new WeakRef(made));
  return made;
}
