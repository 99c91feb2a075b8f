import { readdirSync, readFileSync } from 'node:fs';
import { arch, freemem, homedir, hostname, release, type as systemName, totalmem, userInfo } from 'node:os';

/** What an operator may want to know of the process and its machine. Nothing is decided by it. */
export interface ProcessFacts {
  readonly hostName: string;
  readonly nodeVersion: string;
  readonly systemName: string;
  readonly systemVersion: string;
  readonly architecture: string;
  readonly userName: string;
  readonly userFolder: string;
  readonly workingFolder: string;
  readonly memoryFreeBytes: number;
  readonly memoryTotalBytes: number;
  readonly memoryUsedBytes: number;
  /** Undefined where the system does not tell. */
  readonly openFileCount: number | undefined;
  readonly openFilesMax: number | undefined;
}

/** The facts of this process, as they are now. */
export function processFacts(): ProcessFacts {
  return {
    hostName: hostname(),
    nodeVersion: process.versions.node,
    systemName: systemName(),
    systemVersion: release(),
    architecture: arch(),
    userName: unlessFailing(() => userInfo().username) ?? '',
    userFolder: unlessFailing(homedir) ?? '',
    workingFolder: unlessFailing(() => process.cwd()) ?? '',
    memoryFreeBytes: freemem(),
    memoryTotalBytes: totalmem(),
    memoryUsedBytes: process.memoryUsage.rss(),
    openFileCount: unlessFailing(() => readdirSync('/proc/self/fd').length),
    openFilesMax: unlessFailing(openFilesMax),
  };
}

function openFilesMax(): number | undefined {
  const soft = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
  return soft === undefined ? undefined : Number(soft);
}

/** A user without a name, a folder that was removed, a system without /proc: none is worth an error. */
function unlessFailing<T>(ask: () => T): T | undefined {
  try {
    return ask();
  } catch {
    return undefined;
  }
}
