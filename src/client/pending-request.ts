import { type Deferred, deferred } from '../base/deferred.ts';
import { ServerError } from '../protocol/errors.ts';
import type { Operation } from '../protocol/operations.ts';
import { SessionRequest } from '../session/session-request.ts';
import type { WatchIntent } from '../session/watch-registry.ts';
import { callOf } from './call-names.ts';

/** What a request is, as the method that makes it says it. */
export interface RequestSpec<Q, R, V> {
  readonly operation: Operation<Q, R>;
  readonly record: Q;
  /** The path as the caller wrote it, for error messages. */
  readonly path?: string;
  readonly watch?: WatchIntent | undefined;
  readonly watches?: readonly WatchIntent[];
  /**
   * Makes the caller's value of the reply and, of a write, its transaction's number. Runs in the read loop: no user
   * code, no throwing but ServerError.
   */
  shape(reply: R, zxid: bigint): V;
  /** Makes a value of a refusal that is an answer (exists: no node), or undefined if it is an error. */
  shapeRefusal?(serverCode: number): { readonly value: V } | undefined;
}

/** A request with the promise that its caller holds. Settles exactly once. */
export class PendingRequest<Q = unknown, R = unknown, V = unknown> extends SessionRequest<Q, R> {
  readonly #spec: RequestSpec<Q, R, V>;
  readonly #deferred: Deferred<V> = deferred<V>();
  /** Takes back the abort listener and the timer of this request. */
  onSettled: (() => void) | undefined;

  constructor(spec: RequestSpec<Q, R, V>) {
    super(spec.operation, spec.record, spec.watch, spec.watches);
    this.#spec = spec;
  }

  get promise(): Promise<V> {
    return this.#deferred.promise;
  }

  get path(): string | undefined {
    return this.#spec.path;
  }

  override get what(): string {
    const call = callOf(this.operation.name);
    return this.path === undefined ? call : `${call} ${this.path}`;
  }

  answered(reply: unknown, zxid: bigint): void {
    this.onSettled?.();
    try {
      this.#deferred.resolve(this.#spec.shape(reply as R, zxid));
    } catch (error) {
      this.#deferred.reject(error);
    }
  }

  refused(serverCode: number): void {
    const answer = this.#spec.shapeRefusal?.(serverCode);
    if (!answer) return this.failed(new ServerError(serverCode, callOf(this.operation.name), this.path));
    this.onSettled?.();
    this.#deferred.resolve(answer.value);
  }

  failed(error: unknown): void {
    this.onSettled?.();
    this.#deferred.reject(error);
  }
}
