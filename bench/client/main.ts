// `npm run bench:client`: operations per second and memory per watch, beside the other clients for Node, on one
// real ZooKeeper, in interleaved rounds. Ratios are what counts; absolute figures are of this machine, today.
import { type ChildProcess, fork, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { connect } from 'holdfast/zookeeper';
import { startZooKeeper } from '../../test/support/zookeeper-process.ts';
import { STEADY_NODE_FLAGS } from '../node-flags.ts';
import { installPeers, peersFolder } from '../peers/install-peers.ts';
import { median } from '../statistics.ts';
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
    { name: 'reads, 1000 in one call', task: { kind: 'batches', count: 60_000 * SCALE, width: 1_000 } },
    { name: 'writes, 1000 under way', task: { kind: 'writes', count: 20_000 * SCALE, width: 1_000 } },
  ];

/**
 * How the server reads its sockets. By default (NIO) it takes one request off a connection at a time, and hands it from
 * the thread that waits for input to another and back: one connection has that wait for every request, whoever asks.
 * Without those threads, or with Netty, which takes all that has arrived, the server is not what is measured.
 */
const servers: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  NIO: {},
  'NIO without worker threads': { 'zookeeper.nio.numWorkerThreads': '0' },
  Netty: { 'zookeeper.serverCnxnFactory': 'org.apache.zookeeper.server.NettyServerCnxnFactory' },
};

const resultsFolder = fileURLToPath(new URL('../results/', import.meta.url));
const root = '/bench';
const peers = ['holdfast', ...preparePeers(), 'a socket'];

const report: string[] = [];
for (const [name, properties] of Object.entries(servers)) report.push(...(await measureOn(name, properties)));
console.log(report.join('\n'));
mkdirSync(resultsFolder, { recursive: true });
writeFileSync(`${resultsFolder}client.md`, `${report.join('\n')}\n`);

/** All scenarios against one server, and the table of them. */
async function measureOn(
  serverName: string,
  systemProperties: Readonly<Record<string, string>>,
): Promise<string[]> {
  await using server = await startZooKeeper({
    tickTimeMs: 2_000,
    jvmFlags: ['-Xms512m', '-Xmx512m', '-XX:+UseSerialGC'],
    systemProperties,
  });
  {
    await using zk = await connect(server.connectString);
    await zk.create(root);
    await zk.create(`${root}/read`, Buffer.alloc(100, 'x'));
    await zk.create(`${root}/write`);
  }
  const processes = new Map<string, Peer>();
  for (const peer of peers) processes.set(peer, await startPeer(peer, server.connectString));
  const measured = await measureRounds(serverName, processes);
  const lines = table(serverName, measured);
  lines.push('', `| memory of ${WATCH_COUNT} watches | bytes per watch |`, '|---|---|');
  for (const [name, peer] of processes) {
    const { bytesGrown } = await peer.perform({ kind: 'watches', count: WATCH_COUNT });
    lines.push(
      `| ${name}${name === 'native' ? ' (resident)' : ''} | ${Math.round(bytesGrown / WATCH_COUNT)} |`,
    );
  }
  for (const peer of processes.values()) peer.stop();
  return [...lines, ''];
}

type Measured = Map<string, Map<string, Measurement[]>>;

async function measureRounds(serverName: string, processes: Map<string, Peer>): Promise<Measured> {
  const measured: Measured = new Map();
  for (let round = 0; round <= ROUNDS; round++) {
    for (const { name, task } of scenarios) {
      for (const [index] of peers.entries()) {
        const peer = peers[(index + round) % peers.length]!; // Nobody always goes first.
        const measurement = await processes.get(peer)!.perform(task);
        if (round === 0) continue; // Warm-up: the JVM's compiler, and ours.
        const byPeer = measured.get(name) ?? new Map<string, Measurement[]>();
        measured.set(name, byPeer.set(peer, [...(byPeer.get(peer) ?? []), measurement]));
      }
    }
    process.stderr.write(`\r${serverName}: round ${round} of ${ROUNDS}`);
  }
  process.stderr.write('\n');
  return measured;
}

function table(serverName: string, measured: Measured): string[] {
  const lines = [
    `| ZooKeeper 3.8, ${serverName} | client | ops/s, median | Holdfast is | spread | CPU µs per op |`,
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
      const [ratio, spread] =
        peer === 'holdfast'
          ? ['', '']
          : [
              `**${median(ratios).toFixed(2)}×**`,
              `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`,
            ];
      lines.push(`| ${name} | ${peer} | ${Math.round(rate)} | ${ratio} | ${spread} | ${cpu.toFixed(1)} |`);
    }
  }
  return lines;
}

/** A client's process. */
interface Peer {
  perform(task: Task): Promise<Measurement>;
  stop(): void;
}

async function startPeer(name: string, connectString: string): Promise<Peer> {
  const child = fork(fileURLToPath(new URL('./peer.ts', import.meta.url)), [name, connectString, root], {
    execArgv: [...process.execArgv, '--expose-gc', ...STEADY_NODE_FLAGS],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  await message(child);
  return {
    async perform(task) {
      child.send(task);
      return (await message(child)) as Measurement;
    },
    stop: () => void child.kill('SIGKILL'),
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

/** The native client is compiled on first use; where that fails, the bench says so and goes on without it. */
function preparePeers(): string[] {
  installPeers();
  const native = `${peersFolder}node_modules/zookeeper`;
  const built = `${native}/build/Release/zookeeper.node`;
  if (!existsSync(built)) {
    console.error('bench: compiling the native client (needs cmake, make and a C++ compiler)');
    spawnSync('npm', ['run', 'install'], { cwd: native, stdio: 'ignore', timeout: 600_000 });
  }
  if (existsSync(built)) return ['node-zookeeper-client', 'native'];
  console.error('bench: the native client does not compile here; going on without it');
  return ['node-zookeeper-client'];
}
