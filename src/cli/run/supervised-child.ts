import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { getSystemErrorMap } from 'node:util';
import { type Cancel, systemClock } from '../../base/clock.ts';
import { CommandError } from '../command-error.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import {
  isGroupAlive,
  isTreeAlive,
  MARK_VARIABLE,
  type ProcessTree,
  signalGroup,
  signalTree,
} from './process-tree.ts';
import { exitCodeOfSignal } from './signal-inbox.ts';

const POLL_MS = 10;
/** A process that is stuck in the kernel does not end when it is killed; nor can it do anything. */
const KILL_MS_MAX = 5_000;
/** As shells have it: where these are the reason, there is no such command. Otherwise it is there, and cannot be run. */
const NOT_FOUND = new Set(['ENOENT', 'ENOTDIR', 'ENAMETOOLONG', 'ELOOP']);
/** So much of a command's name is shown: a whole script that was quoted by mistake is a name too. */
const SHOWN_MAX = 200;

/** The command that runs under the lock, with everything it starts. */
export class SupervisedChild {
  readonly tree: ProcessTree;
  readonly #exitCode: Promise<ExitCode>;
  /** What is being ended by us: the group, or also what has left it. */
  #ending: 'group' | 'tree' | undefined;
  #killAtMs = Number.POSITIVE_INFINITY;
  readonly #stoppedBy = new Set<string>();
  #cancelKill: Cancel = () => {};
  #killedAtMs = Number.POSITIVE_INFINITY;

  private constructor(child: ChildProcess, tree: ProcessTree) {
    this.tree = tree;
    this.#exitCode = new Promise((resolve) => {
      child.once('exit', (code, signal) => resolve(signal ? exitCodeOfSignal(signal) : code!));
    });
  }

  /**
   * Starts the command: in a session and group of its own, or in ours, with the terminal. `onSpawn` is called before
   * anything else can happen to this process: from then on a signal can be passed on to the command.
   *
   * @throws CommandError 126 or 127, when it cannot be.
   */
  static async start(
    [program, ...args]: readonly [string, ...string[]],
    options: { readonly env: NodeJS.ProcessEnv; readonly mark: string; readonly foreground: boolean },
    onSpawn: (child: SupervisedChild) => void,
  ): Promise<SupervisedChild> {
    const { env, mark, foreground } = options;
    const marks = env[MARK_VARIABLE] === undefined ? mark : `${env[MARK_VARIABLE]}:${mark}`;
    openOwnStreams();
    const child = spawnNow(program, args, {
      stdio: 'inherit',
      detached: !foreground,
      env: { ...env, [MARK_VARIABLE]: marks },
    });
    const supervised = new SupervisedChild(child, { mark, pid: child.pid, ownGroup: !foreground });
    onSpawn(supervised);
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', (error: NodeJS.ErrnoException) => reject(cannotRun(program, error)));
    });
    return supervised;
  }

  /** How the command ended, as a shell would say it. */
  get exitCode(): Promise<ExitCode> {
    return this.#exitCode;
  }

  get isGroupAlive(): boolean {
    return isGroupAlive(this.tree);
  }

  passOn(signal: NodeJS.Signals): void {
    signalGroup(this.tree, signal);
  }

  /** Stops it for a reason; it goes on when no reason is left. */
  pause(reason: string): void {
    if (this.#ending) return;
    this.#stoppedBy.add(reason);
    this.#signalAll('SIGSTOP');
  }

  resume(reason: string): void {
    if (!this.#stoppedBy.delete(reason) || this.#stoppedBy.size > 0) return;
    this.#signalAll('SIGCONT');
  }

  /** Asks everything of the run to end, also what has left the group, and kills what has not when the time is up. */
  end(graceMs: number): void {
    this.#end('tree', graceMs);
  }

  /** The same for what the command has left behind in its group. What has left the group is none of our business then. */
  endGroup(graceMs: number): void {
    this.#end('group', graceMs);
  }

  kill(): void {
    this.#kill('tree');
  }

  /** Resolves when nothing that was to be ended is left; what is left of what was killed is killed again. */
  async gone(): Promise<void> {
    while (this.#isLeft) {
      if (systemClock.nowMs() > this.#killedAtMs + KILL_MS_MAX) return;
      if (this.#killed) this.#signalEnding('SIGKILL');
      await new Promise<void>((resolve) => systemClock.at(systemClock.nowMs() + POLL_MS, resolve));
    }
    this.#cancelKill();
  }

  get #isLeft(): boolean {
    if (this.#ending === 'tree') return isTreeAlive(this.tree);
    return this.tree.ownGroup && isGroupAlive(this.tree);
  }

  get #killed(): boolean {
    return this.#killedAtMs !== Number.POSITIVE_INFINITY;
  }

  #end(scope: 'group' | 'tree', graceMs: number): void {
    if (this.#killed) return;
    if (this.#ending !== scope) {
      this.#ending = scope;
      this.#signalEnding('SIGTERM');
      this.#signalEnding('SIGCONT'); // One that is stopped would not hear of it.
    }
    const killAtMs = systemClock.nowMs() + graceMs;
    if (killAtMs >= this.#killAtMs) return; // Nothing that comes later gives it more time.
    this.#killAtMs = killAtMs;
    this.#cancelKill();
    this.#cancelKill = systemClock.at(killAtMs, () => this.#kill(this.#ending ?? scope));
  }

  #kill(scope: 'group' | 'tree'): void {
    this.#ending = scope;
    this.#killedAtMs = Math.min(this.#killedAtMs, systemClock.nowMs());
    this.#cancelKill();
    this.#signalEnding('SIGKILL');
  }

  #signalEnding(signal: NodeJS.Signals): void {
    if (this.#ending === 'tree') signalTree(this.tree, signal);
    else signalGroup(this.tree, signal);
  }

  #signalAll(signal: NodeJS.Signals): void {
    if (this.tree.ownGroup) signalGroup(this.tree, signal);
    else signalTree(this.tree, signal);
  }
}

/**
 * Node makes a pipe non-blocking when it opens its own end, which it does as late as when some socket is closed. The
 * command has the same pipe: its writes would fail when it is full. Opened before, it is made blocking by the start.
 */
function openOwnStreams(): void {
  void process.stdout;
  void process.stderr;
}

/** Node tells a few of the reasons by an event, and throws the others. */
function spawnNow(program: string, args: readonly string[], options: SpawnOptions): ChildProcess {
  try {
    return spawn(program, args, options);
  } catch (error) {
    throw cannotRun(program, error as NodeJS.ErrnoException);
  }
}

function cannotRun(program: string, error: NodeJS.ErrnoException): CommandError {
  const name = program.length > SHOWN_MAX ? `${program.slice(0, SHOWN_MAX)}…` : program;
  const exitCode = NOT_FOUND.has(error.code ?? '') ? EXIT.noSuchCommand : EXIT.notExecutable;
  return new CommandError(`${name}: ${reasonOf(error)}`, exitCode, { cause: error });
}

function reasonOf({ code, errno, message }: NodeJS.ErrnoException): string {
  if (code === 'ENOENT') return 'command not found';
  return getSystemErrorMap().get(errno ?? 0)?.[1] ?? message;
}
