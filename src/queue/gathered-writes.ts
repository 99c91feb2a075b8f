import type { Clock } from '../base/clock.ts';
import { Fifo } from '../base/fifo.ts';
import { FreshMap } from '../base/fresh-map.ts';
import type { MultiWrite } from '../client/operations-of-multi.ts';
import type { Session } from '../client/session.ts';
import type { ZooKeeper } from '../client/zookeeper.ts';
import { MultiError } from '../protocol/errors.ts';
import { type ConnectionGate, connectionGateOf } from './connection-gate.ts';
import type { QueueStore } from './queue-store.ts';
import {
  type EntryCreation,
  EntryDeletion,
  type Made,
  QueueTransaction,
  type QueueWrite,
} from './queue-write.ts';
import { isUnsent } from './settled-writes.ts';

/** How many transactions of a session's queues are under way before others are gathered. */
const UNDER_WAY_MAX = 4;
const GATHERED_MAX = 64;
/**
 * What part of a session's writes leaves before the end of the tick, so that the server does them while this process
 * makes the others; but no fewer than so many, since each transaction costs a request.
 */
const FLIGHT_PART = 0.5;
const FLIGHT_MIN = 16;
/** How much of the number of writes that were open at once is still expected one transaction later. */
const REMEMBERED = 0.98;
const GATHERED_BYTES_MAX = 128 * 1024;

/**
 * What one session writes to its queues, where each write is independent of the others.
 *
 * All that is written in one tick leaves as one transaction: a busy server has fewer requests to take in. A few of them
 * are under way at a time; what comes then is gathered until one of those is answered, and nobody waits for more than a
 * part of a round trip. A transaction that is refused, by the
 * server or before it left, has done nothing; each of its writes is then sent for itself.
 *
 * While there is no connection all of it waits here, and not in the client, from where it would leave with the next one:
 * an entry that nobody wants any more is not made.
 *
 * No transaction makes two entries in one queue, whose tokens would be the same: while one of them is waiting or under
 * way, others for that queue are sent for themselves.
 */
export class GatheredWrites {
  readonly #zk: ZooKeeper;
  readonly #session: Session;
  readonly #clock: Clock;
  readonly #waiting = new Fifo<QueueWrite>();
  /** Of the creations that wait or are under way, but for those that go for themselves. */
  readonly #folders = new FreshMap<string, QueueWrite>();
  /** Those that go for themselves. */
  readonly #apart = new Fifo<QueueWrite>();
  readonly #gate: ConnectionGate;
  #awaitsConnection = false;
  readonly #afterwards: (() => void)[] = [];
  #underWayCount = 0;
  /** Writes in what is under way. */
  #openCount = 0;
  /** The most that waited or were under way at once, lately. */
  #openCountMax = 0;
  #pumpingSoon = false;
  #pumping = false;

  constructor(zk: ZooKeeper, session: Session, clock: Clock) {
    this.#zk = zk;
    this.#session = session;
    this.#clock = clock;
    this.#gate = connectionGateOf({ zk }, session);
  }

  /** Makes an entry in a folder that was there. */
  create(creation: EntryCreation): Promise<Made> {
    const isApart = this.#folders.has(creation.folder);
    if (!isApart) this.#folders.set(creation.folder, creation);
    return this.#wait(creation, isApart ? this.#apart : this.#waiting) as Promise<Made>;
  }

  /** Takes back an entry that has not been asked for; it rejects with `reason`. What has been asked for goes on. */
  withdraw(creation: EntryCreation, reason: unknown): void {
    creation.givenUp = { reason };
    if (!creation.isWaiting) return;
    this.#queueOf(creation).remove(creation);
    this.#drop(creation, reason);
  }

  /** Calls `run` at the end of the tick, behind all that it sends. */
  afterwards(run: () => void): void {
    this.#afterwards.push(run);
    this.#pumpSoon();
  }

  delete(path: string): Promise<void> {
    return this.#wait(new EntryDeletion(path)) as Promise<void>;
  }

  /** Does all of it in one step. What it is to be is asked for when it leaves, and again if it has to leave again. */
  multi(operations: () => readonly MultiWrite<unknown>[]): Promise<void> {
    return this.#wait(new QueueTransaction(operations)) as Promise<void>;
  }

  #wait(write: QueueWrite, where = this.#waiting): Promise<unknown> {
    write.isWaiting = true;
    where.push(write);
    this.#pumpSoon();
    return write.promise;
  }

  #pumpSoon(): void {
    if (this.#pumping) return;
    if (this.#waiting.length >= this.#flightLength && this.#mayLeave) {
      this.#pump();
      this.#session.flush();
      return;
    }
    if (this.#pumpingSoon) return;
    this.#pumpingSoon = true;
    this.#clock.endOfTick(this.#pumpAtEnd);
  }

  get #flightLength(): number {
    return Math.max(FLIGHT_MIN, FLIGHT_PART * this.#openCountMax);
  }

  readonly #pumpAtEnd = () => {
    this.#pumpingSoon = false;
    this.#pump();
  };

  /** What comes while it is at it goes with it. */
  #pump(): void {
    this.#pumping = true;
    try {
      do {
        while (this.#mayLeave && this.#waiting.length > 0) this.#send(this.#gather());
        if (this.#gate.isOpen) {
          for (const write of this.#apart.drain()) this.#askApart(write);
        }
        for (const run of taken(this.#afterwards)) run();
      } while (this.#hasWork);
    } finally {
      this.#pumping = false;
    }
    if (!this.#gate.isOpen && this.#waiting.length + this.#apart.length > 0) this.#awaitConnection();
  }

  get #hasWork(): boolean {
    if (this.#afterwards.length > 0) return true;
    return (this.#apart.length > 0 && this.#gate.isOpen) || (this.#waiting.length > 0 && this.#mayLeave);
  }

  get #mayLeave(): boolean {
    return this.#underWayCount < UNDER_WAY_MAX && this.#gate.isOpen;
  }

  #awaitConnection(): void {
    if (this.#awaitsConnection) return;
    this.#awaitsConnection = true;
    this.#gate.whenOpened(() => {
      this.#awaitsConnection = false;
      this.#pumpSoon();
    });
  }

  #send(writes: readonly QueueWrite[]): void {
    this.#underWayCount++;
    this.#openCount += writes.length;
    const openCount = this.#openCount + this.#waiting.length;
    this.#openCountMax = Math.max(openCount, REMEMBERED * this.#openCountMax);
    const answered = () => {
      this.#underWayCount--;
      this.#openCount -= writes.length;
      for (const write of writes) if (!write.isWaiting) this.#forgetFolder(write);
      this.#pump();
    };
    if (writes.length === 1) this.#ask(writes[0]!, answered);
    else void this.#together(writes).then(answered);
  }

  /** The first of those that wait, and as many after it as may go with it. */
  #gather(): QueueWrite[] {
    const writes: QueueWrite[] = [];
    let bytes = 0;
    for (
      let next = this.#waiting.first();
      next && writes.length < GATHERED_MAX;
      next = this.#waiting.first()
    ) {
      bytes += next.weigh();
      if (bytes > GATHERED_BYTES_MAX && writes.length > 0) break;
      writes.push(next);
      next.isWaiting = false;
      this.#waiting.shift();
    }
    return writes;
  }

  #askApart(write: QueueWrite): void {
    write.isWaiting = false;
    this.#ask(write, nothing);
  }

  /** Calls `answered` when it is settled, either way, or waits again; never before this returns. */
  #ask(write: QueueWrite, answered: () => void): void {
    let asking: Promise<unknown>;
    try {
      asking = write.ask(this.#zk, this.#session);
      write.sent();
    } catch (error) {
      asking = Promise.reject(error); // Refused before it left: as if the server had.
    }
    asking.then(
      (answer) => {
        write.resolve(write.shape(answer as never));
        answered();
      },
      (error) => {
        this.#fail([write], error);
        answered();
      },
    );
  }

  async #together(writes: readonly QueueWrite[]): Promise<void> {
    const begins: number[] = [];
    let answering: Promise<readonly unknown[]>;
    try {
      const transaction: MultiWrite<unknown>[] = [];
      for (const write of writes) {
        begins.push(transaction.length);
        write.addTo(transaction);
      }
      answering = this.#zk.multi(transaction, { session: this.#session, unqueued: true });
    } catch {
      return this.#oneByOne(writes); // Refused before it left: whichever of them is the reason, the others are not.
    }
    for (const write of writes) write.sent();
    try {
      const results = await answering;
      for (let index = 0; index < writes.length; index++) writes[index]!.resolve(results[begins[index]!]);
    } catch (error) {
      if (error instanceof MultiError) await this.#oneByOne(writes);
      else this.#fail(writes, error);
    }
  }

  /** What has not left waits again, unless nobody wants it any more. */
  #fail(writes: readonly QueueWrite[], error: unknown): void {
    if (!isUnsent(error)) {
      for (const write of writes) write.reject(error);
      return;
    }
    for (const write of writes) {
      if (write.givenUp) this.#drop(write, write.givenUp.reason);
      else write.isWaiting = true;
    }
    for (const queue of [this.#waiting, this.#apart]) {
      queue.prepend(writes.filter((write) => write.isWaiting && this.#queueOf(write) === queue));
    }
    this.#pumpSoon();
  }

  #drop(write: QueueWrite, reason: unknown): void {
    write.isWaiting = false;
    this.#forgetFolder(write);
    write.reject(reason);
  }

  #forgetFolder(write: QueueWrite): void {
    const { folder } = write;
    if (folder !== undefined && this.#folders.get(folder) === write) this.#folders.delete(folder);
  }

  #queueOf(write: QueueWrite): Fifo<QueueWrite> {
    const isApart = write.folder !== undefined && this.#folders.get(write.folder) !== write;
    return isApart ? this.#apart : this.#waiting;
  }

  /** Each as a request of its own, but for those that were given up meanwhile: the transaction has done nothing. */
  async #oneByOne(writes: readonly QueueWrite[]): Promise<void> {
    const wanted = writes.filter((write) => !write.givenUp);
    for (const write of writes) if (write.givenUp) this.#drop(write, write.givenUp.reason);
    await Promise.all(wanted.map((write) => new Promise<void>((done) => this.#ask(write, done))));
  }
}

const NOTHING: readonly never[] = [];
const nothing = () => {};

/** What is in it, which is empty then. */
function taken<T>(list: T[]): readonly T[] {
  return list.length === 0 ? NOTHING : list.splice(0);
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
