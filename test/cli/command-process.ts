import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isRunning, type ProcessIdentity } from '../../src/base/process-identity.ts';
import { stopLocalServer } from '../../src/local/ensure-local-server.ts';
import { type LocalPlace, localPlace } from '../../src/local/local-place.ts';
import { serversBeside } from '../../src/local/other-servers.ts';
import { runningServer, type ServerRecord } from '../../src/local/server-record.ts';
import { until } from '../support/until.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
/** The command as built: what is shipped is what is tested. */
export const COMMAND = join(root, 'dist', 'cli', 'main.js');
export const LOCAL_USER = join(root, 'test', 'cli', 'local-user.mjs');

type Environment = Readonly<Record<string, string | undefined>>;

/** What a process is given, besides what the test runner has in its own environment. */
export interface ProcessOptions {
  readonly env?: Environment;
  readonly stdin?: string | 'open';
}

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A Node process under test; ended with the test if it has not ended before. */
export class CommandProcess implements AsyncDisposable {
  readonly child: ChildProcess;
  readonly #ended: Promise<Ended>;
  /** Its exit code, at the moment it ends: what it has started may have its output open for longer. */
  readonly exited: Promise<number | null>;
  stdout = '';
  stderr = '';

  constructor(file: string, args: readonly string[], { env = {}, stdin = '' }: ProcessOptions = {}) {
    if (!existsSync(COMMAND)) throw new Error(`${COMMAND} is not there: npm run build`);
    const { NODE_ENV: _, ...inherited } = process.env;
    this.child = spawn(process.execPath, [file, ...args], {
      env: { ...inherited, ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    this.child.stdout!.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text;
    });
    this.child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
    });
    this.child.stdin!.on('error', () => {});
    if (stdin !== 'open') this.child.stdin!.end(stdin);
    this.exited = once(this.child, 'exit').then(([code]) => code);
    this.#ended = once(this.child, 'close').then(([code, signal]) => ({
      code,
      signal,
      stdout: this.stdout,
      stderr: this.stderr,
    }));
  }

  get pid(): number {
    return this.child.pid!;
  }

  get ended(): Promise<Ended> {
    return this.#ended;
  }

  get hasEnded(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }

  kill(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  /** Waits until standard output, or error, has that in it. */
  async says(text: string | RegExp, stream: 'stdout' | 'stderr' = 'stdout'): Promise<void> {
    const has = () => (typeof text === 'string' ? this[stream].includes(text) : text.test(this[stream]));
    await until(`${text} on ${stream}`, () => has() || this.hasEnded).catch((error: Error) => {
      throw new Error(`${error.message}; so far: ${this.stdout}${this.stderr}`);
    });
    if (!has()) throw new Error(`ended without ${text}: ${this.stdout}${this.stderr}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.hasEnded) this.child.kill('SIGKILL');
    await this.#ended;
  }
}

export function holdfast(args: readonly string[], options?: ProcessOptions): CommandProcess {
  return new CommandProcess(COMMAND, args, options);
}

/** A user of their own, with an empty state folder. Their local server is ended with the test. */
export class LocalHome implements AsyncDisposable {
  readonly folder: string;
  readonly env: Environment;

  private constructor(folder: string, env: Environment) {
    this.folder = folder;
    this.env = {
      HOME: folder,
      HOLDFAST_LOCAL_FOLDER: join(folder, 'state'),
      HOLDFAST_SERVERS: undefined,
      ...env,
    };
  }

  static async make(env: Environment = {}): Promise<LocalHome> {
    return new LocalHome(await mkdtemp(join(tmpdir(), 'holdfast-home-')), env);
  }

  user(...args: string[]): CommandProcess {
    return new CommandProcess(LOCAL_USER, args, { env: this.env, stdin: 'open' });
  }

  command(...args: string[]): CommandProcess {
    return holdfast(args, { env: this.env });
  }

  get place(): LocalPlace {
    return localPlace(this.env);
  }

  /** The server that runs now. */
  get server(): ServerRecord {
    const record = runningServer(this.place);
    if (!record) throw new Error('no local server runs');
    return record;
  }

  /** How many servers have been started here so far. */
  async startCount(): Promise<number> {
    const log = await readFile(this.place.logFile, 'utf8');
    return log.split('\n').filter((line) => line.includes('"server started"')).length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const record = runningServer(this.place);
    if (record) await stopLocalServer(this.place, record);
    // One that ends by itself has no record any more, and still writes here.
    await until('no server to be left', () => serversBeside(this.place).length === 0);
    await rm(this.folder, { recursive: true, force: true });
  }
}

export function isAlive(pid: number): boolean {
  const identity: ProcessIdentity = { pid, startedAt: '' };
  return isRunning(identity);
}
