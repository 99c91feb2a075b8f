import { appendFileSync, renameSync, statSync } from 'node:fs';
import type { Log } from '../base/log.ts';

const BYTES_MAX = 1024 * 1024;

/** A log of lines of JSON in a file that does not grow beyond a mebibyte; the one before it is kept, as `<file>.1`. */
export function openLogFile(file: string, bytesMax = BYTES_MAX): Log {
  let byteCount = sizeOf(file);
  return (level, message, fields) => {
    const time = new Date().toISOString();
    const line = `${JSON.stringify({ time, level, message, ...fields }, showErrors)}\n`;
    try {
      if (byteCount > bytesMax) {
        renameSync(file, `${file}.1`);
        byteCount = 0;
      }
      appendFileSync(file, line, { mode: 0o600 });
      byteCount += Buffer.byteLength(line);
    } catch {
      // A full disk must not end the server that may still be read from; it says so by refusing writes.
    }
  };
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

function showErrors(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString();
  return value instanceof Error ? value.message : value;
}
