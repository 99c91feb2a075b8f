import type { LockStep, PlannedClient, PlannedLock, Scenario } from '../../simulation/scenario/scenario.ts';

/** A world in which little is left to chance, to be changed in one point. */
export function smallWorld(
  locks: readonly PlannedLock[],
  tasks: readonly (readonly LockStep[])[],
  changes: Partial<Scenario> = {},
): Scenario {
  const clients = tasks.map(
    (steps, index): PlannedClient => ({
      name: `client-${index}`,
      clockRate: 1,
      sessionTimeoutMs: 2_000,
      servers: [0],
      tasks: [steps],
    }),
  );
  return {
    ...{ seed: 1, workload: 'small', locks, clients, faults: [] },
    ...{
      delayMsMax: 2,
      syncMsMax: 1,
      splitChance: 0.1,
      logBytesMax: 16_384,
      reapMs: 60_000,
      followerCount: 0,
    },
    ...changes,
  };
}

/** One who takes a lock and lets it go. */
export function taking(lock: PlannedLock, changes: Partial<LockStep> = {}): LockStep {
  const modes: Readonly<Record<PlannedLock['recipe'], LockStep['mode']>> = {
    mutex: 'exclusive',
    simple: 'exclusive',
    'read-write': 'write',
    semaphore: 'lease',
    election: 'leader',
  };
  return {
    ...{ kind: 'lock', afterMs: 0, locks: [lock.name], how: 'acquire', mode: modes[lock.recipe] },
    ...(lock.permits !== undefined && { weight: lock.permits }),
    ...{ holdMs: 5, act: 'nothing', release: 'once', listens: true },
    ...changes,
  };
}
