import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { until } from './until.ts';

const MAIN_FILE = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));
const TSX = import.meta.resolve('tsx');

/** `holdfast` as a user has it: a process of its own, here from the sources. */
export class CommandProcess implements AsyncDisposable {
  stdout = '';
  stderr = '';
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;

  constructor(
    args: readonly string[],
    { cwd, env = {} }: { cwd?: string; env?: Record<string, string> } = {},
  ) {
    const { HOLDFAST_SERVERS: _, ...inherited } = process.env;
    this.#child = spawn(process.execPath, ['--import', TSX, MAIN_FILE, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...inherited, ...env },
      ...(cwd !== undefined && { cwd }),
    });
    this.#child.stdout!.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text;
    });
    this.#child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
    });
    this.#ended = once(this.#child, 'close');
  }

  get pid(): number {
    return this.#child.pid!;
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Waits until standard output has this, and gives what matched. */
  async untilSaid(pattern: RegExp): Promise<RegExpExecArray> {
    await until(`${pattern} in ${JSON.stringify(this.stdout)}`, () => {
      if (this.exitCode !== undefined && !pattern.test(this.stdout)) {
        throw new Error(`ended without ${pattern}: ${this.stdout}${this.stderr}`);
      }
      return pattern.test(this.stdout);
    });
    return pattern.exec(this.stdout)!;
  }

  get exitCode(): number | undefined {
    return this.#child.exitCode ?? undefined;
  }

  async exited(): Promise<number | null> {
    await this.#ended;
    return this.#child.exitCode;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#ended;
  }
}

/** Whether there is such a process, stopped or not. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
