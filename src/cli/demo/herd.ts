import { orAbort } from '../../base/abort.ts';
import { systemClock } from '../../base/clock.ts';
import { deferred } from '../../base/deferred.ts';
import { systemRandom } from '../../base/random.ts';
import { TcpTransport } from '../../client/tcp-transport.ts';
import { connect, type Holdfast } from '../../locks/holdfast.ts';
import type { Lock } from '../../locks/lock.ts';
import { SimpleLock } from '../../locks/simple-lock.ts';
import type { Tell } from '../terminal/progress.ts';
import { CountingTransport, type Traffic } from './counting-transport.ts';
import type { Stage } from './stage.ts';

/** How many clients want the lock at once. */
export const HERD_SIZES = [10, 50, 100, 200] as const;

/** Why a size was left out. */
export type LeftOut = 'connections' | 'time';

export interface HerdCounts {
  readonly counts: readonly HerdCount[];
  readonly leftOut?: LeftOut;
}

/** What it cost until each of so many clients had held the lock once. */
export interface HerdCount {
  readonly clients: number;
  readonly simple: Cost;
  readonly mutex: Cost;
}

export interface Cost {
  readonly requests: number;
  readonly events: number;
  readonly tookMs: number;
}

/** ZooKeeper takes 60 connections from one address unless told otherwise, and just hangs up on more. */
const CONNECT_TIMEOUT_MS = 5_000;
const CONNECT_AT_ONCE = 20;
/** Long: on a busy machine the herd takes its time, and nobody is to be lost in it. */
const SESSION_MS = 30_000;
/** A size whose turn would not be over by then is left out: on a busy machine the largest takes minutes. */
const BUDGET_MS = 25_000;

/**
 * Measures the herd: for each size, all clients want one lock, each has its own connection, and every request and
 * every event is counted where it goes over the socket. Sizes that
 * the servers do not take, or that would take too long here, are left out.
 */
export async function measureHerd(
  stage: Stage,
  {
    sizes,
    signal,
    tell,
  }: { readonly sizes: readonly number[]; readonly signal: AbortSignal; readonly tell: Tell },
): Promise<HerdCounts> {
  const startedAtMs = systemClock.nowMs();
  const traffic: Traffic = { requestCount: 0, eventCount: 0 };
  const clients: Holdfast[] = [];
  const counts: HerdCount[] = [];
  try {
    for (const size of sizes) {
      tell(`connecting ${size} clients`);
      if (isTooLong(counts.at(-1), size, systemClock.nowMs() - startedAtMs))
        return { counts, leftOut: 'time' };
      if (!(await grow(clients, size, stage, traffic))) return { counts, leftOut: 'connections' };
      signal.throwIfAborted();
      const some = clients.slice(0, size);
      const drain = async (kind: 'simpleLock' | 'mutex') => {
        tell(`${size} clients take a ${kind === 'mutex' ? 'Mutex' : 'SimpleLock'} in turn`);
        const name = `herd-${size}-${kind}`;
        const folder = `${stage.options.root}${kind === 'mutex' ? `/${name}` : ''}`;
        // Made before, so that only what recurs is counted.
        await stage.holdfast.zk.ensurePath(folder, { mode: 'container' });
        const locks = some.map((client) => client[kind](name));
        return drained(locks, traffic, signal);
      };
      counts.push({ clients: size, simple: await drain('simpleLock'), mutex: await drain('mutex') });
    }
    return { counts };
  } finally {
    await Promise.all(clients.map((client) => client.close()));
  }
}

/** The simple lock's time grows with the square of the clients. */
function isTooLong(last: HerdCount | undefined, size: number, spentMs: number): boolean {
  if (!last) return false;
  return spentMs + last.simple.tookMs * (size / last.clients) ** 2 > BUDGET_MS;
}

/** Whether there are so many connections now. */
async function grow(
  clients: Holdfast[],
  size: number,
  { options }: Stage,
  traffic: Traffic,
): Promise<boolean> {
  while (clients.length < size) {
    const count = Math.min(CONNECT_AT_ONCE, size - clients.length);
    const settled = await Promise.allSettled(
      Array.from({ length: count }, () => {
        const transport = new CountingTransport(
          new TcpTransport({ tls: options.tls, random: systemRandom, resolve: options.resolve }),
          traffic,
        );
        return connect({
          ...options,
          sessionTimeoutMs: SESSION_MS,
          timeoutMs: CONNECT_TIMEOUT_MS,
          transport,
        });
      }),
    );
    for (const result of settled) if (result.status === 'fulfilled') clients.push(result.value);
    const failed = settled.find((result) => result.status === 'rejected');
    if (failed) {
      if (clients.length === 0) throw (failed as PromiseRejectedResult).reason;
      return false;
    }
  }
  return true;
}

/**
 * All want the lock at once, and each lets go when everybody else waits for it again: what a holder that has something
 * to do would see. Those behind a mutex wait on through it; those of a simple lock are woken, lose, and come back.
 */
async function drained(locks: readonly Lock[], traffic: Traffic, signal: AbortSignal): Promise<Cost> {
  const startedAtMs = systemClock.nowMs();
  const before = { ...traffic };
  const waiting = new Set<Lock>();
  let left = locks.length;
  let allWait = deferred();
  const offs = locks.map((lock) =>
    lock.on('waiting', () => {
      waiting.add(lock);
      if (waiting.size >= left - 1) allWait.resolve();
    }),
  );
  const turn = async (lock: Lock) => {
    const lease = await lock.acquire({ signal });
    waiting.delete(lock);
    if (waiting.size < left - 1) await orAbort(allWait.promise, signal);
    left--;
    allWait = deferred();
    if (lock instanceof SimpleLock) waiting.clear();
    await lease.release();
  };
  await Promise.all(locks.map(turn));
  for (const off of offs) off();
  return {
    requests: traffic.requestCount - before.requestCount,
    events: traffic.eventCount - before.eventCount,
    tookMs: systemClock.nowMs() - startedAtMs,
  };
}
