import { cp, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { checkHistory, type Verdict } from '../../simulation/checker/checker.ts';
import { decodeHistory, type HistoryEvent, type RemainingNode } from '../../simulation/checker/history.ts';
import { seededRandom } from '../../src/testing.ts';
import { connect, isServerError, ops, type ZooKeeper } from '../../src/zookeeper.ts';
import { until } from '../support/until.ts';
import { startEnsemble, type ZooKeeperEnsemble } from '../support/zookeeper-ensemble.ts';
import { killChild, startChild } from './child-process.ts';
import { beginFault, type Victims } from './faults.ts';
import { faultPlan, type PlannedFault } from './plan.ts';
import { nowMs, Recorder } from './recorder.ts';
import { REGISTER_FOLDER } from './registers.ts';
import { CHROOT, CONTROL_LOCK, LOCKS } from './scene.ts';
import { Worker } from './worker.ts';

const WORKERS = 5;
const SESSION_TIMEOUT_MS = 3_000;
/** Between a fault's end and the next one there must be so many grants: everybody got on. */
const GRANTS_BETWEEN = 20;
const RECOVERY_TIMEOUT_MS = 60_000;
const SERVER_TIMEOUT_MS = 30_000;
const SERVER_TRIES_MAX = 3;
/** How long everything is well at the end before nobody asks for anything more. */
const CALM_MS = 3_000;
const DRAIN_TIMEOUT_MS = 30_000;
/** A process may be this late without saying that it stalled: a bit more than what it calls a stall. */
const LATENESS_MS = 250;

/** How a run is to be. */
export interface NemesisOptions {
  /** How long things go wrong. */
  readonly durationMs: number;
  readonly seed: number;
  /** A folder for the histories, which is there and empty. */
  readonly folder: string;
  readonly log: (line: string) => void;
}

/** What came of it. */
export interface NemesisResult {
  /** Of the locks. */
  readonly verdict: Verdict;
  /** Of the lock that is wrong: it must have been found out. */
  readonly control: Verdict;
  /** What stopped the run or went wrong in a worker, in words. Empty in a good run. */
  readonly failures: readonly string[];
}

/**
 * Real servers, real processes, and everything that can go wrong with them: a three-server ensemble, five workers with
 * two sessions each behind proxies, a resource that checks tokens, and a course of faults from a seed. Then everything is
 * made well, everybody must get on and finish, nothing may be left, and the checker judges what all have recorded.
 */
export async function runNemesis(options: NemesisOptions): Promise<NemesisResult> {
  const { folder, log } = options;
  const failures: string[] = [];
  const failed = (failure: string) => {
    failures.push(failure);
    log(`FAILED: ${failure}`);
  };
  await using ensemble = await startEnsemble({
    severable: true,
    tickTimeMs: 500,
    syncLimitTicks: 4,
    minSessionTimeoutMs: 1_000,
  });
  await using admin = await makeScene(ensemble);
  await using resource = await startResource(folder, failed);
  const random = seededRandom(options.seed);
  const recorder = new Recorder(join(folder, 'nemesis.jsonl'));
  const control = new Recorder(join(folder, 'nemesis.control.jsonl'));
  declareLocks(recorder, control);
  const place = {
    folder,
    servers: ensemble.servers,
    sessionTimeoutMs: SESSION_TIMEOUT_MS,
    resourcePort: resource.port,
    recorder,
    control,
    failed,
  };
  const making = Array.from({ length: WORKERS }, (_, slot) =>
    Worker.create(slot + 1, place, () => random.u32()),
  );
  const workers = await Promise.all(making);
  await using _workers = new AsyncDisposableStackOf(workers);
  for (const worker of workers) worker.start();
  await Promise.all(workers.map((worker) => worker.ready()));
  const run = new Run({ ensemble, workers, admin }, recorder, log);
  try {
    await run.progress();
    await run.faults(options.durationMs, faultPlan(random, SESSION_TIMEOUT_MS), () => failures.length > 0);
    await run.end();
  } catch (error) {
    failed(String((error as Error).stack ?? error));
    // What is still being written cannot be judged.
    await Promise.all(workers.map((worker) => worker[Symbol.asyncDispose]()));
  }
  const verdicts = await checkFolder(folder);
  if (failures.length > 0 || verdicts.verdict.violations.length > 0) await keepData(ensemble, folder);
  return { ...verdicts, failures };
}

/** What the servers have written down can be read with ZooKeeper's `TxnLogToolkit`: it tells who has deleted what. */
async function keepData({ servers }: ZooKeeperEnsemble, folder: string): Promise<void> {
  for (const [index, server] of servers.entries()) {
    await cp(server.dataFolder, join(folder, `server-${index + 1}`), { recursive: true });
  }
}

/** Judges the histories of a run that was kept. */
export async function checkFolder(folder: string): Promise<Pick<NemesisResult, 'verdict' | 'control'>> {
  const histories = await readHistories(folder);
  const limits = { latenessMs: LATENESS_MS, settleMsMax: DRAIN_TIMEOUT_MS };
  return { verdict: checkHistory(histories.locks, limits), control: checkHistory(histories.control, limits) };
}

class Run {
  readonly #victims: Victims;
  readonly #recorder: Recorder;
  readonly #log: (line: string) => void;
  #faultCount = 0;

  constructor(victims: Victims, recorder: Recorder, log: (line: string) => void) {
    this.#victims = victims;
    this.#recorder = recorder;
    this.#log = log;
  }

  /** Waits until the ensemble is whole and the workers have got on. */
  async progress(): Promise<void> {
    const { workers } = this.#victims;
    await this.#wholeEnsemble();
    const before = this.#grants();
    await until(
      `${GRANTS_BETWEEN} grants after a fault: ${before} so far, ${workers.map(({ grants }) => grants).join(' ')}`,
      () => this.#grants() >= before + GRANTS_BETWEEN,
      RECOVERY_TIMEOUT_MS,
    );
  }

  /**
   * Waits until all servers serve. One that does not come back is killed and started again, as an operator would do:
   * ZooKeeper 3.8 has a race that ends the thread that writes its log and leaves the rest of the server waiting for it.
   */
  async #wholeEnsemble(): Promise<void> {
    const { servers } = this.#victims.ensemble;
    for (let tries = 0; ; tries++) {
      const serving = servers.map((server) => server.waitUntilServing(SERVER_TIMEOUT_MS));
      const outcomes = await Promise.allSettled(serving);
      const failure = outcomes.find((outcome) => outcome.status === 'rejected');
      if (!failure) return;
      if (tries === SERVER_TRIES_MAX) throw failure.reason;
      const stuck = servers.filter((_, index) => outcomes[index]!.status === 'rejected');
      const atMs = nowMs();
      for (const server of stuck) {
        await server.kill();
        await server.start();
      }
      const target = stuck.map(({ connectString }) => connectString).join(' ');
      const fault = `f${++this.#faultCount}`;
      this.#log(`${fault} restart-stuck-server ${target}`);
      this.#recorder.record({ kind: 'fault-began', atMs, fault, what: 'restart-stuck-server', target });
      this.#recorder.record({ kind: 'fault-ended', atMs: nowMs(), fault });
    }
  }

  async faults(
    durationMs: number,
    plan: Generator<readonly PlannedFault[]>,
    stop: () => boolean,
  ): Promise<void> {
    const endMs = nowMs() + durationMs;
    for (const faults of plan) {
      if (nowMs() >= endMs || stop()) return;
      await Promise.all(faults.map((fault) => this.#strike(fault)));
      await this.progress();
    }
  }

  /** Everything is well: all must get on, and finish, and leave nothing. */
  async end(): Promise<void> {
    const { ensemble, workers, admin } = this.#victims;
    ensemble.heal();
    for (const worker of workers) worker.healNetwork();
    await this.progress();
    this.#recorder.record({ kind: 'healed', atMs: nowMs() });
    await delay(CALM_MS);
    await this.progress();
    this.#log('no more attempts');
    await Promise.all(workers.map((worker) => worker.drain(DRAIN_TIMEOUT_MS)));
    // Sessions of workers that were killed have ended by then, and their nodes with them.
    await delay(SESSION_TIMEOUT_MS);
    await this.#recordRemains(admin, ensemble);
    await Promise.all(workers.map((worker) => worker.close()));
  }

  async #strike(fault: PlannedFault): Promise<void> {
    const name = `f${++this.#faultCount}`;
    const { kind, holdMs } = fault;
    const atMs = nowMs();
    const begun = await beginFault(this.#victims, fault);
    const { target } = begun;
    this.#log(`${name} ${kind} ${target} for ${holdMs} ms; ${this.#grants()} grants`);
    this.#recorder.record({ kind: 'fault-began', atMs, fault: name, what: kind, target });
    await delay(holdMs);
    await begun.end();
    this.#recorder.record({ kind: 'fault-ended', atMs: nowMs(), fault: name });
  }

  /** What is there while all workers are connected and none wants anything; what is on its way out is waited for. */
  async #recordRemains(admin: ZooKeeper, ensemble: ZooKeeperEnsemble): Promise<void> {
    let nodes: RemainingNode[] = [];
    let others: string[] = [];
    const clean = async () => {
      nodes = await contenders(admin);
      others = [...(await batons(admin)), ...(await watches(ensemble))];
      return nodes.length + others.length === 0;
    };
    await until('nothing to be left', clean, 2 * SESSION_TIMEOUT_MS).catch(() => {}); // The checker tells what is.
    this.#recorder.record({ kind: 'remains', atMs: nowMs(), nodes, others });
  }

  #grants(): number {
    return this.#victims.workers.reduce((sum, { grants }) => sum + grants, 0);
  }
}

class AsyncDisposableStackOf implements AsyncDisposable {
  readonly #all: readonly AsyncDisposable[];
  constructor(all: readonly AsyncDisposable[]) {
    this.#all = all;
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#all.map((each) => each[Symbol.asyncDispose]()));
  }
}

async function makeScene(ensemble: ZooKeeperEnsemble): Promise<ZooKeeper> {
  await using maker = await connect(ensemble.connectString);
  await maker.create(CHROOT, '');
  await maker.create(`${CHROOT}${REGISTER_FOLDER}`, '');
  for (const lock of Object.keys(LOCKS)) await maker.create(`${CHROOT}${REGISTER_FOLDER}/${lock}`, '');
  return connect(`${ensemble.connectString}${CHROOT}`);
}

async function startResource(
  folder: string,
  failed: (failure: string) => void,
): Promise<{ readonly port: number } & AsyncDisposable> {
  const child = startChild('./resource-process.ts', join(folder, 'resource.jsonl'));
  let port = 0;
  const onExit = () => failed('the resource ended by itself');
  child.once('exit', onExit);
  child.once('message', (message: { port: number }) => {
    port = message.port;
  });
  await until('the resource to listen', () => port !== 0, RECOVERY_TIMEOUT_MS);
  const stop = () => {
    child.off('exit', onExit);
    return killChild(child);
  };
  return { port, [Symbol.asyncDispose]: stop };
}

function declareLocks(recorder: Recorder, control: Recorder): void {
  for (const [lock, facts] of Object.entries(LOCKS)) {
    recorder.record({ kind: 'lock', atMs: nowMs(), lock, ...facts });
  }
  control.record({ kind: 'lock', atMs: nowMs(), lock: CONTROL_LOCK, recipe: 'simple' });
}

async function contenders(admin: ZooKeeper): Promise<RemainingNode[]> {
  const ofLock = async (lock: string, path: string): Promise<RemainingNode[]> => {
    const stat = await admin.exists(path);
    if (!stat) return [];
    if (stat.ephemeralOwner !== 0n) {
      return (await isKnownToLeader(admin, path)) ? [{ lock, path, czxid: stat.czxid }] : [];
    }
    const names = await namesIn(admin, path);
    return (await Promise.all(names.map((name) => ofLock(lock, `${path}/${name}`)))).flat();
  };
  await admin.sync('/', { by: 'quorum' });
  return (await Promise.all(Object.keys(LOCKS).map((lock) => ofLock(lock, `/locks/${lock}`)))).flat();
}

/** Servers that were killed bring nodes back that nobody else has: those are not what anyone has left. */
async function isKnownToLeader(admin: ZooKeeper, path: string): Promise<boolean> {
  try {
    await admin.multi([ops.check(path)]);
    return true;
  } catch (error) {
    if (isServerError(error, 'no-node')) return false;
    throw error;
  }
}

async function batons(admin: ZooKeeper): Promise<string[]> {
  return (await namesIn(admin, '/holdfast/batons')).map((name) => `baton ${name}`);
}

/** A session watches the floor of tokens for as long as it lives. */
const FLOOR = `${CHROOT}/holdfast/token-floor`;

async function watches(ensemble: ZooKeeperEnsemble): Promise<string[]> {
  const answers = await Promise.all(ensemble.servers.map((server) => server.fourLetterWord('wchp')));
  const paths = answers
    .flatMap((answer) => answer.split('\n'))
    .filter((line) => line.startsWith(`${CHROOT}/`) && line !== FLOOR);
  return paths.map((path) => `a watch on ${path}`);
}

async function namesIn(admin: ZooKeeper, path: string): Promise<string[]> {
  try {
    return await admin.children(path);
  } catch (error) {
    if (isServerError(error, 'no-node')) return [];
    throw error;
  }
}

async function readHistories(folder: string): Promise<{ locks: HistoryEvent[]; control: HistoryEvent[] }> {
  const locks: HistoryEvent[] = [];
  const control: HistoryEvent[] = [];
  for (const name of await readdir(folder)) {
    if (!name.endsWith('.jsonl')) continue;
    const events = decodeHistory(await readFile(join(folder, name), 'utf8'));
    const whose = name.endsWith('.control.jsonl') ? control : locks;
    for (const event of events) whose.push(event);
  }
  return { locks, control };
}
