import { join } from 'node:path';
import { lockFile } from '../../base/lock-file.ts';

/** The folder is another server's, which runs. */
export class FolderInUseError extends Error {
  override readonly name = 'FolderInUseError';
  readonly code = 'HOLDFAST_FOLDER_IN_USE';
  readonly folder: string;
  /** The process that has it. */
  readonly pid: number;

  constructor(folder: string, pid: number) {
    super(`${folder} is in use by process ${pid}`);
    this.folder = folder;
    this.pid = pid;
  }
}

/**
 * Keeps a second server out of a folder. Returns the function that lets go.
 *
 * @throws FolderInUseError
 */
export async function lockFolder(folder: string): Promise<() => Promise<void>> {
  const lock = await lockFile(join(folder, 'lock'));
  if (!lock.locked) throw new FolderInUseError(folder, lock.holder.pid);
  return () => lock.release();
}
