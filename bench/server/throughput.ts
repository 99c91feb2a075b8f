// How many operations per second, in interleaved rounds: memory against memory, and disk against disk.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { STEADY_NODE_FLAGS } from '../node-flags.ts';
import { median } from '../statistics.ts';
import { PingProbe } from './ping-probe.ts';
import { cpuMsOf, netty, type System, startEmbedded, startReal } from './systems.ts';
import { type Outcome, type Scenario, scenarios, Workload } from './workload.ts';

interface Candidate {
  readonly system: System;
  readonly workload: Workload;
}

interface Measurement extends Outcome {
  readonly serverCpuMs: number;
}

interface Plan {
  readonly rounds: number;
  readonly sliceMs: number;
  readonly warmUpMs: number;
  readonly pings: number;
}

/** The table of both halves, as lines of Markdown. */
export async function measureThroughput({ quick }: { quick: boolean }): Promise<string[]> {
  const plan: Plan = quick
    ? { rounds: 7, sliceMs: 250, warmUpMs: 700, pings: 300 }
    : { rounds: 15, sliceMs: 500, warmUpMs: 2_000, pings: 1_000 };
  const memory = await measureTogether('in memory', plan, [
    startEmbedded('embedded', {}, STEADY_NODE_FLAGS),
    startReal('ZooKeeper', {}),
    startReal('ZooKeeper, Netty', { systemProperties: netty }),
  ]);
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-bench-'));
  try {
    const durable = { parentFolder: folder, systemProperties: { 'zookeeper.forceSync': 'yes' } };
    const disk = await measureTogether('on disk', plan, [
      startEmbedded('embedded', { folder: join(folder, 'embedded') }, STEADY_NODE_FLAGS),
      startReal('ZooKeeper', durable),
      startReal('ZooKeeper, Netty', {
        ...durable,
        systemProperties: { ...durable.systemProperties, ...netty },
      }),
    ]);
    return [...memory, '', ...disk];
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function measureTogether(
  where: string,
  plan: Plan,
  starting: readonly Promise<System>[],
): Promise<string[]> {
  const systems = await Promise.all(starting);
  const candidates: Candidate[] = [];
  for (const system of systems) {
    candidates.push({ system, workload: await Workload.open(system.connectString) });
  }
  const measured = await measureRounds(where, plan, candidates);
  const pings = await measurePings(plan, candidates);
  const lines = [...table(where, measured), '', ...pingTable(where, pings)];
  for (const { system, workload } of candidates) {
    await workload[Symbol.asyncDispose]();
    await system.stop();
  }
  return lines;
}

type Measured = Map<Scenario, Map<string, Measurement[]>>;

async function measureRounds(
  where: string,
  { rounds, sliceMs, warmUpMs }: Plan,
  candidates: Candidate[],
): Promise<Measured> {
  const measured: Measured = new Map(
    scenarios.map((scenario) => [scenario, new Map(candidates.map(({ system }) => [system.name, []]))]),
  );
  for (let round = 0; round <= rounds; round++) {
    process.stderr.write(`\r${where}: round ${round} of ${rounds}`);
    for (const [position, scenario] of scenarios.entries()) {
      for (const index of candidates.keys()) {
        // Nobody always goes first.
        const { system, workload } = candidates[(index + round + position) % candidates.length]!;
        // Round 0 is for the compilers, of the JVM and of V8.
        if (round === 0) await workload.run(scenario, warmUpMs);
        else {
          const cpuBeforeMs = cpuMsOf(system.pid);
          const outcome = await workload.run(scenario, sliceMs);
          const serverCpuMs = cpuMsOf(system.pid) - cpuBeforeMs;
          measured
            .get(scenario)!
            .get(system.name)!
            .push({ ...outcome, serverCpuMs });
        }
      }
    }
  }
  process.stderr.write('\n');
  return measured;
}

/** One ping after the other, on servers that have nothing else to do. */
async function measurePings({ pings }: Plan, candidates: Candidate[]): Promise<Map<string, number[]>> {
  const probes: { readonly name: string; readonly probe: PingProbe; readonly latenciesMs: number[] }[] = [];
  for (const { system } of candidates) {
    const probe = await PingProbe.open(system.connectString);
    probes.push({ name: system.name, probe, latenciesMs: [] });
  }
  for (let count = 0; count < pings; count++) {
    for (const { probe, latenciesMs } of probes) latenciesMs.push(await probe.ping());
  }
  for (const { probe } of probes) probe.close();
  return new Map(probes.map(({ name, latenciesMs }) => [name, latenciesMs]));
}

function table(where: string, measured: Measured): string[] {
  const lines = [
    `| ${where} | server | per second, median | embedded is | spread | server CPU µs each | client busy |`,
    '|---|---|---|---|---|---|---|',
  ];
  for (const [{ name }, bySystem] of measured) {
    const ours = bySystem.get('embedded')!;
    for (const [system, theirs] of bySystem) {
      const ratios = theirs.map((measurement, round) => rateOf(ours[round]!) / rateOf(measurement));
      const [ratio, spread] =
        system === 'embedded'
          ? ['', '']
          : [
              `**${median(ratios).toFixed(2)}×**`,
              `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`,
            ];
      // The kernel counts in hundredths of a second, so one slice says little and all of them together enough.
      const cpuUs = (1000 * sum(theirs, 'serverCpuMs')) / sum(theirs, 'count');
      const busy = (100 * sum(theirs, 'clientCpuMs')) / sum(theirs, 'elapsedMs');
      const rate = Math.round(median(theirs.map(rateOf)));
      lines.push(
        `| ${name} | ${system} | ${rate} | ${ratio} | ${spread} | ${cpuUs.toFixed(1)} | ${busy.toFixed(0)} % |`,
      );
    }
  }
  return lines;
}

function pingTable(where: string, pings: Map<string, number[]>): string[] {
  const lines = [`| ping, ${where} | p50 | p99 |`, '|---|---|---|'];
  for (const [name, latenciesMs] of pings) {
    const sorted = latenciesMs.toSorted((a, b) => a - b);
    const at = (share: number) => `${(1000 * sorted[Math.floor(sorted.length * share)]!).toFixed(0)} µs`;
    lines.push(`| ${name} | ${at(0.5)} | ${at(0.99)} |`);
  }
  return lines;
}

const rateOf = ({ count, elapsedMs }: Outcome) => (1000 * count) / elapsedMs;

function sum(measurements: readonly Measurement[], field: keyof Measurement): number {
  return measurements.reduce((total, measurement) => total + measurement[field], 0);
}
