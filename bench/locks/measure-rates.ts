// Cycles per second, scenario by scenario, in rounds in which everybody has a turn; then, untimed, what goes over the wire.
import { percentile } from '../../src/cli/bench/measurement.ts';
import { cpuMsOf } from '../server/systems.ts';
import { ascending } from '../statistics.ts';
import type { Arena } from './arena.ts';
import type { Contestant } from './contestants.ts';
import type { Measured, Order } from './orders.ts';
import type { Plan } from './plan.ts';
import {
  type Absence,
  earlierRuns,
  type RateResult,
  type RateRow,
  readResult,
  surroundings,
} from './results.ts';
import type { RateScenario } from './scenarios.ts';

/** Several processes share the cycles of a slice; to warm up all of them as well as one would take most of the run. */
const WARM_UP_SHARES_MAX = 3;

interface Slice extends Measured {
  readonly clientCpuMs: number;
  readonly serverCpuMs: number;
}

/** A scenario while it is measured. */
interface Contest {
  readonly scenario: RateScenario;
  readonly slices: Map<Contestant, Slice[]>;
  readonly traffic: Map<Contestant, { requests: number; bytes: number }>;
  readonly absent: Absence[];
}

export async function measureRates(
  arena: Arena,
  scenarios: readonly RateScenario[],
  contestants: readonly Contestant[],
  plan: Plan,
): Promise<RateResult[]> {
  const results: RateResult[] = [];
  for (const scenario of scenarios) {
    const contest = contestOf(scenario, contestants);
    if (plan.processesAnew) await arena.endPeers();
    await timeCycles(arena, contest, plan);
    if (scenario.processes === 1 && scenario.place === 'standalone')
      await countRequests(arena, contest, plan);
    results.push(resultOf(contest, plan));
  }
  return results;
}

async function timeCycles(arena: Arena, contest: Contest, plan: Plan): Promise<void> {
  const { scenario } = contest;
  // All at once, since starting one of them takes longer than a round; who cannot be started is told below.
  await Promise.allSettled([...contest.slices.keys()].map((each) => arena.peers(each, scenario.processes)));
  const rounds = plan.rounds * (scenario.roundsFactor ?? 1);
  for (let round = 0; round <= rounds; round++) {
    plan.tell(`${scenario.title}: ${round === 0 ? 'warming up' : `round ${round} of ${rounds}`}`);
    const present = [...contest.slices.keys()];
    for (const index of present.keys()) {
      // Nobody always goes first.
      const contestant = present[(index + round) % present.length]!;
      await takingPart(contest, contestant, async () => {
        if (round === 0) return warmUp(arena, scenario, contestant, plan);
        contest.slices.get(contestant)!.push(await measureSlice(arena, scenario, contestant, plan));
      });
    }
  }
}

async function countRequests(arena: Arena, contest: Contest, plan: Plan): Promise<void> {
  for (const contestant of contest.slices.keys()) {
    plan.tell(`${contest.scenario.title}: counting requests`);
    try {
      const traffic = await countTraffic(arena, contest.scenario, contestant, plan);
      if (traffic) contest.traffic.set(contestant, traffic);
    } catch (error) {
      // What was timed stands; there is a dash for what was not counted.
      plan.tell(`not counted: ${contestant.title}: ${(error as Error).message}`);
    }
  }
}

function contestOf(scenario: RateScenario, contestants: readonly Contestant[]): Contest {
  const contest: Contest = { scenario, slices: new Map(), traffic: new Map(), absent: [] };
  for (const contestant of contestants) {
    const reason = contestant.absence(scenario);
    if (reason === undefined) contest.slices.set(contestant, []);
    else if (reason !== '') contest.absent.push({ contestant: contestant.id, reason });
  }
  return contest;
}

/** Who fails is out of this contest, and the table says why; the others go on. */
async function takingPart(contest: Contest, contestant: Contestant, run: () => Promise<void>): Promise<void> {
  try {
    await run();
  } catch (error) {
    contest.slices.delete(contestant);
    contest.absent.push({ contestant: contestant.id, reason: (error as Error).message });
  }
}

/**
 * For the compilers of Java and of V8, which count calls and not seconds: where one task waits for round trips, a slice
 * is over before either has compiled anything.
 */
async function warmUp(
  arena: Arena,
  scenario: RateScenario,
  contestant: Contestant,
  plan: Plan,
): Promise<void> {
  const { processes } = scenario;
  const slicesMax = Math.min(processes, WARM_UP_SHARES_MAX) * plan.warmUpSlicesMax;
  let cycles = 0;
  const isWarm = (slices: number) =>
    slices >= slicesMax || (slices >= plan.warmUpSlicesMin && cycles >= processes * plan.warmUpCycles);
  for (let slices = 0; !isWarm(slices); slices++)
    cycles += (await measureSlice(arena, scenario, contestant, plan)).cycles;
}

async function measureSlice(
  arena: Arena,
  scenario: RateScenario,
  contestant: Contestant,
  plan: Plan,
): Promise<Slice> {
  const peers = await arena.peers(contestant, scenario.processes);
  const clientPids = peers.map(({ pid }) => pid);
  const serverPids = arena.server(contestant).pids;
  const clientBeforeMs = cpuMsOfAll(clientPids);
  const serverBeforeMs = cpuMsOfAll(serverPids);
  const order = orderOf(scenario, contestant, plan.sliceMs);
  const measured = await Promise.all(peers.map((peer) => peer.perform(order, plan.withinMs)));
  const cycles = measured.reduce((sum, each) => sum + each.cycles, 0);
  if (cycles === 0) throw new Error(`not one cycle in ${plan.sliceMs} ms`);
  return {
    cycles,
    elapsedMs: Math.max(...measured.map(({ elapsedMs }) => elapsedMs)),
    acquireUs: measured.flatMap(({ acquireUs }) => acquireUs),
    clientCpuMs: cpuMsOfAll(clientPids) - clientBeforeMs,
    serverCpuMs: cpuMsOfAll(serverPids) - serverBeforeMs,
  };
}

const cpuMsOfAll = (pids: readonly number[]) => pids.reduce((sum, pid) => sum + cpuMsOf(pid), 0);

function orderOf(scenario: RateScenario, { mutex }: Contestant, sliceMs: number): Order {
  const { id, lock, tasks, locks, sessions } = scenario;
  return {
    order: 'cycles',
    name: id,
    lock: lock === 'mutex' ? mutex : lock,
    tasks,
    locks,
    sessions,
    sliceMs,
  };
}

/** Undefined if not one cycle was done: nothing was counted then. */
async function countTraffic(
  arena: Arena,
  scenario: RateScenario,
  contestant: Contestant,
  plan: Plan,
): Promise<{ requests: number; bytes: number } | undefined> {
  const { peer, proxy } = await arena.countedPeer(contestant);
  await peer.perform(orderOf(scenario, contestant, 1), plan.withinMs); // Opens the sessions.
  const before = proxy.traffic;
  const { cycles } = await peer.perform(orderOf(scenario, contestant, plan.countedSliceMs), plan.withinMs);
  const after = proxy.traffic;
  if (cycles === 0) return undefined;
  return {
    requests: (after.requests - before.requests) / cycles,
    bytes: (after.bytes - before.bytes) / cycles,
  };
}

function resultOf({ scenario, slices, traffic, absent }: Contest, plan: Plan): RateResult {
  const before = readResult(scenario.id);
  return {
    ...surroundings(plan.quick),
    kind: 'rate',
    scenario: scenario.id,
    rows: [...slices].map(([contestant, own]) => rowOf(contestant, own, traffic.get(contestant))),
    absent,
    earlier: earlierRuns(before?.kind === 'rate' ? before : undefined, scenario.baseline),
  };
}

function rowOf({ id }: Contestant, slices: readonly Slice[], traffic: RateRow['traffic']): RateRow {
  const acquireUs = ascending(slices.flatMap((slice) => slice.acquireUs));
  const sum = (field: 'cycles' | 'clientCpuMs' | 'serverCpuMs') =>
    slices.reduce((total, slice) => total + slice[field], 0);
  return {
    contestant: id,
    rates: slices.map(({ cycles, elapsedMs }) => (1_000 * cycles) / elapsedMs),
    acquireMs: { p50: percentile(acquireUs, 0.5) / 1_000, p99: percentile(acquireUs, 0.99) / 1_000 },
    // The kernel counts in hundredths of a second: one round says little, all of them together enough.
    clientCpuUs: (1_000 * sum('clientCpuMs')) / sum('cycles'),
    serverCpuUs: (1_000 * sum('serverCpuMs')) / sum('cycles'),
    ...(traffic && { traffic }),
  };
}
