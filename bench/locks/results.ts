// What was measured, as it is kept in bench/results: one file for each scenario.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import { median, ratios } from '../statistics.ts';
import { SCENARIOS, type Scenario } from './scenarios.ts';

export const resultsFolder = fileURLToPath(new URL('../results/', import.meta.url));
const EARLIER_RUNS_MAX = 5;

/** Who did not take part, and why. */
export interface Absence {
  readonly contestant: string;
  readonly reason: string;
}

/** One contestant in a scenario of cycles. Where a round is an element, it is the same round for all. */
export interface RateRow {
  readonly contestant: string;
  /** Cycles per second, by round. */
  readonly rates: readonly number[];
  readonly acquireMs: { readonly p50: number; readonly p99: number };
  readonly clientCpuUs: number;
  readonly serverCpuUs: number;
  /** For each cycle, counted in a run of its own. */
  readonly traffic?: { readonly requests: number; readonly bytes: number };
}

export interface RoundTripRow {
  readonly contestant: string;
  readonly samples: number;
  readonly p50Ms: number;
  readonly roundTrips: number;
}

export interface GrowthRow {
  readonly contestant: string;
  readonly points: readonly GrowthPoint[];
}

export interface GrowthPoint {
  readonly waiters: number;
  /** For each hand-over, by round. */
  readonly ms: readonly number[];
  readonly requests?: number;
  readonly bytes?: number;
}

interface Common {
  readonly scenario: string;
  /** When, on what. */
  readonly date: string;
  readonly quick: boolean;
  readonly cores: number;
  readonly node: string;
  readonly absent: readonly Absence[];
}

export interface RateResult extends Common {
  readonly kind: 'rate';
  readonly rows: readonly RateRow[];
  /** Median ratios of runs before this one, the newest first. */
  readonly earlier: readonly EarlierRun[];
}

export interface RoundTripResult extends Common {
  readonly kind: 'round-trips';
  readonly rows: readonly RoundTripRow[];
}

export interface GrowthResult extends Common {
  readonly kind: 'growth';
  readonly rows: readonly GrowthRow[];
}

export interface EarlierRun {
  readonly date: string;
  readonly quick: boolean;
  readonly ratios: Readonly<Record<string, number>>;
}

export type Result = RateResult | RoundTripResult | GrowthResult;

export function surroundings(quick: boolean): Pick<Common, 'date' | 'quick' | 'cores' | 'node'> {
  return { date: new Date().toISOString(), quick, cores: cpus().length, node: process.versions.node };
}

/** Median ratios to the baseline, of those who are not it. */
export function medianRatios(result: RateResult, baseline: string): Record<string, number> {
  const base = result.rows.find(({ contestant }) => contestant === baseline);
  if (!base) return {};
  const others = result.rows.filter(({ contestant }) => contestant !== baseline);
  return Object.fromEntries(
    others.map(({ contestant, rates }) => [contestant, median(ratios(rates, base.rates))]),
  );
}

/** What the run before has to say beside this one: its ratios, and what it remembers itself. */
export function earlierRuns(before: RateResult | undefined, baseline: string): EarlierRun[] {
  if (!before) return [];
  const { date, quick, earlier } = before;
  return [{ date, quick, ratios: medianRatios(before, baseline) }, ...earlier].slice(0, EARLIER_RUNS_MAX);
}

const fileOf = (id: string) => `${resultsFolder}${id}.json`;

/** Undefined if it was never measured here. */
export function readResult(id: string): Result | undefined {
  try {
    return JSON.parse(readFileSync(fileOf(id), 'utf8')) as Result;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

export function writeResult(result: Result): void {
  mkdirSync(resultsFolder, { recursive: true });
  writeFileSync(fileOf(result.scenario), `${JSON.stringify(result, undefined, 1)}\n`);
}

/** Whatever was measured, in the order of the scenarios. */
export function readResults(): { readonly scenario: Scenario; readonly result: Result }[] {
  return SCENARIOS.flatMap((scenario) => {
    const result = readResult(scenario.id);
    return result ? [{ scenario, result }] : [];
  });
}
