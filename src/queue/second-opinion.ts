import type { Cancel, Clock } from '../base/clock.ts';
import { utf8Bytes } from '../base/utf8-bytes.ts';
import { ops } from '../client/operations-of-multi.ts';
import type { Session } from '../client/session.ts';
import type { ZooKeeper } from '../client/zookeeper.ts';
import { isServerError, MultiError } from '../protocol/errors.ts';
import { UnheardEntries } from './unheard-entries.ts';

/** What one request asks about, at most: far below what one may be long. */
const CHECKS_MAX = 300;
const CHECK_BYTES_MAX = 128 * 1024;
/** So many requests in each session timeout, one after the other. What they leave out is asked about first in the next. */
const REQUESTS_MAX = 64;
/** So many folders are known to have entries that this session may not read. */
const FOLDERS_MAX = 1_000;

interface Wait {
  readonly sinceMs: number;
  /** What to do if the node is gone, and nobody said so. */
  readonly look: () => void;
}

/** A node that is waited for. */
interface Doubt {
  readonly path: string;
  readonly waits: Set<Wait>;
  /** The leader has refused to check it: it is there, and is asked about by a request of its own. */
  isUnreadable: boolean;
  /** Set where its end may not be told of. */
  stopListing: Cancel | undefined;
}

/**
 * Asks the leader whether those that a session waits for are there at all.
 *
 * A server of an ensemble can have what its leader has not: one that crashed at a bad moment may bring back the node of
 * a session that is long over, and shows it to all it serves, for good. Whoever is behind that in a queue would wait for
 * ever. A check in a transaction is answered by the leader, and when the answer is here, so is all that the leader had
 * done before. What it does not know and the server still shows is a ghost: the server is left for another.
 *
 * Asked for waits that last longer than a session that is not kept alive, once in each such time: many in one request,
 * and those who have not been asked about for the longest first.
 *
 * A transaction ends at the first check that fails. That the session may not read a node is said only of one that is
 * there; it costs one request more, and from then on one of its own. Nor may the end of such a node be told to the
 * session, so its folder is listed when that changes; and in a folder that had one, for each wait from its beginning.
 */
export class SecondOpinion {
  readonly #zk: ZooKeeper;
  readonly #session: Session;
  readonly #clock: Clock;
  /** Those that have not been asked about for the longest first. */
  readonly #doubts = new Map<string, Doubt>();
  readonly #unheard: UnheardEntries;
  readonly #unreadableFolders = new Set<string>();
  #cancelAsking: Cancel | undefined;
  #isAsking = false;

  constructor(zk: ZooKeeper, session: Session, clock: Clock) {
    this.#zk = zk;
    this.#session = session;
    this.#clock = clock;
    this.#unheard = new UnheardEntries(zk, session, clock);
  }

  /** One waits for the node at `path` to go; the function returned ends that. */
  about(path: string, look: () => void): Cancel {
    const wait: Wait = { sinceMs: this.#clock.nowMs(), look };
    const doubt = this.#doubtOf(path);
    doubt.waits.add(wait);
    if (!this.#cancelAsking) this.#askLater();
    return () => {
      if (!doubt.waits.delete(wait) || doubt.waits.size > 0) return;
      doubt.stopListing?.();
      this.#doubts.delete(path);
      if (this.#doubts.size > 0) return;
      this.#cancelAsking?.();
      this.#cancelAsking = undefined;
    };
  }

  #doubtOf(path: string): Doubt {
    let doubt = this.#doubts.get(path);
    if (!doubt) {
      doubt = { path, waits: new Set(), isUnreadable: false, stopListing: undefined };
      this.#doubts.set(path, doubt);
      if (this.#unreadableFolders.has(folderOf(path))) this.#list(doubt);
    }
    return doubt;
  }

  #askLater(): void {
    this.#cancelAsking = this.#clock.at(this.#clock.nowMs() + this.#session.timeoutMs, () => {
      this.#askLater();
      if (this.#isAsking) return;
      this.#isAsking = true;
      // Not answered: nothing is known, and it is asked again.
      this.#ask()
        .catch(() => {})
        .finally(() => {
          this.#isAsking = false;
        });
    });
  }

  async #ask(): Promise<void> {
    const latestMs = this.#clock.nowMs() - this.#session.timeoutMs;
    const lasting = [...this.#doubts.values()].filter(({ waits }) =>
      [...waits].some(({ sinceMs }) => sinceMs <= latestMs),
    );
    const readable = lasting.filter(({ isUnreadable }) => !isUnreadable);
    const left = [...readable, ...lasting.filter(({ isUnreadable }) => isUnreadable)];
    for (let count = 0; count < REQUESTS_MAX && left.length > 0; count++) {
      const asked = batchOf(left);
      const refusal = await this.#refusalOf(asked);
      const settled = left.splice(0, refusal ? refusal.index + 1 : asked.length);
      for (const doubt of settled) this.#postpone(doubt);
      const refused = refusal && settled.at(-1)!;
      if (refused && refusal.condition === 'no-auth') this.#becomesUnreadable(refused);
      else if (refused && !(await this.#resolve(refused))) return;
    }
  }

  /** What the leader says of the first that it does not check; undefined if all of them are there. */
  async #refusalOf(
    doubts: readonly Doubt[],
  ): Promise<{ readonly index: number; readonly condition: 'no-node' | 'no-auth' } | undefined> {
    try {
      await this.#zk.multi(
        doubts.map(({ path }) => ops.check(path)),
        { session: this.#session },
      );
      return undefined;
    } catch (error) {
      if (!(error instanceof MultiError)) throw error;
      const { condition, index } = error;
      if (condition !== 'no-node' && condition !== 'no-auth') throw error;
      return { index, condition };
    }
  }

  /** The leader does not know it. False if the server shows it all the same, and is left. */
  async #resolve({ path, waits }: Doubt): Promise<boolean> {
    // Behind the answer, on whatever connection: no server serves who has seen more than it has.
    const isShown = await this.#isShown(path);
    if (waits.size === 0) return true;
    if (!isShown) {
      for (const { look } of [...waits]) look();
      return true;
    }
    this.#session.leaveServer(new Error(`${path} is shown by this server, and unknown to its leader`));
    return false;
  }

  async #isShown(path: string): Promise<boolean> {
    try {
      return (await this.#zk.exists(path, { session: this.#session })) !== undefined;
    } catch (error) {
      if (isServerError(error, 'no-auth')) return true; // Which is not said of what is not there.
      throw error;
    }
  }

  #postpone(doubt: Doubt): void {
    if (!this.#doubts.delete(doubt.path)) return; // Nobody waits for it any more.
    this.#doubts.set(doubt.path, doubt);
  }

  #becomesUnreadable(doubt: Doubt): void {
    doubt.isUnreadable = true;
    const folder = folderOf(doubt.path);
    if (!this.#unreadableFolders.has(folder) && this.#unreadableFolders.size >= FOLDERS_MAX) {
      const [oldest] = this.#unreadableFolders;
      this.#unreadableFolders.delete(oldest!);
    }
    this.#unreadableFolders.add(folder);
    if (doubt.waits.size > 0) this.#list(doubt);
  }

  #list(doubt: Doubt): void {
    doubt.stopListing ??= this.#unheard.about(doubt.path, () => {
      for (const { look } of [...doubt.waits]) look();
    });
  }
}

/** The first of them, and as many after it as go into one request. */
function batchOf(doubts: readonly Doubt[]): readonly Doubt[] {
  if (doubts[0]!.isUnreadable) return doubts.slice(0, 1);
  const batch: Doubt[] = [];
  let bytes = 0;
  for (const doubt of doubts) {
    bytes += utf8Bytes(doubt.path);
    if (doubt.isUnreadable || batch.length >= CHECKS_MAX) break;
    if (bytes > CHECK_BYTES_MAX && batch.length > 0) break;
    batch.push(doubt);
  }
  return batch;
}

function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/'));
}
