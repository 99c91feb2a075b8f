import type { Command } from 'commander';
import type { Console } from './console.ts';
import type { ExitCode } from './exit-codes.ts';

/** What a file in commands/ exports as `define`: options, arguments, help with examples, and the action. */
export type DefineCommand = (command: Command, context: CommandContext) => void;

export interface CommandContext {
  readonly console: Console;
  /** Called by the action when it is done; 0 if it never is. */
  exitWith(code: ExitCode): void;
}

interface CommandRow {
  readonly name: string;
  readonly summary: string;
  /** Only the command that was asked for is loaded: a lock in a crontab should not wait for a chart. */
  load(): Promise<{ readonly define: DefineCommand }>;
}

/** Every command, in the order of `holdfast --help`. */
export const COMMANDS: readonly CommandRow[] = [];
