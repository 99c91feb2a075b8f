import type { Session } from '../client/session.ts';
import { SEQUENCE_LAST } from '../queue/entry-name.ts';
import type { EntryRole, HoldOnPlace, Place, PlaceEvents } from '../queue/lock-queue.ts';
import { passesBaton } from './turn.ts';

/** What a contest for a lock ends with: what is held, and how to let go of it. */
export interface Grant {
  readonly token: bigint;
  /** Which of the holds that share this token; 0 if left out. */
  readonly section?: number;
  readonly hold: HoldOnPlace;
  /** The nodes whose existence is the lock. */
  readonly paths: readonly string[];
  readonly bound: { readonly session?: Session };
  /** Whether anyone else has been seen in the queue. */
  readonly contended: boolean;
  /** The node is watched already: there is no need to begin with it. */
  readonly watched?: boolean;
  attend(events: PlaceEvents): void;
  /** Where it is one. */
  readonly place?: Place;
  /** See `Place.beside`; only where there is one place, and its number is its own. */
  beside?(role: EntryRole, data: string): Promise<Place | undefined>;
  watchSelf(): Promise<boolean>;
  /**
   * `released`: it is let go of by its holder. `announce`: those who wait are to be told that it was let go, also where
   * that is no grant. `byServer`: see `LeaveOptions`.
   */
  leave(options: {
    readonly baton: boolean;
    readonly released?: boolean;
    readonly announce?: boolean;
    readonly byServer?: boolean;
  }): Promise<void>;
}

/** One place that is held. */
export function grantOf(place: Place, hold: HoldOnPlace, contended: boolean): Grant {
  return {
    token: place.token,
    hold,
    paths: [place.path],
    bound: place.bound,
    contended,
    attend: (events) => place.attend(events),
    place,
    // With a number that all have, the new entry would be the last of them and not beside this one.
    ...(place.entry.sequence !== SEQUENCE_LAST && { beside: (role, data) => place.beside(role, data) }),
    watchSelf: () => place.watchSelf(),
    // Whoever waits for a reader waits for others too: it passes no baton.
    leave: ({ baton, announce, released = baton, byServer = false }) =>
      place.leave({ released, baton: announce || (baton && passesBaton(place.entry.role)), byServer }),
  };
}

/** Several places that are held as one: none of them may be lost. */
export function grantOfAll(places: readonly Place[], hold: HoldOnPlace, contended: boolean): Grant {
  const [first] = places;
  return {
    token: first!.token,
    hold,
    paths: places.map(({ path }) => path),
    bound: first!.bound,
    contended,
    attend: (events) => {
      for (const place of places) place.attend(events);
    },
    watchSelf: async () => (await Promise.all(places.map((place) => place.watchSelf()))).some(Boolean),
    leave: async (options) => {
      await Promise.all(places.map((place) => place.leave(options)));
    },
  };
}
