import type { Clock } from '../base/clock.ts';
import { type Deferred, deferred } from '../base/deferred.ts';
import { Fifo } from '../base/fifo.ts';
import type { AclEntry } from '../client/acl.ts';
import { type MultiWrite, ops } from '../client/operations-of-multi.ts';
import type { Session } from '../client/session.ts';
import type { ZooKeeper } from '../client/zookeeper.ts';
import { MultiError } from '../protocol/errors.ts';
import type { QueueStore } from './queue-store.ts';

/** How many transactions of a session's queues are under way before others are gathered. */
const UNDER_WAY_MAX = 4;
const GATHERED_MAX = 64;
const GATHERED_BYTES_MAX = 128 * 1024;

/** An entry that is there. */
export interface Made {
  readonly path: string;
  readonly czxid: bigint;
}

/** What makes an entry. */
export interface EntryCreation {
  /** The queue's. */
  readonly folder: string;
  readonly prefix: string;
  readonly data: string;
  readonly acl?: readonly AclEntry[] | undefined;
}

interface Write {
  /** The queue's, where it makes an entry. */
  readonly folder?: string;
  readonly byteLength: number;
  readonly settled: Deferred<unknown>;
  /** What it is as a part of a transaction; the first of its results is what it settles with. */
  operations(): readonly MultiWrite<unknown>[];
  /** The same as a request of its own. */
  ask(): Promise<unknown>;
  /** Makes of the answer to that what a transaction answers; left out where they are the same. */
  shape?(answer: never): unknown;
  /** Called as soon as it has been asked for: what is asked for then is answered after it. */
  onSent?(): void;
}

/**
 * What one session writes to its queues, where each write is independent of the others.
 *
 * All that is written in one tick leaves as one transaction: a busy server has fewer requests to take in. A few of them
 * are under way at a time; what comes then is gathered until one of those is answered, and nobody waits for more than a
 * part of a round trip. A transaction that is refused has done nothing; each of its writes is then sent for itself.
 *
 * No transaction makes two entries in one queue, whose tokens would be the same: while one of them is waiting or under
 * way, others for that queue are sent for themselves.
 */
export class GatheredWrites {
  readonly #zk: ZooKeeper;
  readonly #session: Session;
  readonly #clock: Clock;
  readonly #waiting = new Fifo<Write>();
  /** Of the creations that wait or are under way. */
  readonly #folders = new Set<string>();
  /** Those that go for themselves. */
  readonly #apart: Write[] = [];
  readonly #afterwards: (() => void)[] = [];
  #underWayCount = 0;
  #pumpingSoon = false;
  #pumping = false;

  constructor(zk: ZooKeeper, session: Session, clock: Clock) {
    this.#zk = zk;
    this.#session = session;
    this.#clock = clock;
  }

  /** Makes an entry in a folder that was there. `onSent` may be called twice. */
  create({ folder, prefix, data, acl }: EntryCreation, onSent: () => void): Promise<Made> {
    const options = { mode: 'ephemeral-sequential', acl, session: this.#session } as const;
    const settled = deferred<Made>();
    const write: Write = {
      folder,
      byteLength: data.length,
      settled: settled as Deferred<unknown>,
      operations: () => [ops.create(prefix, data, options)],
      ask: () => this.#zk.create(prefix, data, options),
      shape: madeOf,
      onSent,
    };
    if (this.#folders.has(folder)) {
      this.#apart.push(write);
    } else {
      this.#folders.add(folder);
      this.#waiting.push(write);
    }
    this.#pumpSoon();
    return settled.promise;
  }

  /** Calls `run` at the end of the tick, behind all that it sends. */
  afterwards(run: () => void): void {
    this.#afterwards.push(run);
    this.#pumpSoon();
  }

  delete(path: string): Promise<void> {
    return this.#write(
      () => [ops.delete(path)],
      () => this.#zk.delete(path, { session: this.#session }),
    );
  }

  /** Does all of it in one step. What it is to be is asked for when it leaves, and again if it has to leave again. */
  multi(operations: Write['operations']): Promise<void> {
    return this.#write(operations, () => this.#zk.multi(operations(), { session: this.#session }));
  }

  #write(operations: Write['operations'], ask: Write['ask']): Promise<void> {
    const settled = deferred<unknown>();
    this.#waiting.push({ byteLength: 0, settled, operations, ask });
    this.#pumpSoon();
    return settled.promise as Promise<void>;
  }

  #pumpSoon(): void {
    if (this.#pumpingSoon || this.#pumping) return;
    this.#pumpingSoon = true;
    this.#clock.endOfTick(this.#pumpAtEnd);
  }

  readonly #pumpAtEnd = () => {
    this.#pumpingSoon = false;
    this.#pump();
  };

  /** What comes while it is at it goes with it. */
  #pump(): void {
    this.#pumping = true;
    do {
      while (this.#underWayCount < UNDER_WAY_MAX && this.#waiting.length > 0) this.#send(this.#gather());
      for (const write of taken(this.#apart)) void this.#alone(write);
      for (const run of taken(this.#afterwards)) run();
    } while (this.#hasWork);
    this.#pumping = false;
  }

  get #hasWork(): boolean {
    if (this.#apart.length + this.#afterwards.length > 0) return true;
    return this.#underWayCount < UNDER_WAY_MAX && this.#waiting.length > 0;
  }

  #send(writes: readonly Write[]): void {
    this.#underWayCount++;
    void (writes.length === 1 ? this.#alone(writes[0]!) : this.#together(writes)).then(() => {
      this.#underWayCount--;
      for (const { folder } of writes) if (folder !== undefined) this.#folders.delete(folder);
      this.#pump();
    });
  }

  /** The first of those that wait, and as many after it as may go with it. */
  #gather(): Write[] {
    const writes: Write[] = [];
    let bytes = 0;
    for (
      let next = this.#waiting.first();
      next && writes.length < GATHERED_MAX;
      next = this.#waiting.first()
    ) {
      bytes += next.byteLength;
      if (bytes > GATHERED_BYTES_MAX && writes.length > 0) break;
      writes.push(next);
      this.#waiting.shift();
    }
    return writes;
  }

  /** Resolves when it is settled, either way. */
  #alone(write: Write): Promise<void> {
    const { settled } = write;
    try {
      const asking = write.ask();
      write.onSent?.();
      return asking.then(
        (answer) => settled.resolve(write.shape ? write.shape(answer as never) : answer),
        (error) => settled.reject(error),
      );
    } catch (error) {
      settled.reject(error);
      return Promise.resolve();
    }
  }

  async #together(writes: readonly Write[]): Promise<void> {
    try {
      const parts = writes.map((write) => write.operations());
      const answering = this.#zk.multi(parts.flat(), { session: this.#session });
      for (const write of writes) write.onSent?.();
      const results = await answering;
      let at = 0;
      for (const [index, { settled }] of writes.entries()) {
        settled.resolve(results[at]);
        at += parts[index]!.length;
      }
    } catch (error) {
      if (error instanceof MultiError) await Promise.all(writes.map((write) => this.#alone(write)));
      else for (const { settled } of writes) settled.reject(error);
    }
  }
}

const NOTHING: readonly never[] = [];

/** What is in it, which is empty then. */
function taken<T>(list: T[]): readonly T[] {
  return list.length === 0 ? NOTHING : list.splice(0);
}

function madeOf({ path, stat }: { readonly path: string; readonly stat: { readonly czxid: bigint } }): Made {
  return { path, czxid: stat.czxid };
}

const bySession = new WeakMap<Session, GatheredWrites>();

/** The one of a session: all its queues share it. */
export function gatheredWritesOf({ zk, clock }: QueueStore, session: Session): GatheredWrites {
  let gathered = bySession.get(session);
  if (!gathered) {
    gathered = new GatheredWrites(zk, session, clock);
    bySession.set(session, gathered);
  }
  return gathered;
}
