import type { LockLease } from '../../src/holdfast.ts';
import type { Lock } from '../../src/locks/lock.ts';
import type { ZooKeeper } from '../../src/zookeeper.ts';

/** That somebody held a lock, from when to when by the machine's monotonic clock. */
export interface Hold {
  readonly who: string;
  /** Held as a reader. */
  readonly shared: boolean;
  readonly enteredNs: bigint;
  readonly leftNs: bigint;
  readonly token: bigint;
}

/** More than it takes the next one to come in: those who may hold together do. */
const LOOKS = 12;

/**
 * Takes and releases a lock again and again. Whoever is alone adds one to the counter, and fails if somebody else
 * wrote meanwhile; others look at it for a while, and a reader fails if it changes: two holders are found out even
 * where the clock would not show it.
 */
export async function cycle(
  zk: ZooKeeper,
  lock: Pick<Lock, 'acquire'>,
  options: {
    readonly who: string;
    readonly rounds: number;
    readonly counter: string;
    readonly as: 'holder' | 'reader' | 'one-of-many';
  },
): Promise<Hold[]> {
  const { who, rounds, counter, as } = options;
  const holds: Hold[] = [];
  for (let round = 0; round < rounds; round++) {
    await using lease = await lock.acquire();
    const enteredNs = process.hrtime.bigint();
    const { data, stat } = await zk.get(counter);
    if (as === 'holder') await zk.set(counter, `${Number(data) + 1}`, { version: stat.version });
    for (let look = 0; as !== 'holder' && look < LOOKS; look++) {
      const version = (await zk.exists(counter))?.version;
      if (as === 'reader' && version !== stat.version) throw new Error('written while it was read');
    }
    const leftNs = process.hrtime.bigint();
    holds.push({ who, shared: as === 'reader', enteredNs, leftNs, token: lease.token });
  }
  return holds;
}

/** Notes when a lease is granted: at that very moment, not when somebody comes to look. */
export async function timed<L extends LockLease>(
  acquiring: Promise<L>,
): Promise<{ readonly lease: L; readonly enteredNs: bigint }> {
  const lease = await acquiring;
  return { lease, enteredNs: process.hrtime.bigint() };
}

/** In the order in which they began. */
export function inTime(holds: readonly Hold[]): Hold[] {
  return [...holds].sort((a, b) => (a.enteredNs < b.enteredNs ? -1 : 1));
}

/** Pairs that held at the same time. */
export function overlaps(holds: readonly Hold[]): [Hold, Hold][] {
  const ordered = inTime(holds);
  return ordered.flatMap((hold, index) => {
    const pairs: [Hold, Hold][] = [];
    for (let later = index + 1; later < ordered.length; later++) {
      if (ordered[later]!.enteredNs > hold.leftNs) break;
      pairs.push([hold, ordered[later]!]);
    }
    return pairs;
  });
}

/** How many held at once, at most. */
export function mostAtOnce(holds: readonly Hold[]): number {
  const steps = holds.flatMap(({ enteredNs, leftNs }) => [
    { atNs: enteredNs, by: 1 },
    { atNs: leftNs, by: -1 },
  ]);
  steps.sort((a, b) => (a.atNs === b.atNs ? a.by - b.by : a.atNs < b.atNs ? -1 : 1));
  let now = 0;
  return Math.max(
    ...steps.map(({ by }) => {
      now += by;
      return now;
    }),
  );
}
