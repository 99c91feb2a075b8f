import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { type Answer, lineOf, type Measured, type Order } from './orders.ts';

/** A peer that did not answer in time. It has been ended. */
export class SlowPeerError extends Error {
  override readonly name = 'SlowPeerError';
}

/** A process that answers each line it is told with one line. It cannot outlive the bench. */
export class Peer {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  private constructor(child: ChildProcess, lines: AsyncIterator<string>) {
    this.#child = child;
    this.#lines = lines;
  }

  static async start([command, ...args]: readonly [string, ...string[]]): Promise<Peer> {
    const child = spawn('setpriv', ['--pdeathsig', 'KILL', command, ...args], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    child.stdin!.on('error', () => {}); // Of a peer that ended: the missing answer says so.
    const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
    const peer = new Peer(child, lines);
    await peer.#answer(60_000);
    return peer;
  }

  get pid(): number {
    return this.#child.pid!;
  }

  get ended(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** @throws SlowPeerError if it takes longer. */
  async perform(order: Order, withinMs: number): Promise<Measured> {
    return (await this.tell(lineOf(order), withinMs)) as Measured;
  }

  async tell(line: string, withinMs: number): Promise<Answer> {
    this.#child.stdin!.write(`${line}\n`);
    return (await this.#answer(withinMs)) as Answer;
  }

  async stop(): Promise<void> {
    if (this.ended) return;
    this.#child.kill('SIGKILL');
    await once(this.#child, 'exit');
  }

  async #answer(withinMs: number): Promise<unknown> {
    let late = false;
    const overdue = setTimeout(() => {
      late = true;
      this.#child.kill('SIGKILL');
    }, withinMs);
    const { value, done } = await this.#lines.next();
    clearTimeout(overdue);
    if (late) throw new SlowPeerError(`not done within ${withinMs / 1_000} s`);
    if (done) throw new Error('its process ended instead of answering');
    return JSON.parse(value);
  }
}
