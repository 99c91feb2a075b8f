import { type Command, Option } from 'commander';
import { graceOption, parseDurationOption, parseTimeoutOption, withConnection } from '../connection.ts';
import type { CommandContext } from '../define-command.ts';
import { withJson } from '../json.ts';
import { planRun, type RunFlags } from '../run/run-plan.ts';
import { runUnderLock } from '../run/run-under-lock.ts';

const DETAILS = `
Examples:
  holdfast run nightly-report -- ./report.sh          one at a time, in order of arrival
  holdfast run --try nightly-report -- ./report.sh    or not at all: exit code 200 if it is taken
  holdfast run --wait 30s a,b -- ./move a b           both or neither, without deadlock
  holdfast run --permits 1/5 exports -- ./export      five at once
  holdfast run --shared catalogue -- ./read           with others who say --shared; --exclusive excludes them

The command's exit code passes through, 128+n for signal n; 126 not executable, 127 not found. Of holdfast itself:
  200 taken   201 lost   202 held for --max-hold   203 asked to let go   204 servers out of reach   205 not allowed
  206 a lock of another kind   207 held by the run that started this one   208 refused by the server   211 TLS   2 bad usage
The command sees HOLDFAST_LOCK, HOLDFAST_TOKEN, HOLDFAST_SESSION and HOLDFAST_ACQUIRED_AT. See docs/command.md.`;

export function define(command: Command, { console, exitWith }: CommandContext): void {
  withConnection(withJson(command))
    .usage('[options] <lock>[,<lock>...] [--] <command> [args...]')
    .argument('<lock>', 'the lock; several separated by commas are taken as one')
    .argument('[command...]', 'what to run')
    .passThroughOptions()
    .option('--try', 'do not wait')
    .option(
      '-w, --wait <duration>',
      'wait no longer than this, reaching the servers included; at most 24d',
      parseTimeoutOption,
    )
    .option('--shared', 'share it with others who say --shared')
    .option('--exclusive', 'exclude those who say --shared, and each other')
    .option('--permits <k/n>', 'take k of n permits')
    .option('--max-hold <duration>', 'end the command after this', parseDurationOption)
    .option('--min-hold <duration>', 'hold at least this long, also after the command', parseDurationOption)
    .addOption(graceOption())
    .addOption(
      new Option('--on-suspend <what>', 'what to do with the command while the connection is down')
        .choices(['pause', 'term', 'ignore'])
        .default('pause'),
    )
    .option('--reason <text>', 'why, for those who look at the queue')
    .option('--busy-exit <code>', 'exit with this instead of 200')
    .option('--reenter', 'where a run that started this one holds the lock: run under its hold')
    .option('--foreground', 'for interactive programs: the command keeps the terminal')
    .option('--pass-auth', 'let the command have $HOLDFAST_AUTH, which is kept from it otherwise')
    .option('-q, --quiet', 'say nothing of waiting')
    .addHelpText('after', DETAILS)
    .action(async (lock: string, rest: string[]) => {
      // Options may also stand behind the lock; the first word that is none begins the command.
      const { operands, unknown } = command.parseOptions(rest);
      if (unknown.length > 0) command.error(`unknown option '${unknown[0]}'`);
      exitWith(await runUnderLock(planRun(lock, operands, command.opts<RunFlags>()), console));
    });
}
