import { invariant, unreachable } from '../base/assert.ts';
import { conditionOf, errorCodes, isSessionOver } from '../protocol/error-codes.ts';
import {
  AuthFailedError,
  ClosedError,
  LeaseEndedError,
  ProtocolError,
  type SessionLossCause,
  SessionLostError,
  type ZkError,
} from '../protocol/errors.ts';
import { FrameDecoder } from '../protocol/frame-decoder.ts';
import { Connect, Connected } from '../protocol/handshake.ts';
import { JuteReader } from '../protocol/jute-reader.ts';
import { operations, xids } from '../protocol/operations.ts';
import { ReplyHeader, WatcherEvent } from '../protocol/records.ts';
import { Contact } from './contact.ts';
import { GatheredReads, partsOf, tellAnswer } from './gathered-reads.ts';
import { type Grant, SessionGrant } from './grant.ts';
import { KeepAlive } from './keep-alive.ts';
import { ReadGathering } from './read-gathering.ts';
import { RequestPipeline } from './request-pipeline.ts';
import { isRefusal, SaslExchange } from './sasl-exchange.ts';
import { clientClosed, queueFull, serverBehind, sessionOver } from './session-errors.ts';
import type { AuthInfo, ServerAddress, SessionEffect, SessionInput, SessionOptions } from './session-io.ts';
import { connectionLoss, isConfirmedByLeader, OwnRequest, type SessionRequest } from './session-request.ts';
import {
  checkLinkTransition,
  checkSessionTransition,
  type LinkState,
  type SessionState,
} from './session-state.ts';
import { StallGrace } from './stall-grace.ts';
import { WatchRegistry } from './watch-registry.ts';
import { WatchRestoration } from './watch-restoration.ts';

const NO_EFFECTS: readonly SessionEffect[] = [];
const CLOSE_MS_MAX = 2_000;

/**
 * The rules of one session, from the first connection to its loss or close.
 *
 * Knows no sockets, timers or promises: an input and the time go in, effects come out, in order. Whoever
 * drives it carries the effects out and calls back no later than `wakeAtMs`.
 */
export class SessionMachine {
  readonly watches = new WatchRegistry();
  readonly #options: SessionOptions;
  readonly #pipeline: RequestPipeline;
  readonly #gathering: ReadGathering;
  readonly #contact: Contact;
  readonly #keepAlive: KeepAlive;
  readonly #restoration: WatchRestoration;
  #state: SessionState = { kind: 'connecting' };
  #link: LinkState = { kind: 'down', dialAtMs: Number.POSITIVE_INFINITY };
  #effects: SessionEffect[] = [];
  #frames: FrameDecoder;
  #server: ServerAddress | undefined;
  readonly #grant = new SessionGrant();
  #lastZxid: bigint;
  #openedAtMs: number | undefined;
  #authsInFlight: AuthInfo[] = [];
  #holdCount = 0;
  readonly #stall = new StallGrace();

  constructor(options: SessionOptions) {
    invariant(options.timeoutMs > 0, 'session timeout must be positive');
    this.#options = options;
    this.#pipeline = new RequestPipeline(options.requestBytesMax, options.replyBytesMax, options.queueLimits);
    this.#lastZxid = options.seenZxid;
    this.#gathering = new ReadGathering(options.gatherReads, this.#pipeline.run);
    this.#contact = new Contact(options.timeoutMs, options.lease);
    this.#keepAlive = new KeepAlive(this.#contact);
    this.#restoration = new WatchRestoration(this.watches, options.requestBytesMax);
    this.#frames = new FrameDecoder(options.replyBytesMax);
  }

  get state(): SessionState {
    return this.#state;
  }
  /** 0n until a server has granted the session. */
  get id(): bigint {
    return this.#grant.id;
  }
  get password(): Buffer {
    return this.#grant.password;
  }
  /** The negotiated timeout once connected, the one asked for before. */
  get timeoutMs(): number {
    return this.#contact.timeoutMs;
  }
  /** The newest transaction this session has seen the effect of. */
  get lastZxid(): bigint {
    return this.#lastZxid;
  }
  get server(): ServerAddress | undefined {
    return this.#server;
  }
  get leaseEndMs(): number {
    return this.#contact.leaseEndMs;
  }
  get hasOutput(): boolean {
    return this.#link.kind !== 'down' && this.#link.kind !== 'gone' && this.#pipeline.hasOutput;
  }
  /** Credentials that were presented on this connection and have not been answered. */
  get authsInFlightCount(): number {
    return this.#authsInFlight.length;
  }
  get pendingCount(): number {
    return this.#pipeline.queuedCount + this.#pipeline.inFlightCount;
  }

  handle(input: SessionInput, nowMs: number): readonly SessionEffect[] {
    if (this.#holdCount > 0) this.#endLeasesIfDue(nowMs); // The clock first, whatever has come in.
    switch (input.kind) {
      case 'request-made':
        this.#requestMade(input.request, nowMs);
        break;
      case 'flush':
        this.#flush(nowMs);
        break;
      case 'bytes-received':
        this.#bytesReceived(input.chunk, nowMs);
        break;
      case 'time-passed':
        this.#timePassed(nowMs);
        break;
      case 'request-abandoned':
        this.#requestAbandoned(input.request);
        break;
      case 'start':
        this.#planDial(nowMs);
        break;
      case 'link-opened':
        this.#linkOpened(nowMs);
        break;
      case 'link-closed':
        this.#linkEnded(nowMs, input.error ?? new Error('the server closed the connection'));
        break;
      case 'auth-added':
        if (this.#link.kind === 'open') this.#sendAuth(input.auth);
        break;
      case 'hold-began':
        this.#holdBegan(nowMs);
        break;
      case 'hold-ended':
        if (this.#holdCount > 0) this.#holdCount--;
        break;
      case 'read-write-server-found':
        if (this.#state.kind === 'connected' && this.#state.readOnly) {
          this.#options.plan.prefer(input.server);
          this.#linkEnded(nowMs, new Error('left a read-only server for a read-write one'));
        }
        break;
      case 'server-mistrusted':
        if (this.#link.kind === 'open') this.#linkEnded(nowMs, input.error);
        break;
      case 'multi-read-understood':
        this.#gathering.understood(input.connection);
        break;
      case 'close':
        this.#close(nowMs);
        break;
      default:
        return unreachable(input);
    }
    if (this.#effects.length === 0) return NO_EFFECTS;
    const effects = this.#effects;
    this.#effects = [];
    return effects;
  }

  /** The latest time at which `time-passed` must come in, or undefined if time changes nothing. */
  get wakeAtMs(): number | undefined {
    if (this.#state.kind === 'closing') return this.#state.deadlineMs;
    if (this.#stall.untilMs !== undefined) return this.#stall.untilMs;
    const contact = this.#contact;
    let atMs = Number.POSITIVE_INFINITY;
    if (this.#link.kind === 'down') atMs = this.#link.dialAtMs;
    else if (this.#link.kind === 'open') {
      atMs = this.#keepAlive.wakeAtMs(this.#needsLeader);
    } else if (this.#link.kind !== 'gone') atMs = this.#link.deadlineMs;
    if (this.#state.kind === 'connected' || this.#state.kind === 'suspended') {
      atMs = Math.min(atMs, contact.lostAtMs);
    }
    if (this.#holdCount > 0) atMs = Math.min(atMs, contact.leaseEndMs);
    return atMs === Number.POSITIVE_INFINITY ? undefined : atMs;
  }

  // Requests

  #requestMade(request: SessionRequest, nowMs: number): void {
    switch (this.#state.kind) {
      case 'connected':
        this.#send(request, nowMs);
        return this.watches.requested(request);
      case 'connecting':
      case 'suspended':
        if (request.unqueued) return this.#fail(request, connectionLoss(request, 'not-applied'));
        if (this.#pipeline.queue(request)) return this.watches.requested(request);
        return this.#fail(request, queueFull(request, this.#options.queueLimits));
      case 'lost':
        return this.#fail(request, sessionOver(this.#state.cause, 'not-applied', request));
      case 'closing':
      case 'closed':
        return this.#fail(request, clientClosed(request));
    }
  }

  #send<Q, R>(made: SessionRequest<Q, R>, nowMs: number): void {
    const request = made as SessionRequest;
    this.#pipeline.send(request, nowMs);
    if (isConfirmedByLeader(request)) this.#contact.confirmingSentAtMs = nowMs;
  }

  #requestAbandoned(request: SessionRequest): void {
    if (request.stage === 'queued' && this.#pipeline.withdraw(request)) this.watches.ended(request);
    this.watches.givenUp(request);
    request.abandoned = true;
  }

  #flush(nowMs: number): void {
    if (!this.hasOutput) return;
    const connection = this.#gathering.connectionToAsk();
    if (connection) this.#effects.push({ kind: 'ask-for-multi-read', server: this.#server!, connection });
    const bytes = this.#pipeline.flush();
    if (bytes.byteLength === 0) return; // Reads that were given up: nothing is sent that would keep the session.
    this.#contact.sentAtMs = nowMs;
    this.watches.expect(this.#pipeline.expected);
    this.#effects.push({ kind: 'send', bytes });
  }

  #fail(request: SessionRequest, error: ZkError): void {
    request.stage = 'done';
    this.watches.failed(request);
    if (!request.abandoned && !(request instanceof OwnRequest)) {
      this.#effects.push({ kind: 'request-failed', request, error });
    }
  }

  // The link

  #planDial(nowMs: number): void {
    const { server, delayMs } = this.#options.plan.next();
    this.#server = server;
    this.#link = { kind: 'down', dialAtMs: nowMs + delayMs };
    if (delayMs <= 0) this.#dial(nowMs);
  }

  #dial(nowMs: number): void {
    this.#moveLink({ kind: 'dialling', deadlineMs: nowMs + this.#options.connectTimeoutMs });
    this.#frames = new FrameDecoder(this.#options.replyBytesMax);
    this.#effects.push({ kind: 'dial', server: this.#server! });
  }

  #linkOpened(nowMs: number): void {
    if (this.#link.kind !== 'dialling') return;
    this.#moveLink({ kind: 'handshaking', deadlineMs: this.#link.deadlineMs, sentAtMs: nowMs });
    const { timeoutMs, readOnlyAllowed } = this.#options;
    const request = this.#grant.request({ timeoutMs, readOnlyAllowed, lastZxid: this.#lastZxid });
    this.#pipeline.sendBare((out) => Connect.write(out, request));
    this.#flush(nowMs);
    if (this.#grant.isResumable) this.#contact.resuming(nowMs);
  }

  #linkEnded(nowMs: number, error: Error): void {
    if (this.#link.kind === 'down' || this.#link.kind === 'gone') return;
    if (this.#state.kind === 'closing') return this.#closed();
    this.#effects.push({ kind: 'hang-up' });
    const servedMs = this.#openedAtMs === undefined ? 0 : nowMs - this.#openedAtMs;
    const opened = this.#link.kind !== 'dialling';
    this.#options.plan.ended({ servedMs, opened });
    if (this.#openedAtMs === undefined) {
      this.#effects.push({ kind: 'attempt-failed', server: this.#server!, error, opened });
    }
    this.#moveLink({ kind: 'down', dialAtMs: nowMs });
    this.#openedAtMs = undefined;
    this.#authsInFlight = [];
    // The answer that could not be read is the first one's: repeating that request could go on for ever.
    const culprit = error instanceof ProtocolError ? this.#pipeline.expected : undefined;
    this.#gathering.culpritFound(culprit);
    const { unknown, unqueued, givenUp } = this.#pipeline.connectionEnded(culprit);
    for (const request of givenUp) this.watches.ended(request);
    for (const request of unknown) this.#fail(request, connectionLoss(request, 'unknown', error));
    for (const request of unqueued) this.#fail(request, connectionLoss(request, 'not-applied', error));
    this.watches.disconnected();
    if (this.#state.kind === 'connected') this.#become({ kind: 'suspended' }, error);
    this.#planDial(nowMs);
  }

  // Bytes in

  #bytesReceived(chunk: Buffer, nowMs: number): void {
    this.#contact.receivedAtMs = nowMs;
    this.#stall.untilMs = undefined;
    try {
      for (const frame of this.#frames.push(chunk)) {
        this.#frameReceived(new JuteReader(frame), nowMs);
        // A frame can end its own connection, and the next one be dialled already: the rest is of a past life.
        if (!this.#listening) return;
        if (this.#state.kind === 'connected') this.#removeUnneededWatches(nowMs);
        this.watches.expect(this.#pipeline.expected); // After the answer before it, which may have removed some.
      }
      if (this.#frames.fault) throw this.#frames.fault;
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#linkEnded(nowMs, error);
    }
  }

  get #listening(): boolean {
    return ['handshaking', 'authenticating', 'open'].includes(this.#link.kind);
  }

  #frameReceived(input: JuteReader, nowMs: number): void {
    if (this.#link.kind === 'handshaking') {
      return this.#handshakeAnswered(Connected.read(input), this.#link.sentAtMs, nowMs);
    }
    const header = ReplyHeader.read(input);
    if (this.#link.kind === 'authenticating') return this.#saslAnswered(header, input, this.#link, nowMs);
    switch (header.xid) {
      case xids.notification:
        this.#effects.push(...this.watches.notified(WatcherEvent.read(input), header.zxid));
        return;
      case xids.ping: {
        const sentAtMs = this.#keepAlive.pingAnswered();
        if (sentAtMs === undefined) throw new ProtocolError('an answer to a ping that was not sent');
        return this.#contact.answered(sentAtMs, false);
      }
      case xids.auth:
        return this.#authAnswered(header.err, nowMs);
      default:
        return this.#replyReceived(header, input, nowMs);
    }
  }

  #replyReceived(header: ReplyHeader, input: JuteReader, nowMs: number): void {
    const request = this.#expected(header);
    // Some servers do not look at what a handshake says was seen.
    if (header.zxid > 0n && header.zxid < this.#options.seenZxid) {
      const error = serverBehind(this.#options.seenZxid, header.zxid);
      this.#effects.push({ kind: 'attempt-failed', server: this.#server!, error, opened: true });
      return this.#linkEnded(nowMs, error);
    }
    // Decoded before it is taken off, so that a reply that cannot be read leaves its request first in flight.
    const ok = header.err === 0;
    const bodyBytes = input.remaining;
    const reply = ok && !request.abandoned ? request.operation.reply.read(input) : undefined;
    if (ok && request instanceof GatheredReads) request.check(reply);
    this.#pipeline.answered(bodyBytes);
    if (header.zxid > this.#lastZxid) this.#lastZxid = header.zxid;
    this.#restoration.seen(this.#lastZxid);
    this.#contact.answered(request.sentAtMs, ok && isConfirmedByLeader(request));
    if (request instanceof OwnRequest) return this.#ownRequestAnswered(request, header.err, nowMs);
    if (isSessionOver(header.err)) {
      for (const part of partsOf(request))
        this.#fail(part, sessionOver('expired-by-server', 'not-applied', part));
      return this.#lose('expired-by-server', nowMs);
    }
    // Not where the answer is used: that is after the next ones in this chunk, which may have set a watch anew.
    this.#effects.push(...this.watches.answered(request, header.err));
    if (request instanceof GatheredReads && this.#gathering.isRefusedBy(header.err)) {
      for (const read of request.reads) if (!read.abandoned) this.#requestMade(read, nowMs);
    } else {
      tellAnswer(this.#effects, request, header, reply);
    }
    if (header.err === errorCodes['session-moved']) {
      this.#linkEnded(nowMs, new Error('the session moved to another server'));
    }
  }

  /** The first in flight, which the next answer must be for. */
  #expected(header: ReplyHeader): SessionRequest {
    const request = this.#pipeline.expected;
    if (request && request.xid === header.xid) return request;
    throw new ProtocolError(`reply for xid ${header.xid}; expected ${request?.xid ?? 'none'}`);
  }

  #ownRequestAnswered(request: OwnRequest, err: number, nowMs: number): void {
    if (isSessionOver(err)) return this.#lose('expired-by-server', nowMs);
    switch (request.purpose) {
      case 'sasl': // Answered while authenticating, and nowhere else.
      case 'heartbeat':
      case 'unwatch':
        return; // A refusal (a read-only server, a watch that has fired) confirms nothing and ends nothing.
      case 'watches':
      case 'watches-restored':
        if (err !== 0) throw new ProtocolError(`setWatches was refused with code ${err}`);
        if (request.purpose === 'watches-restored') this.#watchesRestored();
        return;
      case 'close':
        return this.#closed();
      default:
        return unreachable(request.purpose);
    }
  }

  #removeUnneededWatches(nowMs: number): void {
    for (const removal of this.watches.removals())
      this.#send(new OwnRequest('unwatch', operations.removeWatches, removal), nowMs);
  }

  #watchesRestored(): void {
    this.#restoration.completed(this.#lastZxid);
    this.#effects.push(...this.watches.gaps());
  }

  // From the handshake to an open link

  #handshakeAnswered(answer: ReturnType<typeof Connected.read>, sentAtMs: number, nowMs: number): void {
    const { readOnlyAllowed, connectTimeoutMs, credentials, random } = this.#options;
    const grant = this.#grant.read(answer, { sentAtMs, readOnlyAllowed });
    if (!credentials.sasl)
      return grant ? this.#granted(grant, nowMs) : this.#lose('expired-by-server', nowMs);
    // Anyone can say so. Only a server that knows the password is believed, and this one will not prove that any more.
    if (!grant)
      return this.#linkEnded(nowMs, new Error('the session is over, says a server that proves nothing'));
    const exchange = new SaslExchange(credentials.sasl, random);
    this.#moveLink({ kind: 'authenticating', deadlineMs: nowMs + connectTimeoutMs, grant, exchange });
    this.#sendToken(Buffer.alloc(0), nowMs);
  }

  #sendToken(token: Buffer, nowMs: number): void {
    this.#send(new OwnRequest('sasl', operations.sasl, { token }), nowMs);
    this.#flush(nowMs);
  }

  /** The peer has not proven anything yet: but for its token, nothing that it says counts. */
  #saslAnswered(
    header: ReplyHeader,
    input: JuteReader,
    { exchange, grant }: Extract<LinkState, { kind: 'authenticating' }>,
    nowMs: number,
  ): void {
    this.#expected(header);
    const token = header.err === 0 ? operations.sasl.reply.read(input).token : null;
    this.#pipeline.answered(0);
    const step = exchange.next(header.err, token as Buffer | null);
    switch (step.kind) {
      case 'send':
        return this.#sendToken(step.token, nowMs);
      case 'done':
        this.#options.plan.accepted(this.#options.credentials.sasl!);
        return this.#granted(grant, nowMs);
      case 'refused':
        return this.#refused(this.#options.credentials.sasl!, step.message, nowMs);
      case 'failed':
        return this.#linkEnded(nowMs, new Error(step.message));
      default:
        return unreachable(step);
    }
  }

  #granted(grant: Grant, nowMs: number): void {
    this.#grant.take(grant);
    this.#contact.granted(grant.timeoutMs, grant.sentAtMs, grant.readOnly);
    this.#openedAtMs = nowMs;
    this.#linkReady(grant.readOnly, nowMs);
  }

  /** Credentials, then watches, then what has waited: the order a server must see them in. */
  #linkReady(readOnly: boolean, nowMs: number): void {
    this.#moveLink({ kind: 'open' });
    this.#become({ kind: 'connected', readOnly });
    this.#keepAlive.opened(readOnly, nowMs);
    this.#gathering.connectionOpened();
    for (const auth of this.#options.credentials.auths) this.#sendAuth(auth);
    for (const request of this.#restoration.requests()) this.#send(request, nowMs);
    this.#pipeline.sendQueued(nowMs);
    this.#flush(nowMs);
  }

  #sendAuth(auth: AuthInfo): void {
    this.#pipeline.sendAuth({ type: 0, scheme: auth.scheme, auth: auth.auth });
    this.#authsInFlight.push(auth);
  }

  #authAnswered(err: number, nowMs: number): void {
    const auth = this.#authsInFlight.shift();
    if (!auth) throw new ProtocolError('an answer to an auth packet that was not sent');
    if (isRefusal(err)) return this.#refused(auth, `auth: the server refused scheme ${auth.scheme}`, nowMs);
    if (err !== 0) {
      const answer = `${conditionOf(err)} (${err})`;
      return this.#linkEnded(
        nowMs,
        new Error(`auth: the server answered ${answer} to scheme ${auth.scheme}`),
      );
    }
    this.#options.plan.accepted(auth);
    this.#effects.push({ kind: 'auth-accepted', auth });
  }

  // Time

  get #needsLeader(): boolean {
    return this.#holdCount > 0 && this.#state.kind === 'connected' && !this.#state.readOnly;
  }

  #timePassed(nowMs: number): void {
    if (this.#state.kind === 'closing') {
      if (nowMs >= this.#state.deadlineMs) this.#closed();
      return;
    }
    if (this.#stall.holds(nowMs, this.wakeAtMs)) return;
    const link = this.#link;
    if (this.#state.kind === 'connected' || this.#state.kind === 'suspended') {
      if (nowMs >= this.#contact.lostAtMs) return this.#lose('local-clock', nowMs);
    }
    if (link.kind === 'down') {
      if (nowMs >= link.dialAtMs) this.#dial(nowMs);
    } else if (link.kind === 'open') {
      if (nowMs >= this.#contact.linkDeadMs) {
        const heardAtMs = Math.min(this.#contact.receivedAtMs, this.#contact.provenAtMs);
        return this.#linkEnded(nowMs, new Error(`nothing heard for ${Math.round(nowMs - heardAtMs)} ms`));
      }
      this.#beat(nowMs);
    } else if (link.kind !== 'gone' && nowMs >= link.deadlineMs) {
      this.#linkEnded(
        nowMs,
        new Error(`no answer within ${this.#options.connectTimeoutMs} ms (${link.kind})`),
      );
    }
  }

  #beat(nowMs: number): void {
    switch (this.#keepAlive.beat(nowMs, this.#needsLeader)) {
      case 'ping':
        this.#pipeline.sendPing();
        break;
      case 'heartbeat':
        // An empty multi is a write that changes nothing: it goes through the quorum and consumes a zxid.
        if (this.#options.heartbeat === 'quorum') {
          this.#send(new OwnRequest('heartbeat', operations.multi, []), nowMs);
        } else {
          this.#send(new OwnRequest('heartbeat', operations.sync, { path: '/' }), nowMs);
        }
    }
    this.#flush(nowMs);
    if (this.#keepAlive.isTimeToSeek(nowMs)) this.#effects.push({ kind: 'seek-read-write-server' });
  }

  #holdBegan(nowMs: number): void {
    this.#holdCount++;
    const { kind } = this.#state;
    if (kind === 'closing' || kind === 'closed')
      this.#endLeases(new ClosedError('the client was closed', 'unknown'));
    else if (kind === 'lost') this.#endLeases(sessionOver(this.#state.cause, 'unknown'));
    else this.#endLeasesIfDue(nowMs);
  }

  #endLeasesIfDue(nowMs: number): void {
    if (nowMs < this.#contact.leaseEndMs) return;
    const sinceMs = Math.round(nowMs - this.#contact.confirmedAtMs);
    this.#endLeases(new LeaseEndedError(`nothing confirmed by the leader for ${sinceMs} ms`));
  }

  #endLeases(error: ZkError): void {
    if (this.#holdCount === 0) return;
    this.#holdCount = 0;
    this.#effects.push({ kind: 'leases-ended', error });
  }

  // Ends

  #lose(cause: SessionLossCause, nowMs: number): void {
    if (this.#state.kind === 'closing') return this.#closed(); // Which is what was asked for.
    // After a long stall both are due at once; whoever follows the states is told of both.
    if (cause === 'local-clock' && this.#state.kind === 'connected') this.#become({ kind: 'suspended' });
    const message =
      cause === 'local-clock'
        ? `no answer for ${Math.round(nowMs - this.#contact.provenAtMs)} ms; the session timeout is ${this.timeoutMs} ms`
        : 'the server has ended the session';
    this.#end({ kind: 'lost', cause }, (outcome) => new SessionLostError(message, cause, outcome), message);
  }

  /** Another server may take them: the credentials are given up when all have refused them. */
  #refused(credentials: object, message: string, nowMs: number): void {
    if (this.#state.kind === 'closing') return this.#closed();
    if (!this.#options.plan.refused(this.#server!, credentials)) {
      return this.#linkEnded(nowMs, new AuthFailedError(message));
    }
    this.#end(
      { kind: 'lost', cause: 'auth-failed' },
      (outcome) => new AuthFailedError(message, outcome),
      message,
    );
  }

  #close(nowMs: number): void {
    switch (this.#state.kind) {
      case 'closing':
      case 'closed':
      case 'lost':
        return;
      case 'connected': {
        // The server drops our nodes as soon as it reads this, so whatever they protect is given up now.
        this.#endLeases(new ClosedError('the client was closed', 'unknown'));
        this.#send(new OwnRequest('close', operations.closeSession, undefined), nowMs);
        this.#flush(nowMs);
        const deadlineMs = nowMs + Math.min(CLOSE_MS_MAX, this.timeoutMs / 3);
        return this.#become({ kind: 'closing', deadlineMs });
      }
      default:
        return this.#closed();
    }
  }

  #closed(): void {
    const message = 'the client was closed';
    this.#end({ kind: 'closed' }, (outcome) => new ClosedError(message, outcome), message);
  }

  /** The end of the session, whichever: nothing stays pending, nobody stays untold. */
  #end(
    state: Extract<SessionState, { kind: 'lost' | 'closed' }>,
    errorFor: (outcome: 'unknown' | 'not-applied') => ZkError,
    message: string,
  ): void {
    if (this.#link.kind !== 'down' && this.#link.kind !== 'gone') this.#effects.push({ kind: 'hang-up' });
    this.#endLeases(errorFor('unknown'));
    this.#moveLink({ kind: 'gone' });
    // Refused credentials have had no effect, whatever became of the requests behind them.
    const refused = state.kind === 'lost' && state.cause === 'auth-failed';
    this.#become(state, errorFor(refused ? 'not-applied' : 'unknown'));
    const { flushed, unsent } = this.#pipeline.takeAll();
    for (const request of flushed) this.#fail(request, errorFor('unknown'));
    for (const request of unsent) this.#fail(request, errorFor('not-applied'));
    const error = new SessionLostError(
      message,
      state.kind === 'lost' && state.cause !== 'auth-failed' ? state.cause : 'closed',
    );
    for (const [path, watcher] of this.watches.drain()) {
      this.#effects.push({ kind: 'watcher-told', watcher, event: { type: 'session-lost', path, error } });
    }
  }

  #become(state: SessionState, error?: Error): void {
    checkSessionTransition(this.#state.kind, state.kind);
    this.#state = state;
    this.#effects.push({ kind: 'state-changed', state, error });
  }

  #moveLink(link: LinkState): void {
    checkLinkTransition(this.#link.kind, link.kind);
    this.#link = link;
  }
}
