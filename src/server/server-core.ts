import { invariant } from '../base/assert.ts';
import type { Clock } from '../base/clock.ts';
import { type Log, silentLog } from '../base/log.ts';
import { processFacts } from '../base/process-facts.ts';
import { type Random, systemRandom } from '../base/random.ts';
import { eventTypes, type NodeEventType, permissions } from '../protocol/constants.ts';
import { errorCodes } from '../protocol/error-codes.ts';
import { Connected } from '../protocol/handshake.ts';
import { JuteReader } from '../protocol/jute-reader.ts';
import { type Operation, operationOf, xids } from '../protocol/operations.ts';
import type { ValueOf } from '../protocol/record.ts';
import { ReplyHeader, RequestHeader, WatcherEvent } from '../protocol/records.ts';
import { isAllowed } from './access.ts';
import { Admission, type Leave } from './admission.ts';
import { DataTree, type Moment, type Undo } from './data-tree.ts';
import { EventTeller } from './event-teller.ts';
import { firstZxid } from './first-zxid.ts';
import {
  answerFourLetterWord,
  defaultFourLetterWords,
  type FourLetterWord,
  fourLetterWordOf,
} from './four-letter-words.ts';
import { Handshakes, type HandshakesOwner } from './handshakes.ts';
import { ReadOperations } from './read-operations.ts';
import { hex, placeOf } from './reported.ts';
import { type Answer, type HandlerContext, RequestHandlers } from './request-handlers.ts';
import { RequestIntake } from './request-intake.ts';
import { RequestRate } from './request-rate.ts';
import { type Peer, ServerConnection, type ServerLink } from './server-connection.ts';
import { limitsFrom, type ServerLimits } from './server-limits.ts';
import { type DropKind, ServerStatistics } from './server-statistics.ts';
import { type ServerSession, SessionTable } from './session-table.ts';
import type { SlicedWork } from './sliced-work.ts';
import type { DiskReport } from './storage/disk-report.ts';
import type { Recovered } from './storage/recover.ts';
import type { SavedState } from './storage/snapshot-format.ts';
import type { StoreOwner } from './storage/store.ts';
import type { Journal, Transaction } from './transaction.ts';
import { UnsettledTransactions } from './unsettled-transactions.ts';
import { Upkeep, type UpkeepOwner } from './upkeep.ts';
import { WatchTable } from './watch-table.ts';
import { WriteOperations, type Written } from './write-operations.ts';

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
/** How many connections are written to in one turn, beside those that asked: each is a call into the system. */
const FLUSHED_PER_TURN = 128;
/** What is written at once of a text that may be very long. */
const TEXT_LENGTH_MAX = 8 * 1024;
/** How long one turn may go on telling of what has happened, where many are to be told of much. */
const TELLING_MS = 1.5;

/**
 * The server, without sockets or timers: links are handed to it, chunks of bytes are given to it, and it is called
 * when time has passed. One frame of a client is handled completely before its next one, what a request does happens in one
 * step, and nothing else is done until its events are told, which gives every ordering guarantee of ZooKeeper: a
 * session's requests in order, writes one at a time, events before the reply to what caused them.
 */
export class ServerCore implements HandlerContext, HandshakesOwner, StoreOwner, UpkeepOwner {
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
  readonly #handshakes: Handshakes;
  readonly #intake: RequestIntake;
  readonly #teller: EventTeller;
  readonly #upkeep: Upkeep;
  /** The answer to the write whose events are being told, if anyone waits for it. */
  #answerBehindEvents: readonly [connection: ServerConnection, xid: number, answer: Answer] | undefined;
  /** Connections that are not a session yet, the oldest first. */
  readonly handshaking = new Set<ServerConnection>();
  readonly #dirty = new Set<ServerConnection>();
  /** Connections with output that waits for the disk. */
  readonly #holding = new Set<ServerConnection>();
  readonly #journal: Journal | undefined;
  /** What has happened and is not on disk yet. */
  readonly #unsettled = new UnsettledTransactions();
  #zxid: bigint;
  #flushRoom = FLUSHED_PER_TURN;
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
    this.#handshakes = new Handshakes(this, log);
    this.#teller = new EventTeller({
      watches: this.watches,
      tell: (connection, { type, path, acl }, zxid) => {
        if (isAllowed(acl, permissions.read, connection.identities))
          this.notify(connection, type, path, zxid);
      },
    });
    const teller = this.#teller;
    this.#intake = new RequestIntake({
      limits: this.limits,
      get busy() {
        return teller.busy;
      },
      nowMs: () => clock.nowMs(),
      handle: (connection, frame) => this.#frame(connection, frame),
      drop: (connection, reason) => this.drop(connection, reason),
      departed: (connection) => this.#gone(connection),
    });
    this.#zxid = firstZxid(clock.wallMs(), options.recovered?.usedZxid ?? 0n);
    // As in ZooKeeper: a full timeout from now, since nobody can know how long the server was away.
    for (const session of options.recovered?.sessions.values() ?? [])
      this.sessions.restore(session, clock.nowMs());
    this.#upkeep = new Upkeep(this);
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
    return this.#intake.turnIsLong || this.busy || this.#dirty.size > 0 || this.#upkeep.unfinished;
  }
  /** Whether events are under way, behind which every request must come. */
  get busy(): boolean {
    return this.#teller.busy;
  }
  get nowMs(): number {
    return this.#clock.nowMs();
  }
  get wallMs(): number {
    return this.#clock.wallMs();
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
    this.handshaking.add(connection);
    return connection;
  }

  receive(connection: ServerConnection, chunk: Buffer): void {
    if (connection.over || connection.asksWord) return;
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
    this.#intake.received(connection, bytes.byteLength);
    const { session, stalledBy } = connection;
    // It was heard, though not all that it said has been handled.
    if (stalledBy && session && !session.over) this.sessions.touch(session, this.nowMs);
    this.#flushOne(connection);
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
    this.#intake.outstandingCount -= connection.outstandingCount;
    if (connection.over) this.#gone(connection);
    else {
      if (connection.session) this.#log('info', 'connection closed', placeOf(connection));
      connection.silence();
      this.connections.delete(connection);
      this.handshaking.delete(connection);
      this.#dirty.delete(connection);
      this.#holding.delete(connection);
      this.watches.forget(connection);
      this.#intake.depart(connection);
    }
    this.#flush();
  }

  /** Nothing more is to be done for it. */
  #gone(connection: ServerConnection): void {
    connection.abandon();
    this.#forget(connection);
  }

  drop(connection: ServerConnection, reason: string, kind: DropKind = 'protocol'): void {
    if (connection.departed) return this.#gone(connection); // Nobody is there to be cut off.
    this.statistics.counts.dropped[kind]++;
    this.#log('info', 'connection dropped', { ...placeOf(connection), reason });
    this.#intake.outstandingCount -= connection.outstandingCount;
    connection.destroy();
    this.#forget(connection);
  }

  #forget(connection: ServerConnection): void {
    this.connections.delete(connection);
    this.handshaking.delete(connection);
    this.watches.forget(connection);
    this.#dirty.delete(connection);
    this.#intake.forget(connection);
    if (connection.session?.connection === connection) connection.session.connection = undefined;
  }

  /** Cuts a session's connection, if it has one. The session stays. */
  disconnect(session: ServerSession<ServerConnection>): void {
    if (session.connection) this.drop(session.connection, 'cut by the operator', 'operator');
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
    if (typeof text !== 'string') {
      connection.asksWord = true;
      connection.work = this.#say(connection, text);
      return this.#intake.work(connection);
    }
    connection.endWith(text);
    this.#forget(connection);
  }

  /** A long text, as fast as it is taken. */
  *#say(connection: ServerConnection, parts: Iterable<string>): SlicedWork {
    let text = '';
    for (const part of parts) {
      text += part;
      if (text.length < TEXT_LENGTH_MAX) continue;
      connection.link.write(Buffer.from(text));
      text = '';
      yield;
      if (connection.over || connection.departed) return;
    }
    connection.endWith(text);
    this.#forget(connection);
  }

  #frame(connection: ServerConnection, frame: Buffer): SlicedWork | undefined {
    connection.receivedCount++;
    this.statistics.receivedCount++;
    const input = new JuteReader(frame);
    if (!connection.session) return void this.#handshakes.handle(connection, input);
    if (frame.byteLength < RequestHeader.bytesMin)
      return void this.drop(connection, 'a frame without a header');
    const { xid, type } = RequestHeader.read(input);
    const { session } = connection;
    if (session.over) {
      return void this.drop(connection, 'its session is over', 'session-over');
    }
    if (this.requestGate && this.#refused(connection, xid, type, frame)) return undefined;
    return this.#handlers.handle(connection, { xid, opcode: type, input });
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

  /** The session serves, and is served by, this connection from now on. */
  attach(session: ServerSession<ServerConnection>, connection: ServerConnection): void {
    session.connection = connection;
    connection.session = session;
    this.handshaking.delete(connection);
    connection.lastOperation = 'openSession';
    connection.lastZxid = this.#zxid;
    this.#countAnswer(connection);
  }

  /** Sends the answer to a connect request, and ends the connection if there is no session for it. */
  answerHandshake(connection: ServerConnection, answer: ValueOf<typeof Connected>): void {
    Connected.write(connection.beginFrame(), answer);
    this.#send(connection, true, this.#unsettled.newestZxid);
    if (!connection.session) this.#end(connection);
  }

  keepSession({ id: sessionId, password, timeoutMs }: ServerSession<ServerConnection>): void {
    const { zxid, timeMs } = this.nextMoment();
    this.#journalize({ kind: 'open-session', zxid, timeMs, sessionId, password, timeoutMs }, () =>
      this.sessions.remove(sessionId),
    );
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
    this.#teller.tell(written.happenings, zxid);
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
    this.statistics.counts.expiredSessionCount++;
    this.#log('info', 'session expired', { session: hex(session.id), timeoutMs: session.timeoutMs });
    this.#endSession(session);
    if (session.connection) this.drop(session.connection, 'its session expired', 'session-over');
    this.#flush();
  }

  /** Its ephemeral nodes go with it in one transaction, but for those of sessions that have very many. */
  #endSession(session: ServerSession<ServerConnection>): Moment {
    const moment = this.nextMoment();
    if (session.unkept) {
      this.sessions.remove(session.id);
      return moment;
    }
    const { changes, happenings, undo } = this.#upkeep.removeFirst(session.id, moment);
    this.sessions.remove(session.id);
    this.#journalize({ kind: 'close-session', ...moment, sessionId: session.id, changes }, () => {
      undo();
      this.sessions.restore(session, this.nowMs);
    });
    this.#teller.tell(happenings, moment.zxid);
    return moment;
  }

  /** Goes on with the end of a session that had very many nodes; true if nothing of it is left. */
  endMore({ id }: ServerSession<ServerConnection>): boolean {
    return this.#upkeep.endMore(id);
  }

  #journalize(transaction: Transaction, undo: Undo): void {
    if (!this.#journal) return;
    invariant(!this.readOnly, 'nothing changes while nothing can be kept');
    this.#unsettled.add(transaction.zxid, undo);
    this.#journal.append(transaction);
  }

  /** Tells one connection of an event. */
  notify(connection: ServerConnection, type: NodeEventType, path: string, zxid: bigint): void {
    if (connection.over || connection.departed) return;
    if (connection.eventsLater) {
      connection.eventsLater.push(() => this.notify(connection, type, path, zxid));
      return;
    }
    const out = connection.beginFrame();
    ReplyHeader.write(out, { xid: xids.notification, zxid, err: 0 });
    WatcherEvent.write(out, { type: EVENT_NUMBERS[type], state: CONNECTED_STATE, path });
    this.#send(connection, false, this.#unsettled.newestZxid);
  }

  /** Answers a request, and ends the connection if the answer says so. What is returned must be done first, if it is. */
  answer(connection: ServerConnection, xid: number, answer: Answer): SlicedWork | undefined {
    if (!connection.over && !connection.departed) {
      if (this.busy) {
        // Nothing else is handled until its events are told: it comes right behind them.
        this.#answerBehindEvents = [connection, xid, answer];
        return undefined;
      }
      if (answer.inSteps) return this.#answerInSteps(connection, xid, answer, answer.inSteps);
      const { zxid, heldUntil } = this.#asShown(answer);
      const out = connection.beginFrame();
      ReplyHeader.write(out, { xid, zxid, err: answer.err });
      answer.codec?.write(out, answer.value);
      this.#send(connection, true, heldUntil);
      connection.tellLater();
    }
    this.#countAnswer(connection);
    if (answer.ends) this.#end(connection);
    return undefined;
  }

  /** Up to which transaction an answer tells, and which one must be on disk before it may. */
  #asShown({ zxid, shows }: Answer): { readonly zxid: bigint; readonly heldUntil: bigint | undefined } {
    const newest = this.#unsettled.newestZxid;
    if (newest === undefined || shows === undefined) return { zxid, heldUntil: newest };
    // What shows one node only need not wait for the disk to take changes of others.
    const heldUntil = shows === 'nothing' ? undefined : this.#unsettled.lastToChange(shows);
    return { zxid: heldUntil ?? this.#unsettled.settledZxid(zxid), heldUntil };
  }

  /** A long answer shows one moment; events of later ones come behind it. */
  *#answerInSteps(
    connection: ServerConnection,
    xid: number,
    answer: Answer,
    write: NonNullable<Answer['inSteps']>,
  ): SlicedWork {
    const { zxid, heldUntil } = this.#asShown(answer);
    const { takenBackCount } = this.#unsettled;
    const out = connection.beginFrame();
    connection.eventsLater ??= [];
    ReplyHeader.write(out, { xid, zxid, err: answer.err });
    for (const steps = write(out); !steps.next().done; ) {
      yield;
      if (connection.over || connection.departed) return;
    }
    const mayBeGone = heldUntil !== undefined && this.#unsettled.takenBackCount > takenBackCount;
    if (mayBeGone) return this.drop(connection, 'the disk took no more', 'disk');
    const isHeld = heldUntil !== undefined && this.#unsettled.has(heldUntil);
    this.#send(connection, true, isHeld ? heldUntil : undefined);
    connection.tellLater();
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
      if (this.#flushRoom-- <= 0) return; // The others in the next turn.
      this.#flushOne(connection);
    }
  }

  #flushOne(connection: ServerConnection): void {
    if (!this.#dirty.delete(connection)) return;
    connection.flush();
    if (connection.outputBytes > this.limits.outputBytesMax && !connection.departed)
      this.drop(connection, 'it does not read', 'not-reading');
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
    this.#teller.forget((zxid) => this.#unsettled.has(zxid));
    this.#unsettled.takeBack();
    const [waiting] = (!this.busy && this.#answerBehindEvents) || [];
    if (waiting) this.#holding.add(waiting);
    if (!this.busy) this.#answerBehindEvents = undefined;
    for (const connection of this.#holding) this.drop(connection, 'the disk took no more', 'disk');
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
      this.keepSession(session);
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
    return Math.min(this.#upkeep.wakeAtMs, this.#intake.wakeAtMs);
  }

  tick(): void {
    this.#flushRoom = FLUSHED_PER_TURN;
    const startedAtMs = this.nowMs;
    while (this.busy && this.nowMs < startedAtMs + TELLING_MS) this.#tellMore();
    this.#upkeep.run();
    this.#intake.newTurn(this.nowMs - startedAtMs);
    this.#flush();
  }

  #tellMore(): void {
    this.#teller.more();
    const waiting = this.#answerBehindEvents;
    if (this.busy || !waiting) return;
    this.#answerBehindEvents = undefined;
    const [connection] = waiting;
    connection.work = this.answer(...waiting);
    if (connection.work) this.#intake.work(connection);
  }

  dropHandshaking(connection: ServerConnection): void {
    this.drop(connection, 'no connect request in time', 'handshake-time');
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
