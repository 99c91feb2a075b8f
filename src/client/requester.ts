import { onceAborted, orAbort } from '../base/abort.ts';
import type { Cancel, Clock } from '../base/clock.ts';
import { RequestTimeoutError, SessionLostError } from '../protocol/errors.ts';
import { type CallOptions, checkBounds } from './call-options.ts';
import { PendingRequest, type RequestSpec } from './pending-request.ts';
import { checkRequestOptions, type RequestOptions } from './request-options.ts';
import type { SessionDriver } from './session-driver.ts';
import type { SessionKeeper } from './session-keeper.ts';

/** As long as `connect` waits for a server. A session that is meant to end soon does not make its calls impatient. */
const SILENCE_MS_MIN = 15_000;
/** How often it is looked whether a server answers, within the time for which none need to. */
const LOOKS_PER_SILENCE = 4;

/** The way down: hands requests to the session of now, and bounds how long their callers wait. */
export class Requester {
  readonly #keeper: SessionKeeper;
  readonly #clock: Clock;

  constructor(keeper: SessionKeeper, clock: Clock) {
    this.#keeper = keeper;
    this.#clock = clock;
  }

  /** Not async: the promise the caller awaits is the one the read loop settles, so that nothing comes between. */
  request<Q, R, V>(spec: RequestSpec<Q, R, V>, options: RequestOptions): Promise<V> {
    checkRequestOptions(spec.operation.name, options);
    const { signal, timeoutMs, session, unqueued = false } = options;
    if (signal !== undefined || timeoutMs !== undefined) checkBounds(options);
    if (signal?.aborted) return Promise.reject(signal.reason);
    const request = new PendingRequest(spec);
    if (session && session !== this.#keeper.session) {
      const message = `${request.what}: not sent, since the session it belongs to is over`;
      return Promise.reject(new SessionLostError(message, 'expired-by-server', 'not-applied'));
    }
    request.unqueued = unqueued;
    const { driver } = this.#keeper;
    driver.submit(request as PendingRequest);
    // A client that is closed has refused it by now, and nothing is left to bound.
    if (request.stage === 'done') return request.promise;
    if (signal || timeoutMs !== undefined)
      this.#bound(request as PendingRequest, driver, { signal, timeoutMs });
    // With a session it ends with that; without one it would wait for ever where no server can be reached.
    else if (!session && this.#keeper.session.id === 0n) this.#bound(request as PendingRequest, driver, {});
    return request.promise;
  }

  /**
   * Bounds a call that makes several requests: they are given the signal. Without a `timeoutMs` it is given up when no
   * server has answered anything for one session timeout, and 15 s at least, so that a server which only accepts connections,
   * or only grants sessions, is as good as none.
   */
  async bounded<T>(
    what: string,
    { signal, timeoutMs }: CallOptions,
    run: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    signal?.throwIfAborted();
    const giveUp = new AbortController();
    const stopListening = signal && onceAborted(signal, () => giveUp.abort(signal.reason));
    const stopWaiting =
      timeoutMs === undefined
        ? this.#whileAnswered((error) => giveUp.abort(error), what)
        : this.#clock.at(this.#clock.nowMs() + timeoutMs, () => giveUp.abort(this.#late(what, timeoutMs)));
    try {
      return await orAbort(run(giveUp.signal), giveUp.signal);
    } finally {
      stopListening?.();
      stopWaiting();
    }
  }

  /** As `bounded`, where nothing but the options is to be a bound. */
  withinBounds<Options extends RequestOptions>(
    what: string,
    options: Options,
    run: (options: Options) => Promise<void>,
  ): Promise<void> {
    if (options.timeoutMs === undefined) return run(options);
    const { timeoutMs: _, ...others } = options;
    return this.bounded(what, options, (signal) => run({ ...others, signal } as Options));
  }

  /** Calls `onSilence` when no request has been answered for too long, or a quarter of that later. */
  #whileAnswered(onSilence: (error: Error) => void, what: string): Cancel {
    const silenceMs = Math.max(SILENCE_MS_MIN, this.#keeper.session.timeoutMs);
    let answerCount = this.#keeper.answerCount;
    let silentLookCount = 0;
    let cancel: Cancel;
    const look = () => {
      silentLookCount = answerCount === this.#keeper.answerCount ? silentLookCount + 1 : 0;
      answerCount = this.#keeper.answerCount;
      if (silentLookCount === LOOKS_PER_SILENCE) onSilence(this.#late(what, silenceMs));
      else lookLater();
    };
    const lookLater = () => {
      cancel = this.#clock.at(this.#clock.nowMs() + silenceMs / LOOKS_PER_SILENCE, look);
    };
    lookLater();
    return () => cancel();
  }

  #late(what: string, timeoutMs: number): Error {
    if (this.#keeper.session.state !== 'connected') return this.#keeper.unreachable(timeoutMs);
    return new RequestTimeoutError(what, timeoutMs, 'unknown');
  }

  /** Gives a request up by what bounds it; with neither, when no server has answered for too long. */
  #bound(
    request: PendingRequest,
    driver: SessionDriver,
    { signal, timeoutMs }: { signal?: AbortSignal | undefined; timeoutMs?: number | undefined },
  ): void {
    const { session } = this.#keeper;
    const giveUp = (reason: unknown) => {
      if (request.stage === 'sent' && request.operation.writes) session.gaveUp(request);
      driver.input({ kind: 'request-abandoned', request });
      request.failed(reason);
    };
    const onAbort = () => giveUp(signal!.reason);
    // By one listener for all requests of a signal: many may be made by one call.
    const stopListening = signal && onceAborted(signal, onAbort);
    let cancel: Cancel | undefined;
    if (timeoutMs !== undefined) {
      cancel = this.#clock.at(this.#clock.nowMs() + timeoutMs, () => {
        const outcome = request.stage === 'sent' ? 'unknown' : 'not-applied';
        giveUp(new RequestTimeoutError(request.what, timeoutMs, outcome));
      });
    } else if (!signal) {
      cancel = this.#whileAnswered(giveUp, request.what);
    }
    request.onSettled = () => {
      stopListening?.();
      cancel?.();
    };
  }
}
