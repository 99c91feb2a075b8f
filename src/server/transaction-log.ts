import { invariant } from '../base/assert.ts';
import type { Clock } from '../base/clock.ts';
import { Fifo } from '../base/fifo.ts';
import type { Answer } from './answer.ts';
import type { Moment, TreeNode, Undo } from './data-tree.ts';
import type { Journal, Transaction } from './transaction.ts';

/**
 * The transactions in order of their numbers. One that is appended has changed memory; it is unsettled until the
 * journal has it on disk, and no client may see its effect before. If the disk fails, it is taken back.
 *
 *   durable │ unsettled │ next
 *   … 6   7 │ 8   9  11 │ 12
 */
export class TransactionLog {
  readonly #clock: Clock;
  readonly #journal: Journal | undefined;
  readonly #unsettled = new Fifo<{ readonly zxid: bigint; readonly undo: Undo }>();
  #zxid: bigint;
  /** The newest unsettled transaction; undefined if all are durable. */
  newestZxid: bigint | undefined;
  /** Why the journal takes nothing, while that is so: the server is read-only then. */
  fault: string | undefined;
  /** How often unsettled transactions have been taken back. */
  takenBackCount = 0;

  /** Without a journal, every transaction is durable at once. */
  constructor(clock: Clock, zxid: bigint, journal?: Journal) {
    this.#clock = clock;
    this.#zxid = zxid;
    this.#journal = journal;
  }

  /** The number that was used last. */
  get zxid(): bigint {
    return this.#zxid;
  }

  /** The number and time of the next transaction. A write that is refused uses one up too. */
  nextMoment(): Moment {
    this.#zxid++;
    return { zxid: this.#zxid, timeMs: this.#clock.wallMs() };
  }

  /** Takes on a transaction that has changed memory. */
  append(transaction: Transaction, undo: Undo): void {
    if (!this.#journal) return;
    invariant(this.fault === undefined, 'nothing changes while nothing can be kept');
    this.#unsettled.push({ zxid: transaction.zxid, undo });
    this.newestZxid = transaction.zxid;
    this.#journal.append(transaction);
  }

  /** Up to which transaction an answer tells, and which one must be durable before the answer may go out. */
  asShown({ zxid, shows }: Answer): { zxid: bigint; heldUntil: bigint | undefined } {
    const newest = this.newestZxid;
    if (newest === undefined || shows === undefined) return { zxid, heldUntil: newest };
    // What shows one node only need not wait for the disk to take changes of others.
    const heldUntil = shows === 'nothing' ? undefined : this.lastToChange(shows);
    return { zxid: heldUntil ?? this.settledZxid(zxid), heldUntil };
  }

  /** Everything up to here is durable, or changed nothing. */
  settledZxid(newest: bigint): bigint {
    const oldest = this.#unsettled.first();
    return oldest ? oldest.zxid - 1n : newest;
  }

  /** The last unsettled transaction that changed this node; undefined if none did. */
  lastToChange({ changedZxid }: TreeNode): bigint | undefined {
    return this.isUnsettled(changedZxid) ? changedZxid : undefined;
  }

  isUnsettled(zxid: bigint): boolean {
    const oldest = this.#unsettled.first();
    return oldest !== undefined && oldest.zxid <= zxid;
  }

  /** Everything up to this transaction is durable. */
  settle(zxid: bigint): void {
    for (let oldest = this.#unsettled.first(); oldest; oldest = this.#unsettled.first()) {
      if (oldest.zxid > zxid) return;
      this.#unsettled.shift();
    }
    this.newestZxid = undefined;
  }

  /** The journal takes no more, and has none of the unsettled transactions: they never happened. */
  takeBack(fault: string): void {
    this.fault = fault;
    this.takenBackCount++;
    for (const { undo } of this.#unsettled.drain().reverse()) undo();
    this.newestZxid = undefined;
  }
}
