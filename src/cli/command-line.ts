import { Command, CommanderError } from 'commander';
import { packageVersion } from '../base/package-version.ts';
import { COMMANDS } from './commands.ts';
import type { Console } from './console.ts';
import { EXIT, type ExitCode } from './exit-codes.ts';
import { asCommandError } from './failures.ts';
import { jsonLine } from './json.ts';
import { checkArguments } from './original-bytes.ts';
import { asksForJson, failureText, isDebug } from './report-failure.ts';
import { oneLine } from './terminal/visible-text.ts';
import { wrappedFor } from './terminal/wrapped.ts';

/** What tells of all commands needs all of them; the names of locks are told while a person waits. */
function needsAll([name, argument]: readonly string[]): boolean {
  return name === 'help' || (name === 'completion' && argument !== 'locks');
}

/** Runs one invocation: `['run', 'nightly', '--', './job.sh']`. Errors become one line and a code. */
export async function runCommandLine(args: readonly string[], console: Console): Promise<ExitCode> {
  let exitCode: ExitCode = EXIT.done;
  const manner = { json: asksForJson(args), debug: isDebug(console.env) };
  const program = new Command('holdfast')
    .description('Fenced distributed locks on Apache ZooKeeper, or on this machine alone.')
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({
      writeOut: (text) => console.stdout.write(wrappedFor(console.stdout, text)),
      writeErr: (text) => console.stderr.write(manner.json ? text : wrappedFor(console.stderr, text)),
      outputError: (text, write) => {
        const message = oneLine(text.replace(/^error: /, ''));
        const said = { event: 'failed', exitCode: EXIT.badUsage, message };
        write(manner.json ? jsonLine(said) : `holdfast: ${message}\n`);
      },
    });
  if (args[0] === '--version' || args[0] === '-V') {
    console.stdout.write(`${packageVersion()}\n`);
    return EXIT.done;
  }
  program.option('-V, --version', 'print the version');
  for (const { name, summary, load } of COMMANDS) {
    const command = program
      .command(name)
      .summary(summary)
      .description(summary)
      .copyInheritedSettings(program);
    if (args[0] !== name && !needsAll(args)) continue;
    const { define } = await load();
    define(command, {
      console,
      exitWith: (code) => {
        exitCode = code;
      },
    });
  }
  try {
    checkArguments(args);
    await program.parseAsync(args, { from: 'user' });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.badUsage;
    const text = failureText(error, manner);
    console.stderr.write(manner.json ? text : wrappedFor(console.stderr, text));
    return asCommandError(error).exitCode;
  }
}
