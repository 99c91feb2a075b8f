import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { DataTree } from '../data-tree.ts';
import type { Journal, Transaction } from '../transaction.ts';
import type { AppendFile, Folder } from './folder.ts';
import { CorruptLogError, decodeLog, encodeTransaction, logHeader } from './log-format.ts';
import { decodeSnapshot, encodeSnapshot, type SavedSession, type SavedState } from './snapshot-format.ts';

export interface StoreOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** A log that has grown to this is followed by another, and by a snapshot. */
  readonly logBytesMax: number;
}

/** What was there when the folder was opened. */
export interface Recovered {
  readonly tree: DataTree;
  readonly sessions: ReadonlyMap<bigint, SavedSession>;
  /** The newest transaction that is on disk; 0n for an empty folder. */
  readonly zxid: bigint;
  /** No number up to this one may be used again: a log was begun with it, though nothing of it may be left. */
  readonly usedZxid: bigint;
}

/** Whom the store serves. */
export interface StoreOwner {
  /** Everything up to this transaction is on disk. */
  durable(zxid: bigint): void;
  /** The disk took no more: nothing after the last `durable` has been kept, and nothing will be. */
  storeFailed(error: Error): void;
  /** Everything that is to be kept, as of now; later changes must not show in it. */
  state(): SavedState;
}

const TEMPORARY = 'snapshot.tmp';

/**
 * Keeps transactions in a folder: appended to a log, many in one write and one fsync, told to the owner only then.
 * A log that has grown long is followed by another and by a snapshot, written while service goes on.
 */
export class Store implements Journal {
  readonly #folder: Folder;
  readonly #options: StoreOptions;
  #owner: StoreOwner | undefined;
  #file: AppendFile;
  #fileName: string;
  #fileBytes: number;
  #waiting: Transaction[] = [];
  #pumping: Promise<void> | undefined;
  #snapshotting: Promise<void> | undefined;
  #durableZxid: bigint;
  #failed = false;

  private constructor(
    folder: Folder,
    options: StoreOptions,
    file: AppendFile,
    fileName: string,
    zxid: bigint,
  ) {
    this.#folder = folder;
    this.#options = options;
    this.#file = file;
    this.#fileName = fileName;
    this.#fileBytes = logHeader().byteLength;
    this.#durableZxid = zxid;
  }

  /**
   * Opens a folder, and what was kept in it. `firstZxid` makes the number of the first transaction to come out of the
   * last one that may have been used: it must be above it.
   *
   * @throws CorruptLogError, naming file and offset, for damage that no crash can have caused.
   */
  static async open(
    folder: Folder,
    options: StoreOptions & { firstZxid(last: bigint): bigint },
  ): Promise<{ store: Store; recovered: Recovered }> {
    const recovered = await recover(folder);
    const fileName = nameOf('log', options.firstZxid(recovered.usedZxid));
    const file = await newLog(folder, fileName);
    return { store: new Store(folder, options, file, fileName, recovered.zxid), recovered };
  }

  serve(owner: StoreOwner): void {
    this.#owner = owner;
  }

  append(transaction: Transaction): void {
    if (this.#failed) return;
    this.#waiting.push(transaction);
    if (this.#pumping !== undefined) return;
    // Behind the input, so that what several clients wrote at the same time shares one fsync.
    this.#pumping = new Promise((resolve) => {
      this.#options.clock.afterInput(() => {
        this.#pump().then(resolve, resolve);
      });
    });
  }

  /** Resolves when everything taken on is on disk, or has failed. */
  async close(): Promise<void> {
    await this.#pumping;
    await this.#snapshotting;
    await this.#file.close();
  }

  async #pump(): Promise<void> {
    try {
      while (this.#waiting.length > 0) {
        const batch = this.#waiting;
        this.#waiting = [];
        const bytes = Buffer.concat(batch.map(encodeTransaction));
        await this.#file.write(bytes);
        await this.#file.sync();
        this.#fileBytes += bytes.byteLength;
        this.#durableZxid = batch.at(-1)!.zxid;
        this.#owner?.durable(this.#durableZxid);
        if (this.#fileBytes >= this.#options.logBytesMax && !this.#snapshotting) await this.#roll();
      }
    } catch (error) {
      this.#fail(error as Error);
    } finally {
      this.#pumping = undefined;
    }
  }

  /** After a failed write or fsync nobody knows what is on disk: nothing more is promised on top of it. */
  #fail(error: Error): void {
    this.#failed = true;
    this.#waiting = [];
    this.#options.log('error', 'the log cannot be written', { error });
    this.#owner?.storeFailed(error);
  }

  async #roll(): Promise<void> {
    const state = this.#owner?.state();
    if (!state) return;
    const previous = this.#file;
    this.#fileName = nameOf('log', state.zxid + 1n);
    this.#file = await newLog(this.#folder, this.#fileName);
    this.#fileBytes = logHeader().byteLength;
    await previous.close();
    this.#snapshotting = this.#snapshot(state, this.#fileName).finally(() => {
      this.#snapshotting = undefined;
    });
  }

  async #snapshot(state: SavedState, currentLog: string): Promise<void> {
    try {
      await this.#folder.remove(TEMPORARY);
      const file = await this.#folder.create(TEMPORARY);
      for (const part of encodeSnapshot(state)) await file.write(part);
      await file.sync();
      await file.close();
      // What it shows must be in the log first: a snapshot must never know more than was promised.
      while (this.#durableZxid < state.zxid && !this.#failed && this.#pumping !== undefined)
        await this.#pumping;
      if (this.#durableZxid < state.zxid && this.#failed) return;
      const name = nameOf('snapshot', state.zxid);
      await this.#folder.rename(TEMPORARY, name);
      for (const old of await this.#folder.list()) {
        const kind = kindOf(old);
        if ((kind === 'snapshot' && old < name) || (kind === 'log' && old < currentLog))
          await this.#folder.remove(old);
      }
    } catch (error) {
      // The log is still whole: a snapshot that could not be written costs time at the next start, nothing else.
      this.#options.log('warn', 'a snapshot could not be written', { error });
    }
  }
}

async function recover(folder: Folder): Promise<Recovered> {
  const names = (await folder.list()).sort();
  const snapshot = names.filter((name) => kindOf(name) === 'snapshot').at(-1);
  const saved = snapshot === undefined ? undefined : decodeSnapshot(snapshot, await folder.read(snapshot));
  const tree = saved ? new DataTree(saved.nodes) : new DataTree();
  const sessions = new Map<bigint, SavedSession>(saved?.sessions.map((session) => [session.id, session]));
  let zxid = saved?.zxid ?? 0n;
  const logs = names.filter((name) => kindOf(name) === 'log');
  for (const [index, name] of logs.entries()) {
    const content = await folder.read(name);
    const { transactions, goodBytes } = decodeLog(name, content);
    if (goodBytes < content.byteLength) {
      if (index < logs.length - 1)
        throw new CorruptLogError(name, goodBytes, 'it is cut off, but another log follows');
      await folder.truncate(name, goodBytes);
    }
    for (const transaction of transactions) {
      if (transaction.zxid <= zxid) continue; // In the snapshot already.
      replay(transaction, tree, sessions);
      zxid = transaction.zxid;
    }
    if (goodBytes === 0) await folder.remove(name); // Cut off in its very header: it holds nothing, and its name is free.
  }
  let usedZxid = zxid;
  for (const name of logs) {
    const begunWith = BigInt(`0x${name.slice('log.'.length)}`);
    if (begunWith > usedZxid) usedZxid = begunWith;
  }
  return { tree, sessions, zxid, usedZxid };
}

function replay(transaction: Transaction, tree: DataTree, sessions: Map<bigint, SavedSession>): void {
  switch (transaction.kind) {
    case 'open-session': {
      const { sessionId: id, password, timeoutMs } = transaction;
      sessions.set(id, { id, password, timeoutMs });
      return;
    }
    case 'close-session':
      sessions.delete(transaction.sessionId);
      for (const change of transaction.changes) tree.apply(change, transaction);
      return;
    case 'tree':
      for (const change of transaction.changes) tree.apply(change, transaction);
      return;
  }
}

async function newLog(folder: Folder, name: string): Promise<AppendFile> {
  const file = await folder.create(name, { syncedWrites: true });
  await file.write(logHeader());
  await file.sync();
  return file;
}

/** Names sort as their transactions do. */
function nameOf(kind: 'log' | 'snapshot', zxid: bigint): string {
  return `${kind}.${zxid.toString(16).padStart(16, '0')}`;
}

function kindOf(name: string): 'log' | 'snapshot' | undefined {
  const match = /^(log|snapshot)\.[0-9a-f]{16}$/.exec(name);
  return match?.[1] as 'log' | 'snapshot' | undefined;
}
