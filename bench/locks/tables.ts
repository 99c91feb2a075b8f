// What was measured, as Markdown. Pure.
import { median, ratios, spreadOf } from '../statistics.ts';
import { CONTESTANTS } from './contestants.ts';
import type { Absence, GrowthResult, RateResult, RateRow, Result, RoundTripResult } from './results.ts';
import type { GrowthScenario, RateScenario, RoundTripScenario, Scenario } from './scenarios.ts';

export type Measured<S extends Scenario = Scenario, R extends Result = Result> = {
  readonly scenario: S;
  readonly result: R;
};

const titles = new Map(CONTESTANTS.map(({ id, title }) => [id, title]));
const titleOf = (contestant: string) => titles.get(contestant) ?? contestant;
const inOrder = CONTESTANTS.filter(({ isBound }) => !isBound).map(({ id }) => id);

/** All scenarios of cycles: a column for each contestant, and Holdfast beside the baseline. */
export function ratesTable(measured: readonly Measured<RateScenario, RateResult>[]): string {
  const columns = inOrder.filter((id) => measured.some(({ result }) => rowOf(result, id)));
  const lines = [
    `| cycles per second | ${columns.map(titleOf).join(' | ')} | Holdfast is, of Curator's (spread) | floor | aim |`,
    `|---|${'---|'.repeat(columns.length + 3)}`,
  ];
  for (const { scenario, result } of measured) {
    const cells = columns.map((id) => {
      const row = rowOf(result, id);
      return row ? rateText(row) : '–';
    });
    const { floor, aim } = scenario.design ?? {};
    lines.push(
      `| ${[
        scenario.title,
        ...cells,
        comparisonText(scenario, result),
        floor === undefined ? '' : `${floor}×`,
        aim === undefined ? '' : `${aim}×`,
      ].join(' | ')} |`,
    );
  }
  return lines.join('\n');
}

/** One scenario of cycles, with everything that was measured of each contestant. */
export function rateTable({ scenario, result }: Measured<RateScenario, RateResult>): string {
  const lines = [
    `| ${scenario.title} | cycles/s | of ${titleOf(scenario.baseline)}'s (spread) | acquire p50 | p99 | client CPU | server CPU | requests | bytes |`,
    '|---|---|---|---|---|---|---|---|---|',
  ];
  for (const row of result.rows) {
    const { contestant, acquireMs, clientCpuUs, serverCpuUs, traffic } = row;
    lines.push(
      `| ${[
        titleOf(contestant),
        rateText(row),
        ratioText(result, contestant, scenario.baseline) ?? '',
        `${milliseconds(acquireMs.p50)} ms`,
        `${milliseconds(acquireMs.p99)} ms`,
        `${Math.round(clientCpuUs)} µs`,
        `${Math.round(serverCpuUs)} µs`,
        traffic ? traffic.requests.toFixed(1) : '–',
        traffic ? String(Math.round(traffic.bytes)) : '–',
      ].join(' | ')} |`,
    );
  }
  return [...lines, ...earlierLines(scenario, result), ...absenceLines(result.absent)].join('\n');
}

export function roundTripTable(measured: readonly Measured<RoundTripScenario, RoundTripResult>[]): string {
  const columns = inOrder.filter((id) =>
    measured.some(({ result }) => result.rows.some(({ contestant }) => contestant === id)),
  );
  const lines = [
    `| round trips, p50 | ${columns.map(titleOf).join(' | ')} |`,
    `|---|${'---|'.repeat(columns.length)}`,
  ];
  for (const { scenario, result } of measured) {
    const cells = columns.map((id) => {
      const row = result.rows.find(({ contestant }) => contestant === id);
      return row ? `**${row.roundTrips.toFixed(1)}** (${Math.round(row.p50Ms)} ms)` : '–';
    });
    lines.push(`| ${scenario.title} | ${cells.join(' | ')} |`);
  }
  const absent = measured.flatMap(({ result }) => result.absent);
  return [...lines, ...absenceLines(absent)].join('\n');
}

export function growthTable({ scenario, result }: Measured<GrowthScenario, GrowthResult>): string {
  const sizes = [...new Set(result.rows.flatMap(({ points }) => points.map(({ waiters }) => waiters)))].sort(
    (a, b) => a - b,
  );
  const lines = [
    `| ${scenario.title} | ${sizes.map((waiters) => `${waiters} waiting`).join(' | ')} |`,
    `|---|${'---|'.repeat(sizes.length)}`,
  ];
  for (const { contestant, points } of result.rows) {
    const cells = sizes.map((size) => {
      const point = points.find(({ waiters }) => waiters === size);
      if (!point) return '–';
      const traffic =
        point.requests === undefined || point.bytes === undefined
          ? ''
          : `, ${point.requests.toFixed(1)} requests, ${byteText(point.bytes)}`;
      return `**${milliseconds(median(point.ms))} ms**${traffic}`;
    });
    lines.push(`| ${titleOf(contestant)} | ${cells.join(' | ')} |`);
  }
  return [...lines, ...absenceLines(result.absent)].join('\n');
}

/** When and on what, in a sentence. */
export function surroundingsText(results: readonly Result[]): string {
  const days = [...new Set(results.map(({ date }) => date.slice(0, 10)))].sort();
  const cores = [...new Set(results.map((result) => result.cores))].join(' or ');
  const nodes = [...new Set(results.map(({ node }) => node))].join(', ');
  const runs = new Set(results.map(({ quick }) => (quick ? 'quick' : 'full')));
  return `Measured on ${cores} cores with Node ${nodes}, ${[...runs].join(' and ')} run, ${days.join(', ')}.`;
}

function rowOf(result: RateResult, id: string): RateRow | undefined {
  return result.rows.find(({ contestant }) => contestant === id);
}

const rateText = ({ rates }: RateRow) => String(Math.round(median(rates)));

/** Undefined for the baseline itself, and where there is none. */
function ratioText(result: RateResult, contestant: string, baseline: string): string | undefined {
  const own = rowOf(result, contestant);
  const base = rowOf(result, baseline);
  if (!own || !base || own === base) return undefined;
  const { median: middle, min, max } = spreadOf(ratios(own.rates, base.rates));
  return `**${middle.toFixed(2)}×** (${min.toFixed(2)} to ${max.toFixed(2)})`;
}

/** For a column that is about Curator, unless it says otherwise. */
function comparisonText({ subject, baseline }: RateScenario, result: RateResult): string {
  const text = ratioText(result, subject, baseline);
  if (text === undefined) return '–';
  return baseline === 'curator' ? text : `${text} of ${titleOf(baseline)}'s`;
}

function earlierLines({ subject, baseline }: RateScenario, { earlier }: RateResult): string[] {
  const texts = earlier.flatMap(({ ratios: by, quick }) =>
    by[subject] === undefined ? [] : [`${by[subject].toFixed(2)}×${quick ? ' (quick)' : ''}`],
  );
  return texts.length === 0
    ? []
    : ['', `Runs before gave ${titleOf(subject)} ${texts.join(', ')} of ${titleOf(baseline)}.`];
}

/** Each reason once, with those it holds for. */
function absenceLines(absent: readonly Absence[]): string[] {
  const byReason = new Map<string, Set<string>>();
  for (const { contestant, reason } of absent) {
    byReason.set(reason, (byReason.get(reason) ?? new Set()).add(titleOf(contestant)));
  }
  if (byReason.size === 0) return [];
  const texts = [...byReason].map(([reason, names]) => `${[...names].join(', ')}: ${reason}`);
  return ['', `Not here: ${texts.join('; ')}.`];
}

function milliseconds(value: number): string {
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

function byteText(bytes: number): string {
  return bytes < 10_000 ? `${Math.round(bytes)} bytes` : `${Math.round(bytes / 1_000)} kB`;
}
