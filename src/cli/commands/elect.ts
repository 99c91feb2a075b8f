import type { Command } from 'commander';
import { CommandError } from '../command-error.ts';
import { connectWith, graceOption, parseTimeoutOption, withConnection } from '../connection.ts';
import type { Console } from '../console.ts';
import type { CommandContext } from '../define-command.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { withJson } from '../json.ts';
import { parseLockName } from '../lock-argument.ts';
import { printJson, printLines } from '../print.ts';
import { planRun, type RunFlags } from '../run/run-plan.ts';
import { runUnderLock } from '../run/run-under-lock.ts';
import { SignalInbox } from '../run/signal-inbox.ts';
import { visibleText } from '../terminal/visible-text.ts';
import { untilSignalled } from '../until-signalled.ts';

interface ElectFlags extends RunFlags {
  readonly id?: string;
  readonly listen?: boolean;
  readonly rejoin?: boolean;
}

const DETAILS = `
Examples:
  holdfast elect scheduler -- ./scheduler
  holdfast elect scheduler --rejoin --id web-3 -- ./scheduler
  holdfast elect scheduler --listen

As \`holdfast run\`, under leadership: the same exit codes, signals and environment; HOLDFAST_TOKEN is the epoch, larger for
each later leader. Shares elections with Curator's LeaderLatch.`;

/** Runs a command while leading. */
export function define(command: Command, { console, exitWith }: CommandContext): void {
  withConnection(withJson(command))
    .usage('[options] <name> [--] <command> [args...]')
    .argument('<name>', 'the election', parseLockName)
    .argument('[command...]', 'what to run while leading')
    .passThroughOptions()
    .option('--id <name>', 'what others see of this candidate (default: host:pid)')
    .option('--listen', 'print who leads, now and after each change, and run nothing')
    .option('--rejoin', 'stand again when leadership was lost, instead of exit code 201')
    .option('--try', 'do not wait')
    .option('-w, --wait <duration>', 'wait no longer than this; at most 24d', parseTimeoutOption)
    .addOption(graceOption())
    .option('--pass-auth', 'let the command have $HOLDFAST_AUTH, which is kept from it otherwise')
    .option('-q, --quiet', 'say nothing of waiting')
    .addHelpText('after', DETAILS)
    .action(async (name: string, rest: string[]) => {
      const { operands, unknown } = command.parseOptions(rest);
      if (unknown.length > 0) command.error(`unknown option '${unknown[0]}'`);
      const flags = command.opts<ElectFlags>();
      if (flags.listen) {
        if (operands.length > 0) throw new CommandError('--listen runs no command', EXIT.badUsage);
        return listen(name, flags, console);
      }
      exitWith(await lead(name, operands, flags, console));
    });
}

async function lead(
  name: string,
  operands: readonly string[],
  flags: ElectFlags,
  console: Console,
): Promise<ExitCode> {
  const plan = planRun(name, operands, { ...flags, onSuspend: 'pause' });
  const { id } = flags;
  const leading = { ...plan, lock: { kind: 'leader', name, ...(id !== undefined && { id }) } as const };
  const inbox = new SignalInbox();
  for (;;) {
    const exitCode = await runUnderLock(leading, console, inbox);
    if (exitCode !== EXIT.lost || !flags.rejoin) return exitCode;
  }
}

async function listen(name: string, flags: ElectFlags, console: Console): Promise<void> {
  await using holdfast = await connectWith(flags);
  await untilSignalled(async (signal) => {
    try {
      for await (const leader of holdfast.election(name).observe({ signal })) {
        if (flags.json)
          printJson(console, leader ? { leader: leader.id, epoch: String(leader.epoch) } : { leader: null });
        else
          printLines(console, [
            leader ? visibleText(`${leader.id} leads, epoch ${leader.epoch}`) : 'nobody leads',
          ]);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  });
}
