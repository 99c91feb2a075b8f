import { utf8Bytes } from '../base/utf8-bytes.ts';
import { pathFault } from '../protocol/paths.ts';

/**
 * The longest name, in bytes of UTF-8. Together with the longest root (1 024 bytes) and chroot (as long), the folders of
 * a semaphore and the name of an entry (about 70 bytes), a path stays below 3 300 bytes: 128 successors are checked, and
 * 256 mutexes joined, by one transaction far below the 1 MiB that a server accepts.
 */
export const NAME_BYTES_MAX = 1_024;
/** The longest `root`, `batonFolder` and `auditFolder`. */
export const FOLDER_BYTES_MAX = 1_024;
/** The most names of one multi-lock, and how long they may be together. */
export const MULTI_NAMES_MAX = 256;
export const MULTI_NAMES_BYTES_MAX = 64 * 1_024;

/** So much of a name that is too long is shown. */
const SHOWN_MAX = 40;

/**
 * Refuses what cannot be a lock's name. It is one element of a path: a lock inside another lock's folder would be
 * taken for a contender.
 *
 * @throws TypeError; RangeError if it is too long.
 */
export function checkName(name: string): void {
  if (typeof name !== 'string') throw new TypeError(`name: ${typeof name} given; a string is needed`);
  const byteCount = utf8Bytes(name);
  if (byteCount > NAME_BYTES_MAX) {
    const shown = JSON.stringify(`${name.slice(0, SHOWN_MAX)}…`);
    throw new RangeError(
      `name ${shown}: ${byteCount} bytes in UTF-8 given; at most ${NAME_BYTES_MAX} are allowed`,
    );
  }
  const fault = name === '' ? 'it is empty' : name.includes('/') ? 'it has a /' : pathFault(`/${name}`);
  if (fault) throw new TypeError(`name ${JSON.stringify(name)}: ${fault}`);
}

/**
 * Refuses what cannot be the names of one multi-lock.
 *
 * @throws TypeError; RangeError if they are too many, or too long.
 */
export function checkNames(names: readonly string[]): void {
  if (!Array.isArray(names) || names.length === 0) throw new TypeError('names: at least one name is needed');
  if (names.length > MULTI_NAMES_MAX) {
    throw new RangeError(`names: ${names.length} given; at most ${MULTI_NAMES_MAX} are allowed`);
  }
  let byteCount = 0;
  for (const name of names) {
    checkName(name);
    byteCount += utf8Bytes(name);
  }
  if (new Set(names).size !== names.length)
    throw new TypeError(`names: ${names.join(', ')} given; each only once`);
  if (byteCount > MULTI_NAMES_BYTES_MAX) {
    throw new RangeError(
      `names: ${byteCount} bytes in UTF-8 given together; at most ${MULTI_NAMES_BYTES_MAX} are allowed`,
    );
  }
}

/**
 * Refuses what cannot be a folder of Holdfast's.
 *
 * @throws TypeError; RangeError if it is too long.
 */
export function checkFolder(option: string, path: string): void {
  const fault = typeof path === 'string' ? pathFault(path) : 'it is not a string';
  if (fault || path === '/')
    throw new TypeError(`${option} ${JSON.stringify(path)}: ${fault ?? 'it is the root of all'}`);
  const byteCount = utf8Bytes(path);
  if (byteCount > FOLDER_BYTES_MAX) {
    throw new RangeError(
      `${option}: ${byteCount} bytes in UTF-8 given; at most ${FOLDER_BYTES_MAX} are allowed`,
    );
  }
}
