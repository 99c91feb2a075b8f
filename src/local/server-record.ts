import { realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, isAbsolute } from 'node:path';
import { isRunning, ownPlace, type ProcessIdentity, type ProcessPlace } from '../base/process-identity.ts';
import { probeSocketFile } from '../base/tcp-socket-file.ts';
import { checkFoldersAbove } from './folders-above.ts';
import type { LocalPlace } from './local-place.ts';
import { checkOwnSocket, readOwnFile } from './own-file.ts';
import { checkPlace } from './private-folder.ts';

/** What a local server that listens says of itself. */
export interface ServerRecord extends ProcessIdentity, ProcessPlace {
  readonly version: string;
  readonly folder: string;
  readonly socketPath: string;
  /** When it began to listen. */
  readonly since: string;
}

/**
 * What is written down there; undefined if there is nothing that can be read. Whoever believes it sends passwords to the
 * socket that it names, and signals to the process: the folder, the file and the socket must be this user's alone.
 *
 * @throws LocalServerError if they are not.
 */
export function readRecord(place: LocalPlace): ServerRecord | undefined {
  checkPlace(place);
  const text = readOwnFile(place.recordFile);
  const record = text === undefined ? undefined : parseRecord(text);
  if (!record || !isSocketOf(place, record.socketPath)) return undefined;
  checkFoldersAbove(record.socketPath, place.homeFolder);
  checkOwnSocket(record.socketPath);
  return record;
}

const isText = (value: unknown): value is string => typeof value === 'string';
const isPath = (value: unknown) => isText(value) && isAbsolute(value);

/** What each field must be. What a later version adds is let pass. */
const FIELDS: Readonly<Record<keyof ServerRecord, (value: unknown) => boolean>> = {
  pid: (value) => Number.isSafeInteger(value) && (value as number) > 0,
  startedAt: isText,
  hostName: isText,
  machineId: isText,
  bootId: isText,
  pidNamespace: isText,
  version: (value) => isText(value) && /^\d+\.\d+\.\d+(?:[-+][\w.+-]+)?$/.test(value),
  folder: isPath,
  socketPath: isPath,
  since: (value) => isText(value) && !Number.isNaN(Date.parse(value)),
};

/** Undefined for what no local server has written: torn by a power cut, or changed by hand. */
function parseRecord(text: string): ServerRecord | undefined {
  try {
    const record = JSON.parse(text) as Record<string, unknown> | null;
    const isWhole = Object.entries(FIELDS).every(([name, isValid]) => isValid(record?.[name]));
    return isWhole ? (record as unknown as ServerRecord) : undefined;
  } catch {
    return undefined;
  }
}

/** Whether it is in a folder of the place, by whatever name that has: a folder that was moved has the record of before. */
function isSocketOf({ socketPath, privateFolders }: LocalPlace, path: string): boolean {
  if (path === socketPath) return true;
  const folder = realPathOf(dirname(path));
  const isPlain = /^(?:socket|[0-9a-f]{16}\.sock)$/.test(basename(path));
  return isPlain && folder !== undefined && privateFolders.some((each) => realPathOf(each) === folder);
}

function realPathOf(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

/** The server that serves now, as far as its process number tells; undefined if there is none, or it was killed. */
export function runningServer(place: LocalPlace): ServerRecord | undefined {
  const record = readRecord(place);
  return record && isProcessHere(record) && isRunning(record) ? record : undefined;
}

/**
 * As `runningServer`, also where the number tells nothing: for a process of another container that shares the folder,
 * and for one whose start cannot be told (without `/proc`), whose number another process may have by now. There it
 * serves if its socket is answered.
 */
export async function servingServer(place: LocalPlace): Promise<ServerRecord | undefined> {
  const record = readRecord(place);
  if (!record) return undefined;
  if (record.startedAt !== '' && isProcessHere(record) && isRunning(record)) return record;
  const answer = await probeSocketFile(record.socketPath).catch(() => 'missing');
  if (answer === 'listening') return record;
  // Its socket was removed, and it will put it back.
  return answer === 'missing' && isProcessHere(record) && isRunning(record) ? record : undefined;
}

/** Whether the number of that process means it here, so that it can be asked to end. */
export function isProcessHere({ bootId, pidNamespace }: ServerRecord): boolean {
  const own = ownPlace(); // Not by the host's name, which changes.
  return bootId === own.bootId && pidNamespace === own.pidNamespace;
}

/** Appears at once and whole. */
export function writeRecord({ recordFile }: LocalPlace, record: ServerRecord): void {
  const draft = `${recordFile}.${record.pid}`;
  writeFileSync(draft, `${JSON.stringify(record)}\n`, { mode: 0o600 });
  renameSync(draft, recordFile);
}

export function removeRecord({ recordFile }: LocalPlace): void {
  rmSync(recordFile, { force: true });
}
