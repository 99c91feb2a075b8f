import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect } from 'vitest';
import type { Holdfast, LockLease } from '../../src/holdfast.ts';
import { seededRandom } from '../../src/testing.ts';
import { type FaultyHoldfast, onEveryLockBackend, SHORT_SESSION_MS } from '../support/lock-backends.ts';
import { until } from '../support/until.ts';

/** How long the network is bad. More by `HOLDFAST_STRESS_MS`, another course by `HOLDFAST_STRESS_SEED`. */
const DURATION_MS = Number(process.env['HOLDFAST_STRESS_MS'] ?? 5_000);
const SEED = Number(process.env['HOLDFAST_STRESS_SEED'] ?? 1);
const CLIENTS = 5;

/** One lock's grants: says when two are held at once by their own clocks, or a token is not the largest yet. */
class Record {
  readonly faults: string[] = [];
  grants = 0;
  losses = 0;
  readonly #held = new Map<LockLease, number>();
  #highest = 0n;

  constructor(readonly slots: number) {}

  granted(lease: LockLease, weight: number, ordered: boolean): void {
    this.grants++;
    // A lease that has ended by its own clock is over, whether or not its holder has heard of it.
    const others = [...this.#held].filter(([other]) => other.remainingMs() > 0);
    const used = others.reduce((sum, [, each]) => sum + each, weight);
    if (used > this.slots) this.faults.push(`${used} of ${this.slots} held at once, token ${lease.token}`);
    if (ordered && lease.token <= this.#highest)
      this.faults.push(`token ${lease.token} after ${this.#highest}`);
    if (lease.token > this.#highest) this.#highest = lease.token;
    this.#held.set(lease, weight);
  }

  ended(lease: LockLease): void {
    if (lease.remainingMs() === 0) this.losses++;
    this.#held.delete(lease);
  }
}

describe('locks behind a network that fails all the time', () => {
  onEveryLockBackend(
    'are never held by two, their tokens rise, and nothing is left at the end',
    async (workspace) => {
      const random = seededRandom(SEED);
      const options = { sessionTimeoutMs: SHORT_SESSION_MS, dials: 50 };
      const clients = await Promise.all(Array.from({ length: CLIENTS }, () => workspace.faulty(options)));
      const records = {
        mutex: new Record(1),
        semaphore: new Record(3),
        multi: new Record(1),
        write: new Record(1),
      };
      const stop = new AbortController();
      const working = clients.map(async ({ holdfast }, index) => {
        while (!stop.signal.aborted) await oneRound(holdfast, records, random.u32() + index, stop.signal);
      });
      const worked = Promise.all(working);
      worked.catch(() => {}); // Told below, once the network is whole.
      const untilMs = performance.now() + DURATION_MS;
      while (performance.now() < untilMs) {
        breakSomething(clients[random.u32() % CLIENTS]!, random.u32());
        await delay(random.u32() % 60);
      }
      for (const { proxy } of clients) proxy.heal();
      // What was lost on the way is only found out by asking again.
      for (const { proxy } of clients) proxy.resetAll();
      const before = Object.values(records).map(({ grants }) => grants);
      await until('every lock to be granted again and again', () =>
        Object.values(records).every(({ grants }, index) => grants > Math.max(before[index]!, 10)),
      );
      stop.abort();
      await worked;
      const story = `seed ${SEED}: ${JSON.stringify(records)}`;
      expect(
        Object.values(records).flatMap(({ faults }) => faults),
        story,
      ).toEqual([]);
      for (const { holdfast } of clients) await holdfast.zk.sync('/');
    },
  );
});

async function oneRound(
  holdfast: Holdfast,
  records: { [name in 'mutex' | 'semaphore' | 'multi' | 'write']: Record },
  dice: number,
  stop: AbortSignal,
): Promise<void> {
  const kind = (['mutex', 'mutex', 'semaphore', 'multi', 'write'] as const)[dice % 5]!;
  const weight = kind === 'semaphore' ? 1 + ((dice >>> 8) % 2) : 1;
  const bounds = { timeoutMs: (dice >>> 4) % 3 === 0 ? 50 : 3_000, signal: stop };
  const lock = {
    mutex: () => holdfast.mutex('m').attempt(bounds),
    semaphore: () => holdfast.semaphore('s', { permits: 3 }).attempt({ ...bounds, permits: weight }),
    multi: () => holdfast.multiLock(dice % 2 === 0 ? ['a', 'b'] : ['b', 'a']).attempt(bounds),
    write: () => holdfast.readWriteLock('rw').write.attempt(bounds),
  }[kind];
  const attempt = await lock();
  if (!attempt.ok) return;
  const { lease } = attempt;
  records[kind].granted(lease, weight, kind !== 'semaphore');
  await delay((dice >>> 12) % 8);
  records[kind].ended(lease);
  await lease.release();
}

function breakSomething({ proxy }: FaultyHoldfast, dice: number): void {
  const bytes = (dice >>> 8) % 600;
  switch (dice % 8) {
    case 0:
      return proxy.resetAll();
    case 1:
      return proxy.cutAfter({ direction: 'to-client', bytes });
    case 2:
      return proxy.cutAfter({ direction: 'to-server', bytes });
    case 3:
      return proxy.delay({ toClientMs: bytes % 40, toServerMs: bytes % 30 });
    case 4:
      return bytes % 3 === 0 ? proxy.blackhole('both') : proxy.closeAll();
    case 5:
      return proxy.slice(1 + (bytes % 40));
    default: {
      const lossy = proxy.faults.dropped['to-client'];
      proxy.heal();
      // Bytes that vanished are gone for good: no network goes on behind them on the same connection.
      if (lossy) proxy.resetAll();
    }
  }
}
