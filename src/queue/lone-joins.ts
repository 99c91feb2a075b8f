import { SEQUENCE_LAST } from './entry-name.ts';
import type { FolderWatch } from './folder-watches.ts';
import type { QueueEntry, QueueView } from './lock-queue.ts';
import type { StoreSession } from './store-session.ts';

/** So many joins in a row with nobody in between, and the next is expected to be like them. */
const RUN_MIN = 4;
const RUN_MAX = 1_024;
/** So many right guesses make up for a wrong one, and so many for a watch. After fewer the next take longer to begin. */
const WORTH_A_ROUND_TRIP = 256;
const WORTH_A_WATCH = 4;

/** That the next entry will have this number. It is alone then, if the watch is still set. */
export interface Guess {
  readonly sequence: number;
  readonly watch: FolderWatch;
}

/**
 * Tells by the number of an entry that it is alone in its queue, without a list.
 *
 * Whoever makes an entry moves the folder's number on. Take two entries of ours with numbers next to each other, where
 * the first was alone, and was gone when the second was asked for: nobody came between them, and nobody is left from
 * before, so the second is alone. Numbers begin again where the folder was removed and made anew; a watch on the folder,
 * set while the first entry was in it or before, tells of that before the second is answered.
 *
 * A guess that is wrong costs the list after all, and a second round trip. So there is none before some joins in a row
 * would have been guessed right, and with each row that was not worth it that takes twice as many.
 */
export class LoneJoins {
  readonly #watchFolder: (shared: StoreSession) => FolderWatch | undefined;
  #watch: FolderWatch | undefined;
  /** Whose entries and watch they are. */
  #shared: StoreSession | undefined;
  /** The last entry of ours, if it was alone. */
  #last: QueueEntry | undefined;
  #lastHasLeft = false;
  /** Set from before the last entry was left. */
  #lastWatch: FolderWatch | undefined;
  /** Joins in a row with nobody in between, and how many of them there must be. */
  #runLength = 0;
  #runLengthMin = RUN_MIN;
  #rightCount = 0;

  constructor(watchFolder: (shared: StoreSession) => FolderWatch | undefined) {
    this.#watchFolder = watchFolder;
  }

  /** What is expected of an entry that is asked for now; undefined if a list has to tell. */
  guess(shared: StoreSession): Guess | undefined {
    const last = this.#last;
    const watch = this.#lastWatch;
    if (last === undefined || !this.#lastHasLeft || shared !== this.#shared || !watch?.isSet)
      return undefined;
    const sequence = last.sequence + 1;
    if (sequence >= SEQUENCE_LAST) return undefined; // From there on many have the same.
    watch.use();
    this.#last = undefined; // For one join only: another at the same time is not the next.
    return { sequence, watch };
  }

  /** Whether the entry that was made is as expected, and so alone. */
  isRight({ sequence, watch }: Guess, made: QueueEntry): boolean {
    if (made.sequence !== sequence || !watch.isSet) {
      this.#endRun(WORTH_A_ROUND_TRIP);
      return false;
    }
    this.#rightCount++;
    this.#remember(made, watch);
    return true;
  }

  /** An entry was made, and this is the queue behind it. */
  joined(made: QueueEntry, { entries, foreign }: QueueView, shared: StoreSession): void {
    if (shared !== this.#shared) {
      this.#shared = shared;
      this.#watch = undefined;
      this.#last = undefined;
    }
    const isNext = this.#last !== undefined && this.#lastHasLeft && made.sequence === this.#last.sequence + 1;
    this.#runLength = isNext ? this.#runLength + 1 : 0;
    this.#last = undefined;
    if (entries.length !== 1 || entries[0]!.name !== made.name || foreign.length > 0) return;
    const watch = this.#runLength >= this.#runLengthMin ? this.#watchIn(shared) : undefined;
    this.#remember(made, watch?.isSet ? watch : undefined);
  }

  /** An entry of ours is gone, for certain. */
  left({ name }: QueueEntry): void {
    if (this.#last?.name === name) this.#lastHasLeft = true;
  }

  #remember(alone: QueueEntry, watch: FolderWatch | undefined): void {
    this.#last = alone;
    this.#lastHasLeft = false;
    this.#lastWatch = watch;
  }

  #watchIn(shared: StoreSession): FolderWatch | undefined {
    if (this.#watch?.isOver) {
      this.#watch = undefined;
      this.#endRun(WORTH_A_WATCH);
      return undefined;
    }
    this.#watch ??= this.#watchFolder(shared);
    return this.#watch;
  }

  #endRun(worthwhile: number): void {
    if (this.#rightCount < worthwhile) this.#runLengthMin = Math.min(RUN_MAX, 2 * this.#runLengthMin);
    this.#rightCount = 0;
    this.#runLength = 0;
  }
}
