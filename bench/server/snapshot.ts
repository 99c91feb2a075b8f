// What a snapshot costs those who are served meanwhile: `npx tsx bench/server/snapshot.ts [nodes …]`.
// A server with that many nodes, a client that writes one after the other; the longest stop of the event loop and the
// longest wait for a write, without a snapshot and with one being written. On a machine that others use as well a stop
// is mostly theirs: what the process itself has used of the processors in one, all threads together, says how long it
// can be on an idle one.
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PerformanceObserver } from 'node:perf_hooks';
import type { DataTree } from '../../src/server/data-tree.ts';
import { encodeSnapshot } from '../../src/server/storage/snapshot-format.ts';
import { startServer } from '../../src/server.ts';
import { connect, type ZooKeeper } from '../../src/zookeeper.ts';
import { prepareFolder } from './prepared-folder.ts';

const LOG_BYTES_MAX = 1_000_000;
const VALUE = Buffer.alloc(2_000, 1);
const counts = process.argv.slice(2).map(Number);

/** How long the event loop stops, looked at each millisecond. */
class LoopStops implements Disposable {
  #longestMs = 0;
  #usedMsMax = 0;
  #collections: number[] = [];
  readonly #observer = new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) this.#collections.push(duration);
  });
  readonly #timer: NodeJS.Timeout;

  constructor() {
    let sinceMs = performance.now();
    let used = process.cpuUsage();
    this.#observer.observe({ entryTypes: ['gc'] });
    this.#timer = setInterval(() => {
      const nowMs = performance.now();
      const { user, system } = process.cpuUsage(used);
      this.#longestMs = Math.max(this.#longestMs, nowMs - sinceMs - 1);
      this.#usedMsMax = Math.max(this.#usedMsMax, (user + system) / 1000);
      sinceMs = nowMs;
      used = process.cpuUsage();
    }, 1);
  }

  toString(): string {
    const longest = Math.max(0, ...this.#collections).toFixed(1);
    return [
      `loop stopped for ${this.#longestMs.toFixed(1)} ms at most`,
      `of the processors ${this.#usedMsMax.toFixed(1)} ms at most in one stop`,
      `${this.#collections.length} collections, the longest ${longest} ms`,
    ].join(', ');
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#observer.disconnect();
  }
}

for (const nodeCount of counts.length > 0 ? counts : [100_000, 1_000_000]) {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-snapshot-'));
  try {
    console.log(
      `${nodeCount} nodes, pieces of a snapshot: ${pieces(await prepareFolder(folder, nodeCount, 'snapshot'))}`,
    );
    const before = new Set(await readdir(folder));
    await using server = await startServer({
      folder,
      logBytesMax: LOG_BYTES_MAX,
      limits: { nodesMax: 2 * nodeCount },
    });
    await using zk = await connect(server.connectString, { sessionTimeoutMs: 30_000 });
    await zk.create('/written', '');
    globalThis.gc?.();
    // Until the log is nearly full there is nothing but writes.
    const quiet = await measure(zk, (writes) => writes * VALUE.byteLength > LOG_BYTES_MAX * 0.8);
    const isWritten = async () =>
      (await readdir(folder)).some((name) => /^snapshot\.[0-9a-f]{16}$/.test(name) && !before.has(name));
    const busy = await measure(zk, isWritten);
    console.log(`${nodeCount} nodes, no snapshot: ${quiet}`);
    console.log(`${nodeCount} nodes, a snapshot:  ${busy}`);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** How long each step takes that nobody else can come in between, on its own. */
function pieces(tree: DataTree): string {
  const times: number[] = [];
  const cpu = process.cpuUsage();
  const startedAtMs = performance.now();
  const nodes = tree.freeze();
  const frozenMs = performance.now() - startedAtMs;
  let fromMs = performance.now();
  for (const _piece of encodeSnapshot({ zxid: 1n, sessions: [], nodes })) {
    times.push(performance.now() - fromMs);
    fromMs = performance.now();
  }
  nodes.release();
  const { user, system } = process.cpuUsage(cpu);
  times.sort((a, b) => a - b);
  const of = (fraction: number) => times[Math.floor(fraction * (times.length - 1))]!.toFixed(2);
  return `${times.length}, p50 ${of(0.5)} ms, p99 ${of(0.99)}, longest ${of(1)}; freezing ${frozenMs.toFixed(2)} ms; ${Math.round((user + system) / 1000)} ms of the processor in all`;
}

async function measure(
  zk: ZooKeeper,
  isOver: (writes: number) => boolean | Promise<boolean>,
): Promise<string> {
  using stops = new LoopStops();
  const latencies: number[] = [];
  let rssMax = 0;
  const startedAtMs = performance.now();
  while (latencies.length % 20 !== 0 || latencies.length === 0 || !(await isOver(latencies.length))) {
    const sentAtMs = performance.now();
    await zk.set('/written', VALUE);
    latencies.push(performance.now() - sentAtMs);
    rssMax = Math.max(rssMax, process.memoryUsage.rss());
  }
  latencies.sort((a, b) => a - b);
  const of = (fraction: number) => latencies[Math.floor(fraction * (latencies.length - 1))]!.toFixed(1);
  return [
    `${stops}`,
    `write p50 ${of(0.5)} ms, p99 ${of(0.99)}, longest ${of(1)}`,
    `${latencies.length} writes in ${((performance.now() - startedAtMs) / 1000).toFixed(1)} s`,
    `${Math.round(rssMax / 2 ** 20)} MiB resident`,
  ].join('; ');
}
