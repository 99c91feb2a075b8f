import { open, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isRunning, ownIdentity, type ProcessIdentity } from '../../base/process-identity.ts';

/** The folder is another server's, which runs. */
export class FolderInUseError extends Error {
  override readonly name = 'FolderInUseError';
  readonly code = 'HOLDFAST_FOLDER_IN_USE';

  constructor(path: string, pid: number) {
    super(`${path} is in use by process ${pid}`);
  }
}

/**
 * Keeps a second server out of a folder. The lock is a file that names its process; one that a dead process left
 * behind is taken over. Returns the function that lets go.
 *
 * @throws FolderInUseError
 */
export async function lockFolder(path: string): Promise<() => Promise<void>> {
  const lock = join(path, 'lock');
  const own = ownIdentity();
  for (;;) {
    try {
      const file = await open(lock, 'wx', 0o600);
      await file.writeFile(JSON.stringify(own));
      await file.close();
      return () => rm(lock, { force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    const holder = await readHolder(lock);
    if (holder && isRunning(holder)) throw new FolderInUseError(path, holder.pid);
    await moveAside(lock, holder, own);
  }
}

/** Undefined if the file is gone, or was never finished. */
async function readHolder(lock: string): Promise<ProcessIdentity | undefined> {
  try {
    return JSON.parse(await readFile(lock, 'utf8')) as ProcessIdentity;
  } catch {
    return undefined;
  }
}

/**
 * Takes a dead process's lock away. Two may try at once, and the slower one may get hold of the quicker one's new
 * lock: so what was moved is looked at again, and put back if it is not the dead one's.
 */
async function moveAside(
  lock: string,
  dead: ProcessIdentity | undefined,
  own: ProcessIdentity,
): Promise<void> {
  const aside = `${lock}.${own.pid}.${own.startedAt}`;
  try {
    await rename(lock, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  const moved = await readHolder(aside);
  if (moved && isRunning(moved) && moved.pid !== dead?.pid) await rename(aside, lock);
  else await rm(aside, { force: true });
}
