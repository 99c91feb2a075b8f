import { orAbort, sleep } from '../base/abort.ts';
import type { Cancel, Clock } from '../base/clock.ts';
import { type Deferred, deferred } from '../base/deferred.ts';
import type { Session } from '../client/session.ts';
import type { ZooKeeper } from '../client/zookeeper.ts';
import { isServerError } from '../protocol/errors.ts';
import type { WatchEvent } from '../session/watch-registry.ts';
import { untilAnswered } from './settled-writes.ts';

/** A folder is listed no more often than this, however often it changes. */
const LIST_INTERVAL_MS = 100;

/** One who waits for an entry to go. */
interface Listener {
  readonly name: string;
  readonly look: () => void;
}

interface Folder {
  readonly path: string;
  readonly listeners: Set<Listener>;
  /** Ends the wait for the next list. */
  wake: Deferred<void>;
}

/**
 * Tells of the end of entries that a session may not read. A server that keeps events from those who may not read the
 * node (ZooKeeper 3.8.4, 3.9.2 and later, the embedded server) tells such a session nothing of it. Its folder's changes
 * are another node's events: each of them is followed by a list, which says what is gone.
 *
 * Every entry that comes or goes costs a list of the whole queue: so this is for entries only that are known to be
 * unreadable, and one list serves all who wait in a folder.
 */
export class UnheardEntries {
  readonly #zk: ZooKeeper;
  readonly #session: Session;
  readonly #clock: Clock;
  readonly #folders = new Map<string, Folder>();

  constructor(zk: ZooKeeper, session: Session, clock: Clock) {
    this.#zk = zk;
    this.#session = session;
    this.#clock = clock;
  }

  /** Calls `look` when the entry at `path` is not in its folder; the function returned ends that. */
  about(path: string, look: () => void): Cancel {
    const slash = path.lastIndexOf('/');
    const listener = { name: path.slice(slash + 1), look };
    const folder = this.#folder(path.slice(0, slash));
    folder.listeners.add(listener);
    folder.wake.resolve(); // What is listed already may be from before it waited.
    return () => {
      if (folder.listeners.delete(listener) && folder.listeners.size === 0) folder.wake.resolve();
    };
  }

  #folder(path: string): Folder {
    const present = this.#folders.get(path);
    if (present) return present;
    const folder: Folder = { path, listeners: new Set(), wake: deferred() };
    this.#folders.set(path, folder);
    // Ends by itself, or with the session; a folder that may not be listed is left to what the leader says.
    void Promise.resolve()
      .then(() => this.#attend(folder))
      .catch(() => {})
      .finally(() => this.#folders.delete(path));
    return folder;
  }

  async #attend(folder: Folder): Promise<void> {
    const { listeners } = folder;
    const { lost } = this.#session;
    while (listeners.size > 0) {
      const changed = deferred();
      folder.wake = changed;
      const watch = ({ type }: WatchEvent) => {
        if (type !== 'session-lost') changed.resolve();
      };
      const names = new Set(await this.#list(folder.path, watch));
      for (const { name, look } of [...listeners]) if (!names.has(name)) look();
      await orAbort(changed.promise, lost);
      void this.#zk.unwatch(folder.path, 'children', watch);
      if (listeners.size > 0) await sleep(this.#clock, LIST_INTERVAL_MS, lost);
    }
  }

  async #list(folder: string, watch: (event: WatchEvent) => void): Promise<readonly string[]> {
    try {
      return await untilAnswered(() => this.#zk.children(folder, { watch, session: this.#session }));
    } catch (error) {
      if (isServerError(error, 'no-node')) return [];
      throw error;
    }
  }
}
