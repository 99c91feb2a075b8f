import { systemClock } from '../../base/clock.ts';
import type { Holdfast } from '../../locks/holdfast.ts';

/** Tasks that take and let go again and again. */
export interface Scenario {
  readonly name: string;
  readonly tasks: number;
  readonly locks: number;
  readonly sessions: number;
}

export interface Measurement extends Scenario {
  readonly cycles: number;
  readonly cyclesPerSecond: number;
  /** From asking to holding, in milliseconds. */
  readonly acquireMs: {
    readonly p50: number;
    readonly p95: number;
    readonly p99: number;
    readonly max: number;
  };
}

/** As those of docs/performance.md, so that the figures can be put side by side. */
export const SCENARIOS: readonly Scenario[] = [
  { name: 'solo', tasks: 1, locks: 1, sessions: 1 },
  { name: 'parallel', tasks: 32, locks: 32, sessions: 1 },
  { name: 'contended', tasks: 32, locks: 1, sessions: 8 },
];

const WARM_UP_SHARE = 0.2;

/** Runs one for so long. What the first fifth did is not counted: connections and code are cold then. */
export async function measure(
  scenario: Scenario,
  {
    clients,
    prefix,
    durationMs,
    signal,
  }: {
    readonly clients: readonly Holdfast[];
    readonly prefix: string;
    readonly durationMs: number;
    readonly signal: AbortSignal;
  },
): Promise<Measurement> {
  const startedAtMs = systemClock.nowMs();
  const countedFromMs = startedAtMs + durationMs * WARM_UP_SHARE;
  const endsAtMs = startedAtMs + durationMs;
  const acquireMs: number[] = [];
  let lastAtMs = countedFromMs;
  const task = async (index: number) => {
    const lock = clients[index % scenario.sessions]!.mutex(
      `${prefix}-${scenario.name}-${index % scenario.locks}`,
    );
    while (systemClock.nowMs() < endsAtMs) {
      signal.throwIfAborted();
      const askedAtMs = systemClock.nowMs();
      const lease = await lock.acquire({ signal });
      const heldAtMs = systemClock.nowMs();
      await lease.release();
      if (askedAtMs < countedFromMs) continue;
      acquireMs.push(heldAtMs - askedAtMs);
      lastAtMs = systemClock.nowMs();
    }
  };
  await Promise.all(Array.from({ length: scenario.tasks }, (_, index) => task(index)));
  acquireMs.sort((a, b) => a - b);
  const countedMs = Math.max(1, lastAtMs - countedFromMs);
  return {
    ...scenario,
    cycles: acquireMs.length,
    cyclesPerSecond: (acquireMs.length / countedMs) * 1_000,
    acquireMs: {
      p50: percentile(acquireMs, 0.5),
      p95: percentile(acquireMs, 0.95),
      p99: percentile(acquireMs, 0.99),
      max: acquireMs.at(-1) ?? Number.NaN,
    },
  };
}

/** Of sorted numbers: the smallest that so large a share is not above. */
export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(sorted.length * share) - 1))] ?? Number.NaN;
}
