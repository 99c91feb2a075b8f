import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Cancel, systemClock } from '../../base/clock.ts';
import { CommandError } from '../command-error.ts';
import { EXIT } from '../exit-codes.ts';
import type { Watched } from './guardian-main.ts';

/** How long after each death that came early the next one is started. When they are used up, no more are. */
const DELAYS_MS = [0, 50, 200, 800];
/** One that lived this long did not fail to start: it was killed. */
const EARLY_MS = 5_000;
const isSource = import.meta.url.endsWith('.ts');
const ENTRY = fileURLToPath(new URL(isSource ? './guardian-main.ts' : './guardian-main.js', import.meta.url));

/**
 * The process that ends a run when its wrapper cannot. It is there before the command is, and told of everything
 * before it happens; should it be killed itself, another takes its place. Where none stays, as after the package was
 * removed under a run, `onFailure` says so, once: the command must not go on then.
 */
export class Guardian {
  readonly #entry: string;
  readonly #onFailure: (why: string) => void;
  #process: ChildProcess;
  #watched: Watched;
  #startedAtMs = 0;
  #earlyDeaths = 0;
  #cancelStart: Cancel = () => {};
  #failure: string | undefined;

  /** @throws CommandError: without a guardian nothing is to be run. */
  constructor(watched: Watched, onFailure: (why: string) => void, entry = ENTRY) {
    this.#watched = watched;
    this.#onFailure = onFailure;
    this.#entry = entry;
    if (!existsSync(entry)) {
      throw new CommandError(`the guardian process cannot be started: ${entry} is not there`, EXIT.internal);
    }
    this.#process = this.#start();
    if (this.#process.pid === undefined) {
      this.#watched = { ...watched, done: true };
      throw new CommandError(
        `the guardian process cannot be started by ${process.execPath}; nothing is run without it`,
        EXIT.internal,
      );
    }
  }

  /** Why there is no guardian any more; undefined while there is one, or will be in a moment. */
  get failure(): string | undefined {
    return this.#failure;
  }

  tell(change: Partial<Watched>): void {
    this.#watched = { ...this.#watched, ...change };
    this.#process.stdin!.write(`${JSON.stringify(this.#watched)}\n`);
  }

  /** The run is over: it need not be waited for. */
  dismiss(): void {
    if (this.#watched.done) return;
    this.#cancelStart();
    this.tell({ done: true });
    this.#process.stdin!.end();
    this.#process.unref();
  }

  #start(): ChildProcess {
    this.#startedAtMs = systemClock.nowMs();
    const child = spawn(process.execPath, [...(isSource ? process.execArgv : []), this.#entry], {
      detached: true, // What a terminal sends to the wrapper's group is not for it.
      stdio: ['pipe', 'ignore', 'ignore'],
      cwd: '/',
      // Not the mark of an outer run. What is to be watched comes with the process itself: the wrapper may be killed
      // right after it, and before it has written anything.
      env: { ...pick(process.env, 'LD_LIBRARY_PATH'), HOLDFAST_WATCHED: JSON.stringify(this.#watched) },
    });
    let over = false;
    const ended = (how: string) => {
      if (over) return;
      over = true;
      this.#ended(how);
    };
    child.on('error', (error) => ended(error.message));
    child.stdin!.on('error', () => {});
    child.on('exit', (code, signal) => ended(signal ?? `exit code ${code}`));
    return child;
  }

  #ended(how: string): void {
    if (this.#watched.done) return;
    const early = systemClock.nowMs() - this.#startedAtMs < EARLY_MS;
    this.#earlyDeaths = early ? this.#earlyDeaths + 1 : 1;
    const delayMs = DELAYS_MS[this.#earlyDeaths - 1];
    if (delayMs === undefined) {
      this.#failure = `the guardian process does not stay (${how})`;
      this.#onFailure(this.#failure);
      return;
    }
    this.#cancelStart = systemClock.at(systemClock.nowMs() + delayMs, () => {
      this.#process = this.#start();
    });
  }
}

function pick(env: NodeJS.ProcessEnv, name: string): NodeJS.ProcessEnv {
  return env[name] === undefined ? {} : { [name]: env[name] };
}
