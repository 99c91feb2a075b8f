// The tables put together. Pure.
import type { Result } from './results.ts';
import type { Scenario } from './scenarios.ts';
import {
  growthTable,
  type Measured,
  ratesTable,
  rateTable,
  roundTripTable,
  surroundingsText,
} from './tables.ts';

/** What a reader of the README wants to know. */
const SUMMARISED = ['solo', 'parallel', 'contended', 'crowd-200'];
/** The part of what there is no result of. */
export const NOTHING = 'Not measured yet.';

/** Pieces of Markdown, each with a place of its own. */
export interface Parts {
  readonly summary: string;
  readonly rates: string;
  readonly each: string;
  readonly distance: string;
  readonly growth: string;
}

export function partsOf(measured: readonly Measured[]): Parts {
  const rates = ofKind(measured, 'rate');
  const summarised = rates.filter(({ scenario }) => SUMMARISED.includes(scenario.id));
  const compared = rates.filter(({ scenario }) => scenario.id !== 'herd'); // Which is about two locks of Holdfast.
  const distant = ofKind(measured, 'round-trips');
  const growth = ofKind(measured, 'growth');
  return {
    summary: part(summarised, () => [ratesTable(summarised)]),
    rates: part(compared, () => [ratesTable(compared)]),
    each: part(rates, () => rates.map(rateTable)),
    distance: part(distant, () => [roundTripTable(distant)]),
    growth: part(growth, () => growth.map(growthTable)),
  };
}

function part(measured: readonly Measured[], tables: () => readonly string[]): string {
  if (measured.length === 0) return NOTHING;
  return [surroundingsText(measured.map(({ result }) => result)), ...tables()].join('\n\n');
}

/** Those of one kind, known to be. */
export function ofKind<K extends Scenario['kind']>(
  measured: readonly Measured[],
  kind: K,
): Measured<Extract<Scenario, { kind: K }>, Extract<Result, { kind: K }>>[] {
  return measured.filter(
    (each): each is Measured<Extract<Scenario, { kind: K }>, Extract<Result, { kind: K }>> =>
      each.scenario.kind === kind && each.result.kind === kind,
  );
}
