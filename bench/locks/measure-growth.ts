// What a hand-over costs with so many in line: a queue is made, and only then the lock goes through the first hands.
import { setTimeout as delay } from 'node:timers/promises';
import { fourLetterWord } from '../../test/support/zookeeper-process.ts';
import type { Arena } from './arena.ts';
import { type Contestant, WAITERS_MAX } from './contestants.ts';
import type { CountingProxy } from './counting-proxy.ts';
import { lineOf, type Measured } from './orders.ts';
import type { Peer } from './peer.ts';
import type { Plan } from './plan.ts';
import { type Absence, type GrowthPoint, type GrowthResult, surroundings } from './results.ts';
import type { GrowthScenario } from './scenarios.ts';

const POLL_MS = 50;
const QUIET_POLLS = 5;
const QUEUED_WITHIN_MS = 60_000;

export async function measureGrowth(
  arena: Arena,
  scenario: GrowthScenario,
  contestants: readonly Contestant[],
  plan: Plan,
): Promise<GrowthResult> {
  const points = new Map<Contestant, GrowthPoint[]>();
  const absent: Absence[] = [];
  for (const contestant of contestants) {
    const reason = contestant.absence(scenario);
    if (reason === undefined) points.set(contestant, []);
    else if (reason !== '') absent.push({ contestant: contestant.id, reason });
  }
  for (const waiters of scenario.waiters.filter((count) => count <= plan.waitersMax)) {
    const times = new Map([...points.keys()].map((contestant) => [contestant, [] as number[]]));
    const rounds = plan.growthRounds(waiters);
    for (let round = 0; round <= rounds; round++) {
      const present = [...times.keys()];
      for (const index of present.keys()) {
        const contestant = present[(index + round) % present.length]!;
        plan.tell(`${waiters} waiters, round ${round} of ${rounds}: ${contestant.title}`);
        try {
          checkSize(contestant, waiters);
          if (round === 0) {
            points.get(contestant)!.push(await countedPoint(arena, scenario, contestant, waiters, plan));
          } else {
            const [peer] = await arena.peers(contestant);
            const { elapsedMs, cycles } = await passOn(arena, peer!, { scenario, contestant, waiters, plan });
            times.get(contestant)!.push(elapsedMs / cycles);
          }
        } catch (error) {
          times.delete(contestant);
          absent.push({
            contestant: contestant.id,
            reason: `${waiters} waiters: ${(error as Error).message}`,
          });
        }
      }
    }
    for (const [contestant, ms] of times) {
      const [counted, ...rest] = points.get(contestant)!.toReversed();
      points.set(contestant, [...rest.toReversed(), { ...counted!, ms }]);
    }
  }
  const rows = [...points].map(([{ id }, own]) => ({
    contestant: id,
    points: own.filter(({ ms }) => ms.length > 0),
  }));
  return { ...surroundings(plan.quick), kind: 'growth', scenario: scenario.id, rows, absent };
}

function checkSize({ program }: Contestant, waiters: number): void {
  const max = WAITERS_MAX[program];
  if (max !== undefined && waiters > max)
    throw new RangeError(`getting in line takes minutes; up to ${max} here`);
}

/** Requests and bytes, untimed; also the warm-up. */
async function countedPoint(
  arena: Arena,
  scenario: GrowthScenario,
  contestant: Contestant,
  waiters: number,
  plan: Plan,
): Promise<GrowthPoint> {
  const { peer, proxy } = await arena.countedPeer(contestant);
  const { cycles, traffic } = await passOn(arena, peer, { scenario, contestant, waiters, plan }, proxy);
  return { waiters, ms: [], requests: traffic!.requests / cycles, bytes: traffic!.bytes / cycles };
}

let lines = 0;

async function passOn(
  arena: Arena,
  peer: Peer,
  what: {
    readonly scenario: GrowthScenario;
    readonly contestant: Contestant;
    readonly waiters: number;
    readonly plan: Plan;
  },
  proxy?: CountingProxy,
): Promise<Measured & { readonly traffic?: { readonly requests: number; readonly bytes: number } }> {
  const { scenario, contestant, waiters, plan } = what;
  const { address } = arena.server(contestant);
  const watchesBefore = await watchCount(address);
  const order = lineOf({
    order: 'queue',
    name: `${scenario.id}-${lines++}`, // A new one each time: what a killed peer left there is in nobody's way.
    sessions: scenario.sessions,
    waiters,
    handOvers: Math.min(waiters, plan.handOvers),
  });
  await peer.tell(order, QUEUED_WITHIN_MS);
  await allWatching(address, watchesBefore + waiters);
  const before = proxy?.traffic;
  const measured = (await peer.tell('go', plan.withinMs)) as Measured;
  const after = proxy?.traffic;
  await peer.tell('close', QUEUED_WITHIN_MS);
  if (!before || !after) return measured;
  return {
    ...measured,
    traffic: { requests: after.requests - before.requests, bytes: after.bytes - before.bytes },
  };
}

/** Everybody who waits watches something, some two things: the line is full when there are so many and no more come. */
async function allWatching(address: string, watches: number): Promise<void> {
  const deadlineMs = performance.now() + QUEUED_WITHIN_MS;
  let before = 0;
  let quietPolls = 0;
  while (quietPolls < QUIET_POLLS) {
    if (performance.now() > deadlineMs) throw new Error(`not in line within ${QUEUED_WITHIN_MS / 1_000} s`);
    await delay(POLL_MS);
    const count = await watchCount(address);
    quietPolls = count >= watches && count === before ? quietPolls + 1 : 0;
    before = count;
  }
}

async function watchCount(address: string): Promise<number> {
  const [host, port] = address.split(':') as [string, string];
  const report = await fourLetterWord({ host, port: Number(port) }, 'mntr', QUEUED_WITHIN_MS);
  return Number(/^zk_watch_count\s+(\d+)/m.exec(report)?.[1]);
}
