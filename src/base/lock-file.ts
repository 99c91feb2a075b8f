import { link, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { isRunning, ownIdentity, type ProcessIdentity } from './process-identity.ts';

/** A lock that was taken, or the process that has it. */
export type LockedFile =
  | { readonly locked: true; release(): Promise<void> }
  | { readonly locked: false; readonly holder: ProcessIdentity };

let attemptCount = 0;

/**
 * A lock among the processes of this machine: a file that names its process. One that a dead process left behind is
 * taken over. Never waits.
 *
 *   1. Make the file, with this process's name in it from the first moment, unless it is there.
 *   2. If it is there and its process runs, give up.
 *   3. Otherwise take over, one at a time: with a lock of the same kind on taking over, look again, and replace what
 *      is still the dead one's. Without it, the slower of two would take the quicker one's new lock away.
 */
export async function lockFile(path: string): Promise<LockedFile> {
  const own = ownIdentity();
  const ownFile = `${path}.${own.pid}.${attemptCount++}`;
  await writeFile(ownFile, JSON.stringify(own), { mode: 0o600 });
  const locked: LockedFile = { locked: true, release: () => rm(path, { force: true }) };
  try {
    while (!(await linked(ownFile, path))) {
      const holder = await holderOf(path);
      if (holder === 'nobody') continue;
      if (holder !== 'unknown' && isRunning(holder)) return { locked: false, holder };
      const takeover = await lockFile(`${path}.takeover`);
      if (!takeover.locked) return takeover;
      try {
        if (!same(await holderOf(path), holder)) continue;
        await rename(ownFile, path);
        return locked;
      } finally {
        await takeover.release();
      }
    }
    return locked;
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
async function holderOf(path: string): Promise<ProcessIdentity | 'nobody' | 'unknown'> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as ProcessIdentity;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'nobody' : 'unknown';
  }
}

function same(a: ProcessIdentity | string, b: ProcessIdentity | string): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
