import { orAbort } from '../base/abort.ts';
import type { Clock } from '../base/clock.ts';
import { RequestTimeoutError, SessionLostError } from '../protocol/errors.ts';
import type { WatchIntent } from '../session/watch-registry.ts';
import { checkDuration } from './arguments.ts';
import { PendingRequest, type RequestSpec } from './pending-request.ts';
import { checkRequestOptions, type RequestOptions } from './request-options.ts';
import type { Session } from './session.ts';
import type { SessionDriver } from './session-driver.ts';
import type { SessionKeeper } from './session-keeper.ts';

const TIMEOUT_MS_MAX = 2 ** 31 - 1;

/** The way down: hands requests to the session of now, and bounds how long their callers wait. */
export class Requester {
  readonly #keeper: SessionKeeper;
  readonly #clock: Clock;
  readonly #removeWatch: (session: Session, watch: WatchIntent) => void;

  constructor(
    keeper: SessionKeeper,
    clock: Clock,
    removeWatch: (session: Session, watch: WatchIntent) => void,
  ) {
    this.#keeper = keeper;
    this.#clock = clock;
    this.#removeWatch = removeWatch;
  }

  /** Not async: the promise the caller awaits is the one the read loop settles, so that nothing comes between. */
  request<Q, R, V>(spec: RequestSpec<Q, R, V>, options: RequestOptions): Promise<V> {
    checkRequestOptions(spec.operation.name, options);
    const { signal, timeoutMs, session } = options;
    if (timeoutMs !== undefined) checkDuration('timeoutMs', timeoutMs, { min: 0, max: TIMEOUT_MS_MAX });
    if (signal?.aborted) return Promise.reject(signal.reason);
    const request = new PendingRequest(spec);
    if (session && session !== this.#keeper.session) {
      const message = `${request.what}: not sent, since the session it belongs to is over`;
      return Promise.reject(new SessionLostError(message, 'expired-by-server', 'not-applied'));
    }
    const { driver } = this.#keeper;
    driver.submit(request as PendingRequest);
    // A client that is closed has refused it by now, and nothing is left to bound.
    if (request.stage !== 'done' && (signal || timeoutMs !== undefined))
      this.#bound(request as PendingRequest, driver, signal, timeoutMs);
    return request.promise;
  }

  /** Bounds the wait for something that is not a request of its own. What goes on behind it goes on. */
  async bounded<T>(
    what: string,
    promise: Promise<T>,
    { signal, timeoutMs }: Pick<RequestOptions, 'signal' | 'timeoutMs'>,
  ): Promise<T> {
    if (timeoutMs === undefined) return orAbort(promise, signal);
    checkDuration('timeoutMs', timeoutMs, { min: 0, max: TIMEOUT_MS_MAX });
    const timeout = new AbortController();
    const cancel = this.#clock.at(this.#clock.nowMs() + timeoutMs, () =>
      timeout.abort(new RequestTimeoutError(what, timeoutMs, 'unknown')),
    );
    try {
      return await orAbort(promise, signal, timeout.signal);
    } finally {
      cancel();
    }
  }

  #bound(
    request: PendingRequest,
    driver: SessionDriver,
    signal: AbortSignal | undefined,
    timeoutMs: number | undefined,
  ): void {
    const { session } = this.#keeper;
    const giveUp = (reason: unknown) => {
      if (request.stage === 'sent' && request.operation.writes) session.gaveUp(request);
      if (request.watch && request.stage === 'sent') {
        // The server will set the watch, so that its answer has to be heard: only then can the watch be removed. An
        // event may come right behind that answer: the caller's listener must not get it.
        const watch = { ...request.watch, watcher: () => {} };
        request.watch = watch;
        request.onLateAnswer = () => this.#removeWatch(session, watch);
      } else {
        driver.input({ kind: 'request-abandoned', request });
      }
      request.failed(reason);
    };
    const onAbort = () => giveUp(signal!.reason);
    signal?.addEventListener('abort', onAbort, { once: true });
    const cancel =
      timeoutMs === undefined
        ? undefined
        : this.#clock.at(this.#clock.nowMs() + timeoutMs, () => {
            const outcome = request.stage === 'sent' ? 'unknown' : 'not-applied';
            giveUp(new RequestTimeoutError(request.what, timeoutMs, outcome));
          });
    request.onSettled = () => {
      signal?.removeEventListener('abort', onAbort);
      cancel?.();
    };
  }
}
