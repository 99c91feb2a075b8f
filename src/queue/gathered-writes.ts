import { type Deferred, deferred } from '../base/deferred.ts';
import { Fifo } from '../base/fifo.ts';
import type { AclEntry } from '../client/acl.ts';
import { ops } from '../client/operations-of-multi.ts';
import type { Session } from '../client/session.ts';
import type { ZooKeeper } from '../client/zookeeper.ts';
import { MultiError } from '../protocol/errors.ts';

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
  readonly acl?: readonly AclEntry[];
}

type Write =
  | {
      readonly creation: EntryCreation;
      readonly settled: Deferred<Made>;
      /** Called as soon as it has been asked for: what is asked for then is answered after it. */
      onSent(): void;
    }
  | { readonly path: string; readonly settled: Deferred<void> };

/**
 * What one session writes to its queues, where each write is independent of the others.
 *
 * A few are under way at a time, each for itself. What comes then is gathered, and leaves as one transaction as soon as
 * one of those is answered: a busy server has fewer requests to take in, and nobody waits for more than a part of a
 * round trip. A transaction that is refused has done nothing; each of its writes is then sent for itself.
 *
 * No transaction makes two entries in one queue, whose tokens would be the same: while one of them is waiting or under
 * way, others for that queue are sent at once.
 */
export class GatheredWrites {
  readonly #zk: ZooKeeper;
  readonly #session: Session;
  readonly #waiting = new Fifo<Write>();
  /** Of the creations that wait or are under way. */
  readonly #folders = new Set<string>();
  #underWayCount = 0;

  constructor(zk: ZooKeeper, session: Session) {
    this.#zk = zk;
    this.#session = session;
  }

  /** Makes an entry in a folder that was there. `onSent` may be called twice. */
  create(creation: EntryCreation, onSent: () => void): Promise<Made> {
    const write = { creation, settled: deferred<Made>(), onSent };
    if (this.#folders.has(creation.folder)) {
      void this.#alone(write);
    } else {
      this.#folders.add(creation.folder);
      this.#submit(write);
    }
    return write.settled.promise;
  }

  delete(path: string): Promise<void> {
    const settled = deferred();
    this.#submit({ path, settled });
    return settled.promise;
  }

  #submit(write: Write): void {
    this.#waiting.push(write);
    this.#pump();
  }

  #pump(): void {
    while (this.#underWayCount < UNDER_WAY_MAX && this.#waiting.length > 0) {
      const writes = this.#gather();
      this.#underWayCount++;
      void (writes.length === 1 ? this.#alone(writes[0]!) : this.#together(writes)).then(() => {
        this.#underWayCount--;
        for (const write of writes) if ('creation' in write) this.#folders.delete(write.creation.folder);
        this.#pump();
      });
    }
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
      if ('creation' in next) {
        bytes += next.creation.data.length;
        if (bytes > GATHERED_BYTES_MAX && writes.length > 0) break;
      }
      writes.push(next);
      this.#waiting.shift();
    }
    return writes;
  }

  async #alone(write: Write): Promise<void> {
    const session = this.#session;
    try {
      if (!('creation' in write))
        return write.settled.resolve(await this.#zk.delete(write.path, { session }));
      const { prefix, data } = write.creation;
      const creating = this.#zk.create(prefix, data, { ...createOptions(write.creation), session });
      write.onSent();
      const { path, stat } = await creating;
      write.settled.resolve({ path, czxid: stat.czxid });
    } catch (error) {
      write.settled.reject(error);
    }
  }

  async #together(writes: readonly Write[]): Promise<void> {
    try {
      const answering = this.#zk.multi(writes.map(operationOf), { session: this.#session });
      for (const write of writes) if ('creation' in write) write.onSent();
      const results = (await answering) as (Made & undefined)[];
      for (const [index, { settled }] of writes.entries()) settled.resolve(results[index]!);
    } catch (error) {
      if (error instanceof MultiError) await Promise.all(writes.map((write) => this.#alone(write)));
      else for (const { settled } of writes) settled.reject(error);
    }
  }
}

function operationOf(write: Write) {
  if (!('creation' in write)) return ops.delete(write.path);
  return ops.create(write.creation.prefix, write.creation.data, createOptions(write.creation));
}

function createOptions({ acl }: EntryCreation) {
  return { mode: 'ephemeral-sequential', ...(acl && { acl }) } as const;
}

const bySession = new WeakMap<Session, GatheredWrites>();

/** The one of a session: all its queues share it. */
export function gatheredWritesOf(zk: ZooKeeper, session: Session): GatheredWrites {
  let gathered = bySession.get(session);
  if (!gathered) {
    gathered = new GatheredWrites(zk, session);
    bySession.set(session, gathered);
  }
  return gathered;
}
