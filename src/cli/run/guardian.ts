import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { CommandError } from '../command-error.ts';
import { EXIT } from '../exit-codes.ts';
import type { Watched } from './guardian-main.ts';

/**
 * The process that ends a run when its wrapper cannot. It is there before the command is, and told of everything
 * before it happens; should it be killed itself, another takes its place.
 */
export class Guardian {
  #process: ChildProcess;
  #watched: Watched;

  /** @throws CommandError: without a guardian nothing is to be run. */
  constructor(watched: Watched) {
    this.#watched = watched;
    this.#process = this.#start();
    if (this.#process.pid === undefined) {
      throw new CommandError('the guardian process cannot be started', EXIT.failed);
    }
  }

  tell(change: Partial<Watched>): void {
    this.#watched = { ...this.#watched, ...change };
    this.#process.stdin!.write(`${JSON.stringify(this.#watched)}\n`);
  }

  /** The run is over: it need not be waited for. */
  dismiss(): void {
    if (this.#watched.done) return;
    this.tell({ done: true });
    this.#process.stdin!.end();
    this.#process.unref();
  }

  #start(): ChildProcess {
    const isSource = import.meta.url.endsWith('.ts');
    const entry = fileURLToPath(
      new URL(isSource ? './guardian-main.ts' : './guardian-main.js', import.meta.url),
    );
    const child = spawn(process.execPath, [...(isSource ? process.execArgv : []), entry], {
      detached: true, // What a terminal sends to the wrapper's group is not for it.
      stdio: ['pipe', 'ignore', 'ignore'],
      cwd: '/',
      env: {}, // Not the mark of an outer run.
    });
    child.on('error', () => {});
    child.stdin!.on('error', () => {});
    child.on('exit', () => {
      if (this.#watched.done) return;
      this.#process = this.#start();
      this.tell({});
    });
    child.stdin!.write(`${JSON.stringify(this.#watched)}\n`);
    return child;
  }
}
