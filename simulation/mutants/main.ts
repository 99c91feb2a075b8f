// `npm run mutants`: plants each bug of the list and searches until the simulation finds it, or runs the test file that
// must. Fails if one survives.
import { fork } from 'node:child_process';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { compile, makeFolder, patched, readSources, root } from '../runner/compile.ts';
import { loadEngine } from '../runner/engine.ts';
import { shrink } from '../runner/shrink.ts';
import { tunings } from '../runner/tunings.ts';
import { type Mutant, mutants } from './mutant-list.ts';
import type { Catch, Hunt } from './mutant-worker.ts';
import { passes } from './run-suite-file.ts';

// With `--case name.json`, what found it is made smaller and written down: how the case of a bug that was mended is kept.
const { values } = parseArgs({
  options: {
    case: { type: 'string' },
    seeds: { type: 'string', default: '2000' },
    only: { type: 'string', default: '' },
  },
});
const seedsMax = Number(values.seeds);
if (!Number.isSafeInteger(seedsMax) || seedsMax < 1)
  throw new RangeError(`--seeds ${values.seeds}: a whole number is needed`);
/** A case need not be the smallest. */
const SHRINKING_RUNS_MAX = 60;
const WORKERS_MAX = 2;
const workerPath = fileURLToPath(new URL('mutant-worker.ts', import.meta.url));

const sources = readSources();
const chosen = mutants.filter(({ name }) => name.includes(values.only));
// All of them first: one that no longer applies is told at once.
const texts = chosen.map(({ patches }) => patched(sources, patches));
for (const { name, killer } of chosen) {
  if (killer !== undefined && !existsSync(join(root, killer)))
    throw new Error(`${name}: there is no ${killer}`);
}
const startedAtMs = performance.now();
const cleanFolder = makeFolder();
const survivors: Mutant[] = [];
let next = 0;
try {
  compile(patched(sources, tunings), cleanFolder);
  const workerCount = Math.min(WORKERS_MAX, availableParallelism(), chosen.length);
  await Promise.all(Array.from({ length: workerCount }, () => employ()));
} finally {
  rmSync(cleanFolder, { recursive: true, force: true });
}
const seconds = ((performance.now() - startedAtMs) / 1000).toFixed(0);
console.log(
  `${chosen.length - survivors.length} of ${chosen.length} mutants found in ${seconds} s, with at most ${seedsMax} seeds each`,
);
process.exit(survivors.length > 0 ? 1 : 0);

/** One process, which searches for one mutant after the other until none is left. */
async function employ(): Promise<void> {
  const worker = fork(workerPath, [], { execArgv: ['--import', 'tsx'] });
  const heard = () =>
    new Promise<unknown>((resolve, reject) => {
      const onExit = (code: number | null, signal: string | null) =>
        reject(new Error(`a worker ended with ${signal ?? code}`));
      worker.once('exit', onExit);
      worker.once('message', (message) => {
        worker.off('exit', onExit);
        resolve(message);
      });
    });
  await heard();
  while (next < chosen.length) {
    const index = next++;
    if (chosen[index]!.killer) {
      await runKiller(chosen[index]!, texts[index]!);
      continue;
    }
    const mutantFolder = makeFolder();
    try {
      compile(patched(texts[index]!, tunings), mutantFolder);
      const hunt: Hunt = { mutantFolder, cleanFolder, plan: chosen[index]!.plan, seedsMax };
      worker.send(hunt);
      await tell(chosen[index]!, (await heard()) as Catch, mutantFolder);
    } finally {
      rmSync(mutantFolder, { recursive: true, force: true });
    }
  }
  worker.disconnect();
}

/** It must fail with the bug, and pass without. */
async function runKiller(mutant: Mutant, text: ReadonlyMap<string, string>): Promise<void> {
  const file = mutant.killer!;
  const found = !(await passes(text, file)) && (await passes(sources, file));
  console.log(`${(found ? 'by a test' : 'SURVIVED').padEnd(20)} ${mutant.name} (${file})`);
  if (!found) survivors.push(mutant);
}

async function tell(mutant: Mutant, { seed, property, cleanProperty }: Catch, folder: string): Promise<void> {
  const verdict =
    seed === undefined
      ? 'SURVIVED'
      : cleanProperty
        ? `NOT THE BUG: seed ${seed} breaks ${cleanProperty} without it`
        : `${property} at seed ${seed}`;
  console.log(`${verdict.padEnd(20)} ${mutant.name}`);
  if (seed === undefined || cleanProperty) survivors.push(mutant);
  else if (values.case) await keep(folder, seed, mutant, values.case);
}

async function keep(folder: string, seed: number, { name, plan }: Mutant, file: string): Promise<void> {
  const engine = await loadEngine(folder);
  const scenario = engine.planScenario(seed, plan);
  const shrunk = await shrink(engine, scenario, () => {}, SHRINKING_RUNS_MAX);
  const { property } = shrunk.violation!;
  writeFileSync(file, `${JSON.stringify({ about: name, property, scenario: shrunk.scenario })}\n`);
}
