import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { isRunning, type ProcessIdentity } from '../base/process-identity.ts';
import type { LocalPlace } from './local-place.ts';

/** What a local server that listens says of itself. */
export interface ServerRecord extends ProcessIdentity {
  readonly version: string;
  readonly socketPath: string;
  /** When it began to listen. */
  readonly since: string;
}

/** The server that serves now; undefined if there is none, or it was killed. */
export function runningServer({ recordFile }: LocalPlace): ServerRecord | undefined {
  try {
    const record = JSON.parse(readFileSync(recordFile, 'utf8')) as ServerRecord;
    return typeof record.pid === 'number' && isRunning(record) ? record : undefined;
  } catch {
    return undefined; // Not there, or torn by a power cut: no process that runs leaves it so.
  }
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
