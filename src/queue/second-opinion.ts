import type { Cancel, Clock } from '../base/clock.ts';
import { ops } from '../client/operations-of-multi.ts';
import type { Session } from '../client/session.ts';
import type { ZooKeeper } from '../client/zookeeper.ts';
import { MultiError } from '../protocol/errors.ts';
import type { QueueStore } from './queue-store.ts';

/** Well under what a request may be long, with the longest names there are. */
const CHECKS_MAX = 300;

interface Wait {
  readonly path: string;
  readonly sinceMs: number;
  /** What to do if the node is gone, and nobody said so. */
  readonly look: () => void;
}

/**
 * Asks the leader whether those that a session waits for are there at all.
 *
 * A server of an ensemble can have what its leader has not: one that crashed at a bad moment may bring back the node of
 * a session that is long over, and shows it to all it serves, for good. Whoever is behind that in a queue would wait for
 * ever. A check in a transaction is answered by the leader, and when the answer is here, so is all that the leader had
 * done before. What it does not know and the server still shows is a ghost: the server is left for another.
 *
 * Asked for waits that last longer than a session that is not kept alive, once in each such time, all in one request.
 */
export class SecondOpinion {
  readonly #zk: ZooKeeper;
  readonly #session: Session;
  readonly #clock: Clock;
  readonly #waits = new Set<Wait>();
  #cancelAsking: Cancel | undefined;

  constructor(zk: ZooKeeper, session: Session, clock: Clock) {
    this.#zk = zk;
    this.#session = session;
    this.#clock = clock;
  }

  /** One waits for the node at `path` to go; the function returned ends that. */
  about(path: string, look: () => void): Cancel {
    const wait: Wait = { path, sinceMs: this.#clock.nowMs(), look };
    this.#waits.add(wait);
    if (!this.#cancelAsking) this.#askLater();
    return () => {
      this.#waits.delete(wait);
      if (this.#waits.size > 0) return;
      this.#cancelAsking?.();
      this.#cancelAsking = undefined;
    };
  }

  #askLater(): void {
    this.#cancelAsking = this.#clock.at(this.#clock.nowMs() + this.#session.timeoutMs, () => {
      this.#askLater();
      this.#ask().catch(() => {}); // Not answered: nothing is known, and it is asked again.
    });
  }

  async #ask(): Promise<void> {
    const latestMs = this.#clock.nowMs() - this.#session.timeoutMs;
    const lasting = [...this.#waits].filter(({ sinceMs }) => sinceMs <= latestMs);
    const paths = [...new Set(lasting.map(({ path }) => path))].slice(0, CHECKS_MAX);
    const missing = await this.#missing(paths);
    if (missing === undefined) return;
    // Behind the answer, on whatever connection: no server serves who has seen more than it has.
    const shown = await this.#zk.exists(missing, { session: this.#session });
    const deceived = lasting.filter((wait) => wait.path === missing && this.#waits.has(wait));
    if (deceived.length === 0) return;
    if (!shown) for (const wait of deceived) wait.look();
    else
      this.#session.leaveServer(new Error(`${missing} is shown by this server, and unknown to its leader`));
  }

  /** The first of them that the leader does not know. */
  async #missing(paths: readonly string[]): Promise<string | undefined> {
    if (paths.length === 0) return undefined;
    try {
      await this.#zk.multi(
        paths.map((path) => ops.check(path)),
        { session: this.#session },
      );
      return undefined;
    } catch (error) {
      if (error instanceof MultiError && error.condition === 'no-node') return paths[error.index];
      throw error;
    }
  }
}

const bySession = new WeakMap<Session, SecondOpinion>();

/** The one of a session: all its places share it. */
export function secondOpinionOf({ zk, clock }: QueueStore, session: Session): SecondOpinion {
  let opinion = bySession.get(session);
  if (!opinion) {
    opinion = new SecondOpinion(zk, session, clock);
    bySession.set(session, opinion);
  }
  return opinion;
}
