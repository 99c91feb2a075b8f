// Many sessions, many watches, many nodes: what they cost, in the embedded server and in real ZooKeeper beside it.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { connect, ops, type ZooKeeper } from 'holdfast/zookeeper';
import { PingProbe } from './ping-probe.ts';
import { cpuMsOf, residentBytesOf, type System, serveAgain, startEmbedded, startReal } from './systems.ts';

interface Sizes {
  readonly sessions: number;
  readonly heldMs: number;
  readonly watches: number;
  readonly nodes: number;
}

/** A question, and each server's answer to it. */
type Row = readonly [name: string, value: string];

const CLIENT_PROCESSES = 4;
const WATCHING_SESSIONS = 10;
const NODES_PER_FOLDER = 1_000;
const NODES_PER_MULTI = 200;
const NODE_DATA = Buffer.alloc(32, 'x');
const SESSION_TIMEOUT_MS = 60_000;
const limits = {
  connectionsMax: 20_000,
  connectionsPerAddressMax: 20_000,
  nodesMax: 2_000_000,
  outputBytesMax: 256 * 1024 * 1024,
};
/** As much as Node takes by itself on a machine with memory to spare. */
const jvmFlags = ['-Xmx4g', '-XX:+UseSerialGC'];

export async function measureScale({ quick }: { quick: boolean }): Promise<string[]> {
  const sizes: Sizes = quick
    ? { sessions: 1_000, heldMs: 10_000, watches: 10_000, nodes: 100_000 }
    : { sessions: 10_000, heldMs: 20_000, watches: 100_000, nodes: 1_000_000 };
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-bench-'));
  try {
    const ours = await measureEach('embedded', sizes, async (name) => {
      const start = () => startEmbedded('embedded', { limits, folder: join(folder, name) });
      return { system: await start(), again: start };
    });
    const theirs = await measureEach('ZooKeeper', sizes, async () => {
      const systemProperties = { 'zookeeper.forceSync': 'yes' };
      const real = await startReal('ZooKeeper', { jvmFlags, parentFolder: folder, systemProperties });
      return { system: real, again: () => serveAgain('ZooKeeper', real.process) };
    });
    return [
      '| | embedded | ZooKeeper |',
      '|---|---|---|',
      ...ours.map(([name, value], index) => `| ${name} | ${value} | ${theirs[index]![1]} |`),
    ];
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function measureEach(
  name: string,
  sizes: Sizes,
  startEmpty: (folder: string) => Promise<{ system: System; again(): Promise<System> }>,
): Promise<Row[]> {
  const say = (what: string) => process.stderr.write(`${name}: ${what}\n`);
  const rows: Row[] = [];
  say(`${sizes.sessions} sessions`);
  const first = await startEmpty('sessions');
  rows.push(...(await measureSessions(first.system, sizes)));
  await first.system.stop();
  // Another one: what the sessions leave behind when they expire would be counted as gained.
  const second = await startEmpty('nodes');
  say(`${sizes.watches} watches`);
  rows.push(...(await measureWatches(second.system, sizes)));
  say(`${sizes.nodes} nodes`);
  rows.push(...(await measureNodes(second.system, sizes)));
  await second.system.stop();
  say('starting with them');
  const third = await second.again();
  rows.push(['… a start with them, on disk', seconds(third.startedInMs)]);
  rows.push(['… resident after it', mebibytes(residentBytesOf(third.pid))]);
  await third.stop();
  return rows;
}

/** Real connections, from a few processes, that do nothing but keep their sessions alive. */
async function measureSessions(system: System, { sessions, heldMs }: Sizes): Promise<Row[]> {
  const before = await system.liveBytes();
  const startedAtMs = performance.now();
  const children = Array.from({ length: CLIENT_PROCESSES }, () =>
    startSessions(system.connectString, sessions / CLIENT_PROCESSES),
  );
  await Promise.all(children.map(({ open }) => open));
  const openedInMs = performance.now() - startedAtMs;
  const cpuBeforeMs = cpuMsOf(system.pid);
  const probe = await PingProbe.open(system.connectString);
  const latenciesMs: number[] = [];
  const heldSinceMs = performance.now();
  while (performance.now() - heldSinceMs < heldMs) {
    latenciesMs.push(await probe.ping());
    await delay(10);
  }
  const cpuShare = (cpuMsOf(system.pid) - cpuBeforeMs) / (performance.now() - heldSinceMs);
  probe.close();
  const live = await system.liveBytes();
  const resident = residentBytesOf(system.pid);
  let lostCount = 0;
  for (const { child } of children) {
    child.send('how many were lost?');
    lostCount += (await once(child, 'message'))[0] as number;
  }
  for (const { child } of children) child.kill('SIGKILL');
  latenciesMs.sort((a, b) => a - b);
  return [
    [`${sessions} sessions opened in`, seconds(openedInMs)],
    ['… memory each', bytes((live - before) / sessions)],
    ['… resident with them', mebibytes(resident)],
    [`… processor, held for ${heldMs / 1000} s (a ping each 10 s)`, `${(100 * cpuShare).toFixed(1)} %`],
    ['… p99 of a ping beside them', `${latenciesMs[Math.floor(latenciesMs.length * 0.99)]!.toFixed(2)} ms`],
    ['… lost meanwhile', String(lostCount)],
  ];
}

function startSessions(
  connectString: string,
  count: number,
): { child: ChildProcess; open: Promise<unknown> } {
  const child = fork(
    fileURLToPath(new URL('./sessions-process.ts', import.meta.url)),
    [connectString, String(count)],
    { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] },
  );
  const failed = once(child, 'exit').then(() => {
    throw new Error('a process of sessions ended');
  });
  failed.catch(() => {}); // It is ended by us, later.
  return { child, open: Promise.race([once(child, 'message'), failed]) };
}

/** Watches on absent nodes, one on each, fired by making them. */
async function measureWatches(system: System, { watches }: Sizes): Promise<Row[]> {
  const zk = await session(system);
  await zk.create('/watched');
  const watchers = await Promise.all(Array.from({ length: WATCHING_SESSIONS }, () => session(system)));
  const before = await system.liveBytes();
  let eventCount = 0;
  const onEvent = () => eventCount++;
  const paths = Array.from({ length: watches }, (_, index) => `/watched/node-${index}`);
  const setAtMs = performance.now();
  await inParallel(paths, 500, (path, index) =>
    watchers[index % watchers.length]!.exists(path, { watch: onEvent }),
  );
  const setInMs = performance.now() - setAtMs;
  const live = await system.liveBytes();
  const firedAtMs = performance.now();
  await createAll(zk, paths);
  while (eventCount < watches) await delay(1);
  const firedInMs = performance.now() - firedAtMs;
  await Promise.all([zk, ...watchers].map((each) => each.close()));
  return [
    [`${watches} watches set in`, seconds(setInMs)],
    ['… memory each', bytes((live - before) / watches)],
    ['… fired by as many creates, all heard of in', seconds(firedInMs)],
  ];
}

async function measureNodes(system: System, { nodes }: Sizes): Promise<Row[]> {
  const before = await system.liveBytes();
  const residentBefore = residentBytesOf(system.pid);
  const zk = await session(system);
  await zk.create('/nodes');
  const folders = Array.from({ length: nodes / NODES_PER_FOLDER }, (_, index) => `/nodes/folder-${index}`);
  const startedAtMs = performance.now();
  await createAll(zk, folders);
  for (const folder of folders) {
    const children = Array.from({ length: NODES_PER_FOLDER }, (_, index) => `${folder}/node-${index}`);
    await createAll(zk, children);
  }
  const elapsedMs = performance.now() - startedAtMs;
  await zk.close();
  const resident = residentBytesOf(system.pid) - residentBefore;
  const live = (await system.liveBytes()) - before;
  return [
    [`${nodes} nodes of ${NODE_DATA.byteLength} bytes made in`, seconds(elapsedMs)],
    ['… memory each, live', bytes(live / nodes)],
    ['… memory each, resident', bytes(resident / nodes)],
  ];
}

/** Many in one transaction, several of those under way: it is not the making that is measured. */
function createAll(zk: ZooKeeper, paths: readonly string[]): Promise<void> {
  const batches = Array.from({ length: Math.ceil(paths.length / NODES_PER_MULTI) }, (_, index) =>
    paths.slice(index * NODES_PER_MULTI, (index + 1) * NODES_PER_MULTI),
  );
  return inParallel(batches, 8, (batch) => zk.multi(batch.map((path) => ops.create(path, NODE_DATA))));
}

async function inParallel<T>(
  items: readonly T[],
  width: number,
  perform: (item: T, index: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: width }, async () => {
      for (let index = next++; index < items.length; index = next++) await perform(items[index]!, index);
    }),
  );
}

const session = (system: System) =>
  connect(system.connectString, { sessionTimeoutMs: SESSION_TIMEOUT_MS, timeoutMs: SESSION_TIMEOUT_MS });
const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;
const bytes = (count: number) => `${Math.round(count)} bytes`;
const mebibytes = (count: number) => `${Math.round(count / 2 ** 20)} MiB`;
