import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { freePorts } from '../support/free-port.ts';

const serverFile = new URL('./server-process.ts', import.meta.url).pathname;

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
    const child = fork(serverFile, [folder, String(port), String(logBytesMax)], {
      execArgv: ['--import', 'tsx'],
    });
    return new DurableServer(child, port);
  }

  static async start(
    folder: string,
    { port, logBytesMax }: { readonly port?: number; readonly logBytesMax: number },
  ): Promise<DurableServer> {
    const [free] = port === undefined ? await freePorts(1) : [port];
    const server = DurableServer.fork(folder, { port: free!, logBytesMax });
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
