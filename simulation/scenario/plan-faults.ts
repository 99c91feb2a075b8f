import type { Dice } from './dice.ts';
import {
  type Fault,
  type FaultKind,
  type PlannedClient,
  type PlannedLock,
  SESSION_TIMEOUT_MS_MIN,
  UNSAFE_MS,
} from './scenario.ts';

/** Every kind of fault that there is. */
export const faultKinds: readonly FaultKind[] = [
  'reset',
  'cut',
  'partition',
  'refuse',
  'delay',
  'stall',
  'kill',
  'expire',
  'remove',
  'remove-folder',
  'crash',
  'stall-server',
  'disk-full',
  'slow-disk',
  'isolate',
  'lag',
  'raise-tokens',
  'limit',
  'impostor',
  'restore',
];
/** Drawn by themselves, so that the other faults of a seed stay what they are: see `planRaises`. */
const drawnApart: readonly FaultKind[] = ['raise-tokens'];

interface FaultSetting {
  readonly clients: readonly PlannedClient[];
  readonly locks: readonly PlannedLock[];
  readonly followerCount: number;
  readonly kinds: readonly string[] | undefined;
}

/** Draws what goes wrong: first which kinds may, so that what one kind hides another run shows. */
export function planFaults(dice: Dice, setting: FaultSetting): Fault[] {
  const drawn = setting.kinds
    ? faultKinds.filter((kind) => setting.kinds!.includes(kind))
    : faultKinds.filter((kind) => !drawnApart.includes(kind) && dice.chance(0.3));
  const kinds = drawn.filter(
    (kind) =>
      !drawnApart.includes(kind) &&
      (kind !== 'remove' || removable(setting.locks).length > 0) &&
      ((kind !== 'isolate' && kind !== 'lag') || setting.followerCount > 0),
  );
  if (kinds.length === 0) return [];
  const count = dice.whole(1, 10);
  // Many are done long before the end: what comes early meets more of them.
  const untilMs = UNSAFE_MS * dice.pick([0.2, 0.4, 0.8]);
  // What takes two faults to show takes them to strike the same one.
  const victims = dice.chance(0.3) ? [dice.pick(setting.clients)] : setting.clients;
  const faults = Array.from({ length: count }, () =>
    planFault(dice, dice.pick(kinds), { ...setting, clients: victims }, untilMs),
  ).flatMap((fault) => {
    if (fault.kind === 'remove-folder') return repeated(fault);
    return fault.kind === 'cut' || fault.kind === 'reset' ? burst(dice, fault) : [fault];
  });
  return faults.sort((a, b) => a.atMs - b.atMs);
}

/** The floor of tokens is raised, as after a move from another store; not rarely while all go on. */
export function planRaises(dice: Dice, kinds: readonly string[] | undefined): Fault[] {
  const kind = 'raise-tokens';
  if (kinds ? !kinds.includes(kind) : !dice.chance(0.15)) return [];
  const untilMs = UNSAFE_MS * dice.pick([0.2, 0.8]);
  return Array.from({ length: dice.whole(1, 4) }, () => ({
    ...{ kind, atMs: dice.between(0, untilMs), by: dice.whole(1, 1_000_000) },
  }));
}

/** A folder is removed only while it is empty, which one that is used again and again is for a moment at a time. */
function repeated<F extends Fault>(fault: F): F[] {
  const { count, everyMs } = { count: 16, everyMs: 617 };
  return Array.from({ length: count }, (_, index) => ({
    ...{ ...fault, atMs: fault.atMs + index * everyMs },
    ...(index % 2 === 1 && { anew: true }),
  })).filter(({ atMs }) => atMs < UNSAFE_MS);
}

/** A connection that breaks once often breaks again: while what the first time left open is being sorted out. */
function burst(dice: Dice, fault: Fault): Fault[] {
  const count = dice.whole(1, 4);
  return Array.from({ length: count }, (_, index) => ({
    ...fault,
    atMs: fault.atMs + index * dice.between(5, 400),
  }));
}

function planFault(
  dice: Dice,
  kind: FaultKind,
  { clients, locks, followerCount }: FaultSetting,
  untilMs: number,
): Fault {
  const atMs = dice.between(0, untilMs);
  const client = dice.pick(clients).name;
  const lock = dice.pick(locks).name;
  const forMs = dice.chance(0.5) ? dice.between(10, 600) : dice.between(500, 5_000);
  switch (kind) {
    case 'reset':
      return { atMs, kind, client, ...(dice.chance(0.5) && { late: true }) };
    case 'cut':
      return {
        atMs,
        kind,
        client,
        heading: dice.pick(['to-client', 'to-server']),
        bytes: dice.whole(0, 400),
      };
    case 'partition':
      return { atMs, kind, client, heading: dice.pick(['to-client', 'to-server', 'both']), forMs };
    case 'refuse':
      return { atMs, kind, client, forMs, ...(dice.chance(0.5) && { late: true }) };
    case 'delay':
      return { atMs, kind, client, delayMsMax: dice.between(100, 1_500), forMs };
    case 'stall':
      return { atMs, kind, client, forMs, first: dice.pick(['alarms', 'inputs']) };
    case 'kill':
      return { atMs, kind, client, silently: dice.chance(0.5) };
    case 'expire':
      return { atMs, kind, client };
    case 'remove':
      return {
        atMs,
        kind,
        lock: dice.pick(removable(locks)).name,
        which: dice.pick(['first', 'second', 'last']),
        ...(dice.chance(0.4) && { atHandOver: true }),
      };
    case 'remove-folder':
      return { atMs, kind, lock };
    case 'crash':
      return { atMs, kind, forMs: dice.between(10, 2_500) };
    case 'stall-server':
    case 'disk-full':
      return { atMs, kind, forMs };
    case 'slow-disk':
      return { atMs, kind, syncMsMax: dice.between(50, 800), forMs };
    case 'raise-tokens':
      return { atMs, kind, by: 1 };
    case 'isolate':
      return { atMs, kind, follower: dice.whole(1, Math.max(1, followerCount)), forMs };
    case 'limit':
      return {
        ...{ atMs, kind, client, forMs },
        sessionTimeoutMsMax: dice.chance(0.7)
          ? SESSION_TIMEOUT_MS_MIN
          : dice.whole(SESSION_TIMEOUT_MS_MIN, 3_000),
        unheardMs: dice.between(100, 4_000),
      };
    case 'impostor':
      return { atMs, kind, client, timeoutMs: dice.pick([0, 1_000, 2 ** 31 - 1]), forMs };
    case 'restore':
      // Longer than a session, which must be lost before another server can be taken for this one.
      return { atMs, kind, client, looks: dice.chance(0.5), forMs: dice.between(2_000, 9_000) };
    case 'lag':
      return {
        atMs,
        kind,
        follower: dice.whole(1, Math.max(1, followerCount)),
        lagMs: dice.between(5, dice.pick([100, 900])),
        forMs: dice.between(200, 6_000),
      };
  }
}

/** A simple lock promises nothing to anyone once its one node was removed by hand: docs/recipes/simple-lock.md. */
function removable(locks: readonly PlannedLock[]): readonly PlannedLock[] {
  return locks.filter(({ recipe }) => recipe !== 'simple');
}
