import type { Session } from '../client/session.ts';

/**
 * The queue of a lock: what a store must offer for the locks above it to work. Push mode: nobody polls.
 *
 *   join     one round trip: an entry at the end of the queue, and the queue as it was then
 *   listen   to one entry ahead: told once that it was *released*, or that it is *gone*
 *   leave    in one step; with the baton, whoever listens is told `released`
 *
 * `released` is the baton: it can come only from an entry that held, and says that everything ahead of that entry
 * was gone, so that who hears it needs not look again. `gone` says nothing but that it is time to look.
 */

/** As what an entry stands in a queue. */
export type EntryRole = 'exclusive' | 'read' | 'write' | 'upgradable' | 'upgraded' | 'leader' | 'lease';

/** One participant, as everyone sees it. */
export interface QueueEntry {
  /** The name of its node, unique for ever. */
  readonly name: string;
  readonly role: EntryRole;
  /** The number the server gave it. It sticks at 2147483647, so it orders only together with `czxid`. */
  readonly sequence: number;
  /** Stands behind everyone with its number, and before the next number: see `Place.before`. */
  readonly between?: true;
  /** The transaction that made it; known where it was needed to tell entries apart. */
  readonly czxid: bigint | undefined;
}

/** A queue at one moment. */
export interface QueueView {
  /** In the order of their turns. */
  readonly entries: readonly QueueEntry[];
  /** Names of nodes in the lock's folder that are no entries of ours. */
  readonly foreign: readonly string[];
}

/**
 * How an entry that was listened to went. `absent`: it was not there any more when listening began, at a moment at which
 * the own entry was.
 */
export type Departure = 'released' | 'gone' | 'absent';

/** What happens to a place from outside. */
export interface PlaceEvents {
  /** The entry was removed by someone else: the place is no more. */
  evicted(): void;
  /** Someone asks for the lock. */
  revoked(): void;
}

/** What keeps a promise of exclusivity, for as long as `remainingMs()` is not 0. */
export interface HoldOnPlace {
  /** Calls `listener` once the promise cannot be kept any longer; not after `release`. */
  onEnded(listener: (error: Error) => void): void;
  remainingMs(): number;
  release(): void;
}

/** One's own entry in a queue. Belongs to one session, and goes with it. */
export interface Place {
  readonly entry: QueueEntry;
  /** Where the entry is, for `guard`. */
  readonly path: string;
  /** Binds requests to the session that the place belongs to. */
  readonly bound: { readonly session?: Session };
  /** Larger for each later entry, over the whole life of the store. */
  readonly token: bigint;
  /** Fires when the session is over, and the entry with it. */
  readonly lost: AbortSignal;
  /** True once the entry was removed by someone else. */
  readonly evicted: boolean;
  /** The queue as it is now. Rejects with the signal's reason. */
  view(signal?: AbortSignal): Promise<QueueView>;
  /** Resolves when an entry ahead has gone. Rejects with the signal's reason; leaves nothing behind then. */
  listen(
    to: QueueEntry,
    options: { readonly baton: boolean; readonly signal?: AbortSignal },
  ): Promise<Departure>;
  /** Resolves with the first view that is accepted, looking again whenever the queue changes. */
  awaitView(accept: (view: QueueView) => boolean, signal?: AbortSignal): Promise<QueueView>;
  /**
   * Makes another entry at this very spot of the queue, if this one is still there: how a writer goes on as a reader
   * without losing its turn. Undefined if it is not, and nothing has happened then. Its token is this one's. From then
   * on leaving this place passes no baton, since the spot stays taken. Rejects with the signal's reason; leaves nothing
   * behind then.
   */
  beside(role: EntryRole, data: string, signal?: AbortSignal): Promise<Place | undefined>;
  /**
   * Makes another entry, right before `other` and behind everyone ahead of that, if `other` is still there: undefined
   * if it is not, and nothing has happened then. Its token is this one's. Rejects as `beside`.
   */
  before(other: QueueEntry, role: EntryRole, data: string, signal?: AbortSignal): Promise<Place | undefined>;
  /** Whom to tell of what happens to the entry. Watching for it begins with the first `listen` or `attend`. */
  attend(events: PlaceEvents): void;
  /** Watches the own entry, if that is not done yet; resolves with whether others are in the queue. */
  watchSelf(): Promise<boolean>;
  /**
   * Watches the own entry and the queue: `told` is called as soon as anybody else is in it, once or more. Resolves when
   * nobody could come unnoticed. For one who holds, and only once for each place.
   */
  watchForOthers(told: () => void): Promise<void>;
  /** A hold that has been confirmed by the store's authority. Rejects if the place is lost. */
  hold(): Promise<HoldOnPlace>;
  /**
   * Removes the entry; resolves when that is certain. Repeats by itself over lost connections; idempotent. Where it was
   * refused, each further call tries again.
   */
  leave(options?: LeaveOptions): Promise<void>;
}

/** How a place is left. */
export interface LeaveOptions {
  /** It was held, and is let go of: those of the same process are told. */
  readonly released?: boolean;
  /** The same, and worth telling everyone. */
  readonly baton?: boolean;
  /** Nobody is told before the server has it: something that was sent while it was held may come before that. */
  readonly byServer?: boolean;
}

/** What one needs to say to join. */
export interface JoinRequest {
  readonly role: EntryRole;
  /** What others are to know of this participant. */
  readonly data: string;
  readonly signal?: AbortSignal | undefined;
  /** How many entries, all made in one step; 1 if left out. */
  readonly count?: number;
  /** Called before a missing folder is made; what it throws is what joining ends with. */
  readonly beforeFolders?: (() => Promise<void>) | undefined;
}

/** A place, and the queue as it was when it was taken. */
export interface Joined {
  readonly place: Place;
  /** The other places, where more than one was asked for. */
  readonly others: readonly Place[];
  readonly view: QueueView;
}

/** The queue of one lock. */
export interface LockQueue {
  readonly path: string;
  join(request: JoinRequest): Promise<Joined>;
  /** Looks without joining. */
  view(options?: { readonly signal?: AbortSignal }): Promise<QueueView>;
}
