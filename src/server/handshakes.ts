import { isSameSecret } from '../base/hash.ts';
import { ProtocolError } from '../protocol/errors.ts';
import { Connect, type Connected } from '../protocol/handshake.ts';
import type { JuteReader } from '../protocol/jute-reader.ts';
import type { ValueOf } from '../protocol/record.ts';
import { addressOf, hex } from './reported.ts';
import type { ServerConnection } from './server-connection.ts';
import type { ServerState } from './server-state.ts';
import type { DropKind } from './server-statistics.ts';
import type { ServerSession } from './session-table.ts';

type Session = ServerSession<ServerConnection>;

/** What a connect request has come to: why its connection is cut off, or its answer. */
export type Handshake =
  | { readonly reason: string; readonly kind: DropKind }
  | {
      readonly reason?: undefined;
      readonly answer: ValueOf<typeof Connected>;
      /** Whose connection it is from now on; undefined if the session was refused. */
      readonly session: Session | undefined;
      readonly renewed: boolean;
    };

/** How a connection gets its session: a new one, or one there is. */
export class Handshakes {
  readonly #state: ServerState;

  constructor(state: ServerState) {
    this.#state = state;
  }

  handle(connection: ServerConnection, input: JuteReader): Handshake {
    const { limits, sessions, statistics, zxid, readOnly, log } = this.#state;
    let request: ReturnType<typeof Connect.read>;
    try {
      request = Connect.read(input);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      return { reason: 'not a connect request', kind: 'protocol' };
    }
    statistics.counts.connectRequestCount++;
    // A client that has seen more than we know belongs to another server, or to a past we have lost.
    if (request.lastZxidSeen > zxid) return { reason: 'it has seen a later transaction', kind: 'ahead' };
    const renewed = request.sessionId !== 0n;
    if (!renewed && sessions.count >= limits.sessionsMax)
      return { reason: 'there are too many sessions', kind: 'limit' };
    // As with ZooKeeper's read-only servers: a session that is not kept is for clients that asked for that.
    if (readOnly && !renewed && !request.readOnly)
      return { reason: 'a new session cannot be kept while the disk takes nothing', kind: 'disk' };
    const { sessionTimeoutMsMin, sessionTimeoutMsMax } = limits;
    const timeoutMs = Math.min(sessionTimeoutMsMax, Math.max(sessionTimeoutMsMin, request.timeOut));
    const session = renewed
      ? this.#renew(request.sessionId, request.passwd, timeoutMs)
      : this.#open(timeoutMs);
    if (session) statistics.counts[renewed ? 'renewedSessionCount' : 'openedSessionCount']++;
    else {
      log('info', 'session refused', {
        session: hex(request.sessionId),
        address: addressOf(connection),
        reason: sessions.get(request.sessionId) ? 'wrong password' : 'it is over, or never was',
      });
    }
    const answer = {
      protocolVersion: 0,
      timeOut: session ? timeoutMs : 0,
      sessionId: session?.id ?? 0n,
      passwd: session?.password ?? Buffer.alloc(16),
      readOnly: request.readOnly === null ? null : request.readOnly && readOnly,
    };
    return { answer, session, renewed };
  }

  #open(timeoutMs: number): Session {
    const session = this.#state.sessions.create(timeoutMs, this.#state.clock.nowMs());
    if (this.#state.readOnly) session.unkept = true;
    else this.#keep(session);
    return session;
  }

  #renew(id: bigint, password: Uint8Array | null, timeoutMs: number): Session | undefined {
    const { sessions, clock } = this.#state;
    const session = sessions.get(id);
    // The password first: ids are numbers in a row, and a client that guesses one must not cut off its owner.
    if (!session || !password || !isSameSecret(session.password, password)) return undefined;
    session.timeoutMs = timeoutMs;
    sessions.touch(session, clock.nowMs());
    return session;
  }

  #keep({ id: sessionId, password, timeoutMs }: Session): void {
    const { sessions, transactions } = this.#state;
    const { zxid, timeMs } = transactions.nextMoment();
    transactions.append({ kind: 'open-session', zxid, timeMs, sessionId, password, timeoutMs }, () =>
      sessions.remove(sessionId),
    );
  }

  /** Keeps the sessions that were opened while nothing could be kept. */
  keepUnkept(): void {
    for (const session of this.#state.sessions.all()) {
      if (!session.unkept) continue;
      delete session.unkept;
      this.#keep(session);
    }
  }
}
