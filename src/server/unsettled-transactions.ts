import { Fifo } from '../base/fifo.ts';
import type { TreeNode, Undo } from './data-tree.ts';

interface Unsettled {
  readonly zxid: bigint;
  readonly undo: Undo;
}

/** Transactions that have happened here and are not on disk yet: nobody may see their effect. */
export class UnsettledTransactions {
  readonly #transactions = new Fifo<Unsettled>();
  #newestZxid: bigint | undefined;
  /** How often what was here never happened. */
  takenBackCount = 0;

  add(zxid: bigint, undo: Undo): void {
    this.#transactions.push({ zxid, undo });
    this.#newestZxid = zxid;
  }

  /** The newest; undefined if all is on disk. */
  get newestZxid(): bigint | undefined {
    return this.#newestZxid;
  }

  /** Everything up to here is on disk, or changed nothing. */
  settledZxid(newest: bigint): bigint {
    const oldest = this.#transactions.first();
    return oldest ? oldest.zxid - 1n : newest;
  }

  /** The last of them that changed this node, so that what it is now may still be taken back; undefined if none did. */
  lastToChange({ changedZxid }: TreeNode): bigint | undefined {
    const oldest = this.#transactions.first();
    return oldest && oldest.zxid <= changedZxid ? changedZxid : undefined;
  }

  /** Whether it is not on disk yet. */
  has(zxid: bigint): boolean {
    const oldest = this.#transactions.first();
    return oldest !== undefined && oldest.zxid <= zxid;
  }

  /** Everything up to this transaction is on disk. */
  settle(zxid: bigint): void {
    for (let oldest = this.#transactions.first(); oldest; oldest = this.#transactions.first()) {
      if (oldest.zxid > zxid) return;
      this.#transactions.shift();
    }
    this.#newestZxid = undefined;
  }

  /** None of them will be on disk: they never happened. */
  takeBack(): void {
    this.takenBackCount++;
    for (const { undo } of this.#transactions.drain().reverse()) undo();
    this.#newestZxid = undefined;
  }
}
