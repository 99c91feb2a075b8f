// `npm run bench`: locks side by side with every peer. What each scenario is: docs/performance.md.
import { Arena } from './arena.ts';
import { type Choices, parseChoices, UnknownNameError } from './choices.ts';
import type { Contestant } from './contestants.ts';
import { measureDistance } from './measure-distance.ts';
import { measureGrowth } from './measure-growth.ts';
import { measureRates } from './measure-rates.ts';
import { planOf } from './plan.ts';
import { Programs } from './programs.ts';
import { publish, writeReport } from './publish.ts';
import { NOTHING, partsOf } from './report.ts';
import { readResults, writeResult } from './results.ts';
import type { Place, RateScenario, Scenario } from './scenarios.ts';

const startedAtMs = performance.now();

try {
  const choices = parseChoices(process.argv.slice(2));
  if (choices.publish) publish();
  else await measure(choices);
} catch (error) {
  if (!(error instanceof UnknownNameError)) throw error;
  console.error(`${error.name}: ${error.message}`);
  process.exitCode = 2;
}

async function measure({ quick, scenarios, contestants }: Choices): Promise<void> {
  const plan = planOf(quick, tell);
  using programs = await Programs.prepare(contestants);
  const rates = scenarios.filter((scenario) => scenario.kind === 'rate');
  const isAlone = ({ processes }: RateScenario) => processes === 1;
  const parts: { readonly place: Place; readonly scenarios: readonly Scenario[] }[] = [
    {
      place: 'standalone',
      scenarios: scenarios.filter(
        (each) => each.kind !== 'rate' || (each.place === 'standalone' && isAlone(each)),
      ),
    },
    { place: 'standalone', scenarios: rates.filter((each) => !isAlone(each)) },
    { place: 'ensemble', scenarios: rates.filter(({ place }) => place === 'ensemble') },
  ];
  // Each part has servers and processes of its own: those of another would only be in the way.
  for (const { place, scenarios: own } of parts) {
    const present = contestants.filter((contestant) =>
      own.some((scenario) => contestant.absence(scenario) === undefined),
    );
    if (present.length === 0) continue;
    await using arena = await Arena.open(programs, present, place);
    for (const result of await measurePart(arena, own, contestants, plan)) writeResult(result);
  }
  writeReport();
  process.stderr.write('\n');
  const now = readResults().filter(({ scenario }) => scenarios.includes(scenario));
  const { each, distance, growth } = partsOf(now);
  console.log([each, distance, growth].filter((part) => part !== NOTHING).join('\n\n'));
  console.error(
    `\n${seconds()} s. Everything is in bench/results; npm run bench -- --publish puts it into the docs.`,
  );
}

async function measurePart(
  arena: Arena,
  scenarios: readonly Scenario[],
  contestants: readonly Contestant[],
  plan: ReturnType<typeof planOf>,
) {
  const rates = scenarios.filter((scenario) => scenario.kind === 'rate');
  const results = rates.length > 0 ? [...(await measureRates(arena, rates, contestants, plan))] : [];
  const others = [];
  for (const scenario of scenarios) {
    if (scenario.kind === 'round-trips')
      others.push(await measureDistance(arena, scenario, contestants, plan));
    if (scenario.kind === 'growth') others.push(await measureGrowth(arena, scenario, contestants, plan));
  }
  return [...results, ...others];
}

/** On a terminal one line that changes, elsewhere a line each. */
function tell(what: string): void {
  const line = `${seconds().padStart(4)} s  ${what}`;
  if (process.stderr.isTTY) process.stderr.write(`\r${line.padEnd(100).slice(0, 100)}`);
  else process.stderr.write(`${line}\n`);
}

function seconds(): string {
  return ((performance.now() - startedAtMs) / 1_000).toFixed(0);
}
