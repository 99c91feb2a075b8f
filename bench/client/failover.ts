// What an election of a leader costs: how many connections a client tries, how soon it is back, and how many locks are
// lost, by how little the servers might grant when a session is resumed (ADR 5). Under a virtual clock, so that it takes
// seconds and says the same every time: `npx tsx bench/client/failover.ts [clients]`.
import { fraction, seededRandom } from '../../src/base/random.ts';
import { ScriptedEnsemble, ScriptedServers } from '../../src/client/scripted-servers.test-data.ts';
import { ZooKeeper } from '../../src/client/zookeeper.ts';
import { ascending, median } from '../statistics.ts';

const SESSION_TIMEOUT_MS = 15_000;
const HEARTBEAT_MS = SESSION_TIMEOUT_MS / 5;
const ELECTIONS_S = [1, 2, 3, 4, 5, 6, 7, 8];
const FLOORS_S = [4, 6, 8, 10, 12, 15];
const clientCount = Number(process.argv[2] ?? 200);

interface Failover {
  readonly attemptsPerClient: number;
  readonly reachedPerClient: number;
  /** From when the servers serve again until a client is back. */
  readonly backAfterMs: readonly number[];
  readonly lostShare: number;
}

/** The leader dies; the two others accept connections and close them, until one of them leads. */
async function failover(electionMs: number, grantedTimeoutMsMin: number): Promise<Failover> {
  const network = new ScriptedServers();
  const { clock } = network;
  const random = seededRandom(1);
  const ensemble = new ScriptedEnsemble();
  const servers = ['one', 'two', 'three'].map((host) => network.add(host, { ensemble }));
  const clients: ZooKeeper[] = [];
  let lostCount = 0;
  for (let index = 0; index < clientCount; index++) {
    const zk = ZooKeeper.open('one,two,three', {
      transport: network,
      clock,
      random: seededRandom(index),
      sessionTimeoutMs: SESSION_TIMEOUT_MS,
      lease: { grantedTimeoutMsMin },
    });
    await clock.advance(5); // Connected; from then on its heartbeats are its own.
    zk.session.hold().onEnded(() => lostCount++);
    clients.push(zk);
    await clock.advance((fraction(random) * 2 * HEARTBEAT_MS) / clientCount);
  }
  await clock.advance(4 * HEARTBEAT_MS);
  for (const server of servers) {
    server.mode = 'electing';
    server.dialCount = 0;
    server.handshakeCount = 0;
  }
  servers[0]!.mode = 'down';
  const backAfterMs: number[] = [];
  const servedAtMs = clock.nowMs() + electionMs;
  for (const zk of clients) zk.on('connected', () => backAfterMs.push(clock.nowMs() - servedAtMs));
  network.cut();
  await clock.advanceTo(servedAtMs);
  const total = (count: (server: (typeof servers)[number]) => number) =>
    servers.reduce((sum, server) => sum + count(server), 0) / clientCount;
  const attemptsPerClient = total(({ dialCount }) => dialCount);
  const reachedPerClient = total(({ handshakeCount }) => handshakeCount);
  for (const server of servers.slice(1)) server.mode = 'serving';
  await clock.advance(10_000);
  const lostShare = lostCount / clientCount;
  for (const zk of clients) void zk.close();
  await clock.advance(5_000);
  return { attemptsPerClient, reachedPerClient, backAfterMs, lostShare };
}

console.log(`${clientCount} clients of three servers, session timeout ${SESSION_TIMEOUT_MS / 1_000} s\n`);
console.log(
  '| election | connections tried per client | of them accepted | back after, median | 95 % | the last |',
);
console.log('|---|---|---|---|---|---|');
for (const seconds of ELECTIONS_S) {
  const { attemptsPerClient, reachedPerClient, backAfterMs } = await failover(
    seconds * 1_000,
    SESSION_TIMEOUT_MS,
  );
  const sorted = ascending(backAfterMs);
  const ms = [median(sorted), sorted[Math.floor(sorted.length * 0.95)]!, sorted.at(-1)!];
  const cells = [`${seconds} s`, attemptsPerClient.toFixed(1), reachedPerClient.toFixed(1)];
  console.log(`| ${[...cells, ...ms.map((each) => `${each.toFixed(0)} ms`)].join(' | ')} |`);
}

console.log('\nLocks lost, by the smallest timeout that a server may grant:\n');
console.log(`| election | ${FLOORS_S.map((seconds) => `${seconds} s`).join(' | ')} |`);
console.log(`|---|${'---|'.repeat(FLOORS_S.length)}`);
for (const seconds of ELECTIONS_S) {
  const shares: string[] = [];
  for (const floor of FLOORS_S) {
    const { lostShare } = await failover(seconds * 1_000, floor * 1_000);
    shares.push(`${(100 * lostShare).toFixed(0)} %`);
  }
  console.log(`| ${seconds} s | ${shares.join(' | ')} |`);
}
