const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** Milliseconds of `30s`, `1.5h`, `500ms`, `1m30s`; a number alone is seconds, as for `timeout` and `flock`. */
export function parseDuration(text: string): number | undefined {
  if (/^\d+(\.\d+)?$/.test(text)) return Math.round(Number(text) * 1_000);
  if (!/^(\d+(\.\d+)?(ms|s|m|h|d))+$/.test(text)) return undefined;
  let totalMs = 0;
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)) {
    totalMs += Number(amount) * UNIT_MS[unit!]!;
  }
  return Math.round(totalMs);
}

/** As it would be given, to the millisecond: `3 s`, `500 ms`, `1.5 s`, `10 min`. */
export function durationText(durationMs: number): string {
  if (durationMs < 1_000) return `${durationMs} ms`;
  if (durationMs % 3_600_000 === 0) return `${durationMs / 3_600_000} h`;
  return durationMs % 60_000 === 0 ? `${durationMs / 60_000} min` : `${durationMs / 1_000} s`;
}

/** For people: `0.4 s`, `12 s`, `3 min 5 s`, `2 h 10 min`, `4 d 3 h`. */
export function describeDuration(durationMs: number): string {
  if (durationMs < 10_000) return `${(Math.floor(durationMs / 100) / 10).toFixed(1)} s`;
  const seconds = Math.floor(durationMs / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 24 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}
