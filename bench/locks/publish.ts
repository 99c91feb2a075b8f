// What was measured last, into the documents: tables between their marks, drawings into docs/charts.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { withGeneratedPart } from '../../scripts/generated-part.ts';
import { growthChart, ratesChart, roundTripChart } from './charts.ts';
import { ofKind, type Parts, partsOf } from './report.ts';
import { readResults, resultsFolder } from './results.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** Tables and drawings beside the results; gives the tables, for the terminal. */
export function writeReport(): Parts {
  const measured = readResults();
  const parts = partsOf(measured);
  writeFileSync(`${resultsFolder}locks.md`, `${Object.values(parts).join('\n\n')}\n`);
  writeDrawings(resultsFolder);
  return parts;
}

/** @throws Error if nothing was measured, or a document has no place for a part. */
export function publish(): void {
  const measured = readResults();
  if (measured.length === 0) throw new Error('nothing was measured here yet: npm run bench first');
  const { summary, ...details } = partsOf(measured);
  putInto('README.md', { 'bench-summary': summary });
  putInto('docs/performance.md', {
    'bench-rates': details.rates,
    'bench-each': details.each,
    'bench-distance': details.distance,
    'bench-growth': details.growth,
  });
  mkdirSync(`${root}docs/charts`, { recursive: true });
  writeDrawings(`${root}docs/charts/`);
}

function writeDrawings(folder: string): void {
  const measured = readResults();
  const rates = ofKind(measured, 'rate').filter(({ scenario }) => scenario.baseline === 'curator');
  const distant = ofKind(measured, 'round-trips');
  const growth = ofKind(measured, 'growth');
  if (rates.length > 0) writeFileSync(`${folder}rates.svg`, ratesChart(rates));
  if (distant.length > 0) writeFileSync(`${folder}round-trips.svg`, roundTripChart(distant));
  for (const each of growth) writeFileSync(`${folder}waiters.svg`, growthChart(each));
}

function putInto(document: string, parts: Readonly<Record<string, string>>): void {
  const file = `${root}${document}`;
  const before = readFileSync(file, 'utf8');
  let text = before;
  for (const [name, printed] of Object.entries(parts)) {
    text = withGeneratedPart({ file: document, text }, name, printed);
  }
  if (text !== before) writeFileSync(file, text);
}
