import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { seededRandom } from '../../src/base/random.ts';
import { connect } from '../../src/zookeeper.ts';
import { freePorts } from '../support/free-port.ts';
import { until } from '../support/until.ts';
import { DurableServer } from './durable-server.ts';
import { Workload } from './workload.ts';

const ROUNDS = Number(process.env['HOLDFAST_KILL_ROUNDS'] ?? 12);
const WRITERS = 8;
/** Small, so that logs are followed by others and snapshots written while the server is being killed. */
const LOG_BYTES_MAX = 8_000;

test(`nothing that was answered is lost, and nothing is half-applied, over ${ROUNDS} kills under load`, {
  timeout: 60_000 + ROUNDS * 10_000,
}, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-kill-'));
  const random = seededRandom(1);
  const [port] = (await freePorts(1)) as [number];
  const options = { port, logBytesMax: LOG_BYTES_MAX };
  let server = await DurableServer.start(folder, options);
  const snapshots = new Set<string>();
  try {
    const workload = await withClient(server, (zk) => Workload.begin(zk, WRITERS));
    for (let round = 0; round < ROUNDS; round++) {
      const clients = await Promise.all([0, 1, 2].map(() => connect(server.connectString)));
      const writing = workload.run(clients);
      const quota = workload.answeredCount + (random.u32() % 400);
      await until(`${quota} answers`, () => workload.answeredCount >= quota);
      await server.kill();
      await Promise.all(clients.map((zk) => zk.close()));
      await writing;
      if (round % 3 === 0) {
        // Killed again while it starts.
        const starting = DurableServer.fork(folder, options);
        await delay(random.u32() % 900);
        await starting.kill();
      }
      server = await DurableServer.start(folder, options);
      await withClient(server, (zk) => workload.verify(zk, `round ${round}`));
      for (const name of await readdir(folder)) if (/^snapshot\.[0-9a-f]+$/.test(name)) snapshots.add(name);
    }
    expect(snapshots.size, 'snapshots were written meanwhile').toBeGreaterThan(ROUNDS / 6);
    console.log(
      `kill -9: ${ROUNDS} rounds, ${workload.answeredCount} answered writes, ${snapshots.size} snapshots seen`,
    );
  } finally {
    await server.kill();
    await rm(folder, { recursive: true, force: true });
  }
});

async function withClient<T>(
  server: DurableServer,
  use: (zk: Awaited<ReturnType<typeof connect>>) => Promise<T>,
): Promise<T> {
  await using zk = await connect(server.connectString);
  return await use(zk);
}
