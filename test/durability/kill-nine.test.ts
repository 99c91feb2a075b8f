import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { seededRandom } from '../../src/base/random.ts';
import { connect, type ZooKeeper } from '../../src/zookeeper.ts';
import { freePorts } from '../support/free-port.ts';

const ROUNDS = Number(process.env['HOLDFAST_KILL_ROUNDS'] ?? 15);
const WRITERS = 8;
/** Small, so that logs are rolled and snapshots written while the server is being killed. */
const LOG_BYTES_MAX = 40_000;

const serverFile = new URL('./server-process.ts', import.meta.url).pathname;

async function start(folder: string, port: number): Promise<ChildProcess> {
  const child = fork(serverFile, [folder, String(port), String(LOG_BYTES_MAX)], {
    execArgv: ['--import', 'tsx'],
  });
  const [message] = await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(([code]) => Promise.reject(new Error(`the server ended with ${code}`))),
  ]);
  expect(message).toEqual({ port });
  return child;
}

/** What one writer was told, and what it does not know. */
interface Ledger {
  readonly path: string;
  /** The newest version that was answered. */
  answered: number;
  /** The newest version that was asked for. */
  asked: number;
  zxid: bigint;
}

/** Writes version after version until the connection dies under it. */
async function write(zk: ZooKeeper, ledger: Ledger): Promise<void> {
  try {
    for (;;) {
      ledger.asked = ledger.answered + 1;
      const stat = await zk.set(ledger.path, `${ledger.asked}`, { version: ledger.answered });
      expect(stat.mzxid).toBeGreaterThan(ledger.zxid);
      ledger.answered = stat.version;
      ledger.zxid = stat.mzxid;
    }
  } catch (error) {
    if ((error as { outcome?: string }).outcome === undefined) throw error;
  }
}

test(`nothing that was answered is lost, and nothing is half-applied, over ${ROUNDS} kills under load`, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-kill-'));
  const random = seededRandom(1);
  const [port] = (await freePorts(1)) as [number];
  const ledgers: Ledger[] = [];
  let server = await start(folder, port);
  try {
    {
      await using zk = await connect(`127.0.0.1:${port}`);
      for (let index = 0; index < WRITERS; index++) {
        const { path, stat } = await zk.create(`/writer-${index}`, '0');
        ledgers.push({ path, answered: 0, asked: 0, zxid: stat.czxid });
      }
    }
    for (let round = 0; round < ROUNDS; round++) {
      const zk = await connect(`127.0.0.1:${port}`, { sessionTimeoutMs: 30_000 });
      const writing = Promise.all(ledgers.map((ledger) => write(zk, ledger)));
      const before = ledgers.reduce((sum, { answered }) => sum + answered, 0);
      const quota = 50 + (random.u32() % 400);
      while (ledgers.reduce((sum, { answered }) => sum + answered, 0) < before + quota) {
        await new Promise((resolve) => setImmediate(resolve));
      }
      server.kill('SIGKILL');
      await once(server, 'exit');
      await zk.close();
      await writing;

      server = await start(folder, port);
      await using reader = await connect(`127.0.0.1:${port}`);
      const newest = ledgers.reduce((highest, { zxid }) => (zxid > highest ? zxid : highest), 0n);
      const { stat: marker } = await reader.create('/marker-', '', { mode: 'persistent-sequential' });
      expect(marker.czxid, 'no number is used twice').toBeGreaterThan(newest);
      for (const ledger of ledgers) {
        const { data, stat } = await reader.get(ledger.path);
        expect([ledger.answered, ledger.asked]).toContain(stat.version);
        expect(data?.toString()).toBe(String(stat.version));
        ledger.answered = stat.version;
        ledger.zxid = marker.czxid;
      }
      expect((await reader.children('/')).filter((name) => name.startsWith('marker-'))).toHaveLength(
        round + 1,
      );
    }
  } finally {
    server.kill('SIGKILL');
    await rm(folder, { recursive: true, force: true });
  }
}, 120_000);
