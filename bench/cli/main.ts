// `npm run bench:cli`: how long a command under a lock takes that does nothing, beside Node itself, flock and etcdctl.
// All take turns, round by round, so that a busy machine is busy for all; ratios are of the same round.
import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROUNDS = process.argv.includes('--quick') ? 15 : 60;
const WARM_UP_ROUNDS = 3;
const command = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const resultsFolder = fileURLToPath(new URL('../results/', import.meta.url));

interface Contestant {
  readonly name: string;
  readonly argv: readonly [string, ...string[]];
}

const home = mkdtempSync(join(tmpdir(), 'holdfast-bench-'));
const env = { ...process.env, HOLDFAST_LOCAL_FOLDER: join(home, 'state'), HOLDFAST_SERVERS: 'local' };
const holdfast = (...args: string[]): Contestant['argv'] => [process.execPath, command, ...args];
const contestants: Contestant[] = [
  { name: 'node -e 0', argv: [process.execPath, '-e', '0'] },
  { name: 'holdfast run x -- true', argv: holdfast('run', 'x', '--', 'true') },
  { name: 'holdfast --version', argv: holdfast('--version') },
  { name: 'flock file true', argv: ['flock', join(home, 'file'), 'true'] },
  { name: 'etcdctl lock x true', argv: ['etcdctl', 'lock', 'x', 'true'] },
];

try {
  const present = contestants.filter(
    ({ argv }) => !(run(argv).error as NodeJS.ErrnoException | undefined)?.code,
  );
  const absent = contestants.filter((each) => !present.includes(each)).map(({ name }) => name);
  const times = new Map(present.map(({ name }) => [name, [] as number[]]));
  for (let round = -WARM_UP_ROUNDS; round < ROUNDS; round++) {
    for (const { name, argv } of present) {
      const tookMs = timed(name, argv);
      if (round >= 0) times.get(name)!.push(tookMs);
    }
  }
  const report = [
    `${ROUNDS} rounds, Node ${process.versions.node}; median and quartiles.`,
    '',
    '| | ms | of `node -e 0` |',
    '|---|---|---|',
    ...present.map(({ name }) => row(name, times.get(name)!, times.get('node -e 0')!)),
    ...(absent.length > 0 ? ['', `Not installed here: ${absent.join(', ')}.`] : []),
  ];
  console.log(report.join('\n'));
  mkdirSync(resultsFolder, { recursive: true });
  writeFileSync(`${resultsFolder}cli.md`, `${report.join('\n')}\n`);
} finally {
  run(holdfast('server', 'stop', '--force'));
  rmSync(home, { recursive: true, force: true });
}

function run([program, ...args]: Contestant['argv']): SpawnSyncReturns<Buffer> {
  return spawnSync(program, args, { stdio: ['ignore', 'ignore', 'inherit'], env, timeout: 60_000 });
}

function timed(name: string, argv: Contestant['argv']): number {
  const startedAtMs = performance.now();
  const { status } = run(argv);
  if (status !== 0) throw new Error(`${name} ended with ${status}`);
  return performance.now() - startedAtMs;
}

function row(name: string, times: readonly number[], base: readonly number[]): string {
  const ratios = times.map((tookMs, round) => tookMs / base[round]!);
  return `| \`${name}\` | ${spread(times, 0)} | ${spread(ratios, 2)} |`;
}

function spread(values: readonly number[], digits: number): string {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (fraction: number) => sorted[Math.floor((sorted.length - 1) * fraction)]!.toFixed(digits);
  return `${at(0.5)} (${at(0.25)}–${at(0.75)})`;
}
