import { ifAborted } from '../base/abort.ts';
import { type Deferred, deferred } from '../base/deferred.ts';
import { Emitter } from '../base/emitter.ts';
import type { OptionNames } from '../base/option-names.ts';
import { ClosedError, type UnreachableError } from '../protocol/errors.ts';
import { serverBehind } from '../session/session-errors.ts';
import type { AuthInfo, ServerAddress } from '../session/session-io.ts';
import { SessionMachine } from '../session/session-machine.ts';
import type { SessionState } from '../session/session-state.ts';
import type { ClientConfig } from './connect-options.ts';
import { ConnectionAttempts } from './connection-attempts.ts';
import type { Asking } from './four-letter-word.ts';
import { understandsMultiRead } from './multi-read-probe.ts';
import { newestZxidOf } from './newest-zxid.ts';
import { servesWrites } from './read-write-probe.ts';
import { ServerList } from './server-list.ts';
import { Session } from './session.ts';
import { type DriverEvents, SessionDriver } from './session-driver.ts';

/** What a client tells about its sessions. */
export interface ClientEvents {
  /** A session was granted, or an existing one continued on another connection. */
  connected: { readonly session: Session; readonly readOnly: boolean };
  /** The connection is down; the session may live. */
  suspended: { readonly session: Session; readonly error: Error | undefined };
  /** The session is over. A new one is sought, unless the credentials were refused. */
  lost: { readonly session: Session; readonly error: Error };
  /** The client was closed. */
  closed: { readonly session: Session };
  /** A listener or watcher of yours threw; it did no harm here. */
  listenerError: { readonly error: unknown };
}

export const clientEventNames: OptionNames<ClientEvents> = {
  connected: true,
  suspended: true,
  lost: true,
  closed: true,
  listenerError: true,
};

/** Keeps a client in a session: opens one, and another when one is lost. Credentials outlive sessions. */
export class SessionKeeper {
  readonly events: Emitter<ClientEvents>;
  readonly #config: ClientConfig;
  readonly #servers: ServerList;
  readonly #auths: AuthInfo[];
  readonly #authWaiters = new Map<AuthInfo, Deferred<void>>();
  readonly #connectedWaiters = new Set<Deferred<Session>>();
  readonly #attempts: ConnectionAttempts;
  /** The newest transaction that the sessions before this one have seen. */
  #seenZxid = 0n;
  readonly #closed = deferred();
  #driver!: SessionDriver;
  #session!: Session;
  /** Of the sessions before this one. */
  #earlierAnswerCount = 0;
  #closing = false;
  /** Why there will be no further session: closed, or the credentials were refused. */
  #ended: Error | undefined;
  #probing = false;
  #probeCursor = 0;
  /** Ends with the connection of now, and with it whatever is asked of servers on its behalf. */
  #disconnected = new AbortController();

  constructor(config: ClientConfig) {
    this.#config = config;
    this.#servers = new ServerList(config.servers, config.random);
    this.#attempts = new ConnectionAttempts(config.servers);
    this.#auths = config.auth.map(toAuthInfo);
    // A listener of `listenerError` that throws is only logged: telling it again would never end.
    this.events = new Emitter<ClientEvents>((error, name) =>
      name === 'listenerError'
        ? config.log('error', 'a listener of listenerError threw', { error })
        : this.listenerFailed(error),
    );
    this.#openSession();
  }

  get session(): Session {
    return this.#session;
  }
  get driver(): SessionDriver {
    return this.#driver;
  }
  /** How many requests servers have answered, in all sessions. */
  get answerCount(): number {
    return this.#earlierAnswerCount + this.#driver.answerCount;
  }

  /** What user code threw: reported, and done with. */
  listenerFailed(error: unknown): void {
    this.#config.log('error', 'a listener threw', { error });
    this.events.emit('listenerError', { error });
  }

  /** Resolves once a session is connected, at once if it is. */
  async whenConnected(timeoutMs: number, signal: AbortSignal | undefined): Promise<Session> {
    if (this.#ended) throw this.#ended;
    if (this.#isReady) return this.#session;
    signal?.throwIfAborted();
    const waiter = deferred<Session>();
    this.#connectedWaiters.add(waiter);
    const stopListening = ifAborted(signal, () => waiter.reject(signal!.reason));
    const { clock } = this.#config;
    const cancel = clock.at(clock.nowMs() + timeoutMs, () => waiter.reject(this.unreachable(timeoutMs)));
    try {
      return await waiter.promise;
    } finally {
      cancel();
      stopListening();
      this.#connectedWaiters.delete(waiter);
    }
  }

  addAuth(scheme: string, auth: string | Uint8Array): Promise<void> {
    const info = toAuthInfo({ scheme, auth });
    if (this.#ended) return Promise.reject(this.#ended);
    const waiter = deferred();
    this.#auths.push(info);
    this.#authWaiters.set(info, waiter);
    this.#driver.input({ kind: 'auth-added', auth: info });
    return waiter.promise;
  }

  close(): Promise<void> {
    this.#closing = true;
    this.#driver.input({ kind: 'close' });
    // A session that is already over (refused credentials) has nothing left to close.
    if (this.#session.state === 'lost') this.#finishClose();
    return this.#closed.promise;
  }

  #openSession(): void {
    const config = this.#config;
    const machine = new SessionMachine({
      timeoutMs: config.sessionTimeoutMs,
      connectTimeoutMs: config.dialTimeoutMs,
      requestBytesMax: config.requestBytesMax,
      replyBytesMax: config.replyBytesMax,
      queueLimits: config.queueLimits,
      seenZxid: config.acceptOlderServers ? 0n : this.#seenZxid,
      readOnlyAllowed: config.readOnly,
      gatherReads: config.gatherReads,
      heartbeat: config.heartbeat,
      lease: config.lease,
      credentials: { auths: this.#auths, sasl: config.sasl },
      plan: this.#servers,
      random: config.random,
    });
    const events: DriverEvents = {
      stateChanged: (state, error) => this.#stateChanged(session, state, error),
      authAccepted: (auth) => this.#settleAuth(auth),
      leasesEnded: (error) => session.endHolds(error),
      seekReadWriteServer: () => void this.#probe(driver),
      askForMultiRead: (server, connection) => void this.#askForMultiRead(driver, server, connection),
      attemptFailed: ({ server, error, opened }) => {
        this.#attempts.failed(server, error);
        if (opened) void this.#explain(server);
      },
    };
    const { clock, log, transport, busyPollMs } = config;
    const driver = new SessionDriver(machine, { transport, clock, events, log, busyPollMs });
    const session = new Session(driver, clock, (error) => this.listenerFailed(error));
    this.#earlierAnswerCount += this.#driver?.answerCount ?? 0;
    this.#driver = driver;
    this.#session = session;
    driver.input({ kind: 'start' });
  }

  #stateChanged(session: Session, state: SessionState, error: Error | undefined): void {
    if (state.kind !== 'connected') {
      this.#disconnected.abort();
      this.#disconnected = new AbortController();
    }
    switch (state.kind) {
      case 'connected':
        session.connectionCount++;
        this.#attempts.succeeded();
        this.#settleWhenReady();
        this.events.emit('connected', { session, readOnly: state.readOnly });
        break;
      case 'suspended':
        this.events.emit('suspended', { session, error });
        break;
      case 'lost':
        this.#lost(session, state.cause === 'auth-failed', error!);
        break;
      case 'closed':
        session.end(error!);
        this.events.emit('closed', { session });
        this.#finishClose();
        break;
    }
  }

  #lost(session: Session, refused: boolean, error: Error): void {
    if (session.lastZxid > this.#seenZxid) this.#seenZxid = session.lastZxid;
    session.end(error);
    this.events.emit('lost', { session, error });
    if (refused) {
      this.#ended = error;
      for (const waiter of [...this.#connectedWaiters, ...this.#authWaiters.values()]) waiter.reject(error);
      this.#authWaiters.clear();
    } else if (!this.#closing) {
      this.#openSession(); // At once, so that a request made on hearing of the loss is of the new session.
    }
  }

  #finishClose(): void {
    const error = new ClosedError('the client was closed');
    this.#ended = error;
    for (const waiter of [...this.#connectedWaiters, ...this.#authWaiters.values()]) waiter.reject(error);
    this.#authWaiters.clear();
    this.#closed.resolve();
  }

  #settleAuth(auth: AuthInfo): void {
    this.#authWaiters.get(auth)?.resolve();
    this.#authWaiters.delete(auth);
    this.#settleWhenReady();
  }

  /** Connected, and all credentials accepted: who waits for a connection with a wrong password is told of that. */
  get #isReady(): boolean {
    return this.#session.state === 'connected' && this.#driver.machine.authsInFlightCount === 0;
  }

  /** At the end of the tick, when what the connection begins with has been sent. */
  #settleWhenReady(): void {
    this.#config.clock.endOfTick(() => {
      if (!this.#isReady) return;
      for (const waiter of this.#connectedWaiters) waiter.resolve(this.#session);
    });
  }

  /** A server that is behind closes the connection without a word. What it says of itself tells why. */
  async #explain(server: ServerAddress): Promise<void> {
    const seenZxid = this.#seenZxid;
    if (this.#session.id !== 0n || seenZxid === 0n || this.#config.acceptOlderServers) return;
    if (!this.#attempts.isTimeToAsk(server, this.#config.clock.nowMs())) return;
    const zxid = await newestZxidOf(server, this.#asking());
    if (zxid === undefined || zxid >= seenZxid) return;
    const error = serverBehind(seenZxid, zxid);
    this.#config.log('warn', 'a server is behind, and not taken', { server, error });
    this.#attempts.failed(server, error);
  }

  /** For a wait for a connection that has ended: what became of the attempts. */
  unreachable(timeoutMs: number): UnreachableError {
    return this.#attempts.unreachable(timeoutMs);
  }

  /** One server per call; the session asks again, less and less often, for as long as it is read-only. */
  async #probe(driver: SessionDriver): Promise<void> {
    if (this.#probing) return;
    this.#probing = true;
    const { servers } = this.#servers;
    const server = servers[this.#probeCursor++ % servers.length]!;
    const found = await servesWrites(server, this.#asking());
    this.#probing = false;
    if (found) driver.input({ kind: 'read-write-server-found', server });
  }

  async #askForMultiRead(driver: SessionDriver, server: ServerAddress, connection: number): Promise<void> {
    if (await understandsMultiRead(server, this.#asking())) {
      driver.input({ kind: 'multi-read-understood', connection });
    }
  }

  #asking(): Asking {
    const { transport, clock, dialTimeoutMs } = this.#config;
    return { transport, clock, timeoutMs: dialTimeoutMs, signal: this.#disconnected.signal };
  }
}

function toAuthInfo({ scheme, auth }: { scheme: string; auth: string | Uint8Array }): AuthInfo {
  if (typeof scheme !== 'string' || scheme === '') {
    throw new TypeError(`auth: scheme ${JSON.stringify(scheme)} given; a name such as "digest" is needed`);
  }
  return { scheme, auth: typeof auth === 'string' ? Buffer.from(auth, 'utf8') : auth };
}
