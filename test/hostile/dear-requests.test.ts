import { expect, test } from 'vitest';
import { AttackedServer } from './attacked-server.ts';
import { attack } from './stall-fuzz.ts';

const CLIENTS = 20;
const QUIET_MS = 700;
const WARM_UP_MS = 700;
const ATTACK_MS = Number(process.env['HOLDFAST_STALL_MS'] ?? 3_000);
const SEED = Number(process.env['HOLDFAST_FUZZ_SEED'] ?? 1);
/** What is documented: docs/embedded-server.md, "How long one client can keep the others waiting". */
const TURN_MS_MAX = 20;
/** Not less than this is asked of a machine that has other work, on which twenty clients need the processor too. */
const QUIET_P50_MS_MIN = 5;
const LIMITS = { nodesMax: 1_200_000, tickMs: 250, sessionTimeoutMsMin: 1_000 } as const;
const TREE = { thousands: 1_000, nameCount: 100_000 } as const;

test('twenty clients that come and go with the dearest requests there are keep nobody waiting', {
  timeout: 120_000,
}, async () => {
  await using server = await AttackedServer.metered({ limits: LIMITS, tree: TREE });
  // Once through all of it first: what is run for the first time is compiled.
  await attack(server, { seed: SEED + 1, clients: 7, ms: WARM_UP_MS });
  await server.turns();
  await server.bystander();
  await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
  const quiet = await server.bystander();
  const quietTurns = await server.turns();
  const report = await attack(server, { seed: SEED, clients: CLIENTS, ms: ATTACK_MS });
  const { turns, bystander, requestCount, clientCount } = report;
  console.log(
    `${clientCount} clients, ${requestCount} requests; dearest turns ${shown(turns.dearest)} ms of processor time, ` +
      `collector at most ${turns.collectorMaxMs.toFixed(0)} ms at once; lock cycles took ` +
      `${shown([bystander.p50Ms, bystander.p99Ms])} ms (p50, p99), quiet ${shown([quiet.p50Ms, quiet.p99Ms])} ms; ` +
      `an answer ${shown([turns.waits!.p50Ms])} ms of the server, quiet ${shown([quietTurns.waits!.p50Ms])} ms`,
  );
  expect(server.alive).toBe(true);
  expect(clientCount).toBeGreaterThan(CLIENTS);
  expect(turns.maxMs).toBeLessThan(TURN_MS_MAX);
  expect(bystander.lost).toBeUndefined();
  expect(bystander.count).toBeGreaterThan(0);
  expect(bystander.p50Ms).toBeLessThan(10 * Math.max(quiet.p50Ms, QUIET_P50_MS_MIN));
  // Measured by what the server does meanwhile, which other work of the machine is no part of.
  expect(turns.waits!.p50Ms).toBeLessThan(10 * Math.max(quietTurns.waits!.p50Ms, 0.2));
});

function shown(valuesMs: readonly number[]): string {
  return valuesMs.map((ms) => ms.toFixed(1)).join(', ');
}
