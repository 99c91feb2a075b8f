import { invariant } from '../base/assert.ts';
import type { Clock } from '../base/clock.ts';
import { isSameSecret } from '../base/hash.ts';
import { type Log, silentLog } from '../base/log.ts';
import { processFacts } from '../base/process-facts.ts';
import { type Random, systemRandom } from '../base/random.ts';
import { eventTypes, type NodeEventType, permissions } from '../protocol/constants.ts';
import { errorCodes } from '../protocol/error-codes.ts';
import { ProtocolError } from '../protocol/errors.ts';
import { Connect, Connected } from '../protocol/handshake.ts';
import { JuteReader } from '../protocol/jute-reader.ts';
import { type Operation, operationOf, xids } from '../protocol/operations.ts';
import { ReplyHeader, RequestHeader, WatcherEvent } from '../protocol/records.ts';
import { isAllowed } from './access.ts';
import { Admission, type Leave } from './admission.ts';
import { DataTree, kindOf, type Moment, ttlOf, type Undo } from './data-tree.ts';
import { firstZxid } from './first-zxid.ts';
import {
  answerFourLetterWord,
  defaultFourLetterWords,
  type FourLetterWord,
  fourLetterWordOf,
} from './four-letter-words.ts';
import { ReadOperations } from './read-operations.ts';
import { hex } from './reported.ts';
import { type Answer, type HandlerContext, RequestHandlers } from './request-handlers.ts';
import { RequestIntake } from './request-intake.ts';
import { RequestRate } from './request-rate.ts';
import { type Peer, ServerConnection, type ServerLink } from './server-connection.ts';
import { limitsFrom, type ServerLimits } from './server-limits.ts';
import { type DropKind, ServerStatistics } from './server-statistics.ts';
import { type ServerSession, SessionTable } from './session-table.ts';
import type { DiskReport } from './storage/disk-report.ts';
import type { Recovered } from './storage/recover.ts';
import type { SavedState } from './storage/snapshot-format.ts';
import type { StoreOwner } from './storage/store.ts';
import type { Journal, Transaction } from './transaction.ts';
import { UnsettledTransactions } from './unsettled-transactions.ts';
import { WatchTable } from './watch-table.ts';
import { type Happening, WriteOperations, type Written } from './write-operations.ts';

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
  /** What operators may know of the folder, if there is one. */
  readonly disk?: DiskReport;
}

/** Asked with a request's bytes before they are looked at: what to refuse it with, or nothing. */
export type RequestGate = (
  sessionId: bigint,
  operation: Operation,
  request: Buffer,
) => keyof typeof errorCodes | undefined;

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
  readonly #admission: Admission;
  readonly writes: WriteOperations;
  readonly reads: ReadOperations;
  readonly superDigest: string | undefined;
  readonly statistics = new ServerStatistics();
  readonly startedAtMs: number;
  /** Where clients reach this server, for operators to read: whoever listens says it. */
  listening: { readonly port?: number; readonly securePort?: number } = {};
  /** Who may refuse requests beforehand; nobody unless it is set. */
  requestGate: RequestGate | undefined;
  readonly disk: DiskReport | undefined;
  /** The four-letter words that are answered. */
  readonly fourLetterWords: readonly string[] | '*';
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #handlers: RequestHandlers;
  readonly #intake: RequestIntake;
  /** Connections that are not a session yet, the oldest first. */
  readonly #strangers = new Set<ServerConnection>();
  readonly #dirty = new Set<ServerConnection>();
  /** Connections with output that waits for the disk. */
  readonly #holding = new Set<ServerConnection>();
  readonly #journal: Journal | undefined;
  /** What has happened and is not on disk yet. */
  readonly #unsettled = new UnsettledTransactions();
  #zxid: bigint;
  #reapAtMs: number;
  /** When the bytes that are being handled came in. */
  #receivedAtMs = 0;
  /** Why writes are refused, while they are. */
  #writeFault: string | undefined;

  constructor(options: ServerCoreOptions) {
    const { clock, random = systemRandom, log = silentLog } = options;
    this.limits = limitsFrom(options.limits);
    this.#admission = new Admission(this.limits);
    this.#clock = clock;
    this.#log = log;
    this.superDigest = options.superDigest;
    this.startedAtMs = clock.nowMs();
    this.fourLetterWords = options.fourLetterWords ?? defaultFourLetterWords;
    this.disk = options.disk;
    this.tree = options.recovered?.tree ?? new DataTree();
    this.#journal = options.journal;
    this.sessions = new SessionTable({ random, tickMs: this.limits.tickMs, wallMs: clock.wallMs() });
    this.writes = new WriteOperations(this.tree, { ...this.limits, ttlNodes: options.ttlNodes ?? true });
    this.reads = new ReadOperations(this.tree, this.limits.replyBytesMax);
    this.#handlers = new RequestHandlers(this);
    this.#intake = new RequestIntake({
      limits: this.limits,
      nowMs: () => clock.nowMs(),
      handle: (connection, frame) => this.#frame(connection, frame),
      drop: (connection, reason) => this.#drop(connection, reason),
    });
    this.#zxid = firstZxid(clock.wallMs(), options.recovered?.usedZxid ?? 0n);
    // As in ZooKeeper: a full timeout from now, since nobody can know how long the server was away.
    for (const session of options.recovered?.sessions.values() ?? [])
      this.sessions.restore(session, clock.nowMs());
    this.#reapAtMs = clock.nowMs() + this.limits.reapMs;
  }

  get zxid(): bigint {
    return this.#zxid;
  }
  /** Requests that are handled and wait for the disk. */
  get outstandingCount(): number {
    return this.#intake.outstandingCount;
  }
  /** Whether `tick` should be called once all input that is there has been handed out, so that turns are told apart. */
  get turnIsLong(): boolean {
    return this.#intake.turnIsLong;
  }
  get nowMs(): number {
    return this.#clock.nowMs();
  }

  // Connections

  /** A place for a socket from this address, to be given back when it is closed; undefined if there is none left. */
  admit(address: string): Leave | undefined {
    const leave = this.#admission.enter(address);
    if (!leave) {
      this.statistics.counts.refusedConnectionCount++;
      this.#log('warn', 'connection refused', { address, reason: 'too many connections' });
    }
    return leave;
  }

  /** Takes a connection on that was admitted. */
  accept(link: ServerLink, peer: Peer): ServerConnection {
    const { frameBytesMax, requestsPerSecondMax } = this.limits;
    const { nowMs } = this;
    const connection = new ServerConnection(peer, link, nowMs, frameBytesMax);
    if (requestsPerSecondMax !== Number.POSITIVE_INFINITY)
      connection.rate = new RequestRate(requestsPerSecondMax, nowMs);
    this.connections.add(connection);
    this.#strangers.add(connection);
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
    connection.push(bytes);
    this.#intake.work(connection);
    const { session, stalledBy } = connection;
    // It was heard, though not all that it said has been handled.
    if (stalledBy && session && !session.over) this.sessions.touch(session, this.nowMs);
    this.#flush();
  }

  /** The peer has taken some of its output. */
  drained(connection: ServerConnection): void {
    if (connection.stalledBy !== 'output') return;
    this.#intake.work(connection);
    this.#flush();
  }

  /** The peer is gone. Its session stays, its watches do not; what it asked before it went is done, as in ZooKeeper. */
  closed(connection: ServerConnection): void {
    if (!connection.over) this.#intake.finish(connection);
    if (!connection.over && connection.session) {
      this.#log('info', 'connection closed', placeOf(connection));
    }
    this.#intake.outstandingCount -= connection.outstandingCount;
    connection.abandon();
    this.#forget(connection);
    this.#flush();
  }

  #drop(connection: ServerConnection, reason: string, kind: DropKind = 'protocol'): void {
    this.statistics.counts.dropped[kind]++;
    this.#log('info', 'connection dropped', { ...placeOf(connection), reason });
    this.#intake.outstandingCount -= connection.outstandingCount;
    connection.destroy();
    this.#forget(connection);
  }

  #forget(connection: ServerConnection): void {
    this.connections.delete(connection);
    this.#strangers.delete(connection);
    this.watches.forget(connection);
    this.#dirty.delete(connection);
    this.#intake.forget(connection);
    if (connection.session?.connection === connection) connection.session.connection = undefined;
  }

  /** Cuts a session's connection, if it has one. The session stays. */
  disconnect(session: ServerSession<ServerConnection>): void {
    if (session.connection) this.#drop(session.connection, 'cut by the operator', 'operator');
  }

  /** An operator's question: the answer is text, and the end of the connection. */
  #answerWord(connection: ServerConnection, word: FourLetterWord): void {
    connection.receivedCount++;
    this.statistics.receivedCount++;
    const text = answerFourLetterWord(word, this.fourLetterWords, this, {
      asker: connection,
      nowMs: this.nowMs,
      wallMs: this.#clock.wallMs(),
      processFacts,
    });
    this.statistics.sentCount++;
    connection.endWith(text);
    this.#forget(connection);
  }

  #frame(connection: ServerConnection, frame: Buffer): void {
    connection.receivedCount++;
    this.statistics.receivedCount++;
    const input = new JuteReader(frame);
    if (!connection.session) return this.#handshake(connection, input);
    if (frame.byteLength < RequestHeader.bytesMin) return this.#drop(connection, 'a frame without a header');
    const { xid, type } = RequestHeader.read(input);
    const { session } = connection;
    if (session.over) {
      return this.#drop(connection, 'its session is over', 'session-over');
    }
    if (this.requestGate && this.#refused(connection, xid, type, frame)) return;
    this.#handlers.handle(connection, { xid, opcode: type, input });
  }

  /** Whether the request was refused beforehand: it is answered then, and has had no effect. */
  #refused(connection: ServerConnection, xid: number, opcode: number, frame: Buffer): boolean {
    const { session } = connection;
    const operation = operationOf(opcode);
    const condition =
      operation && this.requestGate?.(session!.id, operation, frame.subarray(RequestHeader.bytesMin));
    if (!operation || condition === undefined) return false;
    this.sessions.touch(session!, this.nowMs);
    const zxid = operation.writes ? this.nextMoment().zxid : this.#zxid;
    this.answer(connection, xid, { zxid, err: errorCodes[condition] });
    return true;
  }

  #handshake(connection: ServerConnection, input: JuteReader): void {
    let request: ReturnType<typeof Connect.read>;
    try {
      request = Connect.read(input);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      return this.#drop(connection, 'not a connect request');
    }
    this.statistics.counts.connectRequestCount++;
    // A client that has seen more than we know belongs to another server, or to a past we have lost.
    if (request.lastZxidSeen > this.#zxid) {
      return this.#drop(connection, 'it has seen a later transaction', 'ahead');
    }
    const { sessionTimeoutMsMin, sessionTimeoutMsMax } = this.limits;
    const timeoutMs = Math.min(sessionTimeoutMsMax, Math.max(sessionTimeoutMsMin, request.timeOut));
    if (request.sessionId === 0n && this.sessions.count >= this.limits.sessionsMax) {
      return this.#drop(connection, 'there are too many sessions', 'limit');
    }
    // As with ZooKeeper's read-only servers: a session that nobody will know of is for those who asked for that.
    if (this.readOnly && request.sessionId === 0n && !request.readOnly) {
      return this.#drop(connection, 'a new session cannot be kept while the disk takes nothing', 'disk');
    }
    const session =
      request.sessionId === 0n
        ? this.#openSession(timeoutMs)
        : this.#renewSession(request.sessionId, request.passwd, timeoutMs);
    if (session) {
      session.connection = connection;
      connection.session = session;
      this.#strangers.delete(connection);
      connection.lastOperation = 'openSession';
      connection.lastZxid = this.#zxid;
      this.#countAnswer(connection);
      const renewed = request.sessionId !== 0n;
      this.statistics.counts[renewed ? 'renewedSessionCount' : 'openedSessionCount']++;
      this.#log('info', renewed ? 'session renewed' : 'session opened', {
        ...placeOf(connection),
        timeoutMs,
      });
    } else {
      this.#log('info', 'session refused', {
        session: hex(request.sessionId),
        address: addressOf(connection),
        reason: this.sessions.get(request.sessionId) ? 'wrong password' : 'it is over, or never was',
      });
    }
    Connected.write(connection.beginFrame(), {
      protocolVersion: 0,
      timeOut: session ? timeoutMs : 0,
      sessionId: session?.id ?? 0n,
      passwd: session?.password ?? Buffer.alloc(16),
      readOnly: request.readOnly === null ? null : request.readOnly && this.readOnly,
    });
    this.#send(connection, true, this.#unsettled.newestZxid);
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
    // The password first: ids are numbers in a row, and whoever guesses one must not be able to cut its owner off.
    if (!session || !password || !isSameSecret(session.password, password)) return undefined;
    // A client that comes back may not have noticed yet that its connection is gone: this one takes its place.
    if (session.connection) {
      this.#drop(session.connection, 'its session moved to another connection', 'session-moved');
    }
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

  /** Ends a session as its client wants it. */
  closeSession(session: ServerSession<ServerConnection>): Moment {
    this.statistics.counts.closedSessionCount++;
    this.#log('info', 'session closed', { session: hex(session.id) });
    return this.#endSession(session);
  }

  /** Ends a session as if its time were over. */
  expire(session: ServerSession<ServerConnection>): void {
    invariant(!this.readOnly || session.unkept, 'a session that is kept ends in a transaction');
    this.#expire(session);
    this.#flush();
  }

  #expire(session: ServerSession<ServerConnection>): void {
    this.statistics.counts.expiredSessionCount++;
    this.#log('info', 'session expired', { session: hex(session.id), timeoutMs: session.timeoutMs });
    this.#endSession(session);
    if (session.connection) this.#drop(session.connection, 'its session expired', 'session-over');
  }

  /** All its ephemeral nodes go in one transaction. */
  #endSession(session: ServerSession<ServerConnection>): Moment {
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
    this.#unsettled.add(transaction.zxid, undo);
    this.#journal.append(transaction);
  }

  #tell(happening: Happening, zxid: bigint): void {
    const told = this.watches.fire(happening);
    if (!told) return;
    const { type, path, acl } = happening;
    for (const connection of told) {
      if (isAllowed(acl, permissions.read, connection.identities)) this.notify(connection, type, path, zxid);
    }
  }

  /** Tells one connection of an event. */
  notify(connection: ServerConnection, type: NodeEventType, path: string, zxid: bigint): void {
    if (connection.over) return;
    const out = connection.beginFrame();
    ReplyHeader.write(out, { xid: xids.notification, zxid, err: 0 });
    WatcherEvent.write(out, { type: EVENT_NUMBERS[type], state: CONNECTED_STATE, path });
    this.#send(connection, false, this.#unsettled.newestZxid);
  }

  /** Answers a request, and ends the connection if the answer says so. */
  answer(connection: ServerConnection, xid: number, answer: Answer): void {
    const { err, codec, shows } = answer;
    if (!connection.over) {
      let { zxid } = answer;
      let heldUntil = this.#unsettled.newestZxid;
      if (heldUntil !== undefined && shows !== undefined) {
        // What shows one node only need not wait for the disk to take changes of others.
        heldUntil = shows === 'nothing' ? undefined : this.#unsettled.lastToChange(shows);
        zxid = heldUntil ?? this.#unsettled.settledZxid(zxid);
      }
      const out = connection.beginFrame();
      ReplyHeader.write(out, { xid, zxid, err });
      codec?.write(out, answer.value);
      this.#send(connection, true, heldUntil);
    }
    this.#countAnswer(connection);
    if (answer.ends) this.#end(connection);
  }

  #countAnswer(connection: ServerConnection): void {
    const { nowMs } = this;
    connection.lastResponseAtMs = nowMs;
    connection.latencies.add(nowMs - this.#receivedAtMs);
    this.statistics.latencies.add(nowMs - this.#receivedAtMs);
  }

  #end(connection: ServerConnection): void {
    connection.end();
    this.#forget(connection);
  }

  // Output

  /** Sends the frame that was written into the connection's output. */
  #send(connection: ServerConnection, answers: boolean, heldUntil: bigint | undefined): void {
    this.statistics.sentCount++;
    const before = connection.outstandingCount;
    connection.endFrame(heldUntil, answers);
    this.#intake.outstandingCount += connection.outstandingCount - before;
    if (heldUntil !== undefined) this.#holding.add(connection);
    this.#dirty.add(connection);
  }

  #flush(): void {
    for (const connection of this.#dirty) {
      connection.flush();
      if (connection.outputBytes > this.limits.outputBytesMax)
        this.#drop(connection, 'it does not read', 'not-reading');
    }
    this.#dirty.clear();
  }

  // The disk

  /** Everything up to this transaction is on disk: what shows its effect may go out. */
  durable(zxid: bigint): void {
    this.#unsettled.settle(zxid);
    for (const connection of this.#holding) {
      const before = connection.outstandingCount;
      connection.release(zxid);
      this.#intake.outstandingCount += connection.outstandingCount - before;
      // With what the requests that can go on now are answered, in one write; but nothing more is said to who has left.
      if (connection.over) connection.flush();
      else this.#dirty.add(connection);
      if (connection.heldCount === 0) this.#holding.delete(connection);
    }
    this.#intake.resume();
    this.#flush();
  }

  /**
   * The disk takes no more. What it did not take never happened: it is taken back, and whoever waits for an answer
   * that shows it is cut off, since nobody can say now what became of it. Reads go on; writes are refused.
   */
  storeFailed(error: Error): void {
    this.#writeFault = error.message;
    this.#unsettled.takeBack();
    for (const connection of this.#holding) this.#drop(connection, 'the disk took no more', 'disk');
    this.#holding.clear();
    this.#intake.resume();
    this.#flush();
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
      this.#intake.wakeAtMs,
    );
  }

  tick(): void {
    const { nowMs } = this;
    for (const session of this.sessions.due(nowMs)) {
      // It is not silent: we do not listen, until the disk has taken what it asked before.
      if (session.connection?.stalledBy === 'disk') this.sessions.touch(session, nowMs);
      // It has ended for its client, but what it holds can only be given up in a transaction.
      else if (this.readOnly && !session.unkept) this.sessions.postpone(session, nowMs);
      else this.#expire(session);
    }
    for (const connection of this.#strangers) {
      // As `wakeAtMs` reckons it: the difference of two such times may be less, by a rounding error.
      if (nowMs < connection.openedAtMs + this.limits.handshakeMs) break;
      this.#drop(connection, 'no connect request in time', 'handshake-time');
    }
    if (nowMs >= this.#reapAtMs) {
      this.#reapAtMs = nowMs + this.limits.reapMs;
      if (!this.readOnly) this.#reap();
    }
    this.#intake.newTurn();
    this.#flush();
  }

  #handshakeDueAtMs(): number {
    const { value: oldest } = this.#strangers.values().next();
    return oldest ? oldest.openedAtMs + this.limits.handshakeMs : Number.POSITIVE_INFINITY;
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

  /** Why writes are refused, while they are. */
  get writeFault(): string | undefined {
    return this.#writeFault;
  }

  /** The code to refuse a write with, while the log cannot take any. */
  get writeRefusal(): number | undefined {
    return this.readOnly ? errorCodes['not-read-only'] : undefined;
  }
}

/** Who and where, as operators see it elsewhere: ids in ZooKeeper's form. */
function placeOf(connection: ServerConnection): { session?: string; address: string } {
  const { session } = connection;
  return { ...(session && { session: hex(session.id) }), address: addressOf(connection) };
}

function addressOf({ peer }: ServerConnection): string {
  return `${peer.address}:${peer.port}`;
}
