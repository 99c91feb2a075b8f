// Compares the embedded server with a real ZooKeeper, for as long as you like:
//   npx tsx scripts/differential.ts --scenarios 20000 --seed 1
//   npx tsx scripts/differential.ts --seed 4711 --scenarios 1 --trace
import { parseArgs } from 'node:util';
import { compare, describeStep, story } from '../test/differential/compare.ts';
import { runScenarios, startBoth } from '../test/differential/run-scenarios.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    scenarios: { type: 'string', default: '1000' },
    /** Goes on after a difference until it has seen this many. */
    differences: { type: 'string', default: '1' },
    trace: { type: 'boolean', default: false },
  },
});
const firstSeed = Number(values.seed);
const scenarios = Number(values.scenarios);
const PROGRESS_EVERY = 500;

await using servers = await startBoth();
if (values.trace) await tellAll();
else await search();

async function tellAll(): Promise<void> {
  for (let seed = firstSeed; seed < firstSeed + scenarios; seed++) {
    const { difference } = await compare(servers, seed, (index, step, real) => {
      console.log(`${index}. ${describeStep(step)}`);
      for (const line of real) console.log(`     ${line}`);
    });
    console.log(difference ? story(difference) : `scenario ${seed}: no difference`);
    if (difference) process.exitCode = 1;
  }
}

async function search(): Promise<void> {
  const startedAtMs = performance.now();
  const { steps, differences, ...summary } = await runScenarios(servers, {
    firstSeed,
    scenarios,
    differencesMax: Number(values.differences),
    onProgress: (done) => {
      if (done % PROGRESS_EVERY === 0) console.log(`${done} of ${scenarios} scenarios`);
    },
  });
  for (const difference of differences) console.log(`${story(difference)}\n`);
  const seconds = (performance.now() - startedAtMs) / 1000;
  console.log(
    `${summary.scenarios} scenarios, ${steps} steps, ${differences.length} differences, ${seconds.toFixed(1)} s`,
  );
  if (differences.length > 0) process.exitCode = 1;
}
