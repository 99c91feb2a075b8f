import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const STRING_BYTES_MAX = 1 << 20;

/** One call of a process to the system. Times are positions in the trace: what ended before another began is lower. */
export interface SystemCall {
  readonly name: string;
  /** What the descriptor stands for: a file's path, or `socket:[…]`. */
  readonly target: string;
  /** All that was given to it, as strace prints it. */
  readonly args: string;
  /** The strings among that: bytes to write, paths. */
  readonly strings: readonly Buffer[];
  readonly beganAt: number;
  /** Undefined for a call that had not come back at the end. */
  endedAt: number | undefined;
  /** What it returned, as strace prints it. */
  result: string;
}

/** Records the calls of a running process, all its threads included, by strace. */
export class SystemCallTrace {
  readonly #tracer: ChildProcess;
  readonly #folder: string;

  private constructor(tracer: ChildProcess, folder: string) {
    this.#tracer = tracer;
    this.#folder = folder;
  }

  static async of(pid: number, calls: readonly string[]): Promise<SystemCallTrace> {
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-strace-'));
    const options = ['-f', '-y', '-xx', '-s', String(STRING_BYTES_MAX), '-e', `trace=${calls.join(',')}`];
    const tracer = spawn('strace', [...options, '-o', join(folder, 'trace'), '-p', String(pid)], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    try {
      const said: string[] = [];
      await new Promise<void>((resolve, reject) => {
        tracer.on('error', reject);
        tracer.on('exit', () => reject(new Error(`strace ended: ${said.join('').trim()}`)));
        tracer.stderr!.on('data', (chunk: Buffer) => {
          said.push(chunk.toString());
          if (said.join('').includes('attached')) resolve();
        });
      });
    } catch (error) {
      await rm(folder, { recursive: true, force: true });
      throw error;
    }
    return new SystemCallTrace(tracer, folder);
  }

  /** Lets the process go on alone, and tells what it did meanwhile. */
  async stop(): Promise<SystemCall[]> {
    const { exitCode, signalCode } = this.#tracer;
    if (exitCode === null && signalCode === null) {
      this.#tracer.kill('SIGINT');
      await once(this.#tracer, 'exit');
    }
    const text = await readFile(join(this.#folder, 'trace'), 'latin1');
    await rm(this.#folder, { recursive: true, force: true });
    return parse(text);
  }
}

/** Why no process can be traced here; undefined where that is allowed. */
export async function whyNotTraceable(): Promise<string | undefined> {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
  try {
    await once(child, 'spawn');
    await (await SystemCallTrace.of(child.pid!, ['write'])).stop();
    return undefined;
  } catch (error) {
    return (error as Error).message;
  } finally {
    child.kill('SIGKILL');
  }
}

function parse(text: string): SystemCall[] {
  const calls: SystemCall[] = [];
  const unfinished = new Map<string, SystemCall>();
  for (const [at, line] of text.split('\n').entries()) {
    const resumed = /^(\d+) +<\.\.\. \w+ resumed>.*\) += (.*)$/.exec(line);
    if (resumed) {
      const call = unfinished.get(resumed[1]!);
      if (call) Object.assign(call, { endedAt: at, result: resumed[2] });
      unfinished.delete(resumed[1]!);
      continue;
    }
    const begun = /^(\d+) +(\w+)\((.*?)(?: <unfinished \.\.\.>|\) += (.*))$/.exec(line);
    if (!begun) continue;
    const [, thread, name, args, result] = begun as unknown as [string, string, string, string, string?];
    const call: SystemCall = {
      name,
      args,
      target: plain(/^\d+<([^>]*)>/.exec(args)?.[1] ?? '').toString(),
      strings: Array.from(args.matchAll(/"((?:\\x[0-9a-f]{2})*)"/g), ([, hex]) => plain(hex!)),
      beganAt: at,
      endedAt: result === undefined ? undefined : at,
      result: result ?? '',
    };
    calls.push(call);
    if (result === undefined) unfinished.set(thread, call);
  }
  return calls;
}

function plain(hex: string): Buffer {
  return Buffer.from(hex.replaceAll('\\x', ''), 'hex');
}
