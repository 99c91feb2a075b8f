import type { Command } from 'commander';

/** What a shell needs to know of one command. */
export interface CompletedCommand {
  readonly name: string;
  readonly summary: string;
  readonly options: readonly CompletedOption[];
  /** Words that may stand first: subcommands, or the choices of the first argument. */
  readonly words: readonly string[];
  readonly subcommands: readonly CompletedCommand[];
  /** Its first argument is a lock's name, and what follows is another command's, as of `run`. */
  readonly lock: 'none' | 'only' | 'before-command';
}

export interface CompletedOption {
  /** `-s`, `--servers`. */
  readonly flags: readonly string[];
  readonly description: string;
  readonly takesValue: boolean;
  readonly choices: readonly string[];
}

/** What commands call an argument that is a lock's name; an election is a lock, too. */
const LOCK_ARGUMENTS = ['lock', 'name'];

/** Every command of a program, from its own definition: what `--help` knows, completion knows. */
export function completedCommands(program: Command): CompletedCommand[] {
  return program.commands.map(describe);
}

function describe(command: Command): CompletedCommand {
  const subcommands = command.commands.map(describe);
  const [first, second] = command.registeredArguments;
  const takesLock = first !== undefined && LOCK_ARGUMENTS.includes(first.name());
  return {
    name: command.name(),
    summary: command.description(),
    options: [
      ...command.options.map(({ short, long, description, required, optional, argChoices }) => ({
        flags: [short, long].filter((flag) => flag !== undefined),
        description,
        takesValue: required || optional,
        choices: argChoices ?? [],
      })),
      { flags: ['-h', '--help'], description: 'display help for command', takesValue: false, choices: [] },
    ],
    words: [...subcommands.map(({ name }) => name), ...(first?.argChoices ?? [])],
    subcommands,
    lock: !takesLock ? 'none' : second ? 'before-command' : 'only',
  };
}
