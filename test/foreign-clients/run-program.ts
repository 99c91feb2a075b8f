import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

/** How a program ended, and what it said. */
export interface ProgramResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ProgramOptions {
  readonly input?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly folder?: string;
  readonly timeoutMs?: number;
}

const TIMEOUT_MS_DEFAULT = 60_000;

/** Runs a foreign program to its end. It cannot outlive this process, nor its time, after which it is killed. */
export async function runProgram(
  command: string,
  args: readonly string[],
  options: ProgramOptions = {},
): Promise<ProgramResult> {
  await using program = new Program(command, args, options);
  program.child.stdin!.end(options.input ?? '');
  return await program.result();
}

/** A foreign program that is spoken to while it runs. */
export class Program implements AsyncDisposable {
  readonly child: ChildProcess;
  readonly #command: string;
  readonly #timeoutMs: number;
  readonly #overdue: NodeJS.Timeout;
  readonly #closed: Promise<unknown>;
  #late = false;
  #stdout = '';
  #stderr = '';
  #said = '';

  constructor(command: string, args: readonly string[], options: ProgramOptions = {}) {
    this.#command = command;
    this.#timeoutMs = options.timeoutMs ?? TIMEOUT_MS_DEFAULT;
    this.child = spawn('setpriv', ['--pdeathsig', 'KILL', command, ...args], {
      cwd: options.folder,
      // Debian's Java prints dates and messages by the locale of whoever runs the tests.
      env: { ...process.env, TZ: 'UTC', LC_ALL: 'C.UTF-8', ...options.environment },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    this.child.stdin!.on('error', () => {}); // It may have ended without reading all of its input.
    this.child.stdout!.setEncoding('utf8').on('data', (text: string) => (this.#stdout += text));
    this.child.stderr!.setEncoding('utf8').on('data', (text: string) => (this.#stderr += text));
    for (const stream of [this.child.stdout!, this.child.stderr!]) {
      stream.on('data', (text: string) => {
        this.#said += text;
      });
    }
    this.#closed = once(this.child, 'close');
    this.#overdue = setTimeout(() => {
      this.#late = true;
      this.child.kill('SIGKILL');
    }, this.#timeoutMs);
  }

  /** All that was said so far, on both streams, in the order it came. */
  get said(): string {
    return this.#said;
  }

  say(line: string): void {
    this.child.stdin!.write(`${line}\n`);
  }

  async result(): Promise<ProgramResult> {
    await this.#closed;
    if (this.#late) {
      throw new Error(`${this.#command} did not end within ${this.#timeoutMs} ms; it said:\n${this.said}`);
    }
    return { code: this.child.exitCode, stdout: this.#stdout, stderr: this.#stderr };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#overdue);
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill('SIGKILL');
    await this.#closed;
  }
}
