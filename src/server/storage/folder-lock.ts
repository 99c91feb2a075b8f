import { join } from 'node:path';
import { type LockHolder, lockFile } from '../../base/lock-file.ts';
import { isInThisPidNamespace } from '../../base/process-identity.ts';

/** The folder is another server's, which runs; or nobody can tell from here whether it does. */
export class FolderInUseError extends Error {
  override readonly name = 'FolderInUseError';
  readonly code = 'HOLDFAST_FOLDER_IN_USE';
  readonly folder: string;
  /** The process that has it, as numbered where it runs. */
  readonly pid: number;
  /** The host on which that process runs, as named there; undefined if it was written down by an older version. */
  readonly hostName: string | undefined;

  constructor(folder: string, holder: LockHolder, runs: boolean) {
    super(`${folder} ${explain(folder, holder, runs)}`);
    this.folder = folder;
    this.pid = holder.pid;
    this.hostName = holder.hostName;
  }
}

function explain(folder: string, holder: LockHolder, runs: boolean): string {
  const { pid, hostName, machineId = '', bootId = '', pidNamespace = '' } = holder;
  if (!runs) {
    return `is locked by process ${pid} on host ${hostName}, and it cannot be told from here whether that still runs; make sure that it does not, then remove ${join(folder, 'lock')}`;
  }
  if (hostName === undefined || isInThisPidNamespace({ hostName, machineId, bootId, pidNamespace })) {
    return `is in use by process ${pid}`;
  }
  return `is in use by process ${pid} of another container, on host ${hostName}; stop that one, or give this server a folder of its own`;
}

/**
 * Keeps a second server out of a folder. Returns the function that lets go.
 *
 * @throws FolderInUseError
 */
export async function lockFolder(folder: string): Promise<() => Promise<void>> {
  const lock = await lockFile(join(folder, 'lock'));
  if (!lock.locked) throw new FolderInUseError(folder, lock.holder, lock.runs);
  return () => lock.release();
}
