// `npm run mutants`: plants each bug of the list and searches until the simulation finds it. Fails if one survives.
import { rmSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { PlanOptions } from '../../src/testing/simulation/plan-scenario.ts';
import { compile, makeFolder, patched, readSources } from './compile.ts';
import { loadEngine } from './engine.ts';
import { type Mutant, mutants } from './mutant-list.ts';
import { runSeeds } from './run-seeds.ts';
import { shrink } from './shrink.ts';

// With `--case name.json`, what found it is made smaller and written down: how the case of a bug that was mended is kept.
const { values } = parseArgs({
  options: {
    case: { type: 'string' },
    seeds: { type: 'string', default: '2000' },
    only: { type: 'string', default: '' },
  },
});
const seeds = Number(values.seeds);
if (!Number.isSafeInteger(seeds) || seeds < 1)
  throw new RangeError(`--seeds ${values.seeds}: a whole number is needed`);
/** A case need not be the smallest. */
const SHRINKING_RUNS_MAX = 60;
const sources = readSources();
const chosen = mutants.filter(({ name }) => name.includes(values.only));
// All of them first: one that no longer applies is told at once.
const compiled = chosen.map(({ patches }) => patched(sources, patches));

const survivors: Mutant[] = [];
for (const [index, mutant] of chosen.entries()) {
  const folder = makeFolder();
  try {
    compile(compiled[index]!, folder);
    const { failures } = await runSeeds({
      folder,
      from: 1,
      count: seeds,
      plan: planOf(mutant),
      failuresMax: 1,
    });
    const first = failures[0];
    const verdict = first ? `${first.violation.property} at seed ${first.seed}` : 'SURVIVED';
    console.log(`${verdict.padEnd(20)} ${mutant.name}`);
    if (!first) survivors.push(mutant);
    else if (values.case) await keep(folder, first.seed, mutant, values.case);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
console.log(
  `${chosen.length - survivors.length} of ${chosen.length} mutants found, with at most ${seeds} seeds each`,
);
process.exit(survivors.length > 0 ? 1 : 0);

function planOf({ workload }: Mutant): PlanOptions {
  return workload ? { workload } : {};
}

async function keep(folder: string, seed: number, mutant: Mutant, file: string): Promise<void> {
  const engine = await loadEngine(folder);
  const { scenario, violation } = await shrink(
    engine,
    engine.planScenario(seed, planOf(mutant)),
    () => {},
    SHRINKING_RUNS_MAX,
  );
  writeFileSync(file, `${JSON.stringify({ about: mutant.name, property: violation!.property, scenario })}\n`);
}
