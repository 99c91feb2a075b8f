// What the servers are asked to do: the same sessions and the same client for each of them.
import { connect, type ZooKeeper } from 'holdfast/zookeeper';

const SESSION_COUNT = 8;
const SESSION_TIMEOUT_MS = 30_000;
const DATA = Buffer.alloc(100, 'x');
const ROOT = '/bench';

/** How much was done, in how long, and how busy the client was with it. */
export interface Outcome {
  readonly count: number;
  readonly elapsedMs: number;
  readonly clientCpuMs: number;
}

/** One thing that is done over and over. */
export interface Scenario {
  readonly name: string;
  /** How many tasks are under way at any time, spread evenly over the sessions. */
  readonly width: number;
  perform(session: BenchSession, turn: number): Promise<unknown>;
}

/** A session with a lock's folder and a data node of its own. */
interface BenchSession {
  readonly zk: ZooKeeper;
  readonly lockFolder: string;
  readonly dataNode: string;
}

/** What an uncontended lock costs: join the queue, look who is in it, leave. */
async function lockCycle({ zk, lockFolder }: BenchSession): Promise<void> {
  const { path } = await zk.create(`${lockFolder}/lock-`, '', { mode: 'ephemeral-sequential' });
  await zk.children(lockFolder);
  await zk.delete(path);
}

export const scenarios: readonly Scenario[] = [
  { name: 'lock cycles, 1 task', width: 1, perform: lockCycle },
  { name: 'lock cycles, 8 tasks', width: 8, perform: lockCycle },
  { name: 'lock cycles, 64 tasks', width: 64, perform: lockCycle },
  { name: 'writes, 64 tasks', width: 64, perform: ({ zk, dataNode }) => zk.set(dataNode, DATA) },
  { name: 'reads, 64 tasks', width: 64, perform: ({ zk, dataNode }) => zk.get(dataNode) },
  {
    name: 'nine reads to a write, 64 tasks',
    width: 64,
    perform: ({ zk, dataNode }, turn) => (turn % 10 === 0 ? zk.set(dataNode, DATA) : zk.get(dataNode)),
  },
];

/** The sessions that load one server. */
export class Workload implements AsyncDisposable {
  readonly #sessions: readonly BenchSession[];

  private constructor(sessions: readonly BenchSession[]) {
    this.#sessions = sessions;
  }

  static async open(connectString: string): Promise<Workload> {
    const sessions: BenchSession[] = [];
    for (let index = 0; index < SESSION_COUNT; index++) {
      const zk = await connect(connectString, { sessionTimeoutMs: SESSION_TIMEOUT_MS });
      const lockFolder = `${ROOT}/locks-${index}`;
      const dataNode = `${ROOT}/data-${index}`;
      await zk.ensurePath(lockFolder);
      await zk.create(dataNode, DATA);
      sessions.push({ zk, lockFolder, dataNode });
    }
    return new Workload(sessions);
  }

  async run({ width, perform }: Scenario, durationMs: number): Promise<Outcome> {
    const cpu = process.cpuUsage();
    const startedAtMs = performance.now();
    const endAtMs = startedAtMs + durationMs;
    let count = 0;
    await Promise.all(
      Array.from({ length: width }, async (_, task) => {
        const session = this.#sessions[task % this.#sessions.length]!;
        for (let turn = task; performance.now() < endAtMs; turn++) {
          await perform(session, turn);
          count++;
        }
      }),
    );
    const elapsedMs = performance.now() - startedAtMs;
    const { user, system } = process.cpuUsage(cpu);
    return { count, elapsedMs, clientCpuMs: (user + system) / 1000 };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#sessions.map(({ zk }) => zk.close()));
  }
}
