import { ConnectionLossError } from '../protocol/errors.ts';
import { type Operation, operations } from '../protocol/operations.ts';
import type { WatchesAsked, WatchIntent } from './watch-registry.ts';

const NO_WATCHES: readonly WatchIntent[] = [];

/** One request on its way through a session. The client adds what settles it; the session only carries it. */
export class SessionRequest<Q = unknown, R = unknown> implements WatchesAsked {
  readonly operation: Operation<Q, R>;
  readonly record: Q;
  readonly watch: WatchIntent | undefined;
  readonly watches: readonly WatchIntent[];
  watchedAttempt = 0;
  /** `sent` is where an outcome becomes unknown if no answer comes; `done` is where it is known or given up. */
  stage: 'new' | 'queued' | 'sent' | 'done' = 'new';
  /** True once nobody waits for the answer any more, which still has to be read. */
  abandoned = false;
  /** Fails rather than wait for another connection, if this one ends before it is sent. */
  unqueued = false;
  xid = 0;
  sentAtMs = 0;
  attemptCount = 0;
  /** How long its frame is, once it was encoded by itself. */
  frameBytes = 0;

  constructor(
    operation: Operation<Q, R>,
    record: Q,
    watch?: WatchIntent,
    watches: readonly WatchIntent[] = NO_WATCHES,
  ) {
    this.operation = operation;
    this.record = record;
    this.watch = watch;
    this.watches = watches;
  }

  /** For error messages: what was asked for, as its caller would say it. */
  get what(): string {
    return this.operation.name;
  }
}

/** A request of the session's own; nobody outside waits for it. */
export class OwnRequest<Q = unknown, R = unknown> extends SessionRequest<Q, R> {
  /** `watches-restored` is the last of the setWatches frames of a connection. */
  readonly purpose: 'heartbeat' | 'watches' | 'watches-restored' | 'unwatch' | 'sasl' | 'close';

  constructor(purpose: OwnRequest['purpose'], operation: Operation<Q, R>, record: Q) {
    super(operation, record);
    this.purpose = purpose;
  }
}

/** A write is ordered by the leader, a sync answered by it; a plain read or ping any follower answers alone. */
export function isConfirmedByLeader({ operation }: SessionRequest): boolean {
  return operation.writes || operation === operations.sync;
}

/** What a request fails with whose connection was lost. */
export function connectionLoss(
  { what }: SessionRequest,
  outcome: ConnectionLossError['outcome'],
  cause?: Error,
): ConnectionLossError {
  return new ConnectionLossError(what, outcome, cause && { cause });
}
