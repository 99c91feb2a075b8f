import { isSameSecret } from '../base/hash.ts';
import type { Log } from '../base/log.ts';
import { ProtocolError } from '../protocol/errors.ts';
import { Connect, type Connected } from '../protocol/handshake.ts';
import type { JuteReader } from '../protocol/jute-reader.ts';
import type { ValueOf } from '../protocol/record.ts';
import { addressOf, hex, placeOf } from './reported.ts';
import type { ServerConnection } from './server-connection.ts';
import type { ServerLimits } from './server-limits.ts';
import type { DropKind, ServerStatistics } from './server-statistics.ts';
import type { ServerSession, SessionTable } from './session-table.ts';

type Session = ServerSession<ServerConnection>;

export interface HandshakesOwner {
  readonly limits: Pick<ServerLimits, 'sessionTimeoutMsMin' | 'sessionTimeoutMsMax' | 'sessionsMax'>;
  readonly sessions: SessionTable<ServerConnection>;
  readonly statistics: ServerStatistics;
  readonly zxid: bigint;
  readonly nowMs: number;
  readonly readOnly: boolean;
  drop(connection: ServerConnection, reason: string, kind?: DropKind): void;
  keepSession(session: Session): void;
  attach(session: Session, connection: ServerConnection): void;
  answerHandshake(connection: ServerConnection, answer: ValueOf<typeof Connected>): void;
}

/** How a connection becomes that of a session: a new one, or one there is. */
export class Handshakes {
  readonly #owner: HandshakesOwner;
  readonly #log: Log;

  constructor(owner: HandshakesOwner, log: Log) {
    this.#owner = owner;
    this.#log = log;
  }

  handle(connection: ServerConnection, input: JuteReader): void {
    const { limits, sessions, statistics, zxid, readOnly } = this.#owner;
    let request: ReturnType<typeof Connect.read>;
    try {
      request = Connect.read(input);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      return this.#owner.drop(connection, 'not a connect request');
    }
    statistics.counts.connectRequestCount++;
    // A client that has seen more than we know belongs to another server, or to a past we have lost.
    if (request.lastZxidSeen > zxid) {
      return this.#owner.drop(connection, 'it has seen a later transaction', 'ahead');
    }
    const { sessionTimeoutMsMin, sessionTimeoutMsMax } = limits;
    const timeoutMs = Math.min(sessionTimeoutMsMax, Math.max(sessionTimeoutMsMin, request.timeOut));
    const renewed = request.sessionId !== 0n;
    if (!renewed && sessions.count >= limits.sessionsMax) {
      return this.#owner.drop(connection, 'there are too many sessions', 'limit');
    }
    // As with ZooKeeper's read-only servers: a session that nobody will know of is for those who asked for that.
    if (readOnly && !renewed && !request.readOnly) {
      return this.#owner.drop(
        connection,
        'a new session cannot be kept while the disk takes nothing',
        'disk',
      );
    }
    const session = renewed
      ? this.#renewSession(request.sessionId, request.passwd, timeoutMs)
      : this.#openSession(timeoutMs);
    if (session) {
      this.#owner.attach(session, connection);
      statistics.counts[renewed ? 'renewedSessionCount' : 'openedSessionCount']++;
      this.#log('info', renewed ? 'session renewed' : 'session opened', {
        ...placeOf(connection),
        timeoutMs,
      });
    } else {
      this.#log('info', 'session refused', {
        session: hex(request.sessionId),
        address: addressOf(connection),
        reason: sessions.get(request.sessionId) ? 'wrong password' : 'it is over, or never was',
      });
    }
    this.#owner.answerHandshake(connection, {
      protocolVersion: 0,
      timeOut: session ? timeoutMs : 0,
      sessionId: session?.id ?? 0n,
      passwd: session?.password ?? Buffer.alloc(16),
      readOnly: request.readOnly === null ? null : request.readOnly && readOnly,
    });
  }

  #openSession(timeoutMs: number): Session {
    const session = this.#owner.sessions.create(timeoutMs, this.#owner.nowMs);
    if (this.#owner.readOnly) session.unkept = true;
    else this.#owner.keepSession(session);
    return session;
  }

  #renewSession(id: bigint, password: Uint8Array | null, timeoutMs: number): Session | undefined {
    const session = this.#owner.sessions.get(id);
    // The password first: ids are numbers in a row, and whoever guesses one must not be able to cut its owner off.
    if (!session || !password || !isSameSecret(session.password, password)) return undefined;
    // A client that comes back may not have noticed yet that its connection is gone: this one takes its place. What it
    // asked on that one and has not been begun is not done: it must not happen behind what the client looks at now.
    if (session.connection) {
      this.#owner.drop(session.connection, 'its session moved to another connection', 'session-moved');
    }
    session.timeoutMs = timeoutMs;
    this.#owner.sessions.touch(session, this.#owner.nowMs);
    return session;
  }
}
