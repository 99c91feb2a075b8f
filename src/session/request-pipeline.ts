import { invariant } from '../base/assert.ts';
import { Fifo } from '../base/fifo.ts';
import { JuteWriter } from '../protocol/jute-writer.ts';
import { type Operation, operations, xids } from '../protocol/operations.ts';
import type { ValueOf } from '../protocol/record.ts';
import type { AuthPacket } from '../protocol/records.ts';
import { GatheredReads, isGatherable, partsOf } from './gathered-reads.ts';
import { ReadRun } from './read-run.ts';
import type { QueueLimits } from './session-io.ts';
import { OwnRequest, type SessionRequest } from './session-request.ts';

const XID_MAX = 2 ** 31 - 1;
/** By how much the setWatches request that sets a watch again is longer than the read that set it first. */
const RESTORED_WATCH_BYTES = 8 + 8 + 5 * 4 + 4 - (8 + 4 + 1);
/** A read whose connection dies under it this often is given up: it may be what kills the connection. */
const ATTEMPTS_MAX = 4;

/**
 * The requests of one session, in order.
 *
 *   queued ──(connected)──► run ──► in flight: encoded │ flushed to the socket ──► answered
 *                                                      ^ the last `#unflushedCount` of them stand left of this
 *
 * The run is of reads that may yet become one request. Whatever comes behind it that is not such a read, or the end of
 * the tick, ends it first, so that it changes nobody's place. A server answers in the order of the requests, so the first in flight is the one the next reply is for.
 */
export class RequestPipeline {
  readonly #requestBytesMax: number;
  readonly #queueLimits: QueueLimits;
  readonly #out = new JuteWriter();
  readonly #scratch = new JuteWriter();
  readonly #queued = new Fifo<SessionRequest>();
  #queuedBytes = 0;
  readonly #run: ReadRun;
  readonly #inFlight = new Fifo<SessionRequest>();
  #unflushedCount = 0;
  #lastXid = 0;

  constructor(requestBytesMax: number, replyBytesMax: number, queueLimits: QueueLimits) {
    this.#requestBytesMax = requestBytesMax;
    this.#queueLimits = queueLimits;
    this.#run = new ReadRun(requestBytesMax, replyBytesMax);
  }

  /** What reads may become. */
  get run(): Pick<ReadRun, 'gathering' | 'sawCrowd' | 'refused'> {
    return this.#run;
  }

  get hasOutput(): boolean {
    return this.#out.byteLength > 0 || this.#run.length > 0;
  }

  get queuedCount(): number {
    return this.#queued.length;
  }

  get inFlightCount(): number {
    return this.#inFlight.length + this.#run.length;
  }

  /** Keeps a request for the next connection; false if too much waits. Throws `RangeError` if it could never be sent. */
  queue(request: SessionRequest): boolean {
    const mark = this.#scratch.beginFrame();
    request.frameBytes = this.#encode(this.#scratch, mark, request);
    this.#scratch.dropFrame(mark);
    const { requestsMax, bytesMax } = this.#queueLimits;
    // What a lost connection left to be repeated counts, and is kept beyond the limits: it had been taken on.
    if (this.#queued.length >= requestsMax || this.#queuedBytes + request.frameBytes > bytesMax) return false;
    this.#enqueued(request);
    this.#queued.push(request);
    return true;
  }

  #enqueued(request: SessionRequest): void {
    request.stage = 'queued';
    this.#queuedBytes += request.frameBytes;
  }

  #drainQueue(): SessionRequest[] {
    this.#queuedBytes = 0;
    return this.#queued.drain();
  }

  /** Encodes a request into the next flush. Throws `RangeError` if it is longer than a server accepts. */
  send(request: SessionRequest, nowMs: number): void {
    if (this.#run.take(request, nowMs)) {
      request.stage = 'sent';
      if (this.#run.isFull) this.#endRun();
    } else {
      this.#endRun();
      this.#send(request, nowMs);
    }
  }

  #send(request: SessionRequest, nowMs: number): void {
    request.xid = this.#lastXid === XID_MAX ? 1 : this.#lastXid + 1;
    const mark = this.#out.beginFrame();
    request.frameBytes = this.#encode(this.#out, mark, request);
    this.#lastXid = request.xid;
    request.stage = 'sent';
    request.sentAtMs = nowMs;
    request.attemptCount++;
    this.#inFlight.push(request);
    this.#unflushedCount++;
  }

  sendQueued(nowMs: number): void {
    for (const request of this.#drainQueue()) this.send(request, nowMs);
  }

  sendPing(): void {
    this.#sendHeaderless(xids.ping, operations.ping, undefined);
  }

  sendAuth(packet: ValueOf<typeof AuthPacket>): void {
    this.#sendHeaderless(xids.auth, operations.auth, packet);
  }

  /** A frame that is not a request: the connect request, which has neither xid nor opcode. */
  sendBare(write: (out: JuteWriter) => void): void {
    this.#endRun();
    const mark = this.#out.beginFrame();
    write(this.#out);
    this.#out.endFrame(mark);
  }

  /** Everything made since the last flush, as one piece; empty if nobody wants it any more. */
  flush(): Buffer {
    this.#endRun();
    this.#run.interrupted();
    this.#unflushedCount = 0;
    return this.#out.take();
  }

  /** The request that the next reply must be for. */
  get expected(): SessionRequest | undefined {
    return this.#inFlight.first();
  }

  /** The first in flight was answered, by so many bytes. */
  answered(replyBytes: number): void {
    const request = this.#inFlight.shift();
    invariant(request, 'a reply was matched before it is taken off');
    request.stage = 'done';
    if (request instanceof GatheredReads) this.#run.answered(replyBytes, request.reads.length);
    else if (isGatherable(request)) this.#run.answered(replyBytes, 1);
    if (this.#unflushedCount > this.#inFlight.length) this.#unflushedCount = this.#inFlight.length;
  }

  /** Gives a queued request up; false if it has been encoded already. */
  withdraw(request: SessionRequest): boolean {
    const isQueued = this.#queued.remove(request);
    if (isQueued) this.#queuedBytes -= request.frameBytes;
    return isQueued;
  }

  /**
   * The connection is over. What is safe to repeat, and what had not reached the socket, goes back to the
   * front of the queue; returns the rest: what may or may not have happened, and what has not and is not to wait for
   * another connection. `culprit` is not repeated, nor is what was given up.
   */
  connectionEnded(culprit: SessionRequest | undefined): {
    readonly unknown: readonly SessionRequest[];
    readonly unqueued: readonly SessionRequest[];
    readonly givenUp: readonly SessionRequest[];
  } {
    const { flushed, unflushed } = this.#takeInFlight();
    const unknown: SessionRequest[] = [];
    const again: SessionRequest[] = [];
    // Of gathered reads none is the culprit yet: each is asked by itself, and then says for itself what is wrong.
    for (const request of flushed.flatMap(partsOf)) {
      const { repeatable } = request.operation;
      if (repeatable && request !== culprit && request.attemptCount < ATTEMPTS_MAX) again.push(request);
      else unknown.push(request);
    }
    again.push(...unflushed.filter((request) => !request.unqueued));
    const wanted = again.filter((request) => !request.abandoned && !(request instanceof OwnRequest));
    for (const request of wanted) this.#enqueued(request);
    this.#queued.prepend(wanted);
    const givenUp = again.filter((request) => request.abandoned);
    return { unknown, unqueued: unflushed.filter((request) => request.unqueued), givenUp };
  }

  /** The session is over: takes everything out, what had reached the socket apart from what had not. */
  takeAll(): { readonly flushed: SessionRequest[]; readonly unsent: SessionRequest[] } {
    const { flushed, unflushed } = this.#takeInFlight();
    return { flushed: flushed.flatMap(partsOf), unsent: [...unflushed, ...this.#drainQueue()] };
  }

  #takeInFlight(): { readonly flushed: SessionRequest[]; readonly unflushed: SessionRequest[] } {
    this.#out.take();
    const all = this.#inFlight.drain();
    const flushedCount = all.length - this.#unflushedCount;
    this.#unflushedCount = 0;
    const unflushed = [...all.slice(flushedCount).flatMap(partsOf), ...this.#run.end()];
    return { flushed: all.slice(0, flushedCount), unflushed };
  }

  /** What was given up within the tick is not sent; a run of one is the plain request it always was. */
  #endRun(): void {
    if (this.#run.length === 0) return;
    const { startedAtMs } = this.#run;
    const reads = this.#run.end().filter((read) => !read.abandoned);
    if (reads.length > 1) {
      for (const read of reads) read.attemptCount++;
      this.#send(new GatheredReads(reads) as SessionRequest, startedAtMs);
    } else if (reads.length === 1) {
      this.#send(reads[0]!, startedAtMs);
    }
  }

  #sendHeaderless<Q>(xid: number, operation: Operation<Q, unknown>, record: Q): void {
    this.#endRun();
    const mark = this.#out.beginFrame();
    this.#out.int(xid);
    this.#out.int(operation.opcode);
    operation.request.write(this.#out, record);
    this.#out.endFrame(mark);
  }

  #encode(out: JuteWriter, mark: number, { xid, operation, record, watch }: SessionRequest): number {
    out.int(xid);
    out.int(operation.opcode);
    operation.request.write(out, record);
    const frameBytes = out.endFrame(mark);
    const bytesMax = this.#requestBytesMax - (watch ? RESTORED_WATCH_BYTES : 0);
    if (frameBytes > bytesMax) {
      out.dropFrame(mark);
      const what = watch ? 'a request with a watch' : 'a request';
      throw new RangeError(
        `${operation.name}: ${what} of ${frameBytes} bytes; a server accepts at most ${bytesMax}`,
      );
    }
    return frameBytes;
  }
}
