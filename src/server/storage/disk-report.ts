import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { StoreStatistics } from './store-statistics.ts';

/** What operators may know of a server's folder. */
export interface DiskReport {
  readonly path: string;
  readonly statistics: StoreStatistics;
  /** What the files of the folder take up, as of now. */
  bytes(): number;
}

/** Synchronously, as operators' questions are answered within one step; a server's folder has a handful of files. */
export function folderBytes(path: string): number {
  try {
    let bytes = 0;
    for (const name of readdirSync(path)) {
      // A log or snapshot may be removed between the two calls.
      bytes += statSync(join(path, name), { throwIfNoEntry: false })?.size ?? 0;
    }
    return bytes;
  } catch {
    return 0; // A question must not end the server, not even if its folder is gone.
  }
}
