// What was measured last, into the documents: tables between their marks, drawings into docs/charts.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { withGeneratedPart } from '../../scripts/generated-part.ts';
import { growthChart, ratesChart, roundTripChart } from './charts.ts';
import { ofKind, partsOf } from './report.ts';
import { readResults, resultsFolder } from './results.ts';
import type { Measured } from './tables.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** Tables and drawings of all that was ever measured, beside the results. */
export function writeReport(): void {
  const measured = readResults();
  const parts = partsOf(measured);
  writeFileSync(`${resultsFolder}locks.md`, `${Object.values(parts).join('\n\n')}\n`);
  writeDrawings(resultsFolder, measured);
}

/** @throws Error if nothing was measured, or a document has no place for a part. */
export function publish(): void {
  const measured = readResults();
  if (measured.length === 0) throw new Error('nothing was measured here yet: npm run bench first');
  const { summary, rates, each, distance, growth } = partsOf(measured);
  mkdirSync(`${root}docs/charts`, { recursive: true });
  const drawn = writeDrawings(`${root}docs/charts/`, measured);
  const withDrawing = (text: string, name: string, folder: string) =>
    drawn.includes(name) ? `${text}\n\n![${DRAWINGS[name]}](${folder}${name}.svg)` : text;
  putInto('README.md', { 'bench-summary': withDrawing(summary, 'rates', 'docs/charts/') });
  putInto('docs/performance.md', {
    'bench-rates': withDrawing(rates, 'rates', 'charts/'),
    'bench-each': each,
    'bench-distance': withDrawing(distance, 'round-trips', 'charts/'),
    'bench-growth': withDrawing(growth, 'waiters', 'charts/'),
  });
}

/** What each shows, for those who cannot see it. */
const DRAWINGS: Readonly<Record<string, string>> = {
  rates: "lock cycles per second as multiples of Curator's",
  'round-trips': 'round trips until the lock is held',
  waiters: 'milliseconds for a hand-over by how many wait',
};

/** Gives the names of those that there was something to draw for. */
function writeDrawings(folder: string, measured: readonly Measured[]): string[] {
  const rates = ofKind(measured, 'rate').filter(({ scenario }) => scenario.baseline === 'curator');
  const distant = ofKind(measured, 'round-trips');
  const growth = ofKind(measured, 'growth').at(0);
  const drawings: Readonly<Record<string, string | undefined>> = {
    rates: rates.length > 0 ? ratesChart(rates) : undefined,
    'round-trips': distant.length > 0 ? roundTripChart(distant) : undefined,
    waiters: growth && growthChart(growth),
  };
  return Object.entries(drawings).flatMap(([name, svg]) => {
    if (svg === undefined) return [];
    writeFileSync(`${folder}${name}.svg`, svg);
    return [name];
  });
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
