import { chmodSync, lstatSync, mkdirSync } from 'node:fs';
import { homedir, hostname, tmpdir, userInfo } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { sha1 } from '../base/hash.ts';
import { LocalServerError } from './local-server-error.ts';

/** Where the local server of one user on one machine keeps everything. */
export interface LocalPlace {
  readonly folder: string;
  /** What the locks are kept in, survives restarts. */
  readonly dataFolder: string;
  /** Which process serves, where, and of which version: there from when it listens until it stops. */
  readonly recordFile: string;
  /** Held by whoever starts or replaces the server. */
  readonly startingFile: string;
  readonly logFile: string;
  readonly socketPath: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** The longest path of a socket that every system has room for. */
const SOCKET_PATH_BYTES_MAX = 103;

/**
 * `$XDG_STATE_HOME/holdfast/<host>`, or `~/.local/state/holdfast/<host>`. The host is part of it because a home folder
 * may be shared by machines, which cannot see whether each other's processes run.
 */
export function localPlace(env: Environment): LocalPlace {
  const stateHome = absolute(env['XDG_STATE_HOME']) ?? join(homedir(), '.local', 'state');
  const folder = join(stateHome, 'holdfast', encodeURIComponent(hostname()));
  return {
    folder,
    dataFolder: join(folder, 'data'),
    recordFile: join(folder, 'server.json'),
    startingFile: join(folder, 'starting'),
    logFile: join(folder, 'server.log'),
    socketPath: socketPathFor(folder, env),
  };
}

/**
 * In the folder itself, as long as the path is short enough. `$XDG_RUNTIME_DIR` comes second: it is emptied when the
 * user logs out, while a server that a cron job uses runs on.
 */
function socketPathFor(folder: string, env: Environment): string {
  const own = join(folder, 'socket');
  if (Buffer.byteLength(own) <= SOCKET_PATH_BYTES_MAX) return own;
  const name = `${sha1(folder).toString('hex').slice(0, 16)}.sock`;
  const runtimeFolder = absolute(env['XDG_RUNTIME_DIR']) ?? join(tmpdir(), `holdfast-${userInfo().uid}`);
  return join(runtimeFolder, name);
}

/** A relative path in these variables is to be ignored, says their specification. */
function absolute(path: string | undefined): string | undefined {
  return path !== undefined && isAbsolute(path) ? path : undefined;
}

/**
 * Makes a folder that nobody else can enter, or makes sure that it is one.
 *
 * @throws LocalServerError if it is somebody else's, or no folder.
 */
export function preparePrivateFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const stat = lstatSync(folder);
    const { uid } = userInfo();
    if (!stat.isDirectory() || (uid >= 0 && stat.uid !== uid)) {
      throw new LocalServerError(`${folder} is not a folder of user ${uid}`);
    }
    if ((stat.mode & 0o077) !== 0) chmodSync(folder, 0o700);
  } catch (error) {
    if (error instanceof LocalServerError) throw error;
    throw new LocalServerError(`${folder} cannot be used: ${(error as Error).message}`, { cause: error });
  }
}
