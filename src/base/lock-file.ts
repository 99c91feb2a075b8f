import { randomBytes } from 'node:crypto';
import { link, readdir, readFile, rename, rm, stat, statfs, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { isNetworkFileSystem } from './network-file-system.ts';
import {
  isInThisPidNamespace,
  isOnThisKernel,
  isRunning,
  isThisMachine,
  ownIdentity,
  ownPlace,
  type ProcessIdentity,
  type ProcessPlace,
} from './process-identity.ts';
import { type ListeningFile, listenOnFile, probeSocketFile } from './tcp-socket-file.ts';

/** The process that has a lock, as it has written itself down. */
export interface LockHolder extends ProcessIdentity, Partial<ProcessPlace> {
  /** The name of the socket beside the file on which it listens; older versions had none. */
  readonly socket?: string;
}

/** A lock that was taken, or the process that has it. */
export type LockedFile =
  | { readonly locked: true; release(): Promise<void> }
  | {
      readonly locked: false;
      readonly holder: LockHolder;
      /** False if it cannot be told from here whether the holder runs. */
      readonly runs: boolean;
    };

type HolderState = 'running' | 'ended' | 'unknown';

/** A draft or a socket of this age that no lock names was left by a process that was killed while it took the lock. */
const LEFTOVER_MS_MIN = 60_000;

/**
 * A lock among processes: a file that names its holder, and a unix socket beside it on which the holder listens.
 * Never waits.
 *
 * The kernel closes the socket when the holder ends, however it ends, and answers for a holder that is stopped or busy.
 * Unlike a process number, a socket means the same in every container that has the folder.
 *
 *   1. If the file is there and its holder runs, give up.
 *   2. Listen on a socket of a name of its own. Then make the file, whole from the first moment, unless it is there.
 *   3. If it is there and its holder has ended, take over, one process at a time: with a lock of the same kind on taking
 *      over, look again, and replace what is still the ended one's. Without that lock, the slower of two would take the
 *      quicker one's new lock away.
 *
 * On a network file system, a holder on another machine cannot be asked. Its lock is not taken over.
 */
export async function lockFile(file: string): Promise<LockedFile> {
  const path = resolve(file);
  const refusal = await refusalBy(path, await readHolder(path));
  if (refusal) return refusal;
  const socketFile = `${path}.${randomBytes(8).toString('hex')}`;
  const own: LockHolder = { ...ownIdentity(), ...ownPlace(), socket: basename(socketFile) };
  const draft = `${socketFile}.draft`;
  const socket = await listenBeside(socketFile);
  let taken = false;
  try {
    await writeFile(draft, JSON.stringify(own), { mode: 0o600, flag: 'wx' });
    const refused = await takeName(draft, path);
    if (refused) return refused;
    // A process that was stopped between the two may have lost its socket to a holder that took it for a leftover.
    taken = (await probeSocketFile(socketFile)) === 'listening';
    if (taken) await removeLeftovers(path, own);
    else await removeName(path, own);
  } finally {
    await rm(draft, { force: true });
    if (!taken) await socket.close();
  }
  if (!taken) return lockFile(path);
  return {
    locked: true,
    release: async () => {
      await removeName(path, own); // First, while the socket still keeps others from taking over.
      await socket.close();
    },
  };
}

/** Only if it is still ours. */
async function removeName(path: string, own: LockHolder): Promise<void> {
  if (same(await readHolder(path), own)) await rm(path, { force: true });
}

async function listenBeside(socketFile: string): Promise<ListeningFile> {
  try {
    return await listenOnFile(socketFile);
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException;
    if (!['ENOTSUP', 'EOPNOTSUPP', 'EPERM', 'EINVAL'].includes(code)) throw error;
    const reason = `${dirname(socketFile)} cannot be locked: its file system takes no unix sockets (${message})`;
    throw Object.assign(new Error(reason, { cause: error }), { code });
  }
}

/** Gives the draft the lock's name; returns who has that name, if somebody has it who may still run. */
async function takeName(draft: string, path: string): Promise<LockedFile | undefined> {
  while (!(await linked(draft, path))) {
    const holder = await readHolder(path);
    const refusal = await refusalBy(path, holder);
    if (refusal) return refusal;
    if (holder === 'nobody') continue;
    const takeover = await lockFile(`${path}.takeover`);
    if (!takeover.locked) return takeover;
    try {
      if (!same(await readHolder(path), holder)) continue;
      await rename(draft, path);
      if (typeof holder === 'object' && holder.socket)
        await rm(join(dirname(path), holder.socket), { force: true });
      return undefined;
    } finally {
      await takeover.release();
    }
  }
  return undefined;
}

/** Whether the file got that name; false if another has it. */
async function linked(file: string, name: string): Promise<boolean> {
  try {
    await link(file, name);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/** `torn` if the file says nothing that can be read, as after a power cut: no process that runs leaves it so. */
async function readHolder(path: string): Promise<LockHolder | 'nobody' | 'torn'> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 'nobody';
    throw error;
  }
  try {
    const holder = JSON.parse(text) as LockHolder;
    const isWhole = holder.socket === undefined || isSocketName(path, holder.socket);
    return isWhole && Number.isSafeInteger(holder.pid) ? holder : 'torn';
  } catch {
    return 'torn';
  }
}

async function refusalBy(
  path: string,
  holder: LockHolder | 'nobody' | 'torn',
): Promise<LockedFile | undefined> {
  if (typeof holder === 'string') return undefined;
  const state = await stateOf(path, holder);
  return state === 'ended' ? undefined : { locked: false, holder, runs: state === 'running' };
}

async function stateOf(path: string, holder: LockHolder): Promise<HolderState> {
  const { hostName = '', machineId = '', bootId = '', pidNamespace = '', socket } = holder;
  if (socket === undefined) return isRunning(holder) ? 'running' : 'ended'; // An older version's.
  const place = { hostName, machineId, bootId, pidNamespace };
  const answer = await probeSocketFile(join(dirname(path), socket));
  if (answer === 'listening') return 'running';
  if (isOnThisKernel(place)) {
    if (answer === 'dead') return 'ended';
    // Somebody has removed the socket and not the file. Only the number is left to go by, where it means anything.
    if (!isInThisPidNamespace(place)) return 'unknown';
    return isRunning(holder) ? 'running' : 'ended';
  }
  if (isThisMachine(place) || !(await isOnNetwork(dirname(path)))) return 'ended'; // Before the machine started.
  return 'unknown';
}

/** Whatever the file says, nothing else in this folder, or outside it, is taken for a socket of this lock. */
function isSocketName(path: string, name: string): boolean {
  const prefix = `${basename(path)}.`;
  return name.startsWith(prefix) && /^[0-9a-f]{16}$/.test(name.slice(prefix.length));
}

async function isOnNetwork(folder: string): Promise<boolean> {
  return isNetworkFileSystem((await statfs(folder)).type);
}

/** Takes away what processes have left that were killed while they took the lock. The lock's holder may. */
async function removeLeftovers(path: string, own: LockHolder): Promise<void> {
  const folder = dirname(path);
  for (const name of await readdir(folder)) {
    if (!isSocketName(path, name.replace(/\.draft$/, '')) || name.startsWith(own.socket!)) continue;
    const facts = await stat(join(folder, name)).catch(() => undefined);
    if (!facts || Date.now() - facts.mtimeMs < LEFTOVER_MS_MIN) continue;
    if (facts.isSocket() && (await probeSocketFile(join(folder, name))) === 'listening') continue;
    await rm(join(folder, name), { force: true });
  }
}

function same(a: LockHolder | string, b: LockHolder | string): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
