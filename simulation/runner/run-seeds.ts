// Runs seeds in processes of their own, as many as there are processors, and gathers what they report.
import { type ChildProcess, fork } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { Order, Report } from './worker.ts';

export interface SeedRun {
  readonly folder: string;
  readonly from: number;
  readonly count: number;
  readonly plan: object;
  /** No more are begun after so many failures. */
  readonly failuresMax: number;
  onProgress?(done: Totals): void;
}

/** What all seeds together came to. */
export interface Totals {
  seedCount: number;
  grantCount: number;
  stepCount: number;
  readonly failures: Report['failures'][number][];
  readonly reached: Map<string, number>;
  /** By seed. */
  readonly digests: Map<number, string>;
}

const CHUNK = 25;
const WORKERS_MAX = 2;
const workerPath = fileURLToPath(new URL('worker.ts', import.meta.url));

export async function runSeeds(run: SeedRun): Promise<Totals> {
  const totals: Totals = {
    ...{ seedCount: 0, grantCount: 0, stepCount: 0, failures: [] },
    ...{ reached: new Map(), digests: new Map() },
  };
  let next = run.from;
  const end = run.from + run.count;
  const takeOrder = (): Order | undefined => {
    if (next >= end || totals.failures.length >= run.failuresMax) return undefined;
    const from = next;
    next = Math.min(end, next + CHUNK);
    return { from, count: next - from, plan: run.plan };
  };
  const workerCount = Math.min(WORKERS_MAX, availableParallelism(), Math.ceil(run.count / CHUNK));
  await Promise.all(
    Array.from({ length: workerCount }, () =>
      employ(run.folder, takeOrder, (order, report) => {
        add(totals, order, report);
        run.onProgress?.(totals);
      }),
    ),
  );
  totals.failures.sort((a, b) => a.seed - b.seed);
  return totals;
}

/** One worker, from its start until there is nothing left to do. */
function employ(
  folder: string,
  takeOrder: () => Order | undefined,
  onReport: (order: Order, report: Report) => void,
): Promise<void> {
  const worker: ChildProcess = fork(workerPath, [folder], { execArgv: ['--import', 'tsx'] });
  return new Promise((resolve, reject) => {
    let order: Order | undefined;
    worker.on('message', (message: Report | 'ready') => {
      if (message !== 'ready') onReport(order!, message);
      order = takeOrder();
      if (order) worker.send(order);
      else worker.disconnect();
    });
    worker.on('error', reject);
    worker.on('exit', (code, signal) => {
      if (code === 0) return resolve();
      const doing = order ? `seeds ${order.from} to ${order.from + order.count - 1}` : 'its start';
      reject(new Error(`a worker ended with ${signal ?? code} during ${doing}`));
    });
  });
}

function add(totals: Totals, order: Order, report: Report): void {
  totals.seedCount += report.seedCount;
  totals.grantCount += report.grantCount;
  totals.stepCount += report.stepCount;
  totals.failures.push(...report.failures);
  for (const [name, count] of Object.entries(report.reached)) {
    totals.reached.set(name, (totals.reached.get(name) ?? 0) + count);
  }
  for (const [index, digest] of report.digests.entries()) totals.digests.set(order.from + index, digest);
}
