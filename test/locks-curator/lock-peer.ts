import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { type Deferred, deferred } from '../../src/base/deferred.ts';
import { javaArguments } from '../foreign-clients/java-program.ts';
import { Program } from '../foreign-clients/run-program.ts';
import type { Hold } from './lock-history.ts';

const SESSION_TIMEOUT_MS = 15_000;
const LIFETIME_MS = 120_000;

/** The locks that peers know. `write-lock` is ZooKeeper's own recipe, `default-lock` kazoo's with its default names. */
export type PeerLock =
  | 'mutex'
  | 'revocable'
  | 'read'
  | 'write'
  | 'semaphore'
  | 'semaphore-mutex'
  | 'multi'
  | 'write-lock'
  | 'default-lock';

/** A lock that a peer holds. */
export interface PeerGrant {
  /** By the machine's monotonic clock, which all programs share. */
  readonly enteredNs: bigint;
  /** The transaction that made the node: what Holdfast calls the token. */
  readonly token: bigint;
  /** The name of the node. */
  readonly node: string;
}

/** A program in another language that takes locks when told to: one line asks, one line answers. */
export class LockPeer implements AsyncDisposable {
  readonly #language: string;
  readonly #program: Program;
  readonly #asked = new Map<string, Deferred<string>>();
  #count = 0;
  /** Set once it has. */
  #ended: Error | undefined;

  private constructor(language: string, command: string, args: readonly string[]) {
    this.#language = language;
    this.#program = new Program(command, args, { timeoutMs: LIFETIME_MS });
    const { child } = this.#program;
    createInterface({ input: child.stdout! }).on('line', (line) => this.#answered(line));
    child.once('close', () => {
      this.#ended = new Error(`${command} has ended; it said:\n${this.#program.said}`);
      for (const answer of this.#asked.values()) answer.reject(this.#ended);
    });
  }

  /** Java, with Curator as Debian packages it. */
  static async curator(): Promise<LockPeer> {
    return new LockPeer('java', 'java', await javaArguments(new URL('./CuratorPeer.java', import.meta.url)));
  }

  /** Debian's Python by its full name: another one that comes first on the PATH does not have kazoo. */
  static kazoo(): LockPeer {
    return new LockPeer('python', '/usr/bin/python3', [
      fileURLToPath(new URL('./kazoo-peer.py', import.meta.url)),
    ]);
  }

  /** A client with a session of its own. */
  async client(
    servers: string,
    options: { readonly sessionTimeoutMs?: number; readonly namespace?: string } = {},
  ): Promise<PeerClient> {
    const name = `${this.#language}-${++this.#count}`;
    const ask = (...words: readonly (string | number)[]) => this.#ask(name, words);
    const { sessionTimeoutMs = SESSION_TIMEOUT_MS, namespace = '' } = options;
    const session = await ask('connect', servers, sessionTimeoutMs, namespace);
    return new PeerClient(name, BigInt(session), ask);
  }

  /** Ends the program as a crash would: no session is closed. */
  async kill(): Promise<void> {
    const { child } = this.#program;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#program[Symbol.asyncDispose]();
  }

  #ask(client: string, words: readonly (string | number)[]): Promise<string> {
    const number = String(++this.#count);
    const answer = deferred<string>();
    answer.promise.catch(() => {}); // Nobody need wait for what a killed program does not answer.
    if (this.#ended) answer.reject(this.#ended);
    this.#asked.set(number, answer);
    this.#program.say([number, client, ...words].join(' '));
    return answer.promise;
  }

  #answered(line: string): void {
    const [, number = '', outcome, what = ''] = /^(\d+) (ok|error) ?(.*)$/.exec(line) ?? [];
    const answer = this.#asked.get(number);
    this.#asked.delete(number);
    if (outcome === 'ok') answer?.resolve(what);
    else answer?.reject(new Error(what));
  }
}

/** One session of a peer, and one thread: it does one thing after another. */
export class PeerClient {
  readonly name: string;
  readonly session: bigint;
  readonly ask: (...words: readonly (string | number)[]) => Promise<string>;

  constructor(name: string, session: bigint, ask: PeerClient['ask']) {
    this.name = name;
    this.session = session;
    this.ask = ask;
  }

  async clockNs(): Promise<bigint> {
    return BigInt(await this.ask('clock'));
  }

  /** Resolves when the peer holds the lock. `argument`: leases of a semaphore, the other path of a multi-lock. */
  async acquire(kind: PeerLock, path: string, argument: string | number = ''): Promise<PeerGrant> {
    const [enteredNs, token, node] = (await this.ask('acquire', kind, path, argument)).split(' ');
    return { enteredNs: BigInt(enteredNs!), token: BigInt(token!), node: node! };
  }

  /** Resolves with the last moment at which the peer held it. */
  async release(kind: PeerLock): Promise<bigint> {
    return BigInt(await this.ask('release', kind));
  }

  /** Takes and releases a lock so many times, as `cycle` of `lock-history.ts` does. */
  async cycle(
    kind: PeerLock,
    path: string,
    options: { readonly rounds: number; readonly counter: string; readonly leases?: number },
  ): Promise<Hold[]> {
    const answer = await this.ask('cycle', kind, path, options.leases ?? 0, options.rounds, options.counter);
    return answer.split(' ').map((hold) => {
      const [enteredNs, leftNs, token] = hold.split(':').map(BigInt);
      return {
        who: this.name,
        shared: kind === 'read',
        enteredNs: enteredNs!,
        leftNs: leftNs!,
        token: token!,
      };
    });
  }
}
