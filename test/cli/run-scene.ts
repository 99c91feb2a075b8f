import { readdirSync, readFileSync } from 'node:fs';
import { isTreeAlive } from '../../src/cli/run/process-tree.ts';
import { connect, type Holdfast } from '../../src/holdfast.ts';
import { startTestServer, type TestServer } from '../../src/testing.ts';
import { until } from '../support/until.ts';
import { type CommandProcess, holdfast } from './command-process.ts';

/** Short enough for a test to see it end, and long enough for a machine that stalls for a second. */
export const SHORT_SESSION = ['--session-timeout', '4s'];

/** Half a minute: long enough for every test, and not for ever if one fails. */
const FOR_LONG = 'for i in $(seq 150); do sleep 0.2; done';

/** A command that tells its mark, forks one that shuns its group, and refuses to end unless it is killed. */
export const STUBBORN = [
  'sh',
  '-c',
  `trap '' TERM INT HUP
   (${FOR_LONG}) &
   setsid sh -c '${FOR_LONG}' &
   echo "mark=$HOLDFAST_RUN."
   ${FOR_LONG}`,
];

/** A server, a client that looks on, and `holdfast run` with that server. */
export class RunScene implements AsyncDisposable {
  readonly server: TestServer;
  readonly onlooker: Holdfast;
  readonly #runs: CommandProcess[] = [];

  private constructor(server: TestServer, onlooker: Holdfast) {
    this.server = server;
    this.onlooker = onlooker;
  }

  static async open(): Promise<RunScene> {
    const server = await startTestServer();
    return new RunScene(server, await connect({ servers: server.connectString }));
  }

  run(args: readonly string[], options: { readonly stdin?: string | 'open' } = {}): CommandProcess {
    const run = holdfast(['run', ...args], {
      ...options,
      env: { HOLDFAST_SERVERS: this.server.connectString },
    });
    this.#runs.push(run);
    return run;
  }

  /** The session that holds a lock. */
  async sessionOf(lock: string): Promise<bigint> {
    const { holders } = await this.onlooker.inspect(lock);
    return holders[0]!.session;
  }

  /** Waits until so many hold a lock, or wait for it. */
  async counts(lock: string, who: 'holders' | 'queue', count: number): Promise<void> {
    await until(
      `${count} ${who} of ${lock}`,
      async () => (await this.onlooker.inspect(lock))[who].length === count,
    );
  }

  async isFree(lock: string): Promise<boolean> {
    const { holders, queue } = await this.onlooker.inspect(lock);
    return holders.length + queue.length === 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const run of this.#runs) await run[Symbol.asyncDispose]();
    await this.onlooker.close();
    await this.server.stop();
  }
}

/** Whether anything that was started under that mark is alive, wherever it is by now. */
export function isAnyAlive(mark: string): boolean {
  return isTreeAlive({ mark, pid: undefined, ownGroup: false });
}

/** The mark that a stubborn command has told. */
export async function markOf(run: CommandProcess): Promise<string> {
  await run.says(/mark=(.*)\./);
  return /mark=(.*)\./.exec(run.stdout)![1]!;
}

/** The processes that a run has started itself: its command and its guardian. */
export function childrenOf(pid: number): { pid: number; command: string }[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const parent = readFileSync(`/proc/${name}/stat`, 'utf8')
        .replace(/^.*\) /s, '')
        .split(' ')[1];
      const command = readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ');
      return Number(parent) === pid ? [{ pid: Number(name), command }] : [];
    } catch {
      return [];
    }
  });
}
