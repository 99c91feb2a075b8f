import { closeSync, constants, fstatSync, lstatSync, openSync, readFileSync, type Stats } from 'node:fs';
import { LocalServerError } from './local-server-error.ts';

const OTHERS_WRITE = 0o022;
const BYTES_MAX = 64 * 1024;

/**
 * The text of a file that only this user can have written; undefined if there is none. The file that was opened is the
 * one that is looked at, and a symbolic link is not followed.
 *
 * @throws LocalServerError if it is another user's, may be written by others, or is no file.
 */
export function readOwnFile(path: string): string | undefined {
  let fd: number;
  try {
    // Without waiting: a pipe that has no writer would block.
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw new LocalServerError(`${path} cannot be read: ${message}; remove it`, { cause: error });
  }
  try {
    const stat = fstatSync(fd);
    checkOwn(path, stat);
    if (!stat.isFile() || stat.size > BYTES_MAX) {
      throw new LocalServerError(`${path} is not a file of a local server; remove it`);
    }
    return readFileSync(fd, 'utf8');
  } finally {
    closeSync(fd);
  }
}

/** Refuses a socket on which another user's process may listen. One that is not there is none. @throws LocalServerError */
export function checkOwnSocket(path: string): void {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat) checkOwn(path, stat);
}

function checkOwn(path: string, { uid, mode }: Stats): void {
  const own = process.geteuid?.() ?? uid;
  if (uid !== own) {
    throw new LocalServerError(`${path} belongs to user ${uid}, and this is user ${own}; remove it`);
  }
  if ((mode & OTHERS_WRITE) !== 0) {
    throw new LocalServerError(`${path} can be written by other users; remove it`);
  }
}
