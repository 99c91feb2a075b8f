import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { open, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';

const STOP_TIMEOUT_MS = 10_000;

/** What a test run that ends without disposing would leave behind. */
const leftovers = { children: new Set<ChildProcess>(), folders: new Set<string>() };
process.once('exit', () => {
  for (const child of leftovers.children) child.kill('SIGKILL');
  for (const folder of leftovers.folders) rmSync(folder, { recursive: true, force: true });
});

/** A server that is no ZooKeeper, in a folder of its own that goes with it. */
export class ServerChild implements AsyncDisposable {
  readonly folder: string;
  readonly #child: ChildProcess;

  private constructor(folder: string, child: ChildProcess) {
    this.folder = folder;
    this.#child = child;
  }

  /** `command` goes through `setpriv`: the kernel ends it when the test runner is killed. */
  static async start(
    folder: string,
    command: readonly string[],
    privileges: readonly string[] = [],
  ): Promise<ServerChild> {
    leftovers.folders.add(folder);
    const log = await open(join(folder, 'server.log'), 'a');
    try {
      const child = spawn('setpriv', [...privileges, '--pdeathsig', 'KILL', ...command], {
        cwd: folder,
        stdio: ['ignore', log.fd, log.fd],
      });
      await once(child, 'spawn');
      leftovers.children.add(child);
      return new ServerChild(folder, child);
    } finally {
      await log.close();
    }
  }

  /** `setpriv` replaces itself by the server, so this is the server's. */
  get pid(): number {
    return this.#child.pid!;
  }

  get exited(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  log(): Promise<string> {
    return readFile(join(this.folder, 'server.log'), 'utf8');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.exited) {
      this.#child.kill('SIGTERM'); // PostgreSQL lets its clients go first, so that none is cut off.
      const overdue = setTimeout(() => this.#child.kill('SIGKILL'), STOP_TIMEOUT_MS);
      await once(this.#child, 'exit');
      clearTimeout(overdue);
    }
    leftovers.children.delete(this.#child);
    await rm(this.folder, { recursive: true, force: true });
    leftovers.folders.delete(this.folder);
  }
}
