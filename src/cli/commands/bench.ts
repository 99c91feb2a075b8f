import { InvalidArgumentError } from 'commander';
import { systemRandom } from '../../base/random.ts';
import type { Holdfast } from '../../locks/holdfast.ts';
import { isServerError } from '../../protocol/errors.ts';
import { type Measurement, measure, SCENARIOS } from '../bench/measurement.ts';
import { type ConnectionFlags, connectWith, parseDurationOption, withConnection } from '../connection.ts';
import type { DefineCommand } from '../define-command.ts';
import { withJson } from '../json.ts';
import { printJson, printLines, printTable } from '../print.ts';
import { withProgress } from '../terminal/progress.ts';
import type { Column } from '../terminal/table.ts';
import { Signalled, untilSignalled } from '../until-signalled.ts';

interface BenchOptions extends ConnectionFlags {
  readonly duration: number;
  readonly json?: boolean;
}

const DURATION_MS = { min: 100, max: 10 * 60_000 };

/** How fast locks are, from here, on those servers, now. */
export const define: DefineCommand = (command, { console, exitWith }) => {
  withJson(withConnection(command))
    .option('--duration <duration>', 'how long each of the three takes', parseBenchDuration, 3_000)
    .addHelpText(
      'after',
      `
Examples:
  holdfast bench --servers zk1:2181,zk2:2181,zk3:2181
  holdfast bench --duration 10s --json

Solo: one task and one lock. Parallel: 32 tasks, each its own lock, one connection. Contended: 32 tasks of 8
connections, all one lock. A cycle is taking and letting go; the times are from asking to holding. It writes to the
servers as fast as they answer: not during the day's busiest hour. Its locks are removed afterwards.

Beside Curator, kazoo, redlock and etcd on one machine: npm run bench in Holdfast's repository, docs/performance.md.`,
    )
    .action(async ({ duration, json, ...flags }: BenchOptions) => {
      exitWith(
        await untilSignalled(async (signal) => {
          try {
            const measured = await bench(flags, duration, signal, console);
            if (json) return printJson(console, { scenarios: measured }) ?? 0;
            printTable(console, COLUMNS, measured);
            printLines(console, [
              'One machine, one moment: compare only with what was run beside it.',
              "Other libraries beside it: npm run bench in Holdfast's repository.",
            ]);
            return 0;
          } catch (error) {
            if (signal.reason instanceof Signalled) return signal.reason.exitCode;
            throw error;
          }
        }),
      );
    });
};

async function bench(
  flags: ConnectionFlags,
  durationMs: number,
  signal: AbortSignal,
  console: Parameters<typeof withProgress>[0],
): Promise<Measurement[]> {
  return withProgress(console, 'connecting', async (tell) => {
    const prefix = `holdfast-bench-${Buffer.from(systemRandom.bytes(6)).toString('hex')}`;
    const clients: Holdfast[] = [];
    try {
      const sessions = Math.max(...SCENARIOS.map((scenario) => scenario.sessions));
      for (let count = 0; count < sessions; count++) clients.push(await connectWith(flags, { signal }));
      const measured: Measurement[] = [];
      for (const scenario of SCENARIOS) {
        tell(`${scenario.name}: ${scenario.tasks} tasks, ${scenario.locks} locks`);
        measured.push(await measure(scenario, { clients, prefix, durationMs, signal }));
      }
      return measured;
    } finally {
      if (clients[0]) await removeLocks(clients[0], prefix);
      await Promise.all(clients.map((client) => client.close()));
    }
  });
}

/** The folders are empty by now; the servers would remove them within minutes. */
async function removeLocks(holdfast: Holdfast, prefix: string): Promise<void> {
  const { root, zk } = holdfast;
  try {
    const names = await zk.children(root);
    await Promise.all(
      names.filter((name) => name.startsWith(prefix)).map((name) => zk.deleteTree(`${root}/${name}`)),
    );
  } catch (error) {
    if (!isServerError(error, 'no-node')) throw error;
  }
}

const time = (text: string, of: keyof Measurement['acquireMs']): Column<Measurement> => ({
  title: text,
  align: 'right',
  text: ({ acquireMs }) => acquireMs[of].toFixed(2),
});

const COLUMNS: Column<Measurement>[] = [
  { title: 'SCENARIO', text: ({ name }) => name },
  { title: 'TASKS', align: 'right', text: ({ tasks }) => String(tasks) },
  { title: 'LOCKS', align: 'right', text: ({ locks }) => String(locks) },
  { title: 'SESSIONS', align: 'right', text: ({ sessions }) => String(sessions) },
  { title: 'CYCLES/S', align: 'right', text: ({ cyclesPerSecond }) => String(Math.round(cyclesPerSecond)) },
  time('P50 MS', 'p50'),
  time('P95 MS', 'p95'),
  time('P99 MS', 'p99'),
  time('MAX MS', 'max'),
];

function parseBenchDuration(text: string): number {
  const durationMs = parseDurationOption(text);
  if (durationMs < DURATION_MS.min || durationMs > DURATION_MS.max) {
    throw new InvalidArgumentError('100ms to 10m is allowed');
  }
  return durationMs;
}
