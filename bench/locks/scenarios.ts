// What is measured. The bench, its tables and its charts are made from this list.
import type { LockKind } from './orders.ts';

/** Where the servers are: one of each on this machine, or three ZooKeeper servers. */
export type Place = 'standalone' | 'ensemble';

interface Described {
  readonly id: string;
  /** One line for a table. */
  readonly title: string;
}

/** Tasks that take and let go as fast as they can. */
export interface RateScenario extends Described {
  readonly kind: 'rate';
  readonly place: Place;
  readonly lock: LockKind;
  /** Of one process. */
  readonly tasks: number;
  readonly locks: number;
  readonly sessions: number;
  readonly processes: number;
  /** Whom the ratios are against. */
  readonly baseline: string;
  /** Whose ratio it is about. */
  readonly subject: string;
  /** Ratios to the baseline that the design wants of it. */
  readonly design?: { readonly floor: number; readonly aim: number };
  /** So many times the rounds of others: where one task waits for threads to be woken, each round is another story. */
  readonly roundsFactor?: number;
  /** Left out of a quick run: what it has to set up takes too long for one. */
  readonly slow?: true;
}

/** One thing that is waited for, with so much latency on the way that nothing else counts. */
export interface RoundTripScenario extends Described {
  readonly kind: 'round-trips';
  readonly what: 'acquire' | 'hand-over';
  readonly lock: LockKind;
  readonly baseline: string;
}

/** How the cost of a hand-over grows with those who wait. */
export interface GrowthScenario extends Described {
  readonly kind: 'growth';
  readonly waiters: readonly number[];
  readonly sessions: number;
  readonly baseline: string;
}

export type Scenario = RateScenario | RoundTripScenario | GrowthScenario;

export const ROUND_TRIP_MS = 20;

const rate = {
  kind: 'rate',
  place: 'standalone',
  lock: 'mutex',
  tasks: 1,
  locks: 1,
  sessions: 1,
  processes: 1,
  baseline: 'curator',
  subject: 'holdfast',
} as const;

const cached: readonly RateScenario[] = [
  { id: 'cached-solo', title: 'lease caching, solo: 1 task, 1 lock', tasks: 1, locks: 1 },
  {
    id: 'cached-parallel',
    title: 'lease caching, parallel: 32 tasks, 32 locks, 1 session',
    tasks: 32,
    locks: 32,
  },
].map((each) => ({
  ...rate,
  ...each,
  subject: 'holdfast-cached',
  baseline: 'redlock',
  design: { floor: 10, aim: 30 },
}));

export const SCENARIOS: readonly Scenario[] = [
  { ...rate, id: 'solo', title: 'solo: 1 task, 1 lock', roundsFactor: 3, design: { floor: 1.5, aim: 2 } },
  {
    ...rate,
    id: 'parallel',
    title: 'parallel: 32 tasks, 32 locks, 1 session',
    tasks: 32,
    locks: 32,
    design: { floor: 2.3, aim: 4 },
  },
  {
    ...rate,
    id: 'contended',
    title: 'contended: 32 tasks, 1 lock, 8 sessions',
    tasks: 32,
    sessions: 8,
    design: { floor: 3, aim: 6 },
  },
  {
    ...rate,
    id: 'crowd-200',
    title: 'crowd: 200 tasks, 1 lock, 8 sessions',
    tasks: 200,
    sessions: 8,
    design: { floor: 3, aim: 8 },
  },
  {
    ...rate,
    id: 'crowd-1000',
    title: 'large crowd: 1000 tasks, 1 lock, 8 sessions',
    tasks: 1_000,
    sessions: 8,
    slow: true,
  },
  {
    ...rate,
    id: 'processes',
    title: 'processes: 8 of them, 1 session and 4 tasks each, 1 lock',
    tasks: 4,
    processes: 8,
    slow: true,
  },
  {
    ...rate,
    id: 'read-write',
    title: 'read-write: 32 tasks, 90 % readers, 1 lock, 8 sessions',
    lock: 'read-write',
    tasks: 32,
    sessions: 8,
  },
  {
    ...rate,
    id: 'semaphore',
    title: 'semaphore: 32 tasks, 4 permits, 8 sessions',
    lock: 'semaphore',
    tasks: 32,
    sessions: 8,
  },
  { ...rate, id: 'five-locks', title: 'five locks at once: 1 task', lock: 'five-locks' },
  {
    ...rate,
    id: 'herd',
    title: 'herd: 100 tasks, 1 lock, 8 sessions',
    tasks: 100,
    sessions: 8,
    baseline: 'holdfast-simple',
  },
  ...cached,
  {
    ...rate,
    id: 'ensemble-solo',
    title: 'three servers, solo: 1 task, 1 lock',
    place: 'ensemble',
    slow: true,
  },
  {
    ...rate,
    id: 'ensemble-parallel',
    title: 'three servers, parallel: 32 tasks, 32 locks, 1 session',
    place: 'ensemble',
    tasks: 32,
    locks: 32,
    slow: true,
  },
  {
    ...rate,
    id: 'ensemble-contended',
    title: 'three servers, contended: 32 tasks, 1 lock, 8 sessions',
    place: 'ensemble',
    tasks: 32,
    sessions: 8,
  },
  {
    kind: 'round-trips',
    id: 'distant-acquire',
    title: 'a free lock, 20 ms away',
    what: 'acquire',
    lock: 'mutex',
    baseline: 'curator',
  },
  {
    kind: 'round-trips',
    id: 'distant-hand-over',
    title: 'from letting go to the next holder, 20 ms away',
    what: 'hand-over',
    lock: 'mutex',
    baseline: 'curator',
  },
  {
    kind: 'round-trips',
    id: 'distant-five-locks',
    title: 'five free locks, 20 ms away',
    what: 'acquire',
    lock: 'five-locks',
    baseline: 'curator',
  },
  {
    kind: 'growth',
    id: 'waiters',
    title: 'a hand-over with so many waiting, 8 sessions',
    waiters: [10, 100, 1_000, 5_000],
    sessions: 8,
    baseline: 'curator',
  },
];
