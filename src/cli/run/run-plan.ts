import { basename } from 'node:path';
import { checkName } from '../../locks/lock-name.ts';
import { CommandError } from '../command-error.ts';
import type { ConnectionFlags } from '../connection.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';

/** The options of `holdfast run` as commander gives them. */
export interface RunFlags extends ConnectionFlags {
  readonly try?: boolean;
  readonly wait?: number;
  readonly shared?: boolean;
  readonly exclusive?: boolean;
  readonly permits?: string;
  readonly maxHold?: number;
  readonly minHold?: number;
  readonly grace: number;
  readonly onSuspend: 'pause' | 'term' | 'ignore';
  readonly busyExit?: string;
  readonly reason?: string;
  readonly foreground?: boolean;
  readonly reenter?: boolean;
  readonly passAuth?: boolean;
  readonly quiet?: boolean;
  readonly json?: boolean;
}

/** A script that was given as one word is no name: what is shown of it must fit beside the other labels. */
const COMMAND_CHARACTERS_MAX = 64;

/** What others see of the command: its name, and as much of it as fits. */
export function commandLabel(program: string): string {
  return shortened(basename(program), COMMAND_CHARACTERS_MAX);
}

/** With an ellipsis where characters are left out. */
function shortened(text: string, charactersMax: number): string {
  const characters = [...text];
  return characters.length <= charactersMax ? text : `${characters.slice(0, charactersMax - 1).join('')}…`;
}

/** Which lock of which kind. */
export type WantedLock =
  | { readonly kind: 'mutex' | 'read' | 'write'; readonly name: string }
  | { readonly kind: 'semaphore'; readonly name: string; readonly permits: number; readonly of: number }
  | { readonly kind: 'multi'; readonly names: readonly string[] }
  | { readonly kind: 'leader'; readonly name: string; readonly id?: string };

export function namesOf(lock: WantedLock): readonly string[] {
  return lock.kind === 'multi' ? lock.names : [lock.name];
}

/** What is to be run, under what, and how. */
export interface RunPlan {
  readonly lock: WantedLock;
  /** The locks as they were given, for people. */
  readonly lockText: string;
  readonly command: readonly [string, ...string[]];
  readonly flags: RunFlags;
  readonly busyExit: ExitCode;
}

/** @throws CommandError, or TypeError for a name that cannot be: before anything is done. */
export function planRun(lockText: string, command: readonly string[], flags: RunFlags): RunPlan {
  const names = lockText.split(',');
  for (const name of names) checkName(name);
  const [program, ...args] = command;
  if (program === undefined || program === '') throw misuse('a command to run is needed');
  if (flags.try && flags.wait !== undefined) throw misuse('--try and --wait: one of them');
  if ([flags.shared, flags.exclusive, flags.permits !== undefined].filter(Boolean).length > 1) {
    throw misuse('--shared, --exclusive and --permits: one of them');
  }
  const { maxHold, minHold } = flags;
  if (maxHold !== undefined && minHold !== undefined && minHold > maxHold) {
    throw misuse('--min-hold is longer than --max-hold');
  }
  return {
    lock: wantedLock(names, flags),
    lockText,
    command: [program, ...args],
    flags,
    busyExit: busyExit(flags.busyExit),
  };
}

function wantedLock(names: readonly string[], { shared, exclusive, permits }: RunFlags): WantedLock {
  const [name, ...others] = names as [string, ...string[]];
  if (others.length > 0) {
    if (shared || exclusive || permits !== undefined) {
      throw misuse('several locks as one are exclusive: no --shared, --exclusive or --permits');
    }
    if (new Set(names).size !== names.length) throw misuse(`${names.join(',')}: each lock only once`);
    return { kind: 'multi', names };
  }
  if (shared) return { kind: 'read', name };
  if (exclusive) return { kind: 'write', name };
  if (permits === undefined) return { kind: 'mutex', name };
  const match = /^(?:(\d+)\/)?(\d+)$/.exec(permits);
  const [taken, of] = [Number(match?.[1] ?? 1), Number(match?.[2])];
  if (!match || of < 1 || taken < 1 || taken > of) {
    throw misuse(`--permits ${JSON.stringify(permits)}: such as 1/5, one of five, is needed`);
  }
  return { kind: 'semaphore', name, permits: taken, of };
}

function busyExit(text: string | undefined): ExitCode {
  if (text === undefined) return EXIT.busy;
  if (!/^\d+$/.test(text) || Number(text) > 255)
    throw misuse('--busy-exit: a number from 0 to 255 is needed');
  return Number(text);
}

function misuse(message: string): CommandError {
  return new CommandError(message, EXIT.badUsage);
}
