import { InvalidArgumentError } from 'commander';
import { type ConnectionFlags, parseTimeoutOption, withConnection } from '../connection.ts';
import type { DefineCommand } from '../define-command.ts';
import { examine } from '../doctor/examination.ts';
import { type Finding, type Verdict, worstOf } from '../doctor/finding.ts';
import { EXIT } from '../exit-codes.ts';
import { withJson } from '../json.ts';
import { printJson, printLines, wrappedLine } from '../print.ts';
import { type Paint, paintFor, type Tone } from '../terminal/paint.ts';
import { withProgress } from '../terminal/progress.ts';
import { visibleText } from '../terminal/visible-text.ts';

interface DoctorOptions extends ConnectionFlags {
  readonly timeout: number;
  readonly adminPort?: number;
  readonly readOnly?: boolean;
  readonly json?: boolean;
}

const TONES: Readonly<Record<Verdict, Tone>> = { ok: 'good', warn: 'warning', fail: 'bad', skip: 'faint' };

/** Looks for what is, or soon will be, wrong, and says what to do. */
export const define: DefineCommand = (command, { console, exitWith }) => {
  withJson(withConnection(command))
    .option('--timeout <duration>', 'how long each server has for an answer', parseTimeoutOption, 5_000)
    .option(
      '--admin-port <port>',
      "ask ZooKeeper's AdminServer for its configuration, where conf is not allowed",
      parsePort,
    )
    .option('--read-only', 'write nothing: no lock is taken')
    .addHelpText(
      'after',
      `
Examples:
  holdfast doctor
  holdfast doctor --servers zk1:2181,zk2:2181,zk3:2181 --admin-port 8080
  holdfast doctor --json | jq '.findings[] | select(.verdict == "fail")'

Each server by itself: reachable, how fast, which kind. The session timeout against syncLimit × tickTime. A lock of its
own, taken and let go. All locks: deadlocks, deep queues, orphans, strangers, numbers left, clocks.
Exit code: 0, 1 if a check failed, 204 if no server answered.`,
    )
    .action(async ({ timeout, adminPort, readOnly = false, json, ...flags }: DoctorOptions) => {
      const { findings, reached } = await withProgress(console, 'asking each server', (tell) =>
        examine({ flags, env: console.env, timeoutMs: timeout, adminPort, readOnly, tell }),
      );
      const verdict = worstOf(findings);
      if (json) printJson(console, { verdict, findings });
      else
        printLines(
          console,
          findings
            .flatMap((finding) => linesOf(finding, paintFor(console.stdout, console.env)))
            .flatMap((line) => wrappedLine(console, line)),
        );
      exitWith(!reached ? EXIT.unreachable : verdict === 'fail' ? EXIT.failed : EXIT.done);
    });
};

function linesOf({ check, verdict, detail, advice }: Finding, paint: Paint): string[] {
  const line = `${paint(TONES[verdict], verdict.padEnd(4))}  ${check.padEnd(15)}  ${visibleText(detail)}`;
  return advice === undefined ? [line] : [line, `${' '.repeat(23)}→ ${visibleText(advice)}`];
}

function parsePort(text: string): number {
  const port = Number(text);
  if (!Number.isInteger(port) || port < 1 || port > 65_535)
    throw new InvalidArgumentError('1 to 65535 is allowed');
  return port;
}
