import { resolve } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { givenOf } from '../../base/option-names.ts';
import type { Random } from '../../base/random.ts';
import { DiskFolder } from './disk-folder.ts';
import { type DiskReport, folderBytes } from './disk-report.ts';
import { lockFolder } from './folder-lock.ts';
import type { Recovered } from './recover.ts';
import { Store } from './store.ts';

const LOG_BYTES_MAX = 64 * 1024 * 1024;

/** A folder that is open: what was in it, where to put more, and how to close it. */
export interface Storage {
  readonly store: Store;
  readonly recovered: Recovered;
  readonly report: DiskReport;
  /** The folder was removed: makes it again, locks it, and saves everything there. */
  saveAnew(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Opens a server's folder, keeping every other server out of it.
 *
 * @throws FolderInUseError, CorruptLogError
 */
export async function openStorage(
  path: string,
  options: {
    readonly clock: Clock;
    readonly random: Random;
    readonly log: Log;
    readonly logBytesMax?: number;
    firstZxid(used: bigint): bigint;
  },
): Promise<Storage> {
  const folder = await DiskFolder.open(path);
  let unlock = await lockFolder(path);
  try {
    const { store, recovered } = await Store.open(folder, {
      logBytesMax: LOG_BYTES_MAX,
      ...givenOf(options),
    });
    const close = async () => {
      await store.close();
      await unlock();
    };
    const absolute = resolve(path);
    const report: DiskReport = {
      path: absolute,
      statistics: store.statistics,
      bytes: () => folderBytes(absolute),
    };
    const saveAnew = async () => {
      await DiskFolder.open(path);
      await unlock();
      unlock = await lockFolder(path);
      await store.saveAnew();
    };
    return { store, recovered, report, saveAnew, close };
  } catch (error) {
    await unlock();
    throw error;
  }
}
