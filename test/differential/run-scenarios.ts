import { startServer } from '../../src/server/start-server.ts';
import { startZooKeeper } from '../support/zookeeper-process.ts';
import { compare, type Difference, type Servers } from './compare.ts';
import { isOnRoot } from './scenario.ts';

const TICK_MS = 500;
const TIMEOUT_MS_MIN = 1_000;
const TIMEOUT_MS_MAX = 60_000;
/** Long after the last scenario: when containers go is a matter of time, not of the protocol. */
const REAP_MS = 3_600_000;
/** Of super:admin. */
const SUPER_DIGEST = 'super:xQJmxLMiHGwaqBvst5y6rkB6HQs=';
const AT_A_TIME = 24;

/** Both servers with the same settings and an empty tree. */
export async function startBoth(): Promise<Servers & AsyncDisposable> {
  const real = await startZooKeeper({
    tickTimeMs: TICK_MS,
    minSessionTimeoutMs: TIMEOUT_MS_MIN,
    maxSessionTimeoutMs: TIMEOUT_MS_MAX,
    containerCheckIntervalMs: REAP_MS,
    superDigest: SUPER_DIGEST,
    jvmFlags: ['-Xmx512m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1'],
  });
  const embedded = await startServer({
    limits: {
      tickMs: TICK_MS,
      sessionTimeoutMsMin: TIMEOUT_MS_MIN,
      sessionTimeoutMsMax: TIMEOUT_MS_MAX,
      reapMs: REAP_MS,
    },
    superDigest: SUPER_DIGEST,
  });
  return {
    real,
    embedded,
    async [Symbol.asyncDispose]() {
      await embedded.stop();
      await real[Symbol.asyncDispose]();
    },
  };
}

export interface Summary {
  readonly scenarios: number;
  readonly steps: number;
  readonly differences: readonly Difference[];
}

export interface RunOptions {
  readonly firstSeed: number;
  readonly scenarios: number;
  /** Stops looking after this many. */
  readonly differencesMax?: number;
  readonly onProgress?: (done: number) => void;
}

/** Those on the root one after another, then the others side by side: each has a part of the tree to itself. */
export async function runScenarios(servers: Servers, options: RunOptions): Promise<Summary> {
  const { firstSeed, scenarios, differencesMax = 1 } = options;
  const seeds = Array.from({ length: scenarios }, (_, index) => firstSeed + index);
  const differences: Difference[] = [];
  let done = 0;
  let steps = 0;
  const work = async (queue: number[]) => {
    for (let seed = queue.shift(); seed !== undefined; seed = queue.shift()) {
      if (differences.length >= differencesMax) return;
      const result = await compare(servers, seed);
      steps += result.steps;
      if (result.difference) differences.push(result.difference);
      done++;
      options.onProgress?.(done);
    }
  };
  await work(seeds.filter(isOnRoot));
  const rest = seeds.filter((seed) => !isOnRoot(seed));
  await Promise.all(Array.from({ length: AT_A_TIME }, () => work(rest)));
  differences.sort((a, b) => a.scenario.seed - b.scenario.seed);
  return { scenarios: done, steps, differences };
}
