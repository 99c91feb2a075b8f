// How many round trips a caller waits for. All peers at the same time: nobody does anything but wait.
import { percentile } from '../../src/cli/bench/measurement.ts';
import { ascending } from '../statistics.ts';
import type { Arena } from './arena.ts';
import type { Contestant } from './contestants.ts';
import type { Order } from './orders.ts';
import type { Plan } from './plan.ts';
import { type Absence, type RoundTripResult, type RoundTripRow, surroundings } from './results.ts';
import { ROUND_TRIP_MS, type RoundTripScenario } from './scenarios.ts';

/** Whoever is slowest to get in line is there after so many round trips. */
const ROUND_TRIPS_TO_QUEUE_MAX = 15;
/** Of a cycle of one lock, taken and let go; five of them one after the other are sampled less often. */
const ROUND_TRIPS_OF_CYCLE = 5;
/** The first ones make folders and let compilers see the code. */
const WARM_UP_SAMPLES = 2;

export async function measureDistance(
  arena: Arena,
  scenario: RoundTripScenario,
  contestants: readonly Contestant[],
  plan: Plan,
): Promise<RoundTripResult> {
  plan.tell(scenario.title);
  const rows: RoundTripRow[] = [];
  const absent: Absence[] = [];
  await Promise.all(
    contestants.map(async (contestant) => {
      const reason = contestant.absence(scenario);
      if (reason === '') return;
      try {
        if (reason !== undefined) throw new Error(reason);
        const peer = await arena.distantPeer(contestant, ROUND_TRIP_MS);
        await peer.perform(orderOf(scenario, contestant, WARM_UP_SAMPLES), plan.withinMs);
        const order = orderOf(scenario, contestant, plan.samples);
        const { acquireUs } = await peer.perform(order, plan.withinMs);
        const p50Ms = percentile(ascending(acquireUs), 0.5) / 1_000;
        rows.push({
          contestant: contestant.id,
          samples: acquireUs.length,
          p50Ms,
          roundTrips: p50Ms / ROUND_TRIP_MS,
        });
      } catch (error) {
        absent.push({ contestant: contestant.id, reason: (error as Error).message });
      }
    }),
  );
  const inOrder = contestants.flatMap(({ id }) => rows.filter(({ contestant }) => contestant === id));
  return { ...surroundings(plan.quick), kind: 'round-trips', scenario: scenario.id, rows: inOrder, absent };
}

function orderOf({ id, what, lock }: RoundTripScenario, { mutex }: Contestant, samples: number): Order {
  if (what === 'hand-over') {
    const settleMs = ROUND_TRIPS_TO_QUEUE_MAX * ROUND_TRIP_MS;
    return { order: 'hand-overs', name: id, sessions: 2, samples, settleMs };
  }
  const sliceMs = samples * ROUND_TRIPS_OF_CYCLE * ROUND_TRIP_MS;
  return {
    order: 'cycles',
    name: id,
    lock: lock === 'mutex' ? mutex : lock,
    tasks: 1,
    locks: 1,
    sessions: 1,
    sliceMs,
  };
}
