import { type DataTree, kindOf, type Moment, ttlOf } from './data-tree.ts';
import type { ServerConnection } from './server-connection.ts';
import type { ServerLimits } from './server-limits.ts';
import type { ServerSession, SessionTable } from './session-table.ts';
import type { WatchTable } from './watch-table.ts';
import type { WriteOperations, Written } from './write-operations.ts';

/** How long all of it may take in one turn of the event loop; each kind has one step at least. */
const UPKEEP_MS = 1;
const SESSIONS_PER_STEP = 16;
const REAPED_PER_STEP = 64;
/** How many ephemeral nodes a session takes with it in one transaction. */
const ENDED_AT_ONCE = 256;

export interface UpkeepOwner {
  readonly nowMs: number;
  readonly wallMs: number;
  readonly tree: DataTree;
  readonly writes: WriteOperations;
  readonly watches: WatchTable<ServerConnection>;
  readonly sessions: SessionTable<ServerConnection>;
  readonly limits: Pick<ServerLimits, 'reapMs' | 'handshakeMs'>;
  /** Connections that are not a session yet, the oldest first. */
  readonly handshaking: ReadonlySet<ServerConnection>;
  readonly readOnly: boolean;
  /** Whether events are under way, behind which every change must come. */
  readonly busy: boolean;
  nextMoment(): Moment;
  commit(written: Written<unknown>, moment: Moment): void;
  expire(session: ServerSession<ServerConnection>): void;
  dropHandshaking(connection: ServerConnection): void;
}

/** What the server does without being asked: ends what is due, removes what is left over. In slices, as all it does. */
export class Upkeep {
  readonly #owner: UpkeepOwner;
  #reapAtMs: number;
  /** Nodes that may have to be removed and have not been looked at in this round. */
  #reaping: Iterator<string> | undefined;
  /** Sessions that are over and had more nodes than went with them. */
  readonly #ending = new Set<bigint>();

  constructor(owner: UpkeepOwner) {
    this.#owner = owner;
    this.#reapAtMs = owner.nowMs + owner.limits.reapMs;
    // The server ended before it was done with them.
    for (const [sessionId] of owner.tree.sessionsWithEphemerals())
      if (!owner.sessions.get(sessionId)) this.#ending.add(sessionId);
  }

  /** When `run` must be called at the latest. */
  get wakeAtMs(): number {
    const { sessions } = this.#owner;
    return Math.min(
      sessions.nextDueAtMs ?? Number.POSITIVE_INFINITY,
      this.#reapAtMs,
      this.#handshakeDueAtMs(),
    );
  }

  /** Whether there is more to do at once. */
  get unfinished(): boolean {
    if (this.#owner.watches.hasLeft) return true;
    return this.#mayChange && (this.#ending.size > 0 || this.#reaping !== undefined);
  }

  get #mayChange(): boolean {
    return !this.#owner.readOnly && !this.#owner.busy;
  }

  run(): void {
    const { nowMs, limits } = this.#owner;
    const endMs = nowMs + UPKEEP_MS;
    if (nowMs >= this.#reapAtMs) {
      this.#reapAtMs = nowMs + limits.reapMs;
      this.#reaping ??= this.#owner.tree.perishable();
    }
    const kinds = [
      () => this.#expireSome(nowMs),
      () => this.#dropSome(nowMs),
      () => this.#endSome(),
      () => this.#reapSome(),
      () => this.#sweepSome(),
    ];
    for (const step of kinds) while (step() && this.#owner.nowMs < endMs);
  }

  // Each does one step, and says whether there is another.

  #expireSome(nowMs: number): boolean {
    const { sessions, readOnly } = this.#owner;
    if (this.#owner.busy) return false;
    const due = sessions.due(nowMs, SESSIONS_PER_STEP);
    for (const session of due) {
      if (this.#owner.busy) return false;
      // It is not silent: we do not listen, until the disk has taken what it asked before, or others had their turn.
      const stalledBy = session.connection?.stalledBy;
      if (stalledBy === 'disk' || stalledBy === 'turn') sessions.touch(session, nowMs);
      // It has ended for its client, but what it holds can only be given up in a transaction.
      else if (readOnly && !session.unkept) sessions.postpone(session, nowMs);
      else this.#owner.expire(session);
    }
    return due.length === SESSIONS_PER_STEP;
  }

  #dropSome(nowMs: number): boolean {
    const { handshaking, limits } = this.#owner;
    const { value: oldest } = handshaking.values().next();
    // As `wakeAtMs` reckons it: the difference of two such times may be less, by a rounding error.
    if (!oldest || nowMs < oldest.openedAtMs + limits.handshakeMs) return false;
    this.#owner.dropHandshaking(oldest);
    return true;
  }

  /** Removes containers that have become empty, and childless nodes whose time to live is over. */
  #reapSome(): boolean {
    const { tree, writes, wallMs } = this.#owner;
    for (let count = 0; count < REAPED_PER_STEP && this.#mayChange; count++) {
      const next = this.#reaping?.next();
      if (!next || next.done) {
        this.#reaping = undefined;
        return false;
      }
      const path = next.value;
      const node = tree.get(path);
      if (!node || (node.children?.size ?? 0) > 0) continue;
      const due =
        kindOf(node.owner) === 'container'
          ? node.createCount > 0
          : wallMs - node.mtimeMs > Number(ttlOf(node.owner));
      if (!due) continue;
      const moment = this.#owner.nextMoment();
      this.#owner.commit(writes.remove(path, moment), moment);
    }
    return this.#mayChange && this.#reaping !== undefined;
  }

  #sweepSome(): boolean {
    const { watches } = this.#owner;
    watches.sweep();
    return watches.hasLeft;
  }

  // Sessions that held much. Their end is one transaction with the first of their nodes; the others follow in
  // transactions of their own, between which other clients are served. After a crash the next start goes on with it.

  /** Removes the first nodes of a session that ends; the others follow, if there are any. */
  removeFirst(sessionId: bigint, moment: Moment): Written<undefined> {
    const { tree } = this.#owner;
    const written = this.#removeSome(sessionId, moment);
    if (tree.hasEphemerals(sessionId)) this.#ending.add(sessionId);
    return {
      ...written,
      undo: () => {
        written.undo();
        this.#ending.delete(sessionId);
      },
    };
  }

  isEnding(sessionId: bigint): boolean {
    return this.#ending.has(sessionId);
  }

  /** Goes on with one session; true if nothing of it is left. */
  endMore(sessionId: bigint): boolean {
    if (!this.#ending.has(sessionId)) return true;
    if (!this.#mayChange) return false;
    const moment = this.#owner.nextMoment();
    const written = this.#removeSome(sessionId, moment);
    if (!this.#owner.tree.hasEphemerals(sessionId)) this.#ending.delete(sessionId);
    const undo = () => {
      written.undo();
      this.#ending.add(sessionId);
    };
    this.#owner.commit({ ...written, undo }, moment);
    return !this.#ending.has(sessionId);
  }

  #endSome(): boolean {
    const { value: sessionId } = this.#ending.values().next();
    if (sessionId === undefined || !this.#mayChange) return false;
    this.endMore(sessionId);
    return this.#ending.size > 0 && this.#mayChange;
  }

  #removeSome(sessionId: bigint, moment: Moment): Written<undefined> {
    const { tree, writes } = this.#owner;
    const removed = tree
      .firstEphemeralsOf(sessionId, ENDED_AT_ONCE)
      .map((path) => writes.remove(path, moment));
    return {
      result: undefined,
      changes: removed.flatMap(({ changes }) => changes),
      happenings: removed.flatMap(({ happenings }) => happenings),
      undo: () => {
        for (const { undo } of removed.reverse()) undo();
      },
    };
  }

  #handshakeDueAtMs(): number {
    const { value: oldest } = this.#owner.handshaking.values().next();
    return oldest ? oldest.openedAtMs + this.#owner.limits.handshakeMs : Number.POSITIVE_INFINITY;
  }
}
