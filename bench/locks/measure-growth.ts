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

/** What becomes a point of a row, pass by pass. */
interface Growing {
  readonly ms: number[];
  traffic?: { readonly requests: number; readonly bytes: number };
}

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
  const endsAtMs = performance.now() + plan.growthWithinMs;
  for (const waiters of scenario.waiters.filter((count) => count <= plan.waitersMax)) {
    const growing = new Map([...points.keys()].map((contestant) => [contestant, { ms: [] } as Growing]));
    const out = new Set<Contestant>();
    const passes = plan.growthPasses(waiters);
    for (const [round, pass] of passes.entries()) {
      const present = [...growing.keys()];
      for (const index of present.keys()) {
        const contestant = present[(index + round) % present.length]!;
        if (out.has(contestant)) continue;
        plan.tell(`${waiters} waiters, pass ${round + 1} of ${passes.length}: ${contestant.title}`);
        try {
          checkSize(contestant, waiters);
          if (performance.now() > endsAtMs) throw new Error('the run had no time left for it');
          const own = growing.get(contestant)!;
          const what = { scenario, contestant, waiters, plan };
          if (pass === 'count') own.traffic = await countHandOvers(arena, what);
          else own.ms.push(await timeHandOvers(arena, what));
        } catch (error) {
          // What was timed before stands.
          out.add(contestant);
          const reason = `${waiters} waiters, to ${pass}: ${(error as Error).message}`;
          absent.push({ contestant: contestant.id, reason });
        }
      }
    }
    for (const [contestant, { ms, traffic }] of growing) {
      if (ms.length > 0) points.get(contestant)!.push({ waiters, ms, ...traffic });
    }
  }
  const rows = [...points].map(([{ id }, own]) => ({ contestant: id, points: own }));
  return { ...surroundings(plan.quick), kind: 'growth', scenario: scenario.id, rows, absent };
}

function checkSize({ program }: Contestant, waiters: number): void {
  const max = WAITERS_MAX[program];
  if (max !== undefined && waiters > max)
    throw new RangeError(`getting in line takes minutes; up to ${max} here`);
}

interface Queue {
  readonly scenario: GrowthScenario;
  readonly contestant: Contestant;
  readonly waiters: number;
  readonly plan: Plan;
}

/** Milliseconds for each. */
async function timeHandOvers(arena: Arena, what: Queue): Promise<number> {
  const [peer] = await arena.peers(what.contestant);
  const { elapsedMs, cycles } = await passOn(arena, peer!, what);
  return elapsedMs / cycles;
}

/** Requests and bytes for each, untimed. */
async function countHandOvers(arena: Arena, what: Queue): Promise<{ requests: number; bytes: number }> {
  const { peer, proxy } = await arena.countedPeer(what.contestant);
  const { cycles, traffic } = await passOn(arena, peer, what, proxy);
  return { requests: traffic!.requests / cycles, bytes: traffic!.bytes / cycles };
}

let lines = 0;

async function passOn(
  arena: Arena,
  peer: Peer,
  what: Queue,
  proxy?: CountingProxy,
): Promise<Measured & { readonly traffic?: { readonly requests: number; readonly bytes: number } }> {
  const { scenario, contestant, waiters, plan } = what;
  const { address } = arena.server(contestant);
  // Those of sessions that were closed a moment ago go one by one; counted, they would be waited for in vain.
  await delay(POLL_MS * QUIET_POLLS);
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
