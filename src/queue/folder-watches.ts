import type { Cancel, Clock } from '../base/clock.ts';
import type { Session } from '../client/session.ts';
import type { ZooKeeper } from '../client/zookeeper.ts';
import type { BatchedWatches } from './batched-watches.ts';

/** A session has no more of them. */
const WATCHES_MAX = 1_000;
/** One that nobody has relied on for so long is taken away; it may last for twice as long. */
const IDLE_MS = 500;

/** Tells whether a folder has been the same one since the watch was set. */
export interface FolderWatch {
  /** True from when it was set until something happened to the folder. */
  readonly isSet: boolean;
  /** True once it will not be set again. */
  readonly isOver: boolean;
  /** Somebody relies on it: it is not taken away for a while. */
  use(): void;
}

/**
 * Watches of one session on folders of queues. A folder that goes takes its counter along, and one of the same name
 * counts from 0 again: the watch is told of that before any answer that has a number of the new one.
 */
export class FolderWatches {
  readonly #zk: ZooKeeper;
  readonly #session: Session;
  readonly #clock: Clock;
  readonly #batched: BatchedWatches;
  readonly #watches = new Set<Watching>();
  #cancelSweep: Cancel | undefined;

  constructor(
    zk: ZooKeeper,
    session: Session,
    { clock, watches }: { readonly clock: Clock; readonly watches: BatchedWatches },
  ) {
    this.#zk = zk;
    this.#session = session;
    this.#clock = clock;
    this.#batched = watches;
  }

  /** Watches a folder; undefined if there are too many by now. */
  watch(path: string): FolderWatch | undefined {
    if (this.#watches.size >= WATCHES_MAX) return undefined;
    const watch = new Watching(path, () => this.#forget(watch));
    this.#watches.add(watch);
    this.#cancelSweep ??= this.#sweepLater();
    const { lastZxid } = this.#session;
    const watches = [{ kind: 'data', path, listener: watch.end } as const];
    // Where no answer came, the server may have set it for all that.
    this.#batched.set(lastZxid, watches, watch.wasSet).catch(() => this.#takeAway(watch));
    return watch;
  }

  #sweepLater(): Cancel {
    return this.#clock.at(this.#clock.nowMs() + IDLE_MS, this.#sweep);
  }

  readonly #sweep = () => {
    this.#cancelSweep = undefined;
    for (const watch of this.#watches) {
      if (!watch.takeUsed()) this.#takeAway(watch);
    }
    if (this.#watches.size > 0) this.#cancelSweep ??= this.#sweepLater();
  };

  /** Does nothing at the server if it is not set there, or not any more. */
  #takeAway({ path, end }: Watching): void {
    end();
    void this.#zk.unwatch(path, 'data', end);
  }

  #forget(watch: Watching): void {
    this.#watches.delete(watch);
    if (this.#watches.size > 0) return;
    this.#cancelSweep?.();
    this.#cancelSweep = undefined;
  }
}

class Watching implements FolderWatch {
  readonly path: string;
  readonly #onOver: () => void;
  isSet = false;
  isOver = false;
  /** New ones are given time to be relied on. */
  #used = true;

  constructor(path: string, onOver: () => void) {
    this.path = path;
    this.#onOver = onOver;
  }

  readonly wasSet = () => {
    this.isSet = !this.isOver;
  };

  /** Whatever has happened: that it went, that it was written to, that the watch was taken away or could not be set. */
  readonly end = () => {
    if (this.isOver) return;
    this.isSet = false;
    this.isOver = true;
    this.#onOver();
  };

  use(): void {
    this.#used = true;
  }

  takeUsed(): boolean {
    const used = this.#used || !(this.isSet || this.isOver);
    this.#used = false;
    return used;
  }
}
