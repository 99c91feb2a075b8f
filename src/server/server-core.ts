import { invariant } from '../base/assert.ts';
import type { Clock } from '../base/clock.ts';
import { type Log, silentLog } from '../base/log.ts';
import { processFacts } from '../base/process-facts.ts';
import { type Random, systemRandom } from '../base/random.ts';
import { eventTypes, type NodeEventType, permissions } from '../protocol/constants.ts';
import { errorCodes } from '../protocol/error-codes.ts';
import { ProtocolError } from '../protocol/errors.ts';
import { Connect, Connected } from '../protocol/handshake.ts';
import { JuteReader } from '../protocol/jute-reader.ts';
import { xids } from '../protocol/operations.ts';
import type { Codec } from '../protocol/record.ts';
import { ReplyHeader, RequestHeader, WatcherEvent } from '../protocol/records.ts';
import { isAllowed } from './access.ts';
import { DataTree, kindOf, type Moment, ttlOf, type Undo } from './data-tree.ts';
import {
  answerFourLetterWord,
  defaultFourLetterWords,
  type FourLetterWord,
  fourLetterWordOf,
} from './four-letter-words.ts';
import { ReadOperations } from './read-operations.ts';
import { type Answer, type HandlerContext, RequestHandlers } from './request-handlers.ts';
import { type Peer, ServerConnection, type ServerLink } from './server-connection.ts';
import { ServerStatistics } from './server-statistics.ts';
import { type ServerSession, SessionTable } from './session-table.ts';
import type { Recovered } from './storage/recover.ts';
import type { SavedState } from './storage/snapshot-format.ts';
import type { StoreOwner } from './storage/store.ts';
import type { Journal, Transaction } from './transaction.ts';
import { WatchTable } from './watch-table.ts';
import { type Happening, WriteOperations, type Written } from './write-operations.ts';

/** What a server is allowed to use up, and how it keeps time. Each limit refuses with an error of its own. */
export interface ServerLimits {
  readonly tickMs: number;
  readonly sessionTimeoutMsMin: number;
  readonly sessionTimeoutMsMax: number;
  readonly connectionsMax: number;
  readonly connectionsPerAddressMax: number;
  readonly frameBytesMax: number;
  /** Output that a client has not taken: beyond this it is cut off. */
  readonly outputBytesMax: number;
  readonly watchesMax: number;
  readonly nodesMax: number;
  /** How long a connection may take to become a session. */
  readonly handshakeMs: number;
  /** How often empty containers and outlived nodes are looked for. */
  readonly reapMs: number;
}

/** What a server allows unless told otherwise. */
export const defaultLimits: ServerLimits = {
  tickMs: 2_000,
  sessionTimeoutMsMin: 4_000,
  sessionTimeoutMsMax: 40_000,
  connectionsMax: 10_000,
  connectionsPerAddressMax: 10_000,
  frameBytesMax: 0xfffff,
  outputBytesMax: 4 * 1024 * 1024,
  watchesMax: 1_000_000,
  nodesMax: 1_000_000,
  handshakeMs: 10_000,
  reapMs: 60_000,
};

export interface ServerCoreOptions {
  readonly clock: Clock;
  readonly random?: Random;
  readonly limits?: Partial<ServerLimits>;
  readonly ttlNodes?: boolean;
  readonly superDigest?: string;
  /** Which four-letter words are answered; see `defaultFourLetterWords`. */
  readonly fourLetterWords?: readonly string[] | '*';
  readonly log?: Log;
  /** What an earlier run left on disk. */
  readonly recovered?: Recovered;
  /** Where transactions go before anyone may see their effect; nowhere if left out. */
  readonly journal?: Journal;
}

const EVENT_NUMBERS = Object.fromEntries(
  Object.entries(eventTypes).map(([number, type]) => [type, Number(number)]),
) as Record<NodeEventType, number>;
const CONNECTED_STATE = 3;

/**
 * The server, without sockets or timers: links are handed to it, chunks of bytes are given to it, and it is called
 * when time has passed. One frame is handled completely before the next, which gives every ordering guarantee of
 * ZooKeeper: a session's requests in order, writes one at a time, events before the reply to what caused them.
 */
export class ServerCore implements HandlerContext, StoreOwner {
  readonly limits: ServerLimits;
  readonly tree: DataTree;
  readonly watches = new WatchTable<ServerConnection>();
  readonly sessions: SessionTable<ServerConnection>;
  readonly connections = new Set<ServerConnection>();
  readonly writes: WriteOperations;
  readonly reads: ReadOperations;
  readonly superDigest: string | undefined;
  readonly statistics = new ServerStatistics();
  readonly startedAtMs: number;
  /** Where clients reach this server, for operators to read: whoever listens says it. */
  listening: { readonly port?: number; readonly securePort?: number } = {};
  readonly #fourLetterWords: readonly string[] | '*';
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #handlers: RequestHandlers;
  readonly #dirty = new Set<ServerConnection>();
  /** Connections with output that waits for the disk. */
  readonly #holding = new Set<ServerConnection>();
  readonly #journal: Journal | undefined;
  /** Transactions that are not on disk yet, with how to take them back. */
  #pending: { readonly zxid: bigint; readonly undo: Undo }[] = [];
  #zxid: bigint;
  #reapAtMs: number;
  /** When the bytes that are being handled came in. */
  #receivedAtMs = 0;
  /** Why writes are refused, while they are. */
  #writeFault: string | undefined;

  constructor(options: ServerCoreOptions) {
    const { clock, random = systemRandom, log = silentLog } = options;
    this.limits = { ...defaultLimits, ...options.limits };
    this.#clock = clock;
    this.#log = log;
    this.superDigest = options.superDigest;
    this.startedAtMs = clock.nowMs();
    this.#fourLetterWords = options.fourLetterWords ?? defaultFourLetterWords;
    this.tree = options.recovered?.tree ?? new DataTree();
    this.#journal = options.journal;
    this.sessions = new SessionTable({ random, tickMs: this.limits.tickMs, wallMs: clock.wallMs() });
    this.writes = new WriteOperations(this.tree, {
      nodesMax: this.limits.nodesMax,
      ttlNodes: options.ttlNodes ?? true,
    });
    this.reads = new ReadOperations(this.tree);
    this.#handlers = new RequestHandlers(this);
    this.#zxid = firstZxid(clock.wallMs(), options.recovered?.usedZxid ?? 0n);
    // As in ZooKeeper: a full timeout from now, since nobody can know how long the server was away.
    for (const session of options.recovered?.sessions.values() ?? [])
      this.sessions.restore(session, clock.nowMs());
    this.#reapAtMs = clock.nowMs() + this.limits.reapMs;
  }

  get zxid(): bigint {
    return this.#zxid;
  }
  get nowMs(): number {
    return this.#clock.nowMs();
  }

  // Connections

  /** Takes a connection on, or refuses it by ending it at once. */
  accept(link: ServerLink, peer: Peer): ServerConnection | undefined {
    const { connectionsMax, connectionsPerAddressMax, frameBytesMax } = this.limits;
    let sameAddress = 0;
    for (const other of this.connections) if (other.peer.address === peer.address) sameAddress++;
    if (this.connections.size >= connectionsMax || sameAddress >= connectionsPerAddressMax) {
      this.#log('warn', 'too many connections', { address: peer.address });
      link.destroy();
      return undefined;
    }
    const connection = new ServerConnection(peer, link, this.nowMs, frameBytesMax);
    this.connections.add(connection);
    return connection;
  }

  receive(connection: ServerConnection, chunk: Buffer): void {
    if (connection.over) return;
    this.#receivedAtMs = this.nowMs;
    let bytes = chunk;
    if (!connection.opened) {
      const opening = connection.open(chunk);
      if (opening === undefined) return;
      const word = fourLetterWordOf(opening);
      if (word !== undefined) return this.#answerWord(connection, word);
      bytes = opening;
    }
    const frames = connection.push(bytes);
    if (frames === undefined) return this.#drop(connection, 'a frame of impossible length');
    for (const frame of frames) {
      this.#frame(connection, frame);
      if (connection.over) break;
    }
    if (connection.frames.fault && !connection.over) this.#drop(connection, connection.frames.fault.message);
    this.#flush();
  }

  /** The peer is gone. Its session stays, its watches do not. */
  closed(connection: ServerConnection): void {
    connection.over = true;
    this.connections.delete(connection);
    this.watches.forget(connection);
    this.#dirty.delete(connection);
    if (connection.session?.connection === connection) connection.session.connection = undefined;
  }

  #drop(connection: ServerConnection, reason: string): void {
    this.#log('info', 'dropped a connection', { address: connection.peer.address, reason });
    connection.destroy();
    this.closed(connection);
  }

  /** An operator's question: the answer is text, and the end of the connection. */
  #answerWord(connection: ServerConnection, word: FourLetterWord): void {
    connection.receivedCount++;
    this.statistics.receivedCount++;
    const text = answerFourLetterWord(word, this.#fourLetterWords, this, {
      asker: connection,
      nowMs: this.nowMs,
      wallMs: this.#clock.wallMs(),
      processFacts,
    });
    this.statistics.sentCount++;
    connection.endWith(text);
    this.closed(connection);
  }

  #frame(connection: ServerConnection, frame: Buffer): void {
    connection.receivedCount++;
    this.statistics.receivedCount++;
    const input = new JuteReader(frame);
    if (!connection.session) return this.#handshake(connection, input);
    if (frame.byteLength < RequestHeader.bytesMin) return this.#drop(connection, 'a frame without a header');
    const { xid, type } = RequestHeader.read(input);
    const { session } = connection;
    if (this.sessions.get(session.id) !== session) return this.#drop(connection, 'its session is over');
    this.#handlers.handle(connection, { xid, opcode: type, input });
  }

  #handshake(connection: ServerConnection, input: JuteReader): void {
    let request: ReturnType<typeof Connect.read>;
    try {
      request = Connect.read(input);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      return this.#drop(connection, 'not a connect request');
    }
    // A client that has seen more than we know belongs to another server, or to a past we have lost.
    if (request.lastZxidSeen > this.#zxid) return this.#drop(connection, 'it has seen a later transaction');
    const { sessionTimeoutMsMin, sessionTimeoutMsMax } = this.limits;
    const timeoutMs = Math.min(sessionTimeoutMsMax, Math.max(sessionTimeoutMsMin, request.timeOut));
    // As with ZooKeeper's read-only servers: a session that nobody will know of is for those who asked for that.
    if (this.readOnly && request.sessionId === 0n && !request.readOnly)
      return this.#drop(connection, 'a new session cannot be kept while the disk takes nothing');
    const session =
      request.sessionId === 0n
        ? this.#openSession(timeoutMs)
        : this.#renewSession(request.sessionId, request.passwd, timeoutMs);
    if (session) {
      session.connection = connection;
      connection.session = session;
      connection.lastOperation = 'openSession';
      connection.lastZxid = this.#zxid;
      this.#countAnswer(connection);
    }
    this.#send(connection, (out) =>
      Connected.write(out, {
        protocolVersion: 0,
        timeOut: session ? timeoutMs : 0,
        sessionId: session?.id ?? 0n,
        passwd: session?.password ?? Buffer.alloc(16),
        readOnly: request.readOnly === null ? null : request.readOnly && this.readOnly,
      }),
    );
    if (!session) this.#end(connection);
  }

  #openSession(timeoutMs: number): ServerSession<ServerConnection> {
    const session = this.sessions.create(timeoutMs, this.nowMs);
    if (this.readOnly) session.unkept = true;
    else this.#keepSession(session);
    return session;
  }

  #keepSession({ id: sessionId, password, timeoutMs }: ServerSession<ServerConnection>): void {
    const { zxid, timeMs } = this.nextMoment();
    this.#journalize({ kind: 'open-session', zxid, timeMs, sessionId, password, timeoutMs }, () =>
      this.sessions.remove(sessionId),
    );
  }

  #renewSession(
    id: bigint,
    password: Uint8Array | null,
    timeoutMs: number,
  ): ServerSession<ServerConnection> | undefined {
    const session = this.sessions.get(id);
    // Whoever asks, the connection that has it now is closed first, as clients that moved rely on.
    if (session?.connection) this.#drop(session.connection, 'its session moved to another connection');
    if (!session || !password || !session.password.equals(password)) return undefined;
    session.timeoutMs = timeoutMs;
    this.sessions.touch(session, this.nowMs);
    return session;
  }

  // Transactions

  /** The number and time of the next transaction. Refused ones use one up too. */
  nextMoment(): Moment {
    this.#zxid++;
    return { zxid: this.#zxid, timeMs: this.#clock.wallMs() };
  }

  /** Makes a write known: to the log, and to whoever watches. */
  commit(written: Written<unknown>, { zxid, timeMs }: Moment): void {
    if (written.changes.length > 0) {
      this.#journalize({ kind: 'tree', zxid, timeMs, changes: written.changes }, written.undo);
    }
    for (const happening of written.happenings) this.#tell(happening, zxid);
  }

  /** Ends a session: all its ephemeral nodes go in one transaction. */
  closeSession(session: ServerSession<ServerConnection>): Moment {
    const moment = this.nextMoment();
    if (session.unkept) {
      this.sessions.remove(session.id);
      return moment;
    }
    const removed = this.tree.ephemeralsOf(session.id).map((path) => this.writes.remove(path, moment));
    this.sessions.remove(session.id);
    const changes = removed.flatMap((written) => written.changes);
    this.#journalize({ kind: 'close-session', ...moment, sessionId: session.id, changes }, () => {
      for (const written of removed.reverse()) written.undo();
      this.sessions.restore(session, this.nowMs);
    });
    for (const happening of removed.flatMap((written) => written.happenings))
      this.#tell(happening, moment.zxid);
    return moment;
  }

  #journalize(transaction: Transaction, undo: Undo): void {
    if (!this.#journal) return;
    invariant(!this.readOnly, 'nothing changes while nothing can be kept');
    this.#pending.push({ zxid: transaction.zxid, undo });
    this.#journal.append(transaction);
  }

  #tell({ type, path, acl }: Happening, zxid: bigint): void {
    for (const connection of this.watches.fire({ type, path })) {
      if (isAllowed(acl, permissions.read, connection.identities)) this.notify(connection, type, path, zxid);
    }
  }

  /** Tells one connection of an event. */
  notify(connection: ServerConnection, type: NodeEventType, path: string, zxid: bigint): void {
    this.#send(connection, (out) => {
      ReplyHeader.write(out, { xid: xids.notification, zxid, err: 0 });
      WatcherEvent.write(out, { type: EVENT_NUMBERS[type], state: CONNECTED_STATE, path });
    });
  }

  /** Answers a request, and ends the connection if the answer says so. */
  answer(connection: ServerConnection, xid: number, { zxid, err, body, ends }: Answer): void {
    this.#send(connection, (out) => {
      ReplyHeader.write(out, { xid, zxid, err });
      if (body) (body.codec as Codec<unknown>).write(out, body.value);
    });
    this.#countAnswer(connection);
    if (ends) this.#end(connection);
  }

  #countAnswer(connection: ServerConnection): void {
    const { nowMs } = this;
    connection.lastResponseAtMs = nowMs;
    connection.latencies.add(nowMs - this.#receivedAtMs);
    this.statistics.latencies.add(nowMs - this.#receivedAtMs);
  }

  #end(connection: ServerConnection): void {
    connection.end();
    this.closed(connection);
  }

  // Output

  #send(connection: ServerConnection, write: Parameters<ServerConnection['send']>[1]): void {
    if (!connection.over) this.statistics.sentCount++;
    const heldUntil = this.#pending.at(-1)?.zxid;
    connection.send(heldUntil, write);
    if (heldUntil !== undefined) this.#holding.add(connection);
    this.#dirty.add(connection);
  }

  #flush(): void {
    for (const connection of this.#dirty) {
      connection.flush();
      if (connection.link.bufferedBytes > this.limits.outputBytesMax)
        this.#drop(connection, 'it does not read');
    }
    this.#dirty.clear();
  }

  // The disk

  /** Everything up to this transaction is on disk: what shows its effect may go out. */
  durable(zxid: bigint): void {
    let count = 0;
    while (count < this.#pending.length && this.#pending[count]!.zxid <= zxid) count++;
    this.#pending.splice(0, count);
    for (const connection of this.#holding) {
      connection.release(zxid);
      if (connection.heldCount === 0) this.#holding.delete(connection);
    }
  }

  /**
   * The disk takes no more. What it did not take never happened: it is taken back, and whoever waits for an answer
   * that shows it is cut off, since nobody can say now what became of it. Reads go on; writes are refused.
   */
  storeFailed(error: Error): void {
    this.#writeFault = error.message;
    for (const { undo } of this.#pending.reverse()) undo();
    this.#pending = [];
    for (const connection of this.#holding) this.#drop(connection, 'the disk took no more');
    this.#holding.clear();
  }

  /** The disk takes transactions again. Sessions that could not be kept are, from now on. */
  storeMended(): void {
    this.#writeFault = undefined;
    for (const session of this.sessions.all()) {
      if (!session.unkept) continue;
      delete session.unkept;
      this.#keepSession(session);
    }
  }

  takeZxid(): bigint {
    return this.nextMoment().zxid;
  }

  /** Whether the disk takes nothing: reads are answered, and nothing changes. */
  get readOnly(): boolean {
    return this.#writeFault !== undefined;
  }

  /** Everything that is to be kept, as of now. */
  state(): SavedState {
    return {
      zxid: this.#zxid,
      sessions: [...this.sessions.all()].map(({ id, password, timeoutMs }) => ({ id, password, timeoutMs })),
      nodes: this.tree.freeze(),
    };
  }

  // Time

  /** When `tick` must be called at the latest. */
  get wakeAtMs(): number {
    return Math.min(
      this.sessions.nextDueAtMs ?? Number.POSITIVE_INFINITY,
      this.#reapAtMs,
      this.#handshakeDueAtMs(),
    );
  }

  tick(): void {
    const { nowMs } = this;
    for (const session of this.sessions.due(nowMs)) {
      // It has ended for its client, but what it holds can only be given up in a transaction.
      if (this.readOnly && !session.unkept) {
        this.sessions.postpone(session, nowMs);
        continue;
      }
      this.#log('info', 'session expired', { session: session.id });
      this.closeSession(session);
      if (session.connection) this.#drop(session.connection, 'its session expired');
    }
    for (const connection of this.connections) {
      if (!connection.session && nowMs - connection.openedAtMs >= this.limits.handshakeMs) {
        this.#drop(connection, 'no connect request in time');
      }
    }
    if (nowMs >= this.#reapAtMs) {
      this.#reapAtMs = nowMs + this.limits.reapMs;
      if (!this.readOnly) this.#reap();
    }
    this.#flush();
  }

  #handshakeDueAtMs(): number {
    let dueAtMs = Number.POSITIVE_INFINITY;
    for (const { session, openedAtMs } of this.connections) {
      if (!session) dueAtMs = Math.min(dueAtMs, openedAtMs + this.limits.handshakeMs);
    }
    return dueAtMs;
  }

  /** Removes containers that have become empty, and childless nodes whose time to live is over. */
  #reap(): void {
    const wallMs = this.#clock.wallMs();
    for (const path of [...this.tree.perishable()]) {
      const node = this.tree.get(path);
      if (!node || (node.children?.size ?? 0) > 0) continue;
      const due =
        kindOf(node.owner) === 'container'
          ? node.createCount > 0
          : wallMs - node.mtimeMs > Number(ttlOf(node.owner));
      if (!due) continue;
      const moment = this.nextMoment();
      this.commit(this.writes.remove(path, moment), moment);
    }
  }

  /** The code to refuse a write with, while the log cannot take any. */
  get writeRefusal(): number | undefined {
    return this.readOnly ? errorCodes['not-read-only'] : undefined;
  }
}

/**
 * The first transaction of a run. Each run has an epoch of its own, above every earlier one: a number that was handed
 * out but never reached the disk is not handed out again. In memory, the clock stands in for what is not remembered;
 * otherwise clients of the earlier run, having seen more, would be turned away for ever.
 */
export function firstZxid(wallMs: number, usedZxid: bigint): bigint {
  const epochByClock = BigInt(Math.floor(wallMs / 1000));
  const nextEpoch = (usedZxid >> 32n) + 1n;
  return (epochByClock > nextEpoch ? epochByClock : nextEpoch) << 32n;
}
