import { writeSync } from 'node:fs';
import { EXIT } from './exit-codes.ts';
import { asCommandError, failureJson } from './failures.ts';
import { jsonLine } from './json.ts';
import { oneLine } from './terminal/visible-text.ts';

/** How a failure is told: one line, or one JSON value; with `HOLDFAST_DEBUG` what led to it, too. */
export interface Manner {
  readonly json: boolean;
  readonly debug: boolean;
}

/** A failure as text for standard error. */
export function failureText(error: unknown, { json, debug }: Manner): string {
  const known = asCommandError(error);
  const line = json ? jsonLine(failureJson(known)) : `holdfast: ${oneLine(known.message)}\n`;
  return debug ? `${line}${stacksOf(error)}` : line;
}

export function isDebug(env: Readonly<Record<string, string | undefined>>): boolean {
  return (env['HOLDFAST_DEBUG'] ?? '') !== '';
}

/** Whether the words before another command's begin ask for JSON. */
export function asksForJson(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  return args.slice(0, end < 0 ? undefined : end).includes('--json');
}

function stacksOf(error: unknown): string {
  const stacks: string[] = [];
  for (let each = error; each instanceof Error; each = each.cause) stacks.push(each.stack ?? each.message);
  return stacks.map((stack) => `${stack.split('\n').map(oneLine).join('\n    ')}\n`).join('');
}

/**
 * Sees to it that a process ends with a line and a code whatever happens: what nobody caught, and standard output that
 * cannot be written. A reader that has gone (`holdfast ls | head -1`) is no failure worth a line.
 */
export function guardProcess(process: NodeJS.Process): void {
  const manner = { json: asksForJson(process.argv.slice(2)), debug: isDebug(process.env) };
  const end = (error: unknown) => {
    put(failureText(error, manner));
    process.exit(asCommandError(error).exitCode);
  };
  process.on('uncaughtException', end);
  process.on('unhandledRejection', end);
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(EXIT.brokenPipe);
    const said = { event: 'failed', exitCode: EXIT.output, code: error.code, message: error.message };
    put(manner.json ? jsonLine(said) : `holdfast: standard output: ${oneLine(error.message)}\n`);
    process.exit(EXIT.output);
  });
  process.stderr.on('error', () => {}); // There is nowhere left to say it.
}

function put(text: string): void {
  try {
    writeSync(2, text);
  } catch {
    // EPIPE, EAGAIN, ENOSPC.
  }
}
