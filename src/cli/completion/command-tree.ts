import type { Command } from 'commander';

/** What a shell needs to know of one command. */
export interface CompletedCommand {
  readonly name: string;
  readonly summary: string;
  readonly options: readonly CompletedOption[];
  /** Words that may stand first: subcommands, or the choices of the first argument. */
  readonly words: readonly string[];
  readonly subcommands: readonly CompletedCommand[];
}

export interface CompletedOption {
  /** `-s`, `--servers`. */
  readonly flags: readonly string[];
  readonly description: string;
  readonly takesValue: boolean;
  readonly choices: readonly string[];
}

/** Every command of a program, from its own definition: what `--help` knows, completion knows. */
export function completedCommands(program: Command): CompletedCommand[] {
  return program.commands.map(describe);
}

function describe(command: Command): CompletedCommand {
  const subcommands = command.commands.map(describe);
  const [first] = command.registeredArguments;
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
  };
}
