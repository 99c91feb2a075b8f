import type { Clock } from '../base/clock.ts';
import type { Session } from '../client/session.ts';
import type { ZooKeeper } from '../client/zookeeper.ts';
import type { BatchedWrites } from './batched-writes.ts';
import type { LeavingConnection } from './neighbours.ts';
import { untilAnswered, untilWritable } from './settled-writes.ts';

/**
 * Lets a session read what was written under a lock, before it is granted that lock by another session of its process.
 *
 * A hand-over by the server comes behind all that was written before it. One in memory does not: the successor's server
 * may be a follower that has not yet applied what the holder wrote. So the successor makes a write that changes nothing,
 * and holds when that is answered: it is ordered behind every write that was answered before, by whichever client, and
 * the server answers it when it has applied them. A `sync` would do on a follower only, since a leader answers those of
 * its own clients at once.
 *
 * Not needed within one session; nor where there is only one server, which is asked once for each connection; nor where
 * the holder's program has declared that its connection carries all that it writes under locks, and the successor's
 * session has seen as much as the holder's.
 */
export class CatchUp {
  readonly #clock: Clock;
  readonly #session: Session;
  readonly #zk: ZooKeeper;
  readonly #writes: BatchedWrites;
  /** The write that has not been sent yet: all who wait for one meanwhile wait for this. */
  #unsent: Promise<void> | undefined;
  /** What is known of the server of one connection of the session. */
  #server: { readonly connection: number; isStandalone: boolean } | undefined;

  constructor(
    zk: ZooKeeper,
    session: Session,
    { clock, writes }: { readonly clock: Clock; readonly writes: BatchedWrites },
  ) {
    this.#zk = zk;
    this.#session = session;
    this.#clock = clock;
    this.#writes = writes;
  }

  /** Asks what kind of server this is, unless that has been asked on this connection: before it matters. */
  prepare(): void {
    const connection = this.#session.connectionCount;
    if (this.#server?.connection === connection) return;
    const server = { connection, isStandalone: false };
    this.#server = server;
    this.#zk.config({ session: this.#session }).then(
      ({ data }) => {
        // The members of an ensemble list all of them there. Repeated on another connection, it is about another server.
        if (this.#session.connectionCount === connection) server.isStandalone = (data?.byteLength ?? 0) === 0;
      },
      () => {}, // A server without it, or one that does not show it: nothing is known.
    );
  }

  /** Resolves when the session sees what was written before the place ahead was left; undefined if it does already. */
  after({ session, lastZxid, carriesAllWrites }: LeavingConnection): Promise<void> | undefined {
    if (session === this.#session || this.#isStandalone) return undefined;
    if (carriesAllWrites && lastZxid <= this.#session.lastZxid) return undefined;
    this.#unsent ??= this.#write();
    return this.#unsent;
  }

  get #isStandalone(): boolean {
    const server = this.#server;
    return server?.connection === this.#session.connectionCount && server.isStandalone;
  }

  #write(): Promise<void> {
    const operations = () => {
      this.#unsent = undefined; // What is left after it has gone may have been written behind it.
      return [];
    };
    const bounds = { clock: this.#clock, session: this.#session };
    const writing = untilWritable(bounds, async () => {
      await untilAnswered(() => this.#writes.multi(operations));
    });
    writing.catch(() => {}); // Whoever waited may have given up.
    return writing;
  }
}
