import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { freePorts } from '../support/free-port.ts';

const serverFile = new URL('./server-process.ts', import.meta.url).pathname;
const execArgv = ['--import', 'tsx'];

/**
 * A command that runs another in process, mount, network and host name spaces of its own, as a container does. The
 * folders are the same. What it runs is process 1, and ends with it.
 */
export const IN_CONTAINER = [
  'unshare',
  ...(process.getuid?.() === 0 ? [] : ['--user', '--map-root-user']),
  ...['--pid', '--fork', '--kill-child', '--mount', '--mount-proc', '--net', '--uts', '--'],
];

/** A durable server in a process of its own, to be killed. */
export class DurableServer {
  readonly process: ChildProcess;
  readonly port: number;
  readonly #exited: Promise<unknown>;

  private constructor(process: ChildProcess, port: number) {
    this.process = process;
    this.port = port;
    this.#exited = once(process, 'exit');
  }

  /** Begins to start one, and does not wait for it. */
  static fork(
    folder: string,
    options: { readonly port: number; readonly logBytesMax: number },
  ): DurableServer {
    const { port, logBytesMax } = options;
    const child = fork(serverFile, [folder, String(port), String(logBytesMax)], { execArgv });
    return new DurableServer(child, port);
  }

  /** Starts one as a container would. It can be reached from within only. */
  static async startInContainer(folder: string, { logBytesMax }: { readonly logBytesMax: number }) {
    const [command, ...args] = IN_CONTAINER as [string, ...string[]];
    const server = [process.execPath, ...execArgv, serverFile, folder, '0', String(logBytesMax)];
    const child = spawn(command, [...args, ...server], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    return DurableServer.#listening(new DurableServer(child, 0));
  }

  static async start(
    folder: string,
    { port, logBytesMax }: { readonly port?: number; readonly logBytesMax: number },
  ): Promise<DurableServer> {
    const [free] = port === undefined ? await freePorts(1) : [port];
    return DurableServer.#listening(DurableServer.fork(folder, { port: free!, logBytesMax }));
  }

  static async #listening(server: DurableServer): Promise<DurableServer> {
    const [message] = (await Promise.race([once(server.process, 'message'), server.#exited])) as [unknown];
    const { error } = (message ?? {}) as { error?: { code?: string; message: string } };
    if (error) throw Object.assign(new Error(error.message), error);
    if (typeof message !== 'object') throw new Error(`the server ended with ${String(message)}`);
    return server;
  }

  get connectString(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** Resolves when it is gone, and with it every call to the system that it was in. */
  async kill(): Promise<void> {
    this.process.kill('SIGKILL');
    await this.#exited;
  }
}
