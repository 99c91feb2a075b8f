import { link, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isRunning, ownIdentity, type ProcessIdentity } from '../../base/process-identity.ts';

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

let attemptCount = 0;

/**
 * Keeps a second server out of a folder. The lock is a file that names its process; one that a dead process left
 * behind is taken over. Returns the function that lets go.
 *
 * @throws FolderInUseError
 */
export async function lockFolder(folder: string): Promise<() => Promise<void>> {
  const lock = join(folder, 'lock');
  await take(lock, folder);
  return () => rm(lock, { force: true });
}

/**
 *   1. Make the file, with this process's name in it from the first moment, unless it is there.
 *   2. If it is there and its process runs, give up.
 *   3. Otherwise take over, one at a time: with a lock of the same kind on taking over, look again, and replace what
 *      is still the dead one's. Without it, the slower of two would take the quicker one's new lock away.
 */
async function take(lock: string, folder: string): Promise<void> {
  const own = ownIdentity();
  const ownFile = `${lock}.${own.pid}.${attemptCount++}`;
  await writeFile(ownFile, JSON.stringify(own), { mode: 0o600 });
  try {
    while (!(await linked(ownFile, lock))) {
      const holder = await holderOf(lock);
      if (holder === 'nobody') continue;
      if (holder !== 'unknown' && isRunning(holder)) throw new FolderInUseError(folder, holder.pid);
      const takeover = `${lock}.takeover`;
      await take(takeover, folder);
      try {
        if (!same(await holderOf(lock), holder)) continue;
        await rename(ownFile, lock);
        return;
      } finally {
        await rm(takeover, { force: true });
      }
    }
  } finally {
    await rm(ownFile, { force: true });
  }
}

/** Whether the file got that name; false if another has it. */
async function linked(file: string, name: string): Promise<boolean> {
  try {
    await link(file, name);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/** `unknown` if the file says nothing that can be read, as after a power cut: no process that runs leaves it so. */
async function holderOf(lock: string): Promise<ProcessIdentity | 'nobody' | 'unknown'> {
  try {
    return JSON.parse(await readFile(lock, 'utf8')) as ProcessIdentity;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'nobody' : 'unknown';
  }
}

function same(a: ProcessIdentity | string, b: ProcessIdentity | string): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
