import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Makes a folder and those that are missing above it, for their owner alone. One by one: Node's own `recursive` never
 * comes back where a file system has the parent and takes no folders in it, as `/proc`.
 */
export function makeFolders(path: string): void {
  const missing: string[] = [];
  for (let each = path; !statSync(each, { throwIfNoEntry: false }); each = dirname(each)) missing.push(each);
  for (const each of missing.reverse()) makeFolder(each);
  if (missing.length === 0) makeFolder(path);
}

function makeFolder(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    const isThere = (error as NodeJS.ErrnoException).code === 'EEXIST';
    if (!isThere || !statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw error;
  }
}
