import { lstatSync, readFileSync, readlinkSync, type Stats } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { LocalServerError } from './local-server-error.ts';

const ROOT = 0;
const STICKY = 0o1000;
const GROUP_WRITES = 0o020;
const EVERYONE_WRITES = 0o002;
/** As many as Linux follows on one path. */
const LINKS_MAX = 40;

/**
 * Refuses a folder that another user could put a folder of their own in the place of: each folder above it, and each
 * symbolic link on the way, must belong to this user or to root, and be closed to other writers unless it is sticky.
 * A group may write if it is the process's own, as with `umask 002` and a group for each user, or root's.
 *
 * What is above the home folder, and who owns that, is not asked: the passwd database names it. What is not there yet
 * is made for this user alone.
 *
 * @throws LocalServerError naming the folder.
 */
export function checkFoldersAbove(folder: string, homeFolder: string | undefined): void {
  if (process.geteuid) checkFolders(dirname(folder), { folder, homeFolder, linkCount: 0 });
}

interface Way {
  /** The one that all this is about. */
  readonly folder: string;
  readonly homeFolder: string | undefined;
  readonly linkCount: number;
}

function checkFolders(path: string, way: Way): void {
  for (const each of foldersOn(path, way.homeFolder)) {
    const stat = lstatSync(each, { throwIfNoEntry: false });
    if (!stat) return;
    const fault = faultOf(stat);
    if (fault) {
      throw new LocalServerError(
        `${each} ${fault}, and ${way.folder} could be replaced there; change that, or name another folder by HOLDFAST_LOCAL_FOLDER`,
      );
    }
    if (!stat.isSymbolicLink()) continue;
    if (way.linkCount === LINKS_MAX) throw new LocalServerError(`${way.folder}: too many symbolic links`);
    const target = resolve(dirname(each), readlinkSync(each));
    checkFolders(target, { ...way, linkCount: way.linkCount + 1 });
  }
}

/** From the outermost to `path` itself; within the home folder, from the one below it. */
function foldersOn(path: string, homeFolder: string | undefined): string[] {
  const folders: string[] = [];
  for (let each = path; each !== homeFolder; each = dirname(each)) {
    folders.unshift(each);
    if (each === dirname(each)) break;
  }
  return folders;
}

/** Why another user could change it; undefined if none could. */
function faultOf(stat: Stats): string | undefined {
  const { uid, gid, mode } = stat;
  if (uid !== process.geteuid!() && uid !== ROOT && !isUnmapped(uid)) return `belongs to user ${uid}`;
  if (stat.isSymbolicLink() || (mode & STICKY) !== 0) return undefined;
  if ((mode & EVERYONE_WRITES) !== 0) return 'can be written by every user';
  const isOtherGroup = gid !== ROOT && gid !== process.getegid!();
  return (mode & GROUP_WRITES) !== 0 && isOtherGroup ? `can be written by group ${gid}` : undefined;
}

/** In a user namespace, what belongs to users outside of it (root, mostly) is shown with a user id that it does not have. */
function isUnmapped(uid: number): boolean {
  try {
    const ranges = readFileSync('/proc/self/uid_map', 'latin1').trim().split('\n');
    return !ranges.some((range) => {
      const [first, , count] = range.trim().split(/\s+/).map(Number) as [number, number, number];
      return uid >= first && uid < first + count;
    });
  } catch {
    return false; // A system without user namespaces.
  }
}
