import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

/** A process that answers each line it is told with one line. It cannot outlive the bench. */
export class Peer {
  /** The first line it said. */
  readonly greeting: string;
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  private constructor(child: ChildProcess, lines: AsyncIterator<string>, greeting: string) {
    this.#child = child;
    this.#lines = lines;
    this.greeting = greeting;
  }

  static async start(command: string, args: readonly string[]): Promise<Peer> {
    const child = spawn('setpriv', ['--pdeathsig', 'KILL', command, ...args], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
    const { value, done } = await lines.next();
    if (done) throw new Error(`${command} ended with ${(await once(child, 'exit'))[0]}`);
    return new Peer(child, lines, value);
  }

  /** Milliseconds for the cycles. */
  async measure(scenario: {
    readonly tasks: number;
    readonly locks: number;
    readonly sessions: number;
    readonly cycles: number;
  }): Promise<number> {
    const { tasks, locks, sessions, cycles } = scenario;
    this.#child.stdin!.write(`${tasks} ${locks} ${sessions} ${cycles}\n`);
    const { value, done } = await this.#lines.next();
    if (done) throw new Error('a peer has ended');
    return Number(value);
  }

  stop(): void {
    this.#child.kill('SIGKILL');
  }
}
