import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import type { ServerOptions } from '../../src/server.ts';
import { until } from '../support/until.ts';
import type { TreeSize } from './dear-tree.ts';
import type { TurnReport } from './turn-meter.ts';

/** What a client that behaves has seen meanwhile. */
export interface Probed {
  readonly count: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  readonly lost: boolean;
}

/** By which the server of a metered process knows the program that behaves. */
export const BYSTANDER_TIMEOUT_MS = 10_001;

/** The collector does all its work in pauses, which are told; what it does in between cannot be told from other work. */
const METERED_FLAGS = ['--no-incremental-marking'];

/** How a program that takes locks has fared. */
export interface BystanderReport {
  /** How often it has taken and released a lock… */
  readonly count: number;
  /** … and how long that took. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** Why the lock was lost that it holds all the time, if it was. */
  readonly lost?: string;
}

/** A server that measures its turns, and the tree it is asked of. */
export interface MeteredOptions extends ServerOptions {
  readonly tree: TreeSize;
}

/** A server in a process of its own with a client that behaves in another: what it uses is read from the outside. */
export class AttackedServer implements AsyncDisposable {
  readonly host = '127.0.0.1';
  readonly port: number;
  readonly #server: ChildProcess;
  readonly #probe: ChildProcess | undefined;

  private constructor(port: number, server: ChildProcess, probe: ChildProcess | undefined) {
    this.port = port;
    this.#server = server;
    this.#probe = probe;
  }

  static async start(
    options: ServerOptions,
    { probed }: { readonly probed: boolean },
  ): Promise<AttackedServer> {
    const server = run('server-process.ts', JSON.stringify(options));
    const { port } = (await message(server)) as { port: number };
    const probe = probed ? run('probe-process.ts', `${port}`) : undefined;
    if (probe) await message(probe);
    return new AttackedServer(port, server, probe);
  }

  /** A server that measures its turns, see `turns`; with a program that behaves, which has locks on it. */
  static async metered(options: MeteredOptions): Promise<AttackedServer> {
    const server = run('metered-server-process.ts', JSON.stringify(options), METERED_FLAGS);
    const { port } = (await message(server)) as { port: number };
    const bystander = run('bystander-process.ts', `${port}`);
    await message(bystander);
    return new AttackedServer(port, server, bystander);
  }

  /** How the program that behaves has fared since it was asked last. */
  async bystander(): Promise<BystanderReport> {
    const said = message(this.#probe!);
    this.#probe!.send('tell');
    return (await said) as BystanderReport;
  }

  /** What the turns of its event loop have cost since it was asked last. */
  async turns(): Promise<TurnReport> {
    const said = message(this.#server);
    this.#server.send('tell');
    return (await said) as TurnReport;
  }

  get alive(): boolean {
    return this.#server.exitCode === null && this.#server.signalCode === null;
  }

  get openFiles(): number {
    return readdirSync(`/proc/${this.#server.pid}/fd`).length;
  }

  get memoryBytes(): number {
    const [, kibibytes] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${this.#server.pid}/status`, 'utf8'))!;
    return Number(kibibytes) * 1024;
  }

  /** What the probe has measured since it was asked last. */
  async probed(): Promise<Probed> {
    this.#probe!.send('tell');
    return (await message(this.#probe!)) as Probed;
  }

  /** What a four-letter word says. */
  async ask(word: string): Promise<string> {
    const socket = connect({ host: this.host, port: this.port });
    socket.write(word);
    let text = '';
    for await (const chunk of socket) text += chunk;
    return text;
  }

  /** Resolves when no more files are open than before; others that come and go by themselves aside. */
  async untilFilesAreBackTo(count: number, withinMs = 20_000): Promise<void> {
    await until(
      `${this.openFiles} open files are ${count} again`,
      () => this.openFiles <= count + 5,
      withinMs,
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of [this.#probe, this.#server]) {
      if (!child || child.exitCode !== null || child.signalCode !== null) continue;
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    }
  }
}

function run(file: string, argument: string, flags: readonly string[] = []): ChildProcess {
  const path = new URL(`./${file}`, import.meta.url).pathname;
  return fork(path, [argument], { execArgv: ['--import', 'tsx', ...flags] });
}

async function message(child: ChildProcess): Promise<unknown> {
  const gone = new AbortController();
  try {
    const [said] = await Promise.race([
      once(child, 'message', { signal: gone.signal }),
      once(child, 'exit', { signal: gone.signal }).then(([code]) => {
        throw new Error(`the process ended with ${code}`);
      }),
    ]);
    return said;
  } finally {
    gone.abort();
  }
}
