import { chmodSync, lstatSync, type Stats } from 'node:fs';
import { makeFolders } from '../base/make-folders.ts';
import { checkFoldersAbove } from './folders-above.ts';
import type { LocalPlace } from './local-place.ts';
import { LocalServerError } from './local-server-error.ts';

const OTHERS = 0o077;
const OTHERS_WRITE = 0o022;

/**
 * Makes the folders of a place, so that no other user can enter them, or makes sure that they are like that.
 *
 * A folder that is there already is closed to others only if its name is the package's own. One that the user named may
 * be shared on purpose: it is refused instead. So is one that others may write to: its files may be theirs.
 *
 * @throws LocalServerError if a folder is another user's, no folder, open to others, or could be replaced by others.
 */
export function preparePlace(place: LocalPlace): void {
  for (const each of place.privateFolders) {
    inFolder(each, () => {
      const stat = checkFolder(each, place);
      if (!stat) {
        makeFolders(each);
        checkFolder(each, place); // Another process may have made it first.
      } else if ((stat.mode & OTHERS) !== 0) {
        chmodSync(each, 0o700);
      }
    });
  }
}

/**
 * The same without changing anything: what is in the folders of a place may be believed. A folder that is not there is
 * none of another user's.
 *
 * @throws LocalServerError as `preparePlace`.
 */
export function checkPlace(place: LocalPlace): void {
  for (const each of place.privateFolders) inFolder(each, () => checkFolder(each, place));
}

/** Undefined if it is not there. */
function checkFolder(path: string, { chosen, folder, homeFolder }: LocalPlace): Stats | undefined {
  checkFoldersAbove(path, homeFolder);
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (!stat) return undefined;
  const uid = process.geteuid?.() ?? stat.uid;
  if (!stat.isDirectory() || stat.uid !== uid) {
    throw new LocalServerError(
      `${path} is not a folder of user ${uid}; have it removed, or name another by HOLDFAST_LOCAL_FOLDER`,
    );
  }
  const isNamed = chosen && path === folder;
  if ((stat.mode & (isNamed ? OTHERS : OTHERS_WRITE)) !== 0) {
    throw new LocalServerError(`${path} is open to other users; chmod 700 it, or name another folder`);
  }
  return stat;
}

function inFolder(path: string, run: () => void): void {
  try {
    run();
  } catch (error) {
    if (error instanceof LocalServerError) throw error;
    throw new LocalServerError(`${path} cannot be used: ${(error as Error).message}`, { cause: error });
  }
}
