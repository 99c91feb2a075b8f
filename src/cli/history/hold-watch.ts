import { systemClock } from '../../base/clock.ts';
import type { AuditRecord } from '../../locks/audit-log.ts';
import type { Holdfast } from '../../locks/holdfast.ts';
import type { ContenderInfo } from '../../locks/inspection.ts';
import { LockUnreachableError } from '../../locks/lock-errors.ts';
import {
  ConnectionLossError,
  LeaseEndedError,
  RequestTimeoutError,
  SessionLostError,
  UnreachableError,
} from '../../protocol/errors.ts';
import { REVOKE_MARK } from '../../queue/own-node.ts';
import type { WatchEvent } from '../../session/watch-registry.ts';
import { type HoldEvent, HoldTracker } from './hold-tracker.ts';

/** What is told of a lock while it is followed. */
export type FollowEvent =
  | HoldEvent
  /** A holder was asked to let go, or removed, and it was written down by whom and why. */
  | { readonly event: 'record'; readonly record: AuditRecord }
  /** A holder was asked to let go, without a reason: nothing is known of who did. */
  | { readonly event: 'asked'; readonly at: Date; readonly holder: ContenderInfo };

/**
 * The history of a lock from now on: each change below its node is followed by a look at the queue. A hold that begins
 * and ends between two looks, about a round trip, is not seen. While no server answers there is a gap, however long: it
 * ends when one does, or with the signal.
 */
export async function* watchHolds(
  holdfast: Holdfast,
  name: string,
  { signal, known }: { readonly signal: AbortSignal; readonly known: readonly AuditRecord[] },
): AsyncGenerator<FollowEvent, void, void> {
  const follower = new Follower(holdfast, name, known);
  while (!signal.aborted) {
    using outage = new Outage(holdfast);
    const over = new AbortController();
    try {
      const mode = 'persistent-recursive';
      const bound = AbortSignal.any([signal, over.signal]);
      const changes = holdfast.zk.events(`${holdfast.root}/${name}`, { mode, signal: bound });
      let change = changes.next(); // Sets the watch: what changes after the look below is told.
      change.catch(() => {});
      await outage.during(holdfast.zk.sync());
      yield* await outage.during(follower.look());
      for (;;) {
        const { done, value } = await outage.during(change);
        if (done) break;
        if (value.type === 'watch-gap') yield* follower.gap();
        follower.changed(value);
        yield* await outage.during(follower.look());
        change = changes.next();
        change.catch(() => {});
      }
      yield* follower.gap(); // The watch was removed: another one is set, and what happened in between is looked up.
    } catch (error) {
      if (signal.aborted) return;
      if (!isOutage(error)) throw error;
      yield* follower.gap();
      await untilConnected(holdfast, signal);
    } finally {
      over.abort();
    }
  }
}

class Follower {
  readonly #holdfast: Holdfast;
  readonly #name: string;
  readonly #tracker = new HoldTracker();
  readonly #told: Set<string>;
  readonly #asked = new Set<string>();
  readonly #written = new Set<string>();

  constructor(holdfast: Holdfast, name: string, known: readonly AuditRecord[]) {
    this.#holdfast = holdfast;
    this.#name = name;
    this.#told = new Set(known.map(keyOf));
  }

  gap(): FollowEvent[] {
    return this.#tracker.gap(now(), systemClock.nowMs());
  }

  /** A holder's data changes when it is asked to let go, and when it writes its own back, which may come at once. */
  changed({ type, path }: WatchEvent): void {
    if (type === 'node-data-changed') this.#written.add(path.slice(path.lastIndexOf('/') + 1));
  }

  /** What was asked for and taken comes before what came of it. */
  async look(): Promise<FollowEvent[]> {
    const lock = await this.#holdfast.inspect(this.#name);
    const isAsked = ({ id, owner }: ContenderInfo) =>
      !this.#asked.has(id) && (owner.text === REVOKE_MARK || this.#written.has(id));
    const holders = this.#tracker.held.filter(({ id }) => this.#written.has(id));
    const asked = [
      ...holders.filter(isAsked),
      ...lock.holders.filter((holder) => isAsked(holder) && !this.#written.has(holder.id)),
    ];
    const events = this.#tracker.look(lock, now(), systemClock.nowMs());
    const written = holders.length > 0;
    this.#written.clear();
    if (!written && asked.length === 0 && !events.some(({ event }) => event === 'ended')) return events;
    const records = (await this.#holdfast.audit(this.#name)).filter((each) => !this.#told.has(keyOf(each)));
    for (const record of records) this.#told.add(keyOf(record));
    for (const { id } of asked) this.#asked.add(id);
    const unknown = asked.filter(({ id }) => !records.some(({ holder }) => holder === id));
    const back = events.filter(({ event }) => event === 'back');
    return [
      ...back,
      ...records.map((record) => ({ event: 'record', record }) as const),
      ...unknown.map((holder) => ({ event: 'asked', at: now(), holder }) as const),
      ...events.filter(({ event }) => event !== 'back'),
    ];
  }
}

/** Ends whatever is awaited when the connection is lost: what is asked then is not answered before it is back. */
class Outage implements Disposable {
  readonly #stop: () => void;
  readonly #began: Promise<never>;

  constructor({ zk }: Holdfast) {
    let begin: (error: Error) => void = () => {};
    this.#began = new Promise<never>((_, reject) => {
      begin = reject;
    });
    this.#began.catch(() => {});
    const suspended = () => begin(new ConnectionLossError('history', 'not-applied'));
    this.#stop = zk.on('suspended', suspended);
    if (zk.session.state !== 'connected') suspended();
  }

  during<T>(promise: Promise<T>): Promise<T> {
    promise.catch(() => {});
    return Promise.race([promise, this.#began]);
  }

  [Symbol.dispose](): void {
    this.#stop();
  }
}

async function untilConnected({ zk }: Holdfast, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      await zk.connected({ signal });
      return;
    } catch (error) {
      if (!signal.aborted && !isOutage(error)) throw error;
    }
  }
}

function isOutage(error: unknown): boolean {
  return [
    ConnectionLossError,
    LeaseEndedError,
    LockUnreachableError,
    RequestTimeoutError,
    SessionLostError,
    UnreachableError,
  ].some((type) => error instanceof type);
}

function keyOf({ action, at, holder, by, reason }: AuditRecord): string {
  return JSON.stringify([action, at.getTime(), holder, by, reason]);
}

function now(): Date {
  return new Date(systemClock.wallMs());
}
