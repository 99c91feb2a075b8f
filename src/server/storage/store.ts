import type { Cancel, Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Random } from '../../base/random.ts';
import type { Journal, Transaction } from '../transaction.ts';
import { kindOf, nameOf, zxidOf } from './file-names.ts';
import type { Folder } from './folder.ts';
import { OpenLog } from './open-log.ts';
import { type Recovered, recover } from './recover.ts';
import { encodeSnapshot, type SavedState } from './snapshot-format.ts';
import { SLOW_SYNC_MS, StoreStatistics } from './store-statistics.ts';

export interface StoreOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** A log that has grown to this is followed by another, and by a snapshot. */
  readonly logBytesMax: number;
}

/** Whom the store serves. */
export interface StoreOwner {
  /** Everything up to this transaction is on disk. */
  durable(zxid: bigint): void;
  /** The disk took no more: nothing after the last `durable` has been kept, and nothing will be until it is mended. */
  storeFailed(error: Error): void;
  /** The disk takes transactions again. */
  storeMended(): void;
  /** Everything that is to be kept, as of now; later changes must not show in it. */
  state(): SavedState;
  /** Uses up a number that no transaction has. */
  takeZxid(): bigint;
}

/** Each start begins a log. With more of them than this, a start takes a snapshot that stands for them. */
const LOG_COUNT_MAX = 16;
const SNAPSHOT_BEING_WRITTEN = 'snapshot.tmp';
const PROBE = 'probe.tmp';
/** More than a header, so that a disk with room for nothing else is not taken for one that takes transactions. */
const PROBE_BYTES = 64 * 1024;
const PROBE_AFTER_MS = 1_000;
/** Synced in steps: one long sync at the end would make the log's own wait for it. */
const SNAPSHOT_SYNC_BYTES = 4 * 1024 * 1024;

/** A snapshot that is being written. */
interface SnapshotInProgress {
  readonly state: SavedState;
  /** The newest transaction it shows. */
  readonly shown: bigint;
  /** What it shows was taken back, or nobody waits for it any more: it must not get its name. */
  abandoned: boolean;
}

/**
 * Keeps transactions in a folder: appended to a log, many in one write and one sync, told to the owner only then.
 * A log that has grown long is followed by another and by a snapshot, written while service goes on.
 *
 * When a write or a sync fails, nobody knows what that file has. It is never written or synced again: the store looks
 * from time to time whether the disk takes files, and then begins another log, which says what it goes on from.
 */
export class Store implements Journal {
  readonly statistics = new StoreStatistics();
  readonly #folder: Folder;
  readonly #options: StoreOptions;
  #owner: StoreOwner | undefined;
  #log: OpenLog;
  #waiting: Transaction[] = [];
  #pumping: Promise<void> | undefined;
  #snapshot: SnapshotInProgress | undefined;
  #snapshotting: Promise<void> | undefined;
  #durableZxid: bigint;
  /** There is more in logs than the next start should have to read. */
  #snapshotIsDue: boolean;
  #failed = false;
  #closed = false;
  #cancelProbe: Cancel | undefined;
  #probing: Promise<void> = Promise.resolve();

  private constructor(folder: Folder, options: StoreOptions, log: OpenLog, recovered: Recovered) {
    this.#folder = folder;
    this.#options = options;
    this.#log = log;
    this.#durableZxid = recovered.zxid;
    this.#snapshotIsDue = recovered.logBytes >= options.logBytesMax || recovered.logCount > LOG_COUNT_MAX;
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
    const recovered = await recover(folder, options.log);
    await folder.remove(SNAPSHOT_BEING_WRITTEN);
    await folder.remove(PROBE);
    const name = nameOf('log', options.firstZxid(recovered.usedZxid));
    const header = { base: recovered.zxid, seed: options.random.u32() };
    const log = await OpenLog.create(folder, name, header, options.logBytesMax);
    return { store: new Store(folder, options, log, recovered), recovered };
  }

  /** A server that was killed before its snapshot was done, again and again, gets one now, while it serves. */
  serve(owner: StoreOwner): void {
    this.#owner = owner;
    if (this.#snapshotIsDue) this.#startPumping();
  }

  append(transaction: Transaction): void {
    if (this.#failed) return;
    this.#waiting.push(transaction);
    this.#startPumping();
  }

  #startPumping(): void {
    if (this.#pumping !== undefined) return;
    // Behind the input that is there by now, so that all writes of it share one sync.
    this.#pumping = new Promise((resolve) => {
      this.#options.clock.afterInput(() => {
        this.#pump().then(resolve, resolve);
      });
    });
  }

  /** What was kept is gone: begins another log, and a snapshot of everything. Resolves when both are on disk, or failed. */
  async saveAnew(): Promise<void> {
    if (this.#snapshot) this.#snapshot.abandoned = true;
    await this.settled();
    if (this.#failed) throw new Error('the log cannot be written yet');
    this.#pumping = this.#roll()
      .then(() => this.#pump())
      .catch((error: Error) => this.#fail(error))
      .finally(() => {
        this.#pumping = undefined;
      });
    await this.settled();
  }

  /** Resolves when everything taken on is on disk, or has failed, and no snapshot is being written. */
  async settled(): Promise<void> {
    while (this.#pumping ?? this.#snapshotting) {
      await this.#pumping;
      await this.#snapshotting;
    }
  }

  /** Resolves when everything taken on is on disk, or has failed. A snapshot that is being written is given up. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelProbe?.();
    if (this.#snapshot) this.#snapshot.abandoned = true;
    await this.settled();
    await this.#probing;
    await this.#log.close();
  }

  async #pump(): Promise<void> {
    try {
      if (this.#snapshotIsDue) await this.#roll();
      while (this.#waiting.length > 0) {
        const written = await this.#append();
        this.#durableZxid = this.#waiting[written - 1]!.zxid;
        this.#waiting.splice(0, written);
        this.#owner?.durable(this.#durableZxid);
        if (this.#log.bytes >= this.#options.logBytesMax && !this.#snapshot) await this.#roll();
      }
    } catch (error) {
      this.#fail(error as Error);
    } finally {
      this.#pumping = undefined;
    }
  }

  /** Appends what fits into a batch, and returns how many of those that wait are on disk now. */
  async #append(): Promise<number> {
    const { clock, log } = this.#options;
    const bytesBefore = this.#log.bytes;
    const { count, syncMs } = await this.#log.append(this.#waiting, clock);
    this.statistics.logBytes += this.#log.bytes - bytesBefore;
    this.statistics.synced(syncMs);
    if (syncMs >= SLOW_SYNC_MS) log('warn', 'the disk is slow', { syncMs: Math.round(syncMs) });
    return count;
  }

  // Snapshots

  async #roll(): Promise<void> {
    const owner = this.#owner;
    if (!owner || this.#closed) return;
    this.#snapshotIsDue = false;
    const snapshot = {
      state: owner.state(),
      shown: this.#waiting.at(-1)?.zxid ?? this.#durableZxid,
      abandoned: false,
    };
    try {
      const previous = this.#log;
      this.#log = await this.#nextLog(owner);
      await previous.close().catch(() => {}); // Whatever it says, all of it is on disk.
    } catch (error) {
      snapshot.state.nodes.release();
      throw error;
    }
    this.#snapshot = snapshot;
    this.#snapshotting = this.#keepSnapshot(snapshot).finally(() => {
      snapshot.state.nodes.release();
      this.#snapshot = undefined;
      this.#snapshotting = undefined;
    });
  }

  async #nextLog(owner: StoreOwner): Promise<OpenLog> {
    const name = nameOf('log', owner.takeZxid());
    const header = { base: this.#durableZxid, seed: this.#options.random.u32() };
    return OpenLog.create(this.#folder, name, header, this.#options.logBytesMax);
  }

  async #keepSnapshot(snapshot: SnapshotInProgress): Promise<void> {
    const { clock, log } = this.#options;
    try {
      await this.#folder.remove(SNAPSHOT_BEING_WRITTEN);
      const startedAtMs = clock.nowMs();
      const bytes = await this.#writeSnapshot(snapshot);
      // What it shows must be in the log first: a snapshot must never know more than was promised.
      while (this.#durableZxid < snapshot.shown && !snapshot.abandoned) await this.#pumping;
      if (!snapshot.abandoned) {
        const { zxid } = snapshot.state;
        const name = nameOf('snapshot', zxid);
        await this.#folder.rename(SNAPSHOT_BEING_WRITTEN, name);
        const tookMs = clock.nowMs() - startedAtMs;
        this.statistics.snapshotTaken({ zxid, wallMs: clock.wallMs(), bytes }, tookMs);
        log('info', 'snapshot taken', { file: name, bytes, tookMs: Math.round(tookMs) });
        await this.#removeOldFiles();
        return;
      }
    } catch (error) {
      // The log is still whole: a snapshot that could not be written costs time at the next start, nothing else.
      log('warn', 'a snapshot could not be written', { error });
    }
    await this.#folder.remove(SNAPSHOT_BEING_WRITTEN).catch(() => {});
  }

  /** Returns how long it has become. */
  async #writeSnapshot(snapshot: SnapshotInProgress): Promise<number> {
    const file = await this.#folder.create(SNAPSHOT_BEING_WRITTEN);
    try {
      let bytes = 0;
      let unsyncedBytes = 0;
      for (const part of encodeSnapshot(snapshot.state)) {
        await file.write(part, bytes);
        bytes += part.byteLength;
        if (snapshot.abandoned) return bytes;
        unsyncedBytes += part.byteLength;
        if (unsyncedBytes < SNAPSHOT_SYNC_BYTES) continue;
        await file.sync();
        unsyncedBytes = 0;
      }
      await file.sync();
      return bytes;
    } finally {
      await file.close();
    }
  }

  /** The snapshot before the newest stays, with the logs that follow it, in case the newest is found to be damaged. */
  async #removeOldFiles(): Promise<void> {
    const names = (await this.#folder.list()).sort();
    const snapshots = names.filter((name) => kindOf(name) === 'snapshot');
    const kept = snapshots.at(-2);
    if (kept === undefined) return;
    const firstLog = nameOf('log', zxidOf(kept) + 1n);
    for (const name of names) {
      const kind = kindOf(name);
      if ((kind === 'snapshot' && name < kept) || (kind === 'log' && name < firstLog))
        await this.#folder.remove(name);
    }
  }

  // Failure

  /** After a failed write or sync nobody knows what is on disk: nothing more is promised on top of it. */
  #fail(error: Error): void {
    this.#failed = true;
    this.#waiting = [];
    if (this.#snapshot && this.#durableZxid < this.#snapshot.shown) this.#snapshot.abandoned = true;
    this.#options.log('error', 'the log cannot be written: writes are refused', { error });
    this.#owner?.storeFailed(error);
    // As far as it goes: what was taken back should not come back if this process ends before another log is begun.
    this.#probing = this.#log.giveUp();
    this.#probeLater();
  }

  #probeLater(): void {
    if (this.#closed) return;
    const { clock } = this.#options;
    this.#cancelProbe = clock.at(clock.nowMs() + PROBE_AFTER_MS, () => {
      this.#probing = this.#probing.then(() => this.#probe());
    });
  }

  async #probe(): Promise<void> {
    try {
      await this.#tryDisk();
      const failed = this.#log;
      this.#log = await this.#nextLog(this.#owner!);
      await failed.close().catch(() => {});
      this.#failed = false;
      this.#options.log('warn', 'the log can be written again');
      this.#owner!.storeMended();
    } catch (error) {
      this.#options.log('debug', 'the log can still not be written', { error });
      this.#probeLater();
    }
  }

  async #tryDisk(): Promise<void> {
    try {
      const file = await this.#folder.create(PROBE);
      try {
        await file.write(Buffer.alloc(PROBE_BYTES, 1), 0);
        await file.sync();
      } finally {
        await file.close();
      }
    } finally {
      await this.#folder.remove(PROBE);
    }
  }
}
