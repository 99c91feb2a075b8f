// `npm run nemesis -- --minutes 60 --seed 7 --report nemesis.html`, or `--check <folder>` to judge what a run has kept.
// See docs/testing.md.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { tellViolation } from '../../simulation/checker/violation.ts';
import { judge } from './judge.ts';
import { reportPage } from './report.ts';
import { checkFolder, runNemesis } from './run-nemesis.ts';

const VIOLATIONS_TOLD = 10;

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '1' },
    seed: { type: 'string' },
    report: { type: 'string', default: 'nemesis.html' },
    keep: { type: 'boolean', default: false },
    check: { type: 'string' },
  },
});
const minutes = Number(values.minutes);
if (!(minutes > 0 && minutes <= 24 * 60)) {
  throw new RangeError(`--minutes: ${values.minutes} given; more than 0, at most a day`);
}
const seed = Number(values.seed ?? Date.now() % 2 ** 32);
if (!Number.isInteger(seed) || seed < 0 || seed >= 2 ** 32) {
  throw new RangeError(`--seed: ${values.seed} given; a whole number below 2^32`);
}

const folder = values.check ?? (await mkdtemp(join(tmpdir(), 'holdfast-nemesis-')));
console.log(`nemesis: ${minutes} minutes, seed ${seed}, histories in ${folder}`);
const started = performance.now();
const log = (line: string) =>
  console.log(`${((performance.now() - started) / 1_000).toFixed(1).padStart(8)} s  ${line}`);
const result =
  values.check === undefined
    ? await runNemesis({ durationMs: minutes * 60_000, seed, folder, log })
    : { ...(await checkFolder(folder)), failures: [] };
const { verdict, control } = result;
for (const violation of verdict.violations.slice(0, VIOLATIONS_TOLD)) {
  console.log(tellViolation(violation, verdict.events));
}
const faults = judge(result, { minutes });
await writeFile(values.report, reportPage(result, { seed, minutes }));
console.log(JSON.stringify(verdict.counts, null, 2));
console.log(`control: ${control.counts.grants} grants, ${control.violations.length} violations found`);
console.log(`${verdict.violations.length} violations; report in ${values.report}`);
for (const fault of faults) console.error(`NOT GOOD: ${fault}`);
if (values.keep || values.check !== undefined || verdict.violations.length > 0)
  console.log(`histories kept in ${folder}`);
else await rm(folder, { recursive: true });
process.exitCode = faults.length === 0 ? 0 : 1;
