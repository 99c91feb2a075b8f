import type { Clock } from '../base/clock.ts';
import { deferred } from '../base/deferred.ts';
import { Fifo } from '../base/fifo.ts';
import { FreshMap } from '../base/fresh-map.ts';
import type { MultiWrite } from '../client/operations-of-multi.ts';
import type { Session } from '../client/session.ts';
import type { ZooKeeper } from '../client/zookeeper.ts';
import { MultiError } from '../protocol/errors.ts';
import type { ConnectionGate } from './connection-gate.ts';
import { addTo, bytesOf, type EntryCreation, type Made, type QueueWrite, sendAlone } from './queue-writes.ts';
import { isUnsent } from './settled-writes.ts';

/** How many transactions of a session are under way before further writes wait. */
const UNDER_WAY_MAX = 4;
const BATCH_MAX = 64;
const BATCH_BYTES_MAX = 128 * 1024;
/**
 * What part of a session's writes leaves before the end of the tick, so that the server handles them while this process
 * makes the others; but no fewer than so many, since each transaction costs a request.
 */
const EARLY_PART = 0.5;
const EARLY_MIN = 16;
/** How much of the number of writes that were open at once is still expected one transaction later. */
const REMEMBERED = 0.98;
const UNSENT = { isWaiting: true, givenUp: undefined };

type CreatedAlone = Awaited<ReturnType<ZooKeeper['create']>>;
const madeOf = ({ path, stat }: CreatedAlone): readonly Made[] => [{ path, czxid: stat.czxid }];

/**
 * What one session writes to its queues, where each write is independent of the others.
 *
 * All writes of one tick leave as one transaction: a busy server has fewer requests to handle. A few transactions are
 * under way at a time; later writes wait until one of those is answered, which is a part of a round trip at most. A
 * transaction that is refused, by the server or before it was sent, has done nothing: each of its writes is then sent as
 * a request of its own.
 *
 * While there is no connection all writes wait here, and not in the client, which would send them with the next
 * connection: an entry that was given up meanwhile is not made.
 *
 * No transaction makes two entries in one queue, whose tokens would be the same: while one creation of a queue waits or is
 * under way, further ones are sent as requests of their own.
 */
export class BatchedWrites {
  readonly #zk: ZooKeeper;
  readonly #session: Session;
  readonly #clock: Clock;
  readonly #gate: ConnectionGate;
  readonly #waiting = new Fifo<QueueWrite>();
  /** Creations that are sent as requests of their own. */
  readonly #apart = new Fifo<QueueWrite>();
  /** By its folder: the creation that waits or is under way in a batch. */
  readonly #creations = new FreshMap<string, EntryCreation>();
  readonly #afterwards: (() => void)[] = [];
  #isAwaitingConnection = false;
  #isScheduled = false;
  #isFlushing = false;
  #underWayCount = 0;
  /** Writes in what is under way. */
  #openCount = 0;
  /** The most that waited or were under way at once, lately. */
  #openCountMax = 0;

  constructor(
    zk: ZooKeeper,
    session: Session,
    { clock, gate }: { readonly clock: Clock; readonly gate: ConnectionGate },
  ) {
    this.#zk = zk;
    this.#session = session;
    this.#clock = clock;
    this.#gate = gate;
  }

  /** Makes an entry in a folder that was there. */
  create(entry: Pick<EntryCreation, 'folder' | 'prefix' | 'data' | 'acl' | 'onSent'>): EntryCreation {
    const { folder, prefix, data, acl, onSent } = entry;
    const state = { answer: deferred<readonly Made[]>(), isWaiting: true, givenUp: undefined };
    const creation: EntryCreation = { kind: 'create', folder, prefix, data, acl, onSent, ...state };
    const isApart = this.#creations.has(creation.folder);
    if (!isApart) this.#creations.set(creation.folder, creation);
    this.#add(creation, isApart ? this.#apart : this.#waiting);
    return creation;
  }

  /** Takes back an entry that has not been sent; it rejects with `reason`. What has been sent goes on. */
  withdraw(creation: EntryCreation, reason: unknown): void {
    creation.givenUp = { reason };
    if (!creation.isWaiting) return;
    this.#queueOf(creation).remove(creation);
    this.#drop(creation, reason);
  }

  delete(path: string): Promise<void> {
    const deletion: QueueWrite = { kind: 'delete', path, answer: deferred(), ...UNSENT };
    this.#add(deletion, this.#waiting);
    return deletion.answer.promise;
  }

  /** Does all operations in one step. They are asked for when they leave, and again if they have to leave again. */
  multi(operations: () => readonly MultiWrite<unknown>[]): Promise<unknown> {
    const transaction: QueueWrite = {
      ...{ kind: 'multi', operations, measured: undefined },
      ...{ answer: deferred(), ...UNSENT },
    };
    this.#add(transaction, this.#waiting);
    return transaction.answer.promise;
  }

  /** Calls `run` at the end of the tick, behind all that it sends. */
  afterwards(run: () => void): void {
    this.#afterwards.push(run);
    if (!this.#isFlushing) this.#schedule();
  }

  #add(write: QueueWrite, queue: Fifo<QueueWrite>): void {
    queue.push(write);
    if (this.#isFlushing) return; // It leaves with the others.
    const isMany = this.#waiting.length >= Math.max(EARLY_MIN, EARLY_PART * this.#openCountMax);
    if (!isMany || !this.#mayLeave) return this.#schedule();
    this.#flush();
    this.#session.flush();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#clock.endOfTick(this.#flushAtEnd);
  }

  readonly #flushAtEnd = () => {
    this.#isScheduled = false;
    this.#flush();
  };

  /** Sends all that may leave, with what is added meanwhile, and calls back. */
  #flush(): void {
    this.#isFlushing = true;
    try {
      for (;;) {
        while (this.#mayLeave) this.#send(this.#takeBatch());
        if (this.#apart.length > 0 && this.#gate.isOpen)
          for (const write of this.#apart.drain()) void this.#sendAlone(write);
        if (this.#afterwards.length > 0) for (const run of this.#afterwards.splice(0)) run();
        else if (!this.#mayLeave) break;
      }
    } finally {
      this.#isFlushing = false;
    }
    if (!this.#gate.isOpen && this.#waiting.length + this.#apart.length > 0) this.#awaitConnection();
  }

  get #mayLeave(): boolean {
    return this.#waiting.length > 0 && this.#underWayCount < UNDER_WAY_MAX && this.#gate.isOpen;
  }

  #awaitConnection(): void {
    if (this.#isAwaitingConnection) return;
    this.#isAwaitingConnection = true;
    this.#gate.whenOpened(() => {
      this.#isAwaitingConnection = false;
      this.#schedule();
    });
  }

  /** The first of those that wait, and as many after it as may go with it. */
  #takeBatch(): readonly QueueWrite[] {
    const batch: QueueWrite[] = [];
    let bytes = 0;
    for (let next = this.#waiting.first(); next && batch.length < BATCH_MAX; next = this.#waiting.first()) {
      bytes += bytesOf(next);
      if (bytes > BATCH_BYTES_MAX && batch.length > 0) break;
      batch.push(next);
      next.isWaiting = false;
      this.#waiting.shift();
    }
    return batch;
  }

  #send(batch: readonly QueueWrite[]): void {
    this.#underWayCount++;
    this.#openCount += batch.length;
    this.#openCountMax = Math.max(this.#openCount + this.#waiting.length, REMEMBERED * this.#openCountMax);
    const answered = () => {
      this.#underWayCount--;
      this.#openCount -= batch.length;
      if (this.#waiting.length > 0) this.#flush();
    };
    void (batch.length === 1 ? this.#sendAlone(batch[0]!) : this.#sendTogether(batch)).then(answered);
  }

  async #sendAlone(write: QueueWrite): Promise<void> {
    write.isWaiting = false;
    try {
      const answering = sendAlone(write, this.#zk, this.#session);
      if (write.kind === 'create') write.onSent();
      const answer = await answering;
      this.#settle(write, write.kind === 'create' ? madeOf(answer as CreatedAlone) : answer);
    } catch (error) {
      this.#fail([write], error);
    }
  }

  async #sendTogether(writes: readonly QueueWrite[]): Promise<void> {
    const begins: number[] = [];
    let answering: Promise<readonly unknown[]>;
    try {
      const transaction: MultiWrite<unknown>[] = [];
      for (const write of writes) {
        begins.push(transaction.length);
        addTo(transaction, write);
      }
      answering = this.#zk.multi(transaction, { session: this.#session, unqueued: true });
    } catch {
      return this.#sendOneByOne(writes); // Refused before it was sent: one of them is the reason, the others are not.
    }
    for (const write of writes) if (write.kind === 'create') write.onSent();
    try {
      const results = await answering;
      for (let index = 0; index < writes.length; index++) {
        const write = writes[index]!;
        const result = results[begins[index]!];
        this.#settle(write, write.kind === 'create' ? [result as Made] : result);
      }
    } catch (error) {
      if (error instanceof MultiError) await this.#sendOneByOne(writes);
      else this.#fail(writes, error);
    }
  }

  /** Each as a request of its own, but for those that were given up meanwhile: the transaction has done nothing. */
  async #sendOneByOne(writes: readonly QueueWrite[]): Promise<void> {
    const wanted = writes.filter((write) => !write.givenUp);
    for (const write of writes) if (write.givenUp) this.#drop(write, write.givenUp.reason);
    await Promise.all(wanted.map((write) => this.#sendAlone(write)));
  }

  #settle(write: QueueWrite, answer: unknown): void {
    if (write.kind === 'create' && this.#creations.get(write.folder) === write)
      this.#creations.delete(write.folder);
    write.answer.resolve(answer as never);
  }

  /** What was not sent waits again, unless it was given up. */
  #fail(writes: readonly QueueWrite[], error: unknown): void {
    if (!isUnsent(error)) {
      for (const write of writes) this.#drop(write, error);
      return;
    }
    for (const write of writes) {
      if (write.givenUp) this.#drop(write, write.givenUp.reason);
      else write.isWaiting = true;
    }
    for (const queue of [this.#waiting, this.#apart]) {
      queue.prepend(writes.filter((write) => write.isWaiting && this.#queueOf(write) === queue));
    }
    this.#schedule();
  }

  #drop(write: QueueWrite, reason: unknown): void {
    write.isWaiting = false;
    if (write.kind === 'create' && this.#creations.get(write.folder) === write)
      this.#creations.delete(write.folder);
    write.answer.reject(reason);
  }

  #queueOf(write: QueueWrite): Fifo<QueueWrite> {
    const isApart = write.kind === 'create' && this.#creations.get(write.folder) !== write;
    return isApart ? this.#apart : this.#waiting;
  }
}
