// Drawings of what was measured. Pure. Nothing is painted behind them, and every colour is of middle lightness, so that
// they can be read on GitHub's light pages and on its dark ones.
import { escaped } from '../../src/cli/demo/herd-svg.ts';
import { median, ratios } from '../statistics.ts';
import { CONTESTANTS } from './contestants.ts';
import type { GrowthResult, RateResult, RoundTripResult } from './results.ts';
import type { GrowthScenario, RateScenario, RoundTripScenario } from './scenarios.ts';
import type { Measured } from './tables.ts';

const WIDTH = 820;
const TEXT = '#6e7781';
const GRID = '#6e778155';
/** One for each contestant, in their order. */
const COLOURS = [
  '#2f81f7',
  '#1f9d8b',
  '#8250df',
  '#d1742f',
  '#bf8700',
  '#8c959f',
  '#cf4a52',
  '#4e9a3c',
  '#d45a9b',
  '#5a7fa8',
  '#57606a',
];
const BAR = { height: 15, gap: 4, left: 250, right: 90 };
const GROUP_HEAD = 24;
const GROUP_GAP = 12;
const TOP = 46;
const PLOT = { height: 380, left: 70, right: 230, bottom: 48 };

export interface Bar {
  readonly label: string;
  readonly value: number;
  readonly text: string;
  readonly colour: string;
}

export interface BarGroup {
  readonly title: string;
  readonly bars: readonly Bar[];
}

const colourOf = (id: string) =>
  COLOURS[CONTESTANTS.findIndex((contestant) => contestant.id === id) % COLOURS.length] ?? TEXT;
const titleOf = (id: string) =>
  (CONTESTANTS.find((contestant) => contestant.id === id)?.title ?? id).replaceAll('`', '');

/** Cycles per second as multiples of the baseline's, scenario by scenario. */
export function ratesChart(measured: readonly Measured<RateScenario, RateResult>[]): string {
  const groups = measured.flatMap(({ scenario, result }): BarGroup[] => {
    const base = result.rows.find(({ contestant }) => contestant === scenario.baseline);
    if (!base) return [];
    const bars = result.rows.map(({ contestant, rates }) => {
      const value = median(ratios(rates, base.rates));
      const text = `${value.toFixed(2)}×`;
      return { label: titleOf(contestant), value, text, colour: colourOf(contestant) };
    });
    return [{ title: scenario.title, bars }];
  });
  return barChart("Lock cycles per second, as multiples of Curator's on the same server", groups, 1);
}

export function roundTripChart(measured: readonly Measured<RoundTripScenario, RoundTripResult>[]): string {
  const groups = measured.map(({ scenario, result }) => ({
    title: scenario.title,
    bars: result.rows.map(({ contestant, roundTrips }) => ({
      label: titleOf(contestant),
      value: roundTrips,
      text: roundTrips.toFixed(1),
      colour: colourOf(contestant),
    })),
  }));
  return barChart('Round trips until the lock is held (fewer is better)', groups);
}

/** Each group has a scale of its own, from zero: one runaway would flatten all others. `mark` is a line at that value. */
export function barChart(title: string, groups: readonly BarGroup[], mark = 0): string {
  const parts: string[] = [];
  let y = TOP;
  for (const group of groups) {
    const max = Math.max(mark, ...group.bars.map(({ value }) => value), Number.MIN_VALUE);
    const x = (value: number) => round(BAR.left + (value / max) * (WIDTH - BAR.left - BAR.right));
    parts.push(`<text x="12" y="${y + 14}" font-weight="600" fill="${TEXT}">${escaped(group.title)}</text>`);
    y += GROUP_HEAD;
    const top = y;
    for (const bar of group.bars) {
      const width = round(Math.max(1, x(bar.value) - BAR.left));
      const baseline = y + BAR.height - 3;
      parts.push(
        `<text x="${BAR.left - 8}" y="${baseline}" text-anchor="end" fill="${TEXT}">${escaped(bar.label)}</text>` +
          `<rect x="${BAR.left}" y="${y}" width="${width}" height="${BAR.height}" rx="2" fill="${bar.colour}"/>` +
          `<text x="${BAR.left + width + 6}" y="${baseline}" fill="${TEXT}">${escaped(bar.text)}</text>`,
      );
      y += BAR.height + BAR.gap;
    }
    if (mark > 0) {
      parts.push(
        `<line x1="${x(mark)}" x2="${x(mark)}" y1="${top - 3}" y2="${y}" stroke="${TEXT}" stroke-dasharray="3 3"/>`,
      );
    }
    y += GROUP_GAP;
  }
  return drawing(title, y, parts);
}

/** Milliseconds for a hand-over by the number of those who wait, both on logarithmic scales. */
export function growthChart({ result }: Measured<GrowthScenario, GrowthResult>): string {
  const series = result.rows
    .filter(({ points }) => points.length > 0)
    .map(({ contestant, points }) => ({
      label: titleOf(contestant),
      colour: colourOf(contestant),
      points: points.map(({ waiters, ms }) => ({ x: waiters, y: median(ms) })),
    }));
  return lineChart('Milliseconds for a hand-over, by how many wait (fewer is better)', 'waiting', series);
}

export interface Series {
  readonly label: string;
  readonly colour: string;
  readonly points: readonly { readonly x: number; readonly y: number }[];
}

export function lineChart(title: string, axis: string, series: readonly Series[]): string {
  const all = series.flatMap(({ points }) => points);
  if (all.length === 0) return drawing(title, TOP, []);
  const xs = decades(all.map((point) => point.x));
  const ys = decades(all.map((point) => point.y));
  const bottom = TOP + PLOT.height;
  const at = (value: number, [low, high]: Decades) => (Math.log10(value) - low) / Math.max(1, high - low);
  const x = (value: number) => round(PLOT.left + at(value, xs) * (WIDTH - PLOT.left - PLOT.right));
  const y = (value: number) => round(bottom - at(value, ys) * PLOT.height);
  const parts: string[] = [];
  for (const value of powers(ys)) {
    parts.push(
      `<line x1="${PLOT.left}" x2="${WIDTH - PLOT.right}" y1="${y(value)}" y2="${y(value)}" stroke="${GRID}"/>` +
        `<text x="${PLOT.left - 8}" y="${y(value) + 4}" text-anchor="end" fill="${TEXT}">${value} ms</text>`,
    );
  }
  for (const value of powers(xs)) {
    parts.push(
      `<line x1="${x(value)}" x2="${x(value)}" y1="${TOP}" y2="${bottom}" stroke="${GRID}"/>` +
        `<text x="${x(value)}" y="${bottom + 18}" text-anchor="middle" fill="${TEXT}">${value}</text>`,
    );
  }
  const centre = PLOT.left + (WIDTH - PLOT.left - PLOT.right) / 2;
  parts.push(
    `<text x="${centre}" y="${bottom + 36}" text-anchor="middle" fill="${TEXT}">${escaped(axis)}</text>`,
  );
  for (const [index, { label, colour, points }] of series.entries()) {
    const line = points.map((point) => `${x(point.x)},${y(point.y)}`).join(' ');
    const legendY = TOP + 14 + index * 22;
    parts.push(
      `<polyline fill="none" stroke="${colour}" stroke-width="2" points="${line}"/>` +
        points
          .map((point) => `<circle cx="${x(point.x)}" cy="${y(point.y)}" r="3.5" fill="${colour}"/>`)
          .join('') +
        `<rect x="${WIDTH - PLOT.right + 16}" y="${legendY - 10}" width="12" height="12" rx="2" fill="${colour}"/>` +
        `<text x="${WIDTH - PLOT.right + 34}" y="${legendY}" fill="${TEXT}">${escaped(label)}</text>`,
    );
  }
  return drawing(title, bottom + PLOT.bottom, parts);
}

type Decades = readonly [low: number, high: number];

/** The powers of ten that all of them lie between. */
function decades(values: readonly number[]): Decades {
  return [Math.floor(Math.log10(Math.min(...values))), Math.ceil(Math.log10(Math.max(...values)))];
}

function powers([low, high]: Decades): number[] {
  return Array.from({ length: high - low + 1 }, (_, index) => Number((10 ** (low + index)).toPrecision(1)));
}

function drawing(title: string, height: number, parts: readonly string[]): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" font-family="system-ui, sans-serif" font-size="12" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<text x="12" y="24" font-size="15" font-weight="600" fill="${TEXT}">${escaped(title)}</text>`,
    ...parts,
    '</svg>',
    '',
  ].join('\n');
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
