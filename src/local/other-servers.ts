import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { processStat } from '../base/process-identity.ts';
import type { LocalPlace } from './local-place.ts';

/** The variable by which a local server's process tells for which place it serves. */
export const PLACE_VARIABLE = 'HOLDFAST_LOCAL_SERVER';
/** What it is called, where the system has no `/proc` to read the variable from. */
const TITLE = 'holdfast local server';
const PS_MS_MAX = 5_000;

/** A local server's process. */
export interface ServerProcess {
  readonly pid: number;
  readonly folder: string;
  readonly chosen: boolean;
  /** Of the two, which began first; empty where that cannot be told. */
  readonly startedAtTicks: string;
}

/** What the process of a local server says of its place: `own:/folder`, or `chosen:/folder`. */
export function placeMark({ folder, chosen }: LocalPlace): string {
  return `${chosen ? 'chosen' : 'own'}:${folder}`;
}

export function processTitle(place: LocalPlace): string {
  return `${TITLE} ${placeMark(place)}`;
}

/**
 * The processes of this user that serve where a server in `place` would have to: in its folder; and, for the user's own
 * server, in any folder that was not chosen on purpose. They show also when the files of the folder were removed, or
 * cannot be seen from here. Processes of other containers are none of this.
 */
export function serversBeside(place: LocalPlace): ServerProcess[] {
  return localServers().filter((server) => {
    const isBeside = (!place.chosen && !server.chosen) || isSameFolder(server.folder, place.folder);
    return isBeside && server.pid !== process.pid;
  });
}

/** By whatever name: through a symbolic link, it is the same one. */
function isSameFolder(a: string, b: string): boolean {
  const identity = (path: string) => {
    const stat = statSync(path, { throwIfNoEntry: false, bigint: true });
    return stat && `${stat.dev}:${stat.ino}`;
  };
  if (a === b) return true;
  try {
    const found = identity(a);
    return found !== undefined && found === identity(b);
  } catch {
    return false; // Hidden from here.
  }
}

function localServers(): ServerProcess[] {
  const uid = process.geteuid?.() ?? -1;
  const found = process.platform === 'linux' ? marksInProc(uid) : marksInTitles(uid);
  return found.map(({ pid, mark }) => ({
    pid,
    folder: mark.slice(mark.indexOf(':') + 1),
    chosen: !mark.startsWith('own:'),
    startedAtTicks: processStat(pid)?.startedAtTicks ?? '',
  }));
}

interface Marked {
  readonly pid: number;
  readonly mark: string;
}

function marksInProc(uid: number): Marked[] {
  const own = pidNamespaceOf('self');
  return namesIn('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    const mark = markOf(name, uid);
    const namespace = mark === undefined ? undefined : pidNamespaceOf(name);
    if (mark === undefined || (namespace !== own && !(namespace === '' && hasOneNumber(name)))) return [];
    const pid = Number(name);
    return processStat(pid)?.ended ? [] : [{ pid, mark }];
  });
}

/** Undefined for processes that are gone, another user's, or anything else. */
function markOf(name: string, uid: number): string | undefined {
  try {
    if (statSync(`/proc/${name}`).uid !== uid) return undefined;
  } catch {
    return undefined;
  }
  try {
    const environment = readFileSync(`/proc/${name}/environ`, 'utf8').split('\0');
    return environment
      .find((each) => each.startsWith(`${PLACE_VARIABLE}=`))
      ?.slice(PLACE_VARIABLE.length + 1);
  } catch {
    // Of a process in another user namespace only the name is shown.
    return markInTitle(textOf(`/proc/${name}/cmdline`).split('\0')[0]!);
  }
}

function markInTitle(title: string): string | undefined {
  return title.startsWith(`${TITLE} `) ? title.slice(TITLE.length + 1) : undefined;
}

/** Whether it has the number that it has here in its own namespace, too; told also where the namespace is not. */
function hasOneNumber(name: string): boolean {
  return /^NSpid:\t\d+$/m.test(textOf(`/proc/${name}/status`));
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

function pidNamespaceOf(name: string): string {
  try {
    return readlinkSync(`/proc/${name}/ns/pid`);
  } catch {
    return '';
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** By what `ps` shows: `<pid> <uid> holdfast local server own:/folder`. */
export function marksInTitles(uid: number): Marked[] {
  const { stdout } = spawnSync('ps', ['-A', '-ww', '-o', 'pid=,uid=,command='], {
    encoding: 'utf8',
    timeout: PS_MS_MAX,
  });
  return (stdout ?? '').split('\n').flatMap((line) => {
    const [, pid, owner, title] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? [];
    const mark = markInTitle(title ?? '');
    return Number(owner) !== uid || mark === undefined ? [] : [{ pid: Number(pid), mark }];
  });
}
