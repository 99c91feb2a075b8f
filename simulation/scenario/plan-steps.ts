import type { Dice } from './dice.ts';
import type { Abort, LockStep, PlannedLock, Step } from './scenario.ts';

/** What users can be made to do most of the time. */
export type Often = 'close' | 'time-out' | 'hold-long' | 'fence-late';

/** What the users of a scenario tend to do. */
export interface Habits {
  readonly timeoutChance: number;
  readonly closeChance: number;
  /** Longer than sessions last. */
  readonly longHoldChance: number;
  /** Between two things that one task does. */
  readonly pauseMsMax: number;
  /** Every holder reads and writes what its lock protects. */
  readonly counts: boolean;
  /** Admit their tokens once more when they have let go. */
  readonly fencesLate: boolean;
}

/** Draws what they tend to do; `often` says what at any rate. */
export function planHabits(dice: Dice, often: Often | undefined): Habits {
  const timeoutChance = dice.pick([0.1, 0.3, 0.3, 0.9]);
  const closeChance = dice.pick([0, 0, 0.02, 0.1]);
  const longHoldChance = dice.pick([0, 0, 0.05, 0.2]);
  return {
    timeoutChance: often === 'time-out' ? 0.9 : timeoutChance,
    closeChance: often === 'close' ? 0.15 : closeChance,
    longHoldChance: often === 'hold-long' ? 0.5 : longHoldChance,
    pauseMsMax: 500,
    counts: dice.chance(0.5),
    fencesLate: often === 'fence-late',
  };
}

/** Draws one thing for a client to do. */
export function planStep(dice: Dice, locks: readonly PlannedLock[], habits: Habits): Step {
  const lock = dice.pick(locks);
  const afterMs = dice.chance(0.3) ? 0 : dice.between(0, habits.pauseMsMax);
  if (dice.chance(0.04)) return { kind: 'look', afterMs, lock: lock.name };
  if (dice.chance(0.04)) return { kind: 'revoke', afterMs, lock: lock.name };
  if (dice.chance(habits.closeChance)) return { kind: 'close', afterMs };
  if (lock.recipe === 'election' && dice.chance(0.15)) {
    return { kind: 'observe', afterMs, lock: lock.name, forMs: dice.between(0, 3_000) };
  }
  const mutexes = locks.filter(({ recipe }) => recipe === 'mutex').map(({ name }) => name);
  const several = lock.recipe === 'mutex' && mutexes.length > 1 && dice.chance(0.6);
  const mode = modeOf(dice, lock);
  return {
    kind: 'lock',
    afterMs,
    locks: several ? mutexes.filter((name) => name === lock.name || dice.chance(0.5)) : [lock.name],
    how: dice.pick(['acquire', 'acquire', 'acquire', 'try', 'attempt', 'use']),
    mode,
    ...(mode === 'lease' && { weight: dice.whole(1, lock.permits!) }),
    ...(dice.chance(habits.timeoutChance) && { timeoutMs: dice.whole(0, dice.pick([200, 3_000])) }),
    ...(dice.chance(0.15) && { abort: planAbort(dice) }),
    holdMs: planHoldMs(dice, habits),
    act: habits.fencesLate ? 'late-fence' : actOf(dice, mode),
    ...(habits.counts && { counts: true }),
    release: dice.pick(['once', 'once', 'twice', 'dispose', 'not-awaited']),
    listens: dice.chance(0.7),
  };
}

function planHoldMs(dice: Dice, { longHoldChance }: Habits): number {
  if (dice.chance(longHoldChance)) return dice.between(1_000, 5_000);
  return dice.chance(0.3) ? 0 : dice.between(0, dice.chance(0.2) ? 1_500 : 250);
}

function planAbort(dice: Dice): Abort {
  const reactions = dice.whole(0, 12);
  if (dice.chance(0.25)) return { steps: 5_000, reactions, onLoss: true };
  return { steps: dice.whole(0, 40), reactions };
}

function modeOf(dice: Dice, { recipe }: PlannedLock): LockStep['mode'] {
  switch (recipe) {
    case 'mutex':
    case 'simple':
      return 'exclusive';
    case 'read-write':
      return dice.chance(0.6) ? 'read' : 'write';
    case 'semaphore':
      return 'lease';
    case 'election':
      return 'leader';
  }
}

function actOf(dice: Dice, mode: LockStep['mode']): LockStep['act'] {
  if (mode === 'write' && dice.chance(0.4)) return 'downgrade';
  return dice.pick(['nothing', 'guard', 'guard-on-leaving', 'fence', 'late-fence', 're-enter', 'nested-use']);
}
