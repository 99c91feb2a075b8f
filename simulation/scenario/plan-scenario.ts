import { seededRandom } from '../../src/base/random.ts';
import type { MutexOptions } from '../../src/locks/mutex-options.ts';
import { Dice } from './dice.ts';
import { withLongNames } from './long-names.ts';
import { planFaults, planRaises } from './plan-faults.ts';
import { type Habits, type Often, planHabits, planStep } from './plan-steps.ts';
import type { PlannedClient, PlannedLock, Scenario } from './scenario.ts';

/** What a scenario is to be about, where chance is not to decide. */
export interface PlanOptions {
  readonly workload?: Workload;
  /** Only these kinds of faults. */
  readonly faults?: readonly string[];
  /** What clients do more often than in most scenarios. */
  readonly often?: Often;
}

/** Which locks there are: one recipe, or several beside each other. */
export type Workload = (typeof workloads)[number];

export const workloads = [
  'mutex',
  'read-write',
  'semaphore',
  'multi-lock',
  'election',
  'simple',
  'mixed',
  'cached',
  'hand-off',
  'again',
] as const;

/** The last number that a contender can get, and from where on all get the same. */
const SEQUENCE_LAST = 2 ** 31 - 1;

/** Makes the scenario of a seed. */
export function planScenario(seed: number, options: PlanOptions = {}): Scenario {
  const dice = new Dice(seededRandom(Math.imul(seed, 0x2545f491) ^ 0x1234567));
  const workload = options.workload ?? dice.pick(['mutex', ...workloads]);
  const locks = planLocks(dice, workload);
  const needed = options.faults?.some((kind) => kind === 'isolate' || kind === 'lag') ?? false;
  const followerCount = dice.chance(0.3) || needed ? dice.whole(1, 2) : 0;
  const habits = planHabits(dice, options.often);
  // What several contenders make by one name, or with one number, has to be read by all of them.
  const mayBeSecret = locks.every(
    ({ recipe, firstSequence }) => recipe !== 'simple' && firstSequence === undefined,
  );
  const secretChance = dice.chance(0.15) && mayBeSecret ? 0.5 : 0;
  const clientCount = dice.whole(2, 5);
  const stepCount = Math.ceil(dice.whole(12, 45) / clientCount);
  const clients = shareProcesses(
    dice,
    Array.from({ length: clientCount }, (_, index) =>
      planClient(dice, {
        index,
        locks,
        followerCount,
        secretChance,
        ...(workload === 'again' ? habitsAgain(index, stepCount, habits) : { stepCount, habits }),
      }),
    ),
    // What tasks share, and what a follower has not seen, shows where locks are handed over in memory.
    followerCount > 0 || locks.some(({ sharing }) => sharing) ? 0.6 : 0.3,
  );
  const own = new Dice(seededRandom(Math.imul(seed, 0x2545f491) ^ 0x0badf00d));
  const faults = [
    ...planFaults(dice, { clients, locks, followerCount, kinds: options.faults }),
    ...planRaises(own, options.faults),
  ].sort((a, b) => a.atMs - b.atMs);
  // A counter that was set by hand is not on disk.
  const crashes = faults.some(({ kind }) => kind === 'crash');
  const scenario = {
    seed,
    workload,
    locks: crashes ? locks.map(({ firstSequence, ...lock }) => lock) : locks,
    clients,
    faults,
    delayMsMax: dice.pick([2, 10, 40, 150]),
    syncMsMax: dice.pick([1, 5, 40]),
    splitChance: dice.pick([0, 0.1, 0.5]),
    logBytesMax: dice.pick([2_000, 16_384]),
    reapMs: dice.pick([1_500, 60_000]),
    followerCount,
    ...(own.chance(0.1) && { closedFolder: true }),
  };
  return own.chance(0.15) ? withLongNames(own, scenario) : scenario;
}

function planLocks(dice: Dice, workload: Workload): PlannedLock[] {
  switch (workload) {
    case 'mutex':
      return [{ name: 'm', recipe: 'mutex', ...(dice.chance(0.1) && nearlyStuck(dice)) }];
    case 'read-write':
      return [{ name: 'rw', recipe: 'read-write', ...(dice.chance(0.1) && nearlyStuck(dice)) }];
    case 'semaphore':
      return [{ name: 's', recipe: 'semaphore', permits: dice.whole(1, 4) }];
    case 'multi-lock':
      return ['a', 'b', 'c'].map((name) => ({ name, recipe: 'mutex' }));
    case 'election':
      return [{ name: 'e', recipe: 'election' }];
    case 'simple':
      return [{ name: 'x', recipe: 'simple' }];
    case 'cached':
      return [{ name: 'm', recipe: 'mutex', sharing: { cache: { idleMs: dice.pick([300, 10_000]) } } }];
    case 'hand-off':
      return [{ name: 'm', recipe: 'mutex', sharing: planHandOff(dice) }];
    case 'again':
      return [{ name: 'm', recipe: 'mutex', ...(dice.chance(0.1) && nearlyStuck(dice)) }];
    case 'mixed':
      return [
        { name: 'm', recipe: 'mutex' },
        { name: 'rw', recipe: 'read-write' },
        { name: 's', recipe: 'semaphore', permits: 2 },
        { name: 'e', recipe: 'election' },
        { name: 'x', recipe: 'simple' },
      ];
  }
}

function planHandOff(dice: Dice): MutexOptions {
  return {
    handOff: { grantsMax: dice.whole(1, 3), ms: dice.pick([100, 60_000]) },
    ...(dice.chance(0.3) && { cache: { idleMs: 500 } }),
  };
}

function nearlyStuck(dice: Dice): { readonly firstSequence: number } {
  return { firstSequence: SEQUENCE_LAST - dice.whole(0, 6) };
}

/** One takes the lock again and again; others come by. */
function habitsAgain(
  index: number,
  stepCount: number,
  habits: Habits,
): Pick<ClientSetting, 'stepCount' | 'habits'> {
  return index === 0
    ? { stepCount: 2 * stepCount, habits: { ...habits, pauseMsMax: 50 } }
    : { stepCount: Math.ceil(stepCount / 3), habits: { ...habits, pauseMsMax: 4_000 } };
}

interface ClientSetting {
  readonly index: number;
  readonly locks: readonly PlannedLock[];
  readonly followerCount: number;
  readonly secretChance: number;
  readonly stepCount: number;
  readonly habits: Habits;
}

function planClient(
  dice: Dice,
  { index, locks, followerCount, secretChance, stepCount, habits }: ClientSetting,
): PlannedClient {
  const servers = Array.from({ length: followerCount + 1 }, (_, server) => server);
  const shared = locks.some(({ sharing }) => sharing);
  const taskCount = shared ? dice.whole(1, 4) : dice.chance(0.3) ? 2 : 1;
  return {
    name: `client-${index}`,
    clockRate: dice.chance(0.3) ? dice.whole(9_910, 10_100) / 10_000 : 1,
    sessionTimeoutMs: dice.pick([1_500, 2_000, 4_000]),
    ...(dice.chance(secretChance) && { secret: true }),
    servers: servers.length > 1 && dice.chance(0.4) ? [dice.pick(servers)] : servers,
    tasks: Array.from({ length: taskCount }, () =>
      Array.from({ length: Math.ceil(stepCount / taskCount) }, () => planStep(dice, locks, habits)),
    ),
  };
}

/** In some scenarios the first few are connections of one process, whose places know of each other. */
function shareProcesses(
  dice: Dice,
  clients: readonly PlannedClient[],
  chance: number,
): readonly PlannedClient[] {
  if (!dice.chance(chance)) return clients;
  const count = dice.whole(2, clients.length);
  const { clockRate } = clients[0]!;
  return clients.map((client, index) =>
    index < count ? { ...client, process: 'process', clockRate } : client,
  );
}
