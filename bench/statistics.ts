// Numbers out of rounds. A ratio is always of two figures of the same round, so that what disturbed both is in neither.

export function median(values: readonly number[]): number {
  const sorted = ascending(values);
  const middle = Math.floor(sorted.length / 2);
  if (sorted.length % 2 === 1) return sorted[middle]!;
  return sorted.length === 0 ? Number.NaN : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

export function spreadOf(values: readonly number[]): Spread {
  return { median: median(values), min: Math.min(...values), max: Math.max(...values) };
}

/** Round by round, how many times the other's figure one's own is. */
export function ratios(own: readonly number[], others: readonly number[]): number[] {
  if (own.length !== others.length) {
    throw new RangeError(`${own.length} rounds beside ${others.length}: ratios are of the same rounds`);
  }
  return own.map((value, round) => value / others[round]!);
}

export function ascending(values: readonly number[]): number[] {
  return [...values].sort((a, b) => a - b);
}
