import type { Deferred } from '../base/deferred.ts';
import { utf8Bytes } from '../base/utf8-bytes.ts';
import type { AclEntry } from '../client/acl.ts';
import { type MultiWrite, ops } from '../client/operations-of-multi.ts';
import type { Session } from '../client/session.ts';
import type { ZooKeeper } from '../client/zookeeper.ts';

/** What an operation takes in a transaction besides its path and data; an entry of an access list, at most. */
const OPERATION_BYTES = 32;
const ACL_ENTRY_BYTES = 64;

/** An entry that is there. */
export interface Made {
  readonly path: string;
  readonly czxid: bigint;
}

interface Write<Answer> {
  readonly answer: Deferred<Answer>;
  /** It has not been sent, or was not sent because the connection had just ended. */
  isWaiting: boolean;
  /** Why it is not wanted any more: it is not sent again then. */
  givenUp: { readonly reason: unknown } | undefined;
}

/** Makes an entry in a folder. */
export interface EntryCreation extends Write<readonly Made[]> {
  readonly kind: 'create';
  readonly folder: string;
  readonly prefix: string;
  readonly data: string;
  readonly acl: readonly AclEntry[] | undefined;
  /** Called as soon as it has been sent: what is sent then is answered after it. */
  readonly onSent: () => void;
}

interface EntryDeletion extends Write<void> {
  readonly kind: 'delete';
  readonly path: string;
}

/** Several operations in one step. They are asked for when the write leaves, and again if it has to leave again. */
interface Transaction extends Write<unknown> {
  readonly kind: 'multi';
  readonly operations: () => readonly MultiWrite<unknown>[];
  /** What they were when they were measured, right before they leave. */
  measured: readonly MultiWrite<unknown>[] | undefined;
}

/** One write to a queue. */
export type QueueWrite = EntryCreation | EntryDeletion | Transaction;

/** Sends a write as a request of its own. */
export function sendAlone(write: QueueWrite, zk: ZooKeeper, session: Session): Promise<unknown> {
  if (write.kind === 'delete') return zk.delete(write.path, { session, unqueued: true });
  if (write.kind === 'multi') return zk.multi(takeOperations(write), { session, unqueued: true });
  const { prefix, data, acl } = write;
  return zk.create(prefix, data, { mode: 'ephemeral-sequential', acl, session, unqueued: true });
}

/** Adds the operations of a write to a transaction; the result of the first of them is its answer. */
export function addTo(transaction: MultiWrite<unknown>[], write: QueueWrite): void {
  if (write.kind === 'delete') transaction.push(ops.delete(write.path));
  else if (write.kind === 'multi') transaction.push(...takeOperations(write));
  else {
    const { prefix, data, acl } = write;
    transaction.push(ops.create(prefix, data, { mode: 'ephemeral-sequential', acl }));
  }
}

/** How long a write is in a transaction, or a little less: without the data of a transaction of its own. */
export function bytesOf(write: QueueWrite): number {
  if (write.kind === 'delete') return OPERATION_BYTES + utf8Bytes(write.path);
  if (write.kind === 'create') {
    const { prefix, data, acl } = write;
    return OPERATION_BYTES + utf8Bytes(prefix) + utf8Bytes(data) + (acl?.length ?? 0) * ACL_ENTRY_BYTES;
  }
  write.measured = write.operations();
  let bytes = 0;
  for (const { wire } of write.measured) bytes += OPERATION_BYTES + utf8Bytes(wire.request.path);
  return bytes;
}

function takeOperations(transaction: Transaction): readonly MultiWrite<unknown>[] {
  const operations = transaction.measured ?? transaction.operations();
  transaction.measured = undefined;
  return operations;
}
