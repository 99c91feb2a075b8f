import { accessSync, constants, statfsSync, statSync } from 'node:fs';
import { userInfo } from 'node:os';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { sha1 } from '../base/hash.ts';
import { isNetworkFileSystem } from '../base/network-file-system.ts';
import { ownPlace, type ProcessPlace } from '../base/process-identity.ts';
import { SOCKET_PATH_BYTES_MAX } from '../base/tcp-socket-file.ts';

/** Where the local server of one user on one machine keeps everything. */
export interface LocalPlace {
  readonly folder: string;
  /** Named by `HOLDFAST_LOCAL_FOLDER`: a server apart from the user's own. */
  readonly chosen: boolean;
  /** What the locks are kept in, survives restarts. */
  readonly dataFolder: string;
  /** Which process serves, where, and of which version: there from when it listens until it stops. */
  readonly recordFile: string;
  /** Held by the process that starts or replaces the server. */
  readonly startingFile: string;
  readonly logFile: string;
  readonly socketPath: string;
  /** Folders of this user alone. The outer ones come first. */
  readonly privateFolders: readonly string[];
  /** The user's, of the passwd database, if it can be written: what is above it is not asked who owns it. */
  readonly homeFolder: string | undefined;
}

/**
 * The user and the machine as the system knows them. Variables such as HOME are no part of it: they differ between login
 * shells, cron jobs, services and `sudo -E`.
 */
export interface Surroundings {
  readonly uid: number;
  /** As in the passwd database; undefined for a user who is not in it, as in many containers. */
  readonly homeFolder: string | undefined;
  readonly machine: Pick<ProcessPlace, 'machineId' | 'hostName'>;
  /** Whether other machines may have that folder, or what of its path is there already. */
  isShared(folder: string): boolean;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** The system's own, whatever TMPDIR says: the path must be the same for every process of the user. */
const TEMPORARY_FOLDER = '/tmp';
const LASTING_TEMPORARY_FOLDER = '/var/tmp';
const SERVER_FOLDER = 'local';

export function ownSurroundings(): Surroundings {
  const machine = ownPlace();
  try {
    const { uid, homedir } = userInfo();
    return { uid, homeFolder: homedir, machine, isShared };
  } catch {
    return { uid: process.geteuid?.() ?? -1, homeFolder: undefined, machine, isShared };
  }
}

/**
 * `~/.local/state/holdfast/local`, with the home folder of the passwd database; where there is none that can be written,
 * `/var/tmp/holdfast-<uid>/local`. Everything that decides it is the same in every shell, service and cron job of the
 * user, and lasts: neither the host's name nor a variable takes part. `HOLDFAST_LOCAL_FOLDER` names another, on purpose.
 *
 * A file system of a network may be open on several machines: there the folder's name is made of the machine's identity.
 *
 * @throws TypeError if `HOLDFAST_LOCAL_FOLDER` is not absolute.
 */
export function localPlace(env: Environment, surroundings: Surroundings = ownSurroundings()): LocalPlace {
  const { uid, machine, isShared } = surroundings;
  const chosen = env['HOLDFAST_LOCAL_FOLDER'];
  if (chosen) {
    if (!isAbsolute(chosen)) {
      throw new TypeError(
        `HOLDFAST_LOCAL_FOLDER: ${JSON.stringify(chosen)} given; an absolute path is needed`,
      );
    }
    return placeIn(resolve(chosen), { chosen: true, outer: [] }, surroundings);
  }
  const home = homeOf(surroundings);
  const base =
    home !== undefined
      ? join(home, '.local', 'state', 'holdfast')
      : join(
          canHold(LASTING_TEMPORARY_FOLDER) ? LASTING_TEMPORARY_FOLDER : TEMPORARY_FOLDER,
          `holdfast-${uid}`,
        );
  const folder = join(base, isShared(base) ? machineName(machine) : SERVER_FOLDER);
  return placeIn(folder, { chosen: false, outer: home !== undefined ? [] : [base] }, surroundings);
}

/** The place of a server that runs, by what its process says of it. */
export function placeOfServer(
  { folder, chosen }: Pick<LocalPlace, 'folder' | 'chosen'>,
  surroundings: Surroundings = ownSurroundings(),
): LocalPlace {
  return placeIn(folder, { chosen, outer: [] }, surroundings);
}

/** As long as folders can be made in it. */
function homeOf({ homeFolder }: Surroundings): string | undefined {
  return homeFolder !== undefined && canHold(homeFolder) ? resolve(homeFolder) : undefined;
}

function placeIn(
  folder: string,
  { chosen, outer }: { readonly chosen: boolean; readonly outer: readonly string[] },
  surroundings: Surroundings,
): LocalPlace {
  const socketPath = socketPathFor(folder, surroundings.uid);
  const privateFolders = [...outer, folder];
  if (dirname(socketPath) !== folder) privateFolders.push(dirname(socketPath));
  return {
    folder,
    chosen,
    dataFolder: join(folder, 'data'),
    recordFile: join(folder, 'server.json'),
    startingFile: join(folder, 'starting'),
    logFile: join(folder, 'server.log'),
    socketPath,
    privateFolders,
    homeFolder: homeOf(surroundings),
  };
}

/**
 * In the folder itself, as long as the path is short enough; otherwise in a folder of this user's own under `/tmp`. Never
 * in `$XDG_RUNTIME_DIR`, which is emptied when the user logs out, or is another user's after `sudo -E`.
 */
function socketPathFor(folder: string, uid: number): string {
  const own = join(folder, 'socket');
  if (Buffer.byteLength(own) <= SOCKET_PATH_BYTES_MAX) return own;
  return join(TEMPORARY_FOLDER, `holdfast-${uid}`, `${sha1(folder).toString('hex').slice(0, 16)}.sock`);
}

/** Whether folders can be made in it. */
function canHold(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
    return isAbsolute(folder) && statSync(folder).isDirectory();
  } catch {
    return false;
  }
}

function isShared(folder: string): boolean {
  for (let path = folder; ; path = dirname(path)) {
    try {
      return isNetworkFileSystem(statfsSync(path).type);
    } catch {
      if (path === dirname(path)) return false;
    }
  }
}

/** Made of the machine's identity as it was installed, which is not to be shown as it is; of the host's name without one. */
function machineName({ machineId, hostName }: Surroundings['machine']): string {
  const key = /^[0-9a-f]{32}$/.test(machineId) ? machineId : hostName;
  return sha1(`holdfast ${key}`).toString('hex').slice(0, 16);
}
