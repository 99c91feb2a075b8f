import type { Operation } from '../protocol/operations.ts';
import type { WatchIntent } from './watch-registry.ts';

/** One request on its way through a session. The client adds what settles it; the session only carries it. */
export class SessionRequest<Q = unknown, R = unknown> {
  readonly operation: Operation<Q, R>;
  readonly record: Q;
  readonly watch: WatchIntent | undefined;
  /** `sent` is where an outcome becomes unknown if no answer comes; `done` is where it is known or given up. */
  stage: 'new' | 'queued' | 'sent' | 'done' = 'new';
  /** True once nobody waits for the answer any more, which still has to be read. */
  abandoned = false;
  xid = 0;
  sentAtMs = 0;
  attemptCount = 0;

  constructor(operation: Operation<Q, R>, record: Q, watch?: WatchIntent) {
    this.operation = operation;
    this.record = record;
    this.watch = watch;
  }
}

/** A request of the session's own; nobody outside waits for it. */
export class OwnRequest<Q = unknown, R = unknown> extends SessionRequest<Q, R> {
  /** `watches-restored` is the last of the setWatches frames of a connection. */
  readonly purpose: 'heartbeat' | 'watches' | 'watches-restored' | 'sasl' | 'close';

  constructor(purpose: OwnRequest['purpose'], operation: Operation<Q, R>, record: Q) {
    super(operation, record);
    this.purpose = purpose;
  }
}
