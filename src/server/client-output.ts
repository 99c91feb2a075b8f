import { eventTypes, type NodeEventType } from '../protocol/constants.ts';
import { Connected } from '../protocol/handshake.ts';
import { xids } from '../protocol/operations.ts';
import type { ValueOf } from '../protocol/record.ts';
import { ReplyHeader, WatcherEvent } from '../protocol/records.ts';
import type { Answer } from './answer.ts';
import type { ServerConnection } from './server-connection.ts';
import type { ServerState } from './server-state.ts';
import type { DropKind } from './server-statistics.ts';
import type { SlicedResult } from './sliced-work.ts';

const EVENT_NUMBERS = Object.fromEntries(
  Object.entries(eventTypes).map(([number, type]) => [type, Number(number)]),
) as Record<NodeEventType, number>;
const CONNECTED_STATE = 3;
/** How many connections are written to in one turn, beside those that asked: each is a call into the system. */
const FLUSHED_PER_TURN = 128;
/** What is written at once of a text that may be very long. */
const TEXT_LENGTH_MAX = 8 * 1024;

type Drop = (connection: ServerConnection, reason: string, kind: DropKind) => void;

/**
 * What goes out to clients: answers, and events. A frame that shows an unsettled transaction is held until that is
 * durable, and so is every frame behind it on its connection. All that one step made goes out in one write.
 */
export class ClientOutput {
  readonly #state: ServerState;
  readonly #drop: Drop;
  /** Connections with output that has not been written to their links. */
  readonly #dirty = new Set<ServerConnection>();
  /** Connections with output that is held. */
  readonly #holding = new Set<ServerConnection>();
  #flushRoom = FLUSHED_PER_TURN;
  /** When the bytes that are being handled came in. */
  receivedAtMs = 0;

  constructor(state: ServerState, drop: Drop) {
    this.#state = state;
    this.#drop = drop;
  }

  /** Whether there are connections that `flush` had no room for. */
  get unfinished(): boolean {
    return this.#dirty.size > 0;
  }

  notify(connection: ServerConnection, type: NodeEventType, path: string, zxid: bigint): void {
    if (connection.over || connection.departed) return;
    if (connection.eventsLater) {
      connection.eventsLater.push(() => this.notify(connection, type, path, zxid));
      return;
    }
    const out = connection.beginFrame();
    ReplyHeader.write(out, { xid: xids.notification, zxid, err: 0 });
    WatcherEvent.write(out, { type: EVENT_NUMBERS[type], state: CONNECTED_STATE, path });
    this.#send(connection, false, this.#state.transactions.newestZxid);
  }

  answerHandshake(connection: ServerConnection, answer: ValueOf<typeof Connected>): void {
    Connected.write(connection.beginFrame(), answer);
    this.#send(connection, true, this.#state.transactions.newestZxid);
    if (connection.session) this.#count(connection);
  }

  answer(connection: ServerConnection, xid: number, answer: Answer): void {
    if (!connection.over && !connection.departed) {
      const { zxid, heldUntil } = this.#state.transactions.asShown(answer);
      const out = connection.beginFrame();
      ReplyHeader.write(out, { xid, zxid, err: answer.err });
      answer.codec?.write(out, answer.value);
      this.#send(connection, true, heldUntil);
      connection.tellLater();
    }
    this.#count(connection);
  }

  /**
   * As `answer`, for a body that is written in steps: it shows one moment, and events of later ones come behind it.
   * False if the connection ended meanwhile.
   */
  *answerInSteps(connection: ServerConnection, xid: number, answer: Answer): SlicedResult<boolean> {
    const { transactions } = this.#state;
    const { zxid, heldUntil } = transactions.asShown(answer);
    const { takenBackCount } = transactions;
    const out = connection.beginFrame();
    connection.eventsLater ??= [];
    ReplyHeader.write(out, { xid, zxid, err: answer.err });
    for (const steps = answer.inSteps!(out); !steps.next().done; ) {
      yield;
      if (connection.over || connection.departed) return false;
    }
    if (connection.over) return false;
    if (heldUntil !== undefined && transactions.takenBackCount > takenBackCount) {
      this.#drop(connection, 'the disk took no more', 'disk');
      return false;
    }
    const isHeld = heldUntil !== undefined && transactions.isUnsettled(heldUntil);
    this.#send(connection, true, isHeld ? heldUntil : undefined);
    connection.tellLater();
    this.#count(connection);
    return true;
  }

  /** Writes a long text that is no frame, as fast as the peer takes it, and ends. False if the peer was gone before. */
  *endWith(connection: ServerConnection, parts: Iterable<string>): SlicedResult<boolean> {
    let text = '';
    for (const part of parts) {
      text += part;
      if (text.length < TEXT_LENGTH_MAX) continue;
      connection.link.write(Buffer.from(text));
      text = '';
      yield;
      if (connection.over || connection.departed) return false;
    }
    connection.endWith(text);
    return true;
  }

  #count(connection: ServerConnection): void {
    const nowMs = this.#state.clock.nowMs();
    connection.lastResponseAtMs = nowMs;
    connection.latencies.add(nowMs - this.receivedAtMs);
    this.#state.statistics.latencies.add(nowMs - this.receivedAtMs);
  }

  /** Sends the frame that was written into the connection's output. */
  #send(connection: ServerConnection, answers: boolean, heldUntil: bigint | undefined): void {
    this.#state.statistics.sentCount++;
    const before = connection.outstandingCount;
    connection.endFrame(heldUntil, answers);
    this.#state.statistics.outstandingCount += connection.outstandingCount - before;
    if (heldUntil !== undefined) this.#holding.add(connection);
    this.#dirty.add(connection);
  }

  /** Everything up to this transaction is durable: what shows its effect may go out. */
  release(zxid: bigint): void {
    for (const connection of this.#holding) {
      const before = connection.outstandingCount;
      connection.release(zxid);
      this.#state.statistics.outstandingCount += connection.outstandingCount - before;
      // In one write with the answers to the requests that can go on now. A connection that is over gets none.
      if (connection.over) connection.flush();
      else this.#dirty.add(connection);
      if (connection.heldCount === 0) this.#holding.delete(connection);
    }
  }

  /** Cuts off the clients that wait for what is held: it never happened. */
  dropHolding(): void {
    for (const connection of this.#holding) this.#drop(connection, 'the disk took no more', 'disk');
    this.#holding.clear();
  }

  /** A turn of the event loop begins: as many connections as in each may be written to. */
  beginTurn(): void {
    this.#flushRoom = FLUSHED_PER_TURN;
  }

  flush(): void {
    for (const connection of this.#dirty) {
      if (this.#flushRoom-- <= 0) return; // The others in the next turn.
      this.flushOne(connection);
    }
  }

  flushOne(connection: ServerConnection): void {
    if (!this.#dirty.delete(connection)) return;
    connection.flush();
    if (connection.outputBytes > this.#state.limits.outputBytesMax && !connection.departed)
      this.#drop(connection, 'it does not read', 'not-reading');
  }

  /** The connection's output is ended already, or is written by `release`. */
  forget(connection: ServerConnection): void {
    this.#dirty.delete(connection);
  }

  /** Nothing more goes out on this connection, neither what is held. */
  silence(connection: ServerConnection): void {
    this.#state.statistics.outstandingCount -= connection.outstandingCount;
    this.#dirty.delete(connection);
    this.#holding.delete(connection);
    connection.silence();
  }
}
