// How long a server with a folder takes to start: `npx tsx bench/server/recovery.ts [nodes …]`.
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startServer } from '../../src/server.ts';
import { connect } from '../../src/zookeeper.ts';
import { prepareFolder } from './prepared-folder.ts';

const ROUNDS = 5;
const counts = process.argv.slice(2).map(Number);

for (const nodeCount of counts.length > 0 ? counts : [100_000]) {
  for (const kept of ['log', 'snapshot'] as const) {
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-recovery-'));
    try {
      await prepareFolder(folder, nodeCount, kept);
      const bytes = await bytesIn(folder);
      const times: number[] = [];
      const cpuTimes: number[] = []; // Says more than the clock on a machine that others use as well.
      for (let round = 0; round < ROUNDS; round++) {
        const startedAtMs = performance.now();
        const cpu = process.cpuUsage();
        const server = await startServer({ folder, limits: { nodesMax: 2 * nodeCount } });
        times.push(performance.now() - startedAtMs);
        const { user, system } = process.cpuUsage(cpu);
        cpuTimes.push((user + system) / 1000);
        if (round === 0) await look(server.connectString);
        await server.stop();
      }
      times.sort((a, b) => a - b);
      cpuTimes.sort((a, b) => a - b);
      const [best, median, worst] = [times[0]!, times[ROUNDS >> 1]!, times.at(-1)!].map(Math.round);
      console.log(
        `${nodeCount} nodes from a ${kept} of ${(bytes / 2 ** 20).toFixed(1)} MiB: median ${median} ms (${best} to ${worst}, ${ROUNDS} starts), of the processor ${Math.round(cpuTimes[ROUNDS >> 1]!)} ms`,
      );
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }
}

async function look(connectString: string): Promise<void> {
  await using zk = await connect(connectString);
  const { data } = await zk.get('/node-4/child-0000000042');
  if (data?.byteLength !== 100) throw new Error('what was kept is not there');
}

async function bytesIn(folder: string): Promise<number> {
  let bytes = 0;
  for (const name of await readdir(folder)) bytes = Math.max(bytes, (await stat(join(folder, name))).size);
  return bytes;
}
