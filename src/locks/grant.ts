import type { Session } from '../client/session.ts';
import { SEQUENCE_LAST } from '../queue/entry-name.ts';
import type { HoldOnPlace, Place, PlaceEvents } from '../queue/lock-queue.ts';
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
  /** Whether anyone else has been seen in the queue, by this contender or by the one before it. */
  contended: boolean;
  /**
   * Guarded writes of which it is not known that they have happened or will not, of all who have held by this grant: each
   * may still be on its way to the server. While there are any, the grant is let go of by the server.
   */
  openWriteCount: number;
  /** The node is watched already: there is no need to begin with it. */
  readonly watched?: boolean;
  attend(events: PlaceEvents): void;
  /** Where it is one. */
  readonly place?: Place;
  /** See `Place.beside`; only where there is one place, and its number is its own. */
  readonly beside?: Place['beside'] | undefined;
  watchSelf(): Promise<boolean>;
  leave(options: GrantLeaveOptions): Promise<void>;
}

/** How a grant is let go of. */
export interface GrantLeaveOptions {
  readonly baton: boolean;
  /** It is let go of by its holder. */
  readonly released?: boolean;
  /** Those who wait are to be told that it was let go, also where that is no grant. */
  readonly announce?: boolean;
  /** See `LeaveOptions`. */
  readonly byServer?: boolean;
}

/** One place that is held. A class, and no object of closures: every free lock makes one. */
export class PlaceGrant implements Grant {
  readonly token: bigint;
  readonly hold: HoldOnPlace;
  readonly place: Place;
  contended: boolean;
  openWriteCount = 0;

  constructor(place: Place, hold: HoldOnPlace, contended: boolean) {
    this.token = place.token;
    this.hold = hold;
    this.place = place;
    this.contended = contended;
  }

  get paths(): readonly string[] {
    return [this.place.path];
  }
  get bound(): Grant['bound'] {
    return this.place.bound;
  }

  attend(events: PlaceEvents): void {
    this.place.attend(events);
  }

  get beside(): Grant['beside'] {
    const { place } = this;
    // With a number that all have, the new entry would be the last of them and not beside this one.
    if (place.entry.sequence === SEQUENCE_LAST) return undefined;
    return (role, data, signal) => place.beside(role, data, signal);
  }

  watchSelf(): Promise<boolean> {
    return this.place.watchSelf();
  }

  leave({ baton, announce = false, released = baton, byServer = false }: GrantLeaveOptions): Promise<void> {
    // Whoever waits for a reader waits for others too: it passes no baton.
    const passesOn = announce || (baton && passesBaton(this.place.entry.role));
    return this.place.leave({ released, baton: passesOn, byServer });
  }
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
    openWriteCount: 0,
    attend: (events) => {
      for (const place of places) place.attend(events);
    },
    watchSelf: async () => (await Promise.all(places.map((place) => place.watchSelf()))).some(Boolean),
    leave: async (options) => {
      await Promise.all(places.map((place) => place.leave(options)));
    },
  };
}
