import { parentOf } from '../protocol/paths.ts';
import type { TreeChange, Undo } from './data-tree.ts';
import type { Transaction } from './transaction.ts';

interface Unsettled {
  readonly zxid: bigint;
  readonly paths: readonly string[];
  readonly undo: Undo;
}

/** Transactions that have happened here and are not on disk yet: nobody may see their effect. */
export class UnsettledTransactions {
  #transactions: Unsettled[] = [];
  /** How many of them changed a node: its own data, access list or children. */
  readonly #changes = new Map<string, number>();

  add(transaction: Transaction, undo: Undo): void {
    const paths: string[] = [];
    if ('changes' in transaction) for (const change of transaction.changes) addChangedBy(change, paths);
    this.#transactions.push({ zxid: transaction.zxid, paths, undo });
    for (const path of paths) this.#changes.set(path, (this.#changes.get(path) ?? 0) + 1);
  }

  /** The newest; undefined if all is on disk. */
  get newestZxid(): bigint | undefined {
    return this.#transactions.at(-1)?.zxid;
  }

  /** Everything up to here is on disk, or changed nothing. */
  settledZxid(newest: bigint): bigint {
    const [oldest] = this.#transactions;
    return oldest ? oldest.zxid - 1n : newest;
  }

  /** Whether what a node is now may still be taken back. */
  changed(path: string): boolean {
    return this.#changes.has(path);
  }

  /** Everything up to this transaction is on disk. */
  settle(zxid: bigint): void {
    let count = 0;
    while (count < this.#transactions.length && this.#transactions[count]!.zxid <= zxid) count++;
    for (const { paths } of this.#transactions.splice(0, count)) {
      for (const path of paths) {
        const left = this.#changes.get(path)! - 1;
        if (left > 0) this.#changes.set(path, left);
        else this.#changes.delete(path);
      }
    }
  }

  /** None of them will be on disk: they never happened. */
  takeBack(): void {
    for (const { undo } of this.#transactions.reverse()) undo();
    this.#transactions = [];
    this.#changes.clear();
  }
}

/** A node that comes or goes changes the one above it too. */
function addChangedBy({ kind, path }: TreeChange, paths: string[]): void {
  paths.push(path);
  if (kind === 'create' || kind === 'delete') paths.push(parentOf(path));
}
