import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { isRunning, ownPlace, type ProcessIdentity, type ProcessPlace } from '../base/process-identity.ts';
import { probeSocketFile } from '../base/tcp-socket-file.ts';
import type { LocalPlace } from './local-place.ts';

/** What a local server that listens says of itself. */
export interface ServerRecord extends ProcessIdentity, ProcessPlace {
  readonly version: string;
  readonly folder: string;
  readonly socketPath: string;
  /** When it began to listen. */
  readonly since: string;
}

/** What is written down there; undefined if there is nothing that can be read. */
export function readRecord({ recordFile }: Pick<LocalPlace, 'recordFile'>): ServerRecord | undefined {
  try {
    const record = JSON.parse(readFileSync(recordFile, 'utf8')) as ServerRecord;
    const isWhole = typeof record.pid === 'number' && typeof record.socketPath === 'string';
    return isWhole ? record : undefined;
  } catch {
    return undefined; // Not there, or torn by a power cut: no process that runs leaves it so.
  }
}

/** The server that serves now, as far as its process number tells; undefined if there is none, or it was killed. */
export function runningServer(place: Pick<LocalPlace, 'recordFile'>): ServerRecord | undefined {
  const record = readRecord(place);
  return record && isProcessHere(record) && isRunning(record) ? record : undefined;
}

/**
 * As `runningServer`, also where the number tells nothing: for a process of another container that shares the folder,
 * and for one whose start cannot be told (without `/proc`), whose number another process may have by now. There it
 * serves if its socket is answered.
 */
export async function servingServer(
  place: Pick<LocalPlace, 'recordFile'>,
): Promise<ServerRecord | undefined> {
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
