import type { Clock } from '../../base/clock.ts';
import { JuteWriter } from '../../protocol/jute-writer.ts';
import type { Transaction } from '../transaction.ts';
import type { Folder, LogFile } from './folder.ts';
import { encodeBatch, encodeLogHeader, LOG_HEADER_BYTES, type LogHeader } from './log-format.ts';

/** How far ahead of itself a log is filled with zeros. */
const RESERVE_BYTES = 1024 * 1024;
/** With less than this left on the disk, it is not. */
const ROOM_BYTES_MIN = 16 * RESERVE_BYTES;
const ZEROS = Buffer.alloc(RESERVE_BYTES);

/**
 * The log that is being written.
 *
 * It is filled with zeros some way ahead: to sync what only takes the place of bytes that are there already, a file
 * system has nothing to note about the file, which is half of the work. No batch begins with zeros, so a log ends for
 * its reader where they begin.
 */
export class OpenLog {
  /** How long it is without the zeros, as far as it is known to be on disk. */
  bytes = LOG_HEADER_BYTES;
  readonly #folder: Folder;
  readonly #file: LogFile;
  readonly #seed: number;
  readonly #zeros: Buffer;
  /** Where batches are made, one after the other: the next is begun when the one before it is on disk. */
  readonly #out = new JuteWriter();
  /** Up to where the file has been filled, or would have been if there were room. */
  #filledBytes = LOG_HEADER_BYTES;

  private constructor(folder: Folder, file: LogFile, seed: number, zeros: Buffer) {
    this.#folder = folder;
    this.#file = file;
    this.#seed = seed;
    this.#zeros = zeros;
  }

  /** `aheadBytes`: how many zeros there should be, within reason. */
  static async create(folder: Folder, name: string, header: LogHeader, aheadBytes: number): Promise<OpenLog> {
    const file = await folder.createLog(name);
    try {
      await file.write(encodeLogHeader(header), 0);
    } catch (error) {
      // It holds nothing, and would be in the way of nothing; but there would be one more with each attempt.
      await file.close().catch(() => {});
      await folder.remove(name).catch(() => {});
      throw error;
    }
    return new OpenLog(folder, file, header.seed, ZEROS.subarray(0, aheadBytes));
  }

  /** Appends the first of these, as many as make a batch: how many are on disk now, and how long the disk took. */
  async append(
    transactions: readonly Transaction[],
    clock: Clock,
  ): Promise<{ readonly count: number; readonly syncMs: number }> {
    const { bytes, count } = encodeBatch(transactions, this.#seed, this.#out);
    const end = this.bytes + bytes.byteLength;
    const filled = end <= this.#filledBytes;
    const written = filled ? bytes : await this.#withZeros(bytes);
    const startedAtMs = clock.nowMs();
    await this.#file.write(written, this.bytes);
    if (!filled) this.#filledBytes = end + this.#zeros.byteLength;
    this.bytes = end;
    return { count, syncMs: clock.nowMs() - startedAtMs };
  }

  /** A disk that is almost full has no room ahead; what is left of it is for transactions. */
  async #withZeros(bytes: Buffer): Promise<Buffer> {
    const room = (await this.#folder.freeBytes()) >= ROOM_BYTES_MIN;
    return room ? Buffer.concat([bytes, this.#zeros]) : bytes;
  }

  /** Leaves off what is not known to be on disk. */
  async giveUp(): Promise<void> {
    await this.#file.cut(this.bytes).catch(() => {});
  }

  async close(): Promise<void> {
    await this.giveUp();
    await this.#file.close();
  }
}
