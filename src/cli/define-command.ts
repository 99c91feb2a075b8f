import type { Command } from 'commander';
import type { Console } from './console.ts';
import type { ExitCode } from './exit-codes.ts';

/** What a file in commands/ exports as `define`: options, arguments, help with examples, and the action. */
export type DefineCommand = (command: Command, context: CommandContext) => void;

/** What an action has to do with the outside. */
export interface CommandContext {
  readonly console: Console;
  /** Called by the action when it is done; 0 if it never is. */
  exitWith(code: ExitCode): void;
}
