import type { HoldMode, LockRecipe } from '../../simulation/checker/history.ts';
import type { Holdfast, Lock, LockLease } from '../../src/holdfast.ts';

/** What the nemesis tells one of its workers. */
export interface WorkerOrders {
  /** What the history calls it. */
  readonly client: string;
  /** Counted from 1; the same for all its lives. */
  readonly slot: number;
  readonly seed: number;
  /** A connect string for each session. */
  readonly sessions: readonly string[];
  readonly sessionTimeoutMs: number;
  readonly resourcePort: number;
  readonly historyFile: string;
  /** Where the history of the control goes, a lock that is wrong. */
  readonly controlFile: string;
}

/** What a worker tells the nemesis. */
export type WorkerReport =
  | { readonly kind: 'ready' }
  | { readonly kind: 'progress'; readonly grants: number }
  /** It holds one of the locks whose holder is worth striking, or has let go of it. */
  | { readonly kind: 'holding'; readonly lock: string; readonly held: boolean }
  | { readonly kind: 'drained' }
  | { readonly kind: 'failed'; readonly error: string };

/** What the nemesis asks of a worker that runs. */
export type WorkerCommand =
  | { readonly kind: 'drain' }
  | { readonly kind: 'close' }
  /** To keep its event loop busy: unlike a stop, sockets fill up and timers are all late at once. */
  | { readonly kind: 'block'; readonly forMs: number };

/** All locks of a run. */
export const LOCKS: Readonly<Record<string, { readonly recipe: LockRecipe; readonly permits?: number }>> = {
  a: { recipe: 'mutex' },
  b: { recipe: 'mutex' },
  rw: { recipe: 'read-write' },
  s: { recipe: 'semaphore', permits: 3 },
  e: { recipe: 'election' },
  x: { recipe: 'simple' },
  // Held for seconds, so that whatever goes wrong strikes somebody who holds.
  l1: { recipe: 'mutex' },
  l2: { recipe: 'mutex' },
  l3: { recipe: 'read-write' },
  l4: { recipe: 'election' },
  // One for each worker, which takes it again and again; others come by.
  o1: { recipe: 'mutex' },
  o2: { recipe: 'mutex' },
  o3: { recipe: 'mutex' },
  o4: { recipe: 'mutex' },
  o5: { recipe: 'mutex' },
  // One for each worker, between whose connections it goes back and forth, in memory.
  p1: { recipe: 'mutex' },
  p2: { recipe: 'mutex' },
  p3: { recipe: 'read-write' },
  p4: { recipe: 'election' },
  p5: { recipe: 'mutex' },
};

/** The lock whose holders are stopped on purpose: what they write when they wake must be refused. */
export const STRUCK_LOCK = 'a';
/** The lock that is wrong. */
export const CONTROL_LOCK = 'control';
/** The folder that everything of a run is in. */
export const CHROOT = '/nemesis';

/** One thing a worker may want. */
export interface Wish {
  readonly locks: readonly string[];
  readonly mode: HoldMode;
  readonly weight: number;
  /** How long it is held, at most, for each of some writes. */
  readonly holdMsMax?: number;
  /** Permits identify and do not order: they are no use to a fence. */
  readonly fenced: boolean;
  lock(holdfast: Holdfast): Lock;
  /** Options beside those of waiting. */
  readonly options?: Readonly<Record<string, unknown>>;
  /** How the holder goes on with less, if it does. */
  downgrade?(holdfast: Holdfast, lease: LockLease): Promise<LockLease>;
}

const mutex = (name: string): Wish => ({
  locks: [name],
  mode: 'exclusive',
  weight: 1,
  fenced: true,
  lock: (holdfast) => holdfast.mutex(name),
});
const permits = (weight: number): Wish => ({
  locks: ['s'],
  mode: 'lease',
  weight,
  fenced: false,
  lock: (holdfast) => holdfast.semaphore('s', { permits: LOCKS['s']!.permits! }) as unknown as Lock,
  options: { permits: weight },
});
const write: Wish = {
  locks: ['rw'],
  mode: 'write',
  weight: 1,
  fenced: true,
  lock: (holdfast) => holdfast.readWriteLock('rw').write,
};

/** What is held for long, by a task of its own in each session. */
export const LONG_WISHES: readonly Wish[] = [
  { ...mutex('l1'), holdMsMax: 2_500 },
  { ...mutex('l2'), holdMsMax: 2_500 },
  { ...write, locks: ['l3'], holdMsMax: 2_500, lock: (holdfast) => holdfast.readWriteLock('l3').write },
  {
    ...write,
    mode: 'read',
    locks: ['l3'],
    holdMsMax: 2_500,
    lock: (holdfast) => holdfast.readWriteLock('l3').read,
  },
  { ...mutex('l4'), holdMsMax: 2_500, mode: 'leader', lock: (holdfast) => holdfast.election('l4') },
];

/** So often a worker takes its own lock before it goes to another's. */
const OWN_ROUNDS = 500;

/** What the worker of a slot wants of those locks that one worker takes again and again. */
export function ownWishes(slot: number): readonly Wish[] {
  const own = Object.keys(LOCKS).filter((name) => name.startsWith('o'));
  const wishes = own.map((name) => ({ ...mutex(name), holdMsMax: 2 }));
  const mine = own.indexOf(`o${slot}`);
  return wishes.flatMap((wish, index) =>
    index === mine ? Array<Wish>((own.length - 1) * OWN_ROUNDS).fill(wish) : [wish],
  );
}

/** What the worker of a slot wants of the lock that its own connections share. */
export function sharedWishes(slot: number): readonly Wish[] {
  const name = `p${slot}`;
  const wish = { ...mutex(name), holdMsMax: 2 };
  switch (LOCKS[name]?.recipe) {
    case 'read-write':
      return [{ ...wish, mode: 'write', lock: (holdfast) => holdfast.readWriteLock(name).write }];
    case 'election':
      return [{ ...wish, mode: 'leader', lock: (holdfast) => holdfast.election(name) }];
    default:
      return [wish];
  }
}

/** What workers want, as often as it stands here. */
export const WISHES: readonly Wish[] = [
  mutex('a'),
  mutex('a'),
  mutex('a'),
  mutex('b'),
  {
    ...mutex('a'),
    locks: ['a', 'b'],
    lock: (holdfast) => holdfast.multiLock(['b', 'a']),
  },
  { ...write, mode: 'read', lock: (holdfast) => holdfast.readWriteLock('rw').read },
  { ...write, mode: 'read', lock: (holdfast) => holdfast.readWriteLock('rw').read },
  write,
  {
    ...write,
    // Beside the write lease first, and the write lease released by whoever asked for it.
    downgrade: (holdfast, lease) => holdfast.readWriteLock('rw').read.acquire({ within: lease }),
  },
  permits(1),
  permits(1),
  permits(2),
  { ...mutex('e'), mode: 'leader', lock: (holdfast) => holdfast.election('e') },
  { ...mutex('x'), lock: (holdfast) => holdfast.simpleLock('x') },
];
