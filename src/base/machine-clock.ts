/**
 * Milliseconds since a moment that is the same for all processes of this machine; never goes backwards. A point in time
 * that one process tells another must be on this clock: each process's own has an origin of its own.
 */
export function machineNowMs(): number {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000;
}
