import { processFacts } from '../base/process-facts.ts';
import { JuteReader } from '../protocol/jute-reader.ts';
import { operations, xids } from '../protocol/operations.ts';
import { RequestHeader } from '../protocol/records.ts';
import { Admission, type Leave } from './admission.ts';
import type { Answer, AnswerSteps } from './answer.ts';
import { ClientOutput } from './client-output.ts';
import type { Moment } from './data-tree.ts';
import { EventTeller } from './event-teller.ts';
import {
  answerFourLetterWord,
  defaultFourLetterWords,
  type FourLetterWord,
  fourLetterWordOf,
} from './four-letter-words.ts';
import { Handshakes } from './handshakes.ts';
import { placeOf } from './reported.ts';
import { RequestHandlers } from './request-handlers.ts';
import { type IntakeOwner, RequestIntake } from './request-intake.ts';
import { RequestRate } from './request-rate.ts';
import { type Peer, ServerConnection, type ServerLink } from './server-connection.ts';
import { ServerState, type ServerStateOptions } from './server-state.ts';
import type { DropKind } from './server-statistics.ts';
import { SessionEnds } from './session-ends.ts';
import type { ServerSession } from './session-table.ts';
import { ITEMS_PER_STEP, type SlicedWork } from './sliced-work.ts';
import type { StoreOwner } from './storage/store.ts';
import { Upkeep } from './upkeep.ts';
import type { Change, Written } from './write-operations.ts';

export interface ServerCoreOptions extends ServerStateOptions {
  /** Which four-letter words are answered; see `defaultFourLetterWords`. */
  readonly fourLetterWords?: readonly string[] | '*';
}

/** How long one turn may go on sending events, where many clients are to get many. */
const TELLING_MS = 1.5;

/**
 * The server, without sockets or timers: links are handed to it, chunks of bytes are given to it, and it is called
 * when time has passed. One frame of a client is handled completely before its next one, what a request does happens
 * in one step, and nothing else is done until its events are sent, which gives every ordering guarantee of ZooKeeper:
 * a session's requests in order, writes one at a time, events before the reply to what caused them.
 *
 *   receive ─→ intake ─→ handle ─→ handlers ─→ commit ─→ log    ─→ durable ─→ output
 *                          └─────→ handshakes     └────→ events ─→ output
 */
export class ServerCore extends ServerState implements IntakeOwner, StoreOwner {
  /** The four-letter words that are answered. */
  readonly fourLetterWords: readonly string[] | '*';
  /** Called when the disk has changed what is due, for the timer's sake. */
  onStoreStep: () => void = () => {};
  readonly #admission = new Admission(this.limits);
  readonly #output = new ClientOutput(this, (...cut) => this.drop(...cut));
  readonly #teller = new EventTeller(this.watches, this.#output);
  readonly #intake = new RequestIntake(this, this.#teller, this);
  readonly #handshakes = new Handshakes(this);
  readonly #ends = new SessionEnds(this);
  readonly #handlers = new RequestHandlers(this, this.#ends);
  readonly #upkeep = new Upkeep(this, this.#ends, this.#teller);
  /** The answer to the write whose events are being sent, if a client waits for it. */
  #answerBehindEvents: readonly [connection: ServerConnection, xid: number, answer: Answer] | undefined;

  constructor(options: ServerCoreOptions) {
    super(options);
    this.fourLetterWords = options.fourLetterWords ?? defaultFourLetterWords;
  }

  /** Requests that are handled and wait for the disk. */
  get outstandingCount(): number {
    return this.statistics.outstandingCount;
  }
  /** Whether events are under way, behind which every request must come. */
  get busy(): boolean {
    return this.#teller.busy;
  }

  // Connections

  /** A place for a socket from this address, to be given back when it is closed; undefined if there is none left. */
  admit(address: string): Leave | undefined {
    const leave = this.#admission.enter(address);
    if (!leave) {
      this.statistics.counts.refusedConnectionCount++;
      this.log('warn', 'connection refused', { address, reason: 'too many connections' });
    }
    return leave;
  }

  /** Takes a connection on that was admitted. */
  accept(link: ServerLink, peer: Peer): ServerConnection {
    const { frameBytesMax, requestsPerSecondMax } = this.limits;
    const nowMs = this.clock.nowMs();
    const connection = new ServerConnection(peer, link, nowMs, frameBytesMax);
    if (requestsPerSecondMax !== Number.POSITIVE_INFINITY)
      connection.rate = new RequestRate(requestsPerSecondMax, nowMs);
    this.connections.add(connection);
    this.handshaking.add(connection);
    return connection;
  }

  receive(connection: ServerConnection, chunk: Buffer): void {
    if (connection.over || connection.asksWord) return;
    this.#output.receivedAtMs = this.clock.nowMs();
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
    // The client is alive, though not all that it asked has been handled.
    if (stalledBy && session && !session.over) this.sessions.touch(session, this.clock.nowMs());
    this.#output.flushOne(connection);
    this.#output.flush();
  }

  /** The peer has taken some of its output. */
  drained(connection: ServerConnection): void {
    if (connection.stalledBy !== 'output') return;
    this.#intake.work(connection);
    this.#output.flush();
  }

  /** The peer is gone. Its session stays, its watches do not; what it asked before it went is done, as in ZooKeeper. */
  closed(connection: ServerConnection): void {
    this.#output.silence(connection);
    if (connection.over) this.departed(connection);
    else {
      if (connection.session) this.log('info', 'connection closed', placeOf(connection));
      this.connections.delete(connection);
      this.handshaking.delete(connection);
      this.watches.forget(connection);
      this.#intake.depart(connection);
    }
    this.#output.flush();
  }

  /** The peer is gone, and all that it asked is done. */
  departed(connection: ServerConnection): void {
    connection.abandon();
    this.#forget(connection);
  }

  /** Cuts a connection off. Its session stays. */
  drop(connection: ServerConnection, reason: string, kind: DropKind = 'protocol'): void {
    if (connection.departed) return this.departed(connection);
    this.statistics.counts.dropped[kind]++;
    this.log('info', 'connection dropped', { ...placeOf(connection), reason });
    this.#output.silence(connection);
    connection.destroy();
    this.#forget(connection);
  }

  /** Cuts a session's connection, if it has one. The session stays. */
  disconnect(session: ServerSession<ServerConnection>): void {
    if (session.connection) this.drop(session.connection, 'cut by the operator', 'operator');
  }

  #end(connection: ServerConnection): void {
    connection.end();
    this.#forget(connection);
  }

  #forget(connection: ServerConnection): void {
    this.connections.delete(connection);
    this.handshaking.delete(connection);
    this.watches.forget(connection);
    this.#output.forget(connection);
    this.#intake.forget(connection);
    if (connection.session?.connection === connection) connection.session.connection = undefined;
  }

  // What is asked on a connection: a four-letter word; or a handshake, and then requests.

  /** An operator's question: the answer is text, and the end of the connection. */
  #answerWord(connection: ServerConnection, word: FourLetterWord): void {
    connection.receivedCount++;
    this.statistics.receivedCount++;
    const text = answerFourLetterWord(word, this.fourLetterWords, this, {
      asker: connection,
      nowMs: this.clock.nowMs(),
      wallMs: this.clock.wallMs(),
      processFacts,
    });
    this.statistics.sentCount++;
    if (typeof text !== 'string') {
      connection.asksWord = true;
      connection.work = this.#answerWordInSteps(connection, text);
      return this.#intake.work(connection);
    }
    connection.endWith(text);
    this.#forget(connection);
  }

  *#answerWordInSteps(connection: ServerConnection, parts: Iterable<string>): SlicedWork {
    if (yield* this.#output.endWith(connection, parts)) this.#forget(connection);
  }

  /** Handles one frame: completely, or as far as the work that is returned, which is done before the next frame. */
  handle(connection: ServerConnection, frame: Buffer): SlicedWork | undefined {
    connection.receivedCount++;
    this.statistics.receivedCount++;
    const input = new JuteReader(frame);
    const { session } = connection;
    if (!session) return void this.#handshake(connection, input);
    if (frame.byteLength < RequestHeader.bytesMin)
      return void this.drop(connection, 'a frame without a header');
    const { xid, type: opcode } = RequestHeader.read(input);
    if (session.over) return void this.drop(connection, 'its session is over', 'session-over');
    const answer = this.#handlers.handle(connection, { xid, opcode, input, frame });
    if (!answer) return undefined;
    // A ping is answered with the xid of pings, whatever it came with.
    const answered = opcode === operations.ping.opcode ? xids.ping : xid;
    return answer.later
      ? this.#completeLater(connection, answered, answer.later)
      : this.#complete(connection, answered, answer);
  }

  #handshake(connection: ServerConnection, input: JuteReader): void {
    const handshake = this.#handshakes.handle(connection, input);
    if (handshake.reason !== undefined) return this.drop(connection, handshake.reason, handshake.kind);
    const { session, answer, renewed } = handshake;
    if (session) {
      // A client that reconnects may not know yet that its connection is gone: this one takes its place. Requests on
      // that one that have not been begun are not done: they must not happen behind what the client reads now.
      if (session.connection) {
        this.drop(session.connection, 'its session moved to another connection', 'session-moved');
      }
      session.connection = connection;
      connection.session = session;
      this.handshaking.delete(connection);
      connection.lastOperation = 'openSession';
      connection.lastZxid = this.zxid;
      const { timeoutMs } = session;
      this.log('info', renewed ? 'session renewed' : 'session opened', {
        ...placeOf(connection),
        timeoutMs,
      });
    }
    this.#output.answerHandshake(connection, answer);
    if (!session) this.#end(connection);
  }

  /** What a request has come to: what it changed is committed, then it is answered. */
  #complete(connection: ServerConnection, xid: number, answer: Answer): SlicedWork | undefined {
    const { change } = answer;
    if (change) this.#commit(change);
    const ended = change?.endedSession;
    const inSteps =
      ended !== undefined && this.#ends.unfinished.has(ended)
        ? () => this.#untilEnded(connection, ended)
        : undefined;
    const rest = this.#answer(connection, xid, inSteps ? { ...answer, inSteps } : answer);
    connection.lastZxid = answer.zxid;
    return rest;
  }

  *#completeLater(connection: ServerConnection, xid: number, steps: AnswerSteps): SlicedWork {
    const answer = yield* steps;
    if (!answer) return;
    for (const [index, { type, path }] of (answer.missed ?? []).entries()) {
      if (index % ITEMS_PER_STEP === ITEMS_PER_STEP - 1) yield;
      this.#output.notify(connection, type, path, -1n);
    }
    const rest = this.#complete(connection, xid, answer);
    if (rest) yield* rest;
  }

  /** Until all that the session held is gone, which other clients may see go. */
  *#untilEnded(connection: ServerConnection, sessionId: bigint): SlicedWork {
    while (this.#ends.unfinished.has(sessionId)) {
      // What is left has to wait for the disk, for a time that is not known.
      if (this.readOnly) return this.drop(connection, 'the disk took no more', 'disk');
      if (!this.busy) this.#commit(this.#ends.removeMore(sessionId));
      if (this.#ends.unfinished.has(sessionId)) yield;
    }
  }

  /** Answers a request, and ends the connection if the answer says so. Work that is returned must be done first. */
  #answer(connection: ServerConnection, xid: number, answer: Answer): SlicedWork | undefined {
    if (!connection.over && !connection.departed) {
      if (this.#teller.busy) {
        // No other request is handled until its events are sent: it comes right behind them.
        this.#answerBehindEvents = [connection, xid, answer];
        return undefined;
      }
      if (answer.inSteps) return this.#answerInSteps(connection, xid, answer);
    }
    this.#output.answer(connection, xid, answer);
    if (answer.ends) this.#end(connection);
    return undefined;
  }

  *#answerInSteps(connection: ServerConnection, xid: number, answer: Answer): SlicedWork {
    const answered = yield* this.#output.answerInSteps(connection, xid, answer);
    if (answered && answer.ends) this.#end(connection);
  }

  // Transactions

  /** The number and time of the next transaction. */
  nextMoment(): Moment {
    return this.transactions.nextMoment();
  }

  takeZxid(): bigint {
    return this.nextMoment().zxid;
  }

  /** Logs what a write has changed, and sends its events. */
  commit(written: Written<unknown>, moment: Moment): void {
    this.#commit({ written, moment });
  }

  #commit({ written, moment, endedSession: sessionId }: Change): void {
    const { changes, happenings, undo } = written;
    const { zxid, timeMs } = moment;
    if (sessionId !== undefined)
      this.transactions.append({ kind: 'close-session', zxid, timeMs, sessionId, changes }, undo);
    else if (changes.length > 0) this.transactions.append({ kind: 'tree', zxid, timeMs, changes }, undo);
    this.#teller.tell(happenings, zxid);
  }

  /** Ends a session as if its time were over. */
  expire(session: ServerSession<ServerConnection>): void {
    this.#commit(this.#ends.end(session, 'expired'));
    if (session.connection) this.drop(session.connection, 'its session expired', 'session-over');
    this.#output.flush();
  }

  /** Everything up to this transaction is on disk: what shows its effect may go out. */
  durable(zxid: bigint): void {
    this.transactions.settle(zxid);
    this.#output.release(zxid);
    this.#resume();
  }

  /**
   * The disk takes no more. What it did not take never happened: it is taken back, and each client that waits for an
   * answer that shows it is cut off, since the outcome is not known now. Reads go on; writes are refused.
   */
  storeFailed(error: Error): void {
    this.#teller.forget((zxid) => this.transactions.isUnsettled(zxid));
    this.transactions.takeBack(error.message);
    this.#output.dropHolding();
    if (!this.busy && this.#answerBehindEvents) {
      const [connection] = this.#answerBehindEvents;
      this.#answerBehindEvents = undefined;
      if (!connection.over) this.drop(connection, 'the disk took no more', 'disk');
    }
    this.#resume();
  }

  /** The disk takes transactions again. */
  storeMended(): void {
    this.transactions.fault = undefined;
    this.#handshakes.keepUnkept();
    this.onStoreStep();
  }

  /** Goes on with the requests that waited for the disk. */
  #resume(): void {
    this.#intake.resume();
    this.#output.flush();
    this.onStoreStep();
  }

  // Time

  /** When `tick` must be called at the latest. */
  get wakeAtMs(): number {
    return Math.min(this.#upkeep.wakeAtMs, this.#intake.wakeAtMs);
  }

  /** Whether `tick` should be called once all input that is there has been handed out, so that turns are told apart. */
  get turnIsLong(): boolean {
    return this.#intake.turnIsLong || this.#teller.busy || this.#output.unfinished || this.#upkeep.unfinished;
  }

  tick(): void {
    this.#output.beginTurn();
    const startedAtMs = this.clock.nowMs();
    while (this.busy && this.clock.nowMs() < startedAtMs + TELLING_MS) this.#tellMore();
    for (const { expired, silent, change } of this.#upkeep.run()) {
      if (expired) this.expire(expired);
      if (silent) this.drop(silent, 'no connect request in time', 'handshake-time');
      if (change) this.#commit(change);
    }
    this.#intake.newTurn(this.clock.nowMs() - startedAtMs);
    this.#output.flush();
  }

  #tellMore(): void {
    this.#teller.more();
    const waiting = this.#answerBehindEvents;
    if (this.busy || !waiting) return;
    this.#answerBehindEvents = undefined;
    const [connection] = waiting;
    connection.work = this.#answer(...waiting);
    if (connection.work) this.#intake.work(connection);
  }
}
