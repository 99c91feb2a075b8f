// `npm run sim`: searches seeds, tells the story of one, or makes a failing one smaller. See docs/testing.md.
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { type PlanOptions, type Workload, workloads } from '../scenario/plan-scenario.ts';
import type { Scenario } from '../scenario/scenario.ts';
import { compile, makeFolder, patched, readSources } from './compile.ts';
import { type Engine, loadEngine } from './engine.ts';
import { probePatches, probes } from './probes.ts';
import { runSeeds, type Totals } from './run-seeds.ts';
import { shrink } from './shrink.ts';
import { tunings } from './tunings.ts';

const USAGE = `npm run sim -- --seeds 10000 [--from 1] [--workload mutex] [--faults reset,stall] [--all-points]
npm run sim -- --seed 42 --trace         tells what happens
npm run sim -- shrink 42 [--out case.json]   makes a failing seed, or a case, smaller
npm run sim -- case.json [--trace]       runs a case`;

/** So many seeds are run twice: a run that cannot be repeated proves nothing. */
const REPEATED = 100;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seeds: { type: 'string' },
    from: { type: 'string', default: '1' },
    seed: { type: 'string' },
    workload: { type: 'string' },
    faults: { type: 'string' },
    trace: { type: 'boolean', default: false },
    out: { type: 'string' },
    'all-points': { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
const plan: PlanOptions = {
  ...(values.workload && { workload: workloadOf(values.workload) }),
  ...(values.faults && { faults: values.faults.split(',') }),
};
const planArguments = [
  ...(values.workload ? [`--workload ${values.workload}`] : []),
  ...(values.faults ? [`--faults ${values.faults}`] : []),
].join(' ');

const folder = makeFolder();
let status = 0;
try {
  if (values.help) console.log(USAGE);
  else {
    compile(patched(readSources(), [...tunings, ...probePatches()]), folder);
    status = await main();
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.exit(status);

async function main(): Promise<number> {
  const [what, which] = positionals;
  if (what === 'shrink' && which) return shrinkCase(await loadEngine(folder), which);
  if (what) return tellCase(await loadEngine(folder), what);
  if (values.seed) return tellCase(await loadEngine(folder), values.seed);
  return search(count(values.seeds ?? '1000', 'seeds'), count(values.from, 'from'));
}

function workloadOf(text: string): Workload {
  const workload = workloads.find((each) => each === text);
  if (!workload) throw new RangeError(`--workload ${text}: one of ${workloads.join(', ')} is needed`);
  return workload;
}

function count(text: string, name: string): number {
  const number = Number(text);
  if (!Number.isSafeInteger(number) || number < 0)
    throw new RangeError(`--${name} ${text}: a whole number is needed`);
  return number;
}

/** A file, or a seed. */
function scenarioOf(engine: Engine, which: string): Scenario {
  if (existsSync(which)) return JSON.parse(readFileSync(which, 'utf8')).scenario;
  return engine.planScenario(count(which, 'seed'), plan);
}

async function tellCase(engine: Engine, which: string): Promise<number> {
  const tell = values.trace ? (line: string) => console.log(line) : undefined;
  const { violation, digest, stepCount, grantCount } = await engine.run(scenarioOf(engine, which), tell);
  console.log(`${which}: ${stepCount} steps, ${grantCount} grants, digest ${digest}`);
  if (!violation) return 0;
  console.log(`${violation.property} at ${violation.atMs.toFixed(1)} ms: ${violation.message}`);
  return 1;
}

async function shrinkCase(engine: Engine, which: string): Promise<number> {
  const { scenario, violation } = await shrink(engine, scenarioOf(engine, which), (line) =>
    console.log(line),
  );
  if (!violation) {
    console.log(`${which} does not fail`);
    return 1;
  }
  const text = `${JSON.stringify({ about: violation.message, property: violation.property, scenario }, null, 1)}\n`;
  const out = values.out ?? `case-${scenario.seed}.json`;
  writeFileSync(out, text);
  console.log(`${out}: ${violation.property} at ${violation.atMs.toFixed(1)} ms: ${violation.message}`);
  return 0;
}

async function search(seeds: number, from: number): Promise<number> {
  const startedAtMs = performance.now();
  const perMinute = (done: number) => Math.round((done / (performance.now() - startedAtMs)) * 60_000);
  const terminal = process.stderr.isTTY;
  const onProgress = ({ seedCount, failures }: Totals) => {
    if (!terminal) return;
    const share = seedCount / seeds;
    const bar = '█'.repeat(Math.round(share * 30)).padEnd(30, '·');
    const line = `${bar} ${seedCount}/${seeds} seeds, ${perMinute(seedCount)} a minute, ${failures.length} failed`;
    process.stderr.write(`\r${line}`);
  };
  const totals = await runSeeds({ folder, from, count: seeds, plan, failuresMax: 20, onProgress });
  if (terminal) process.stderr.write('\n');
  const { seedCount, grantCount, failures } = totals;
  console.log(
    `${seedCount} seeds, ${grantCount} grants, ${perMinute(seedCount)} seeds a minute, ${failures.length} failed`,
  );
  for (const { seed, violation } of failures.slice(0, 10)) {
    console.log(
      `seed ${seed}: ${violation.property} at ${violation.atMs.toFixed(1)} ms: ${violation.message}`,
    );
    console.log(`  again: npm run sim -- --seed ${seed} ${planArguments} --trace`.replace(/ +/g, ' '));
  }
  const differing = await repeat(totals, Math.min(seeds, REPEATED), from);
  for (const seed of differing)
    console.log(`seed ${seed}: a second run was another: something outside decided`);
  const missed = printPoints(totals, values['all-points']);
  return failures.length + differing.length + missed > 0 ? 1 : 0;
}

async function repeat({ digests }: Totals, seeds: number, from: number): Promise<number[]> {
  const again = await runSeeds({ folder, from, count: seeds, plan, failuresMax: Number.POSITIVE_INFINITY });
  const differing = [...again.digests].filter(([seed, digest]) => (digests.get(seed) ?? digest) !== digest);
  if (differing.length === 0) console.log(`${again.digests.size} of them run twice: the same each time`);
  return differing.map(([seed]) => seed);
}

/** How many points were not come by, where all must be. */
function printPoints({ reached }: Totals, all: boolean): number {
  const missed = probes.filter(({ name }) => !reached.has(name));
  console.log(`${probes.length - missed.length} of ${probes.length} points come by`);
  if (!all) return 0;
  for (const { name } of probes) console.log(`${String(reached.get(name) ?? 0).padStart(10)}  ${name}`);
  return missed.length;
}
