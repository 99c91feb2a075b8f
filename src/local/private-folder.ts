import { chmodSync, lstatSync, type Stats } from 'node:fs';
import { dirname } from 'node:path';
import { makeFolders } from '../base/make-folders.ts';
import type { LocalPlace } from './local-place.ts';
import { LocalServerError } from './local-server-error.ts';

const ROOT = 0;
const STICKY = 0o1000;
const OTHERS = 0o077;

/**
 * Makes the folders of a place, so that no other user can enter them, or makes sure that they are like that.
 *
 * A folder that is there already is changed only if its name is the package's own. One that the user named may be shared
 * with others on purpose: it is refused instead.
 *
 * @throws LocalServerError if a folder is another user's, no folder, or open to others.
 */
export function preparePlace({ privateFolders, folder, chosen }: LocalPlace): void {
  for (const each of privateFolders) prepareFolder(each, { named: chosen && each === folder });
}

/** `named`: by the user, and not by this package. */
function prepareFolder(folder: string, { named }: { readonly named: boolean }): void {
  const uid = process.geteuid?.() ?? -1;
  try {
    if (!exists(folder)) {
      if (named) refuseForeignParent(folder, uid);
      makeFolders(folder);
    }
    const stat = lstatSync(folder);
    if (!stat.isDirectory() || (uid >= 0 && stat.uid !== uid)) {
      throw new LocalServerError(`${folder} is not a folder of user ${uid}`);
    }
    if ((stat.mode & OTHERS) === 0) return;
    if (named) {
      throw new LocalServerError(`${folder} is open to other users; chmod 700 it, or name another folder`);
    }
    chmodSync(folder, 0o700);
  } catch (error) {
    if (error instanceof LocalServerError) throw error;
    throw new LocalServerError(`${folder} cannot be used: ${(error as Error).message}`, { cause: error });
  }
}

/** Root may write everywhere: it would leave folders in another user's home that this user could not remove. */
function refuseForeignParent(folder: string, uid: number): void {
  if (uid !== ROOT) return;
  let parent = dirname(folder);
  let stat = exists(parent);
  while (!stat) {
    parent = dirname(parent);
    stat = exists(parent);
  }
  if (stat.uid === ROOT || (stat.mode & STICKY) !== 0) return;
  throw new LocalServerError(
    `${parent} belongs to user ${stat.uid}, and this is root: nothing is made there`,
  );
}

function exists(path: string): Stats | undefined {
  return lstatSync(path, { throwIfNoEntry: false });
}
