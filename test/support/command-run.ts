import { PassThrough } from 'node:stream';
import { runCommandLine } from '../../src/cli/command-line.ts';
import type { Console } from '../../src/cli/console.ts';

/** What one invocation wrote, and how it ended. */
export interface CommandResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Where it runs: a terminal of that many columns, or none. */
export interface CommandSurroundings {
  readonly columns?: number;
  readonly env?: Readonly<Record<string, string>>;
}

/** Runs `holdfast <args>` in this process, with streams of its own. */
export async function runCommand(
  args: readonly string[],
  { columns, env = {} }: CommandSurroundings = {},
): Promise<CommandResult> {
  const written = { stdout: '', stderr: '' };
  const output = (name: keyof typeof written) => {
    const stream = new PassThrough();
    stream.setEncoding('utf8').on('data', (text: string) => {
      written[name] += text;
    });
    return Object.assign(stream, columns === undefined ? {} : { isTTY: true, columns, rows: 24 });
  };
  const stdin = Object.assign(new PassThrough(), { isTTY: false });
  const console = { stdin, stdout: output('stdout'), stderr: output('stderr'), env };
  const exitCode = await runCommandLine(args, console as unknown as Console);
  await new Promise((resolve) => setImmediate(resolve)); // What was written last has to come through.
  return { exitCode, ...written };
}

/** The text without what is another each time: ids, tokens, sessions, processes, hosts and ages. */
export function withoutVariables(text: string): string {
  return text
    .replaceAll(/_c_[0-9a-f-]{36}-/g, '_c_<uuid>-')
    .replaceAll(/0x[0-9a-f]{6,}/g, '<session>')
    .replaceAll(/\b\d{1,19}(?= +<session>)/g, '<token>')
    .replaceAll(/@[\w.-]+:\d+/g, '@<host>')
    .replaceAll(/\b\d+(?:ms|s)\b/g, '<age>')
    .replaceAll(/ {2,}/g, '  ');
}
