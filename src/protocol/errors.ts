import type { ServerCondition } from './error-codes.ts';
import { conditionOf } from './error-codes.ts';

/** Did the write happen? The first question a caller of a distributed system asks. */
export type Outcome = 'not-applied' | 'unknown';

/** What is over when this error arrives: the one request, the connection, the session, the client, one lock. */
export type ErrorScope = 'request' | 'connection' | 'session' | 'client' | 'lock' | 'resource';

const BRANDS = Symbol.for('holdfast.error.brands');

/**
 * The root of every error that is an operating condition: expected, documented, coded.
 *
 * `instanceof` compares brands, not prototypes, so that two copies of the package in one program agree.
 */
export abstract class ZkError extends Error {
  static readonly brand: string = 'ZkError';
  /**
   * Stable, documented in docs/errors.md; branch on this, not on `message`. `LOCK_` for what is said of locks, `ZK_` for
   * ZooKeeper's own conditions.
   */
  abstract readonly code: `ZK_${string}` | `LOCK_${string}`;
  abstract readonly scope: ErrorScope;
  abstract readonly outcome: Outcome;
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.brand;
    const brands: string[] = [];
    for (let type = new.target as { brand?: string }; type?.brand; type = Object.getPrototypeOf(type)) {
      brands.push(type.brand);
    }
    Object.defineProperty(this, BRANDS, { value: brands }); // Not enumerable: of no use in a log.
  }

  static override [Symbol.hasInstance](this: { readonly brand: string }, value: unknown): boolean {
    if (typeof value !== 'object' || value === null) return false;
    // A subclass of the user's has no brand of its own, and must not pass for its parent.
    if (!Object.hasOwn(this, 'brand')) return Function.prototype[Symbol.hasInstance].call(this, value);
    const brands = (value as { [BRANDS]?: unknown })[BRANDS];
    return Array.isArray(brands) && brands.includes(this.brand);
  }
}

/** The server answered, and the answer is no. `condition` says why; nothing was changed. */
export class ServerError extends ZkError {
  static override readonly brand: string = 'ServerError';
  readonly code: `ZK_${string}`;
  readonly scope = 'request';
  readonly outcome = 'not-applied';
  /** The reason, as a word; `'unknown'` for a number this version does not know. */
  readonly condition: ServerCondition;
  /** The number as it came over the wire. */
  readonly serverCode: number;
  /** The path of the request, as the caller wrote it. */
  readonly path: string | undefined;

  constructor(serverCode: number, operation: string, path?: string) {
    const condition = conditionOf(serverCode);
    const what = condition === 'unknown' ? `error code ${serverCode}` : condition.replaceAll('-', ' ');
    super(path === undefined ? `${operation}: ${what}` : `${operation} ${path}: ${what}`);
    this.condition = condition;
    this.code = `ZK_${condition.toUpperCase().replaceAll('-', '_')}`;
    this.serverCode = serverCode;
    this.path = path;
  }
}

/** A `multi` was refused as a whole: none of its operations happened. `index` is the one that failed. */
export class MultiError extends ServerError {
  static override readonly brand: string = 'MultiError';
  readonly index: number;

  constructor(serverCode: number, operation: string, path: string | undefined, index: number) {
    super(serverCode, `multi, operation ${index}: ${operation}`, path);
    this.index = index;
  }
}

/** The socket died: what was in flight may or may not have been applied, what was still queued was not. */
export class ConnectionLossError extends ZkError {
  static override readonly brand: string = 'ConnectionLossError';
  readonly code = 'ZK_CONNECTION_LOSS';
  readonly scope = 'connection';
  readonly outcome: Outcome;

  constructor(operation: string, outcome: Outcome, options?: ErrorOptions) {
    super(
      outcome === 'unknown'
        ? `${operation}: the connection was lost before the answer came`
        : `${operation}: the connection was lost before the request was sent`,
      options,
    );
    this.outcome = outcome;
  }
}

/** The caller's time ran out. The request may still be applied if it had been sent. */
export class RequestTimeoutError extends ZkError {
  static override readonly brand: string = 'RequestTimeoutError';
  readonly code = 'ZK_REQUEST_TIMEOUT';
  readonly scope = 'request';
  readonly outcome: Outcome;

  constructor(operation: string, timeoutMs: number, outcome: Outcome) {
    super(`${operation}: no answer within ${timeoutMs} ms`);
    this.outcome = outcome;
  }
}

/** How it became known that a session is over. */
export type SessionLossCause = 'expired-by-server' | 'local-clock' | 'closed';

/** The session is over, known or assumed: its ephemeral nodes and watches are gone or will be. */
export class SessionLostError extends ZkError {
  static override readonly brand: string = 'SessionLostError';
  readonly code = 'ZK_SESSION_LOST';
  readonly scope = 'session';
  readonly outcome: Outcome;
  readonly lossCause: SessionLossCause;

  constructor(message: string, lossCause: SessionLossCause, outcome: Outcome = 'unknown') {
    super(message);
    this.lossCause = lossCause;
    this.outcome = outcome;
  }
}

/** The lease ended by this process's own clock: the server may from now on give what it protected to another. */
export class LeaseEndedError extends ZkError {
  static override readonly brand: string = 'LeaseEndedError';
  readonly code = 'ZK_LEASE_ENDED';
  readonly scope = 'session';
  readonly outcome = 'unknown';
}

/** The server refused the credentials; the client stops, since trying again would be refused again. */
export class AuthFailedError extends ZkError {
  static override readonly brand: string = 'AuthFailedError';
  readonly code = 'ZK_AUTH_FAILED';
  readonly scope = 'session';
  readonly outcome: Outcome;

  constructor(message: string, outcome: Outcome = 'not-applied') {
    super(message);
    this.outcome = outcome;
  }
}

/** No server could be reached in the time allowed; `cause` is an `AggregateError` of the attempts. */
export class UnreachableError extends ZkError {
  static override readonly brand: string = 'UnreachableError';
  readonly code: 'ZK_UNREACHABLE' | 'ZK_SERVER_BEHIND' = 'ZK_UNREACHABLE';
  readonly scope = 'connection';
  readonly outcome = 'not-applied';
}

/**
 * The server knows less than this client has seen: it belongs to another ensemble, was restored from an older backup, or
 * lags. A new session there would be given smaller fencing tokens, so it is refused and the next server tried.
 */
export class ServerBehindError extends UnreachableError {
  static override readonly brand: string = 'ServerBehindError';
  override readonly code = 'ZK_SERVER_BEHIND';
}

/** Too much waits for a connection already; this request was not taken on, and was not sent. */
export class QueueFullError extends ZkError {
  static override readonly brand: string = 'QueueFullError';
  readonly code = 'ZK_QUEUE_FULL';
  readonly scope = 'request';
  readonly outcome = 'not-applied';
}

/** The client was closed by its owner. */
export class ClosedError extends ZkError {
  static override readonly brand: string = 'ClosedError';
  readonly code = 'ZK_CLOSED';
  readonly scope = 'client';
  readonly outcome: Outcome;

  constructor(message: string, outcome: Outcome = 'not-applied') {
    super(message);
    this.outcome = outcome;
  }
}

/** The bytes are not the protocol: cut, oversized, out of order or made up. Costs the connection. */
export class ProtocolError extends ZkError {
  static override readonly brand: string = 'ProtocolError';
  readonly code = 'ZK_PROTOCOL';
  readonly scope = 'connection';
  readonly outcome = 'unknown';
}

/** Narrows by condition, so that the caller never compares numbers. */
export function isServerError<C extends ServerCondition>(
  error: unknown,
  condition: C,
): error is ServerError & { readonly condition: C } {
  return error instanceof ServerError && error.condition === condition;
}

/** One row of docs/errors.md, which is generated from this table. */
export interface ErrorRow {
  readonly name: string;
  readonly code: string;
  readonly scope: ErrorScope;
  readonly outcome: string;
  readonly advice: string;
}

export const errorTable: readonly ErrorRow[] = [
  {
    name: 'ServerError',
    code: 'ZK_<CONDITION>',
    scope: 'request',
    outcome: 'not-applied',
    advice: 'handle the condition (`error.condition`)',
  },
  {
    name: 'MultiError',
    code: 'ZK_<CONDITION>',
    scope: 'request',
    outcome: 'not-applied',
    advice: 'handle the condition of operation `error.index`',
  },
  {
    name: 'ConnectionLossError',
    code: 'ZK_CONNECTION_LOSS',
    scope: 'connection',
    outcome: 'unknown if it was sent, else not-applied',
    advice: 'repeat if repeatable; else `sync`, then look whether it happened',
  },
  {
    name: 'RequestTimeoutError',
    code: 'ZK_REQUEST_TIMEOUT',
    scope: 'request',
    outcome: 'unknown if it was sent, else not-applied',
    advice: 'as above',
  },
  {
    name: 'SessionLostError',
    code: 'ZK_SESSION_LOST',
    scope: 'session',
    outcome: 'unknown if it was sent, else not-applied',
    advice: 'stop the work done under this session, then start again',
  },
  {
    name: 'LeaseEndedError',
    code: 'ZK_LEASE_ENDED',
    scope: 'session',
    outcome: 'unknown',
    advice: 'stop the work at once: another may hold the lock from now on',
  },
  {
    name: 'AuthFailedError',
    code: 'ZK_AUTH_FAILED',
    scope: 'session',
    outcome: 'unknown if it was sent, else not-applied',
    advice: 'fix the credentials and connect anew',
  },
  {
    name: 'UnreachableError',
    code: 'ZK_UNREACHABLE',
    scope: 'connection',
    outcome: 'not-applied',
    advice: 'check the server list and the network; retry later',
  },
  {
    name: 'ServerBehindError',
    code: 'ZK_SERVER_BEHIND',
    scope: 'connection',
    outcome: 'not-applied',
    advice:
      'check that the list names servers of one ensemble; `acceptOlderServers` if it was restored on purpose',
  },
  {
    name: 'QueueFullError',
    code: 'ZK_QUEUE_FULL',
    scope: 'request',
    outcome: 'not-applied',
    advice: 'wait until there is a connection (`zk.connected()`), and ask for less meanwhile',
  },
  {
    name: 'ClosedError',
    code: 'ZK_CLOSED',
    scope: 'client',
    outcome: 'unknown if it was sent, else not-applied',
    advice: 'nothing: you closed it',
  },
  {
    name: 'ProtocolError',
    code: 'ZK_PROTOCOL',
    scope: 'connection',
    outcome: 'unknown',
    advice: 'report it, with the server and its version',
  },
];
