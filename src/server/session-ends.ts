import { invariant } from '../base/assert.ts';
import type { Moment } from './data-tree.ts';
import { hex } from './reported.ts';
import type { ServerConnection } from './server-connection.ts';
import type { ServerState } from './server-state.ts';
import type { ServerSession } from './session-table.ts';
import type { Change, Written } from './write-operations.ts';

/** How many ephemeral nodes a session takes with it in one transaction. */
const ENDED_AT_ONCE = 256;

/**
 * How sessions end. The end of a session is one transaction with the first of its ephemeral nodes. Others follow in
 * transactions of their own, between which other clients are served. After a crash the next start goes on with it.
 */
export class SessionEnds {
  readonly #state: ServerState;
  /** Sessions that are over and have ephemeral nodes left. */
  readonly unfinished = new Set<bigint>();

  constructor(state: ServerState) {
    this.#state = state;
    for (const [sessionId] of state.tree.sessionsWithEphemerals())
      if (!state.sessions.get(sessionId)) this.unfinished.add(sessionId);
  }

  /** Ends a session: as its client wants it, or since its time is over. */
  end(session: ServerSession<ServerConnection>, how: 'closed' | 'expired'): Change {
    const { tree, sessions, transactions, statistics, log, readOnly } = this.#state;
    invariant(!readOnly || session.unkept, 'a session that is kept ends in a transaction');
    const { id, timeoutMs } = session;
    statistics.counts[`${how}SessionCount`]++;
    log('info', `session ${how}`, { session: hex(id), ...(how === 'expired' && { timeoutMs }) });
    const moment = transactions.nextMoment();
    const written = this.#removeSome(id, moment);
    if (tree.hasEphemerals(id)) this.unfinished.add(id);
    sessions.remove(id);
    if (session.unkept) return { written, moment };
    const undo = () => {
      written.undo();
      this.unfinished.delete(id);
      sessions.restore(session, this.#state.clock.nowMs());
    };
    return { written: { ...written, undo }, moment, endedSession: id };
  }

  /** Removes some more of the nodes that an unfinished session left. */
  removeMore(sessionId: bigint): Change {
    const { tree, transactions } = this.#state;
    const moment = transactions.nextMoment();
    const written = this.#removeSome(sessionId, moment);
    if (!tree.hasEphemerals(sessionId)) this.unfinished.delete(sessionId);
    const undo = () => {
      written.undo();
      this.unfinished.add(sessionId);
    };
    return { written: { ...written, undo }, moment };
  }

  #removeSome(sessionId: bigint, moment: Moment): Written<undefined> {
    const { tree, writes } = this.#state;
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
}
