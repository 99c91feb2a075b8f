import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { extname } from 'node:path';
import { orAbort } from '../../base/abort.ts';
import { deferred } from '../../base/deferred.ts';
import type { MemberMessage, StageMessage } from './member-messages.ts';

type MessageOf<Kind extends MemberMessage['kind']> = Extract<MemberMessage, { kind: Kind }>;

/** The stage's view of one program in a process of its own. */
export class Member implements AsyncDisposable {
  readonly name: string;
  readonly #child: ChildProcess;
  readonly #signal: AbortSignal;
  readonly #listeners = new Set<(message: MemberMessage) => void>();

  constructor(name: string, signal: AbortSignal) {
    this.name = name;
    this.#signal = signal;
    // The same file beside this one, as it is: .ts from the sources, .js as built.
    const file = new URL(`./member-process${extname(import.meta.url)}`, import.meta.url);
    this.#child = fork(file, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
    this.#child.on('message', (message: MemberMessage) => {
      for (const listener of [...this.#listeners]) listener(message);
    });
    this.#child.on('error', () => {}); // A message to one that was killed.
  }

  get pid(): number {
    return this.#child.pid!;
  }

  on(listener: (message: MemberMessage) => void): void {
    this.#listeners.add(listener);
  }

  tell(message: StageMessage): void {
    if (this.#child.connected) this.#child.send(message, () => {});
  }

  kill(signal: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): void {
    this.#child.kill(signal);
  }

  /** The next message of that kind from now on; rejects if the program fails or ends instead. */
  async next<Kind extends MemberMessage['kind']>(kind: Kind): Promise<MessageOf<Kind>> {
    const heard = deferred<MessageOf<Kind>>();
    const listener = (message: MemberMessage) => {
      if (message.kind === kind) heard.resolve(message as MessageOf<Kind>);
      else if (message.kind === 'failed') heard.reject(new Error(`${this.name}: ${message.message}`));
    };
    const onExit = () => heard.reject(new Error(`${this.name}: its process ended`));
    this.#listeners.add(listener);
    this.#child.once('exit', onExit);
    try {
      return await orAbort(heard.promise, this.#signal);
    } finally {
      this.#listeners.delete(listener);
      this.#child.off('exit', onExit);
    }
  }

  /** Ends the process, stopped or not, and waits until it is gone. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }
}
