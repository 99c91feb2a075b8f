/** The beginning of 2024. */
const FIRST_YEAR_MS = 1_704_067_200_000;

/**
 * The first transaction of a run. Each run has an epoch of its own, above every earlier one: a number that was handed
 * out but never reached the disk is not handed out again. In memory, the clock stands in for what is not remembered;
 * otherwise clients of the earlier run, having seen more, would be turned away for ever.
 */
export function firstZxid(wallMs: number, usedZxid: bigint): bigint {
  // A million transactions for each millisecond: no run can use up what the clock gives the next one. Counted from a
  // year that is past, it stays below 2^63 for centuries.
  const byClock = BigInt(Math.max(0, Math.floor(wallMs - FIRST_YEAR_MS))) << 20n;
  const nextEpoch = ((usedZxid >> 32n) + 1n) << 32n;
  return byClock > nextEpoch ? byClock : nextEpoch;
}
