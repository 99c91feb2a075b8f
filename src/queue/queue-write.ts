import { utf8Bytes } from '../base/utf8-bytes.ts';
import type { AclEntry } from '../client/acl.ts';
import { type MultiWrite, ops } from '../client/operations-of-multi.ts';
import type { Session } from '../client/session.ts';
import type { ZooKeeper } from '../client/zookeeper.ts';

/** What an operation takes in a transaction besides its path and data; an entry of an access list, at most. */
const OPERATION_BYTES = 32;
const ACL_ENTRY_BYTES = 64;
const NO_ACL: readonly AclEntry[] = [];

/** An entry that is there. */
export interface Made {
  readonly path: string;
  readonly czxid: bigint;
}

/** What an entry is made of. */
export interface EntryFacts {
  /** The queue's. */
  readonly folder: string;
  readonly prefix: string;
  readonly data: string;
  readonly acl?: readonly AclEntry[] | undefined;
}

/** One write to a queue, and who is told of its answer. */
export abstract class QueueWrite {
  /** The queue's, where it makes an entry. */
  readonly folder: string | undefined = undefined;
  /** It has not been asked for, or that came to nothing since the connection had just ended. */
  isWaiting = false;
  /** Why nobody wants it any more: it is not asked for again then. */
  givenUp: { readonly reason: unknown } | undefined;
  readonly promise: Promise<unknown>;
  resolve!: (value: unknown) => void;
  reject!: (error: unknown) => void;

  constructor() {
    this.promise = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }

  /** How long it is in a transaction, or a little less: what else goes with it is decided by that. */
  abstract weigh(): number;
  /** Adds what it is as a part of a transaction; the first of its results is what it settles with. */
  abstract addTo(transaction: MultiWrite<unknown>[]): void;
  /** The same as a request of its own. */
  abstract ask(zk: ZooKeeper, session: Session): Promise<unknown>;
  /** Makes of the answer to that what a transaction answers. */
  shape(answer: unknown): unknown {
    return answer;
  }
  /** Called as soon as it has been asked for: what is asked for then is answered after it. */
  sent(): void {}
}

export class EntryCreation extends QueueWrite {
  override readonly folder: string;
  readonly #entry: EntryFacts;
  readonly #onSent: () => void;

  constructor(entry: EntryFacts, onSent: () => void) {
    super();
    this.folder = entry.folder;
    this.#entry = entry;
    this.#onSent = onSent;
  }

  weigh(): number {
    const { prefix, data, acl = NO_ACL } = this.#entry;
    return OPERATION_BYTES + utf8Bytes(prefix) + utf8Bytes(data) + acl.length * ACL_ENTRY_BYTES;
  }
  addTo(transaction: MultiWrite<unknown>[]): void {
    const { prefix, data, acl } = this.#entry;
    transaction.push(ops.create(prefix, data, { mode: 'ephemeral-sequential', acl }));
  }
  ask(zk: ZooKeeper, session: Session): Promise<unknown> {
    const { prefix, data, acl } = this.#entry;
    return zk.create(prefix, data, { mode: 'ephemeral-sequential', acl, session, unqueued: true });
  }
  override shape({ path, stat }: Awaited<ReturnType<ZooKeeper['create']>>): Made {
    return { path, czxid: stat.czxid };
  }
  override sent(): void {
    this.#onSent();
  }
}

export class EntryDeletion extends QueueWrite {
  readonly #path: string;

  constructor(path: string) {
    super();
    this.#path = path;
  }

  weigh(): number {
    return OPERATION_BYTES + utf8Bytes(this.#path);
  }
  addTo(transaction: MultiWrite<unknown>[]): void {
    transaction.push(ops.delete(this.#path));
  }
  ask(zk: ZooKeeper, session: Session): Promise<unknown> {
    return zk.delete(this.#path, { session, unqueued: true });
  }
}

/** Several things in one step. What they are is asked for when it leaves, and again if it has to leave again. */
export class QueueTransaction extends QueueWrite {
  readonly #operations: () => readonly MultiWrite<unknown>[];
  /** What it was when it was weighed, which is followed by its leaving at once. */
  #weighed: readonly MultiWrite<unknown>[] | undefined;

  constructor(operations: () => readonly MultiWrite<unknown>[]) {
    super();
    this.#operations = operations;
  }

  weigh(): number {
    this.#weighed = this.#operations();
    let bytes = 0;
    for (const { wire } of this.#weighed) bytes += OPERATION_BYTES + utf8Bytes(wire.request.path);
    return bytes;
  }
  addTo(transaction: MultiWrite<unknown>[]): void {
    const operations = this.#weighed ?? this.#operations();
    this.#weighed = undefined;
    for (const operation of operations) transaction.push(operation);
  }
  ask(zk: ZooKeeper, session: Session): Promise<unknown> {
    this.#weighed = undefined;
    return zk.multi(this.#operations(), { session, unqueued: true });
  }
}
