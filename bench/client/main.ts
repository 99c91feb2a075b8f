// `npm run bench:client`: operations per second and memory per watch, beside the other clients for Node, on one
// real ZooKeeper, in interleaved rounds. Ratios are what counts; absolute figures are of this machine, today.
import { type ChildProcess, fork, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { connect } from 'holdfast/zookeeper';
import { startZooKeeper } from '../../test/support/zookeeper-process.ts';
import type { Measurement, Task } from './peer.ts';

const quick = process.argv.includes('--quick');
const ROUNDS = quick ? 3 : 7;
const SCALE = quick ? 0.25 : 1;
const WATCH_COUNT = 20_000;

const scenarios: { readonly name: string; readonly task: Extract<Task, { count: number; width: number }> }[] =
  [
    { name: 'reads, one at a time', task: { kind: 'reads', count: 4_000 * SCALE, width: 1 } },
    { name: 'writes, one at a time', task: { kind: 'writes', count: 2_000 * SCALE, width: 1 } },
    { name: 'reads, 32 callers', task: { kind: 'reads', count: 20_000 * SCALE, width: 32 } },
    { name: 'reads, pipelined by 1000', task: { kind: 'bursts', count: 60_000 * SCALE, width: 1_000 } },
    { name: 'writes, 1000 under way', task: { kind: 'writes', count: 20_000 * SCALE, width: 1_000 } },
  ];

const peersFolder = fileURLToPath(new URL('../peers/', import.meta.url));
const resultsFolder = fileURLToPath(new URL('../results/', import.meta.url));
const peers = ['holdfast', ...installPeers()];
await using server = await startZooKeeper({
  tickTimeMs: 2_000,
  jvmFlags: ['-Xms512m', '-Xmx512m', '-XX:+UseSerialGC'],
});
const root = '/bench';
{
  await using zk = await connect(server.connectString);
  await zk.create(root);
  await zk.create(`${root}/read`, Buffer.alloc(100, 'x'));
  await zk.create(`${root}/write`);
}

const processes = new Map<string, Peer>();
for (const peer of peers) processes.set(peer, await startPeer(peer));

const measured = new Map<string, Map<string, Measurement[]>>();
for (let round = 0; round <= ROUNDS; round++) {
  for (const { name, task } of scenarios) {
    for (const [index] of peers.entries()) {
      const peer = peers[(index + round) % peers.length]!; // Nobody always goes first.
      const measurement = await processes.get(peer)!.perform(task);
      if (round === 0) continue; // Warm-up: the JVM's compiler, and ours.
      const rounds = entry(
        entry(measured, name, () => new Map()),
        peer,
        () => [],
      );
      rounds.push(measurement);
    }
  }
  process.stderr.write(`\rround ${round} of ${ROUNDS}`);
}
process.stderr.write('\n');

const lines: string[] = [
  '| scenario | client | ops/s, median | Holdfast is | spread | CPU µs per op |',
  '|---|---|---|---|---|---|',
];
for (const { name, task } of scenarios) {
  const byPeer = measured.get(name)!;
  const ours = byPeer.get('holdfast')!;
  for (const peer of peers) {
    const theirs = byPeer.get(peer)!;
    const rate = median(theirs.map(({ elapsedMs }) => (task.count / elapsedMs) * 1000));
    const ratios = theirs.map(({ elapsedMs }, round) => elapsedMs / ours[round]!.elapsedMs);
    const cpu = median(theirs.map(({ cpuMs }) => (cpuMs * 1000) / task.count));
    const ratio = peer === 'holdfast' ? '' : `**${median(ratios).toFixed(2)}×**`;
    const spread =
      peer === 'holdfast' ? '' : `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`;
    lines.push(`| ${name} | ${peer} | ${Math.round(rate)} | ${ratio} | ${spread} | ${cpu.toFixed(1)} |`);
  }
}
lines.push('', `| memory of ${WATCH_COUNT} watches | bytes per watch |`, '|---|---|');
for (const peer of peers) {
  const { bytesGrown } = await processes.get(peer)!.perform({ kind: 'watches', count: WATCH_COUNT });
  lines.push(
    `| ${peer}${peer === 'native' ? ' (resident)' : ''} | ${Math.round(bytesGrown / WATCH_COUNT)} |`,
  );
}
for (const peer of processes.values()) await peer.close();

const report = `${lines.join('\n')}\n`;
console.log(report);
mkdirSync(resultsFolder, { recursive: true });
writeFileSync(`${resultsFolder}client.md`, report);

/** A client's process. */
interface Peer {
  perform(task: Task): Promise<Measurement>;
  close(): Promise<void>;
}

async function startPeer(name: string): Promise<Peer> {
  const child = fork(
    fileURLToPath(new URL('./peer.ts', import.meta.url)),
    [name, server.connectString, root],
    {
      execArgv: [...process.execArgv, '--expose-gc'],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    },
  );
  await message(child);
  const perform = async (task: Task) => {
    child.send(task);
    return (await message(child)) as Measurement;
  };
  return {
    perform,
    async close() {
      await perform({ kind: 'close' }).catch(() => undefined);
      child.kill('SIGKILL');
    },
  };
}

function message(child: ChildProcess): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const onExit = (code: number | null) => reject(new Error(`a client's process ended with ${code}`));
    child.once('exit', onExit);
    child.once('message', (value) => {
      child.off('exit', onExit);
      resolve(value);
    });
  });
}

/** Installs the peers on first use. The native one is compiled; where that fails, the bench says so and goes on. */
function installPeers(): string[] {
  const options = { cwd: peersFolder, stdio: ['ignore', 'ignore', 'inherit'] as ('ignore' | 'inherit')[] };
  if (!existsSync(`${peersFolder}node_modules`)) {
    console.error('bench: installing the other clients');
    spawnSync(
      'npm',
      ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock'],
      options,
    );
  }
  const native = `${peersFolder}node_modules/zookeeper`;
  const built = `${native}/build/Release/zookeeper.node`;
  if (!existsSync(built)) {
    console.error('bench: compiling the native client (needs cmake, make and a C++ compiler)');
    spawnSync('npm', ['run', 'install'], { ...options, cwd: native, stdio: 'ignore', timeout: 600_000 });
  }
  if (existsSync(built)) return ['node-zookeeper-client', 'native'];
  console.error('bench: the native client does not compile here; going on without it');
  return ['node-zookeeper-client'];
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)]!;
}

function entry<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const present = map.get(key);
  if (present !== undefined) return present;
  const made = make();
  map.set(key, made);
  return made;
}
