import { Command, CommanderError } from 'commander';
import { CommandError } from './command-error.ts';
import { COMMANDS } from './commands.ts';
import type { Console } from './console.ts';
import { EXIT, type ExitCode } from './exit-codes.ts';

/** Runs one invocation: `['run', 'nightly', '--', './job.sh']`. Errors become one line and a code. */
export async function runCommandLine(args: readonly string[], console: Console): Promise<ExitCode> {
  let exitCode: ExitCode = EXIT.done;
  const program = new Command('holdfast')
    .description('Fenced distributed locks on Apache ZooKeeper, or on this machine alone.')
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({
      writeOut: (text) => console.stdout.write(text),
      writeErr: (text) => console.stderr.write(text),
    });
  for (const { name, summary, load } of COMMANDS) {
    const command = program
      .command(name)
      .summary(summary)
      .description(summary)
      .copyInheritedSettings(program);
    if (args[0] !== name && args[0] !== 'help') continue;
    const { define } = await load();
    define(command, {
      console,
      exitWith: (code) => {
        exitCode = code;
      },
    });
  }
  try {
    await program.parseAsync(args, { from: 'user' });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.badUsage;
    if (!(error instanceof CommandError)) throw error;
    console.stderr.write(`holdfast: ${error.message}\n`);
    return error.exitCode;
  }
}
