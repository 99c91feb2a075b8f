import { isUtf8 } from 'node:buffer';
import { readFileSync } from 'node:fs';
import { CommandError } from './command-error.ts';
import { EXIT } from './exit-codes.ts';

/** So much of an argument is shown. */
const SHOWN_BYTES_MAX = 80;

/** What this process was started with, as bytes; undefined where the system does not show it. */
export interface OriginalBytes {
  readonly arguments: readonly Buffer[];
  readonly variables: readonly Buffer[];
}

/**
 * Refuses arguments that are not UTF-8. Node has put U+FFFD for what it could not decode: a lock or a file of another
 * name would be meant, and the command be given another argument. (A U+FFFD that was given as such is UTF-8.)
 *
 * @throws CommandError.
 */
export function checkArguments(args: readonly string[], original = originalBytes()): void {
  if (args.length === 0) return;
  const at = original?.arguments.slice(-args.length).findIndex((bytes) => !isUtf8(bytes)) ?? -1;
  if (at < 0) return;
  const shown = shownBytes(original!.arguments.at(at - args.length)!);
  const message = `argument ${at + 1}, ${shown}, is not UTF-8: it cannot be passed on unchanged`;
  throw new CommandError(message, EXIT.badUsage);
}

/**
 * The same for an environment that a command is to be given. The value is not shown: it may be secret.
 *
 * @throws CommandError.
 */
export function checkVariables(
  env: Readonly<Record<string, string | undefined>>,
  original = originalBytes(),
): void {
  for (const bytes of original?.variables ?? []) {
    if (isUtf8(bytes)) continue;
    const nameBytes = bytes.subarray(0, bytes.indexOf('='));
    if (env[nameBytes.toString()] === undefined) continue;
    const message = `environment variable ${shownBytes(nameBytes)} is not UTF-8: it cannot be passed on unchanged; unset it, or set it otherwise`;
    throw new CommandError(message, EXIT.badUsage);
  }
}

function originalBytes(): OriginalBytes | undefined {
  try {
    return { arguments: stringsOf('/proc/self/cmdline'), variables: stringsOf('/proc/self/environ') };
  } catch {
    return undefined; // Only Linux has them.
  }
}

function stringsOf(file: string): Buffer[] {
  const bytes = readFileSync(file);
  const strings: Buffer[] = [];
  for (let from = 0; from < bytes.length; ) {
    const end = bytes.indexOf(0, from);
    const to = end < 0 ? bytes.length : end;
    strings.push(bytes.subarray(from, to));
    from = to + 1;
  }
  return strings;
}

/** As a shell takes it between $' and '. */
function shownBytes(bytes: Buffer): string {
  const text = bytes.subarray(0, SHOWN_BYTES_MAX).toString('latin1');
  const escaped = text.replace(/[^ -~]|['\\]/g, (each) =>
    each === "'" || each === '\\' ? `\\${each}` : `\\x${each.charCodeAt(0).toString(16).padStart(2, '0')}`,
  );
  return `$'${escaped}'${bytes.length > SHOWN_BYTES_MAX ? '…' : ''}`;
}
