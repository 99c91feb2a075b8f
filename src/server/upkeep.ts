import { kindOf, ttlOf } from './data-tree.ts';
import type { EventTeller } from './event-teller.ts';
import type { ServerConnection } from './server-connection.ts';
import type { ServerState } from './server-state.ts';
import type { SessionEnds } from './session-ends.ts';
import type { ServerSession } from './session-table.ts';
import type { Change } from './write-operations.ts';

/** How long all of it may take in one turn of the event loop; each kind has one step at least. */
const UPKEEP_MS = 1;
const SESSIONS_PER_STEP = 16;
const REAPED_PER_STEP = 64;

/** What is due, and is to be done before the next of it is asked for: one of these. */
export interface Due {
  readonly expired?: ServerSession<ServerConnection>;
  /** A connection that has not become a session in time. */
  readonly silent?: ServerConnection;
  /** To be committed. */
  readonly change?: Change;
}

/** One step of one kind of upkeep. Returns whether there is another. */
type Step = Generator<Due, boolean, undefined>;

/** What the server does without a request: ends what is due, removes what is left over. In slices, as all it does. */
export class Upkeep {
  readonly #state: ServerState;
  readonly #ends: SessionEnds;
  readonly #teller: EventTeller;
  #reapAtMs: number;
  /** Nodes that may have to be removed and have not been looked at in this round. */
  #reaping: Iterator<string> | undefined;

  constructor(state: ServerState, ends: SessionEnds, teller: EventTeller) {
    this.#state = state;
    this.#ends = ends;
    this.#teller = teller;
    this.#reapAtMs = state.clock.nowMs() + state.limits.reapMs;
  }

  /** When `run` must be called at the latest. */
  get wakeAtMs(): number {
    const { sessions, limits } = this.#state;
    const { value: oldest } = this.#state.handshaking.values().next();
    return Math.min(
      sessions.nextDueAtMs ?? Number.POSITIVE_INFINITY,
      this.#reapAtMs,
      oldest ? oldest.openedAtMs + limits.handshakeMs : Number.POSITIVE_INFINITY,
    );
  }

  /** Whether there is more to do at once. */
  get unfinished(): boolean {
    if (this.#state.watches.hasLeft) return true;
    return (this.#reaping !== undefined || this.#ends.unfinished.size > 0) && this.#mayChange;
  }

  /** No change while nothing can be kept, nor before the events of the last one are sent. */
  get #mayChange(): boolean {
    return !this.#state.readOnly && !this.#teller.busy;
  }

  *run(): Generator<Due, void, undefined> {
    const { clock, limits, tree, watches } = this.#state;
    const nowMs = clock.nowMs();
    const endMs = nowMs + UPKEEP_MS;
    if (nowMs >= this.#reapAtMs) {
      this.#reapAtMs = nowMs + limits.reapMs;
      this.#reaping ??= tree.perishable();
    }
    const kinds = [
      () => this.#expireSome(nowMs),
      () => this.#dropOne(nowMs),
      () => this.#endSome(),
      () => this.#reapSome(),
    ];
    for (const step of kinds) while ((yield* step()) && clock.nowMs() < endMs);
    do watches.sweep();
    while (watches.hasLeft && clock.nowMs() < endMs);
  }

  *#expireSome(nowMs: number): Step {
    const { sessions, readOnly } = this.#state;
    if (this.#teller.busy) return false;
    const due = sessions.due(nowMs, SESSIONS_PER_STEP);
    for (const session of due) {
      if (this.#teller.busy) return false;
      // Not silent: the server does not read until the disk has taken earlier requests, or others had their turn.
      const stalledBy = session.connection?.stalledBy;
      if (stalledBy === 'disk' || stalledBy === 'turn') sessions.touch(session, nowMs);
      // It has ended for its client, but what it holds can only be given up in a transaction.
      else if (readOnly && !session.unkept) sessions.postpone(session, nowMs);
      else yield { expired: session };
    }
    return due.length === SESSIONS_PER_STEP;
  }

  *#dropOne(nowMs: number): Step {
    const { value: oldest } = this.#state.handshaking.values().next();
    // As `wakeAtMs` reckons it: the difference of two such times may be less, by a rounding error.
    if (!oldest || nowMs < oldest.openedAtMs + this.#state.limits.handshakeMs) return false;
    yield { silent: oldest };
    return true;
  }

  *#endSome(): Step {
    const { value: oldest } = this.#ends.unfinished.values().next();
    if (oldest === undefined || !this.#mayChange) return false;
    yield { change: this.#ends.removeMore(oldest) };
    return this.#ends.unfinished.size > 0 && this.#mayChange;
  }

  /** Removes containers that have become empty, and childless nodes whose time to live is over. */
  *#reapSome(): Step {
    const { tree, writes, transactions, clock } = this.#state;
    for (let count = 0; count < REAPED_PER_STEP && this.#mayChange; count++) {
      const next = this.#reaping?.next();
      if (!next || next.done) {
        this.#reaping = undefined;
        return false;
      }
      const path = next.value;
      const node = tree.get(path);
      if (!node || (node.children?.size ?? 0) > 0) continue;
      const isDue =
        kindOf(node.owner) === 'container'
          ? node.createCount > 0
          : clock.wallMs() - node.mtimeMs > Number(ttlOf(node.owner));
      if (!isDue) continue;
      const moment = transactions.nextMoment();
      yield { change: { written: writes.remove(path, moment), moment } };
    }
    return this.#mayChange && this.#reaping !== undefined;
  }
}
