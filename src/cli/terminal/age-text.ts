const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const;

/** A length of time as people say it: `850ms`, `41s`, `3m12s`, `2h05m`, `9d04h`. */
export function ageText(ageMs: number): string {
  if (!(ageMs > 0)) return '0s'; // The server's clock may be ahead of ours.
  if (ageMs < 1_000) return `${Math.round(ageMs)}ms`;
  const index = UNITS.findIndex(([, unitMs]) => ageMs >= unitMs);
  const [unit, unitMs] = UNITS[index]!;
  const whole = Math.floor(ageMs / unitMs);
  const next = UNITS[index + 1];
  if (!next) return `${whole}${unit}`;
  const rest = Math.floor((ageMs % unitMs) / next[1]);
  return `${whole}${unit}${String(rest).padStart(2, '0')}${next[0]}`;
}
