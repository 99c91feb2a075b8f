import { describe, expect, test } from 'vitest';
import { seededRandom } from '../base/random.ts';
import { ServerBehindError, UnreachableError } from '../protocol/errors.ts';
import type { ConnectOptions } from './connect-options.ts';
import { ScriptedEnsemble, type ScriptedServer, ScriptedServers } from './scripted-servers.test-data.ts';
import { ZooKeeper } from './zookeeper.ts';

const OLDER = new ScriptedEnsemble(0x500n);

/** A client that has seen transaction 0x1000 of `newer`, and whose session has been lost while that is down. */
async function afterALoss(options: ConnectOptions = {}, older: Partial<ScriptedServer> = {}) {
  const network = new ScriptedServers();
  const { clock } = network;
  const newer = network.add('newer', { ensemble: new ScriptedEnsemble(0x1000n) });
  const behind = network.add('older', { ensemble: OLDER, ...older, mode: 'down' });
  const log: string[] = [];
  const zk = ZooKeeper.open('newer:2181,older:2181', {
    transport: network,
    clock,
    random: seededRandom(1),
    sessionTimeoutMs: 3_000,
    log: (level, message) => void log.push(`${level}: ${message}`),
    ...options,
  });
  await clock.advance(100);
  const synced = zk.sync();
  await clock.advance(100);
  await synced;
  newer.mode = 'down';
  behind.mode = 'serving';
  newer.ensemble.sessions.clear();
  network.cut('newer');
  await clock.advance(5_000);
  return { network, clock, zk, newer, behind, log };
}

describe('after a lost session', () => {
  test('a server of an older backup is refused, and the next one tried', async () => {
    const { clock, zk, newer, behind } = await afterALoss();
    expect(zk.session.state).toBe('connecting');
    expect(behind.handshakeCount).toBeGreaterThan(1);
    newer.mode = 'serving';
    await clock.advance(3_000);
    expect(zk.session.state).toBe('connected');
    expect(zk.session.lastZxid).toBe(0x1000n);
    await closed(zk, clock);
  });

  test('says so to those who wait: why, and which transaction', async () => {
    const { clock, zk, newer, log } = await afterALoss();
    newer.ensemble = OLDER; // It has been restored too.
    newer.mode = 'serving';
    const waiting = zk.connected({ timeoutMs: 10_000 }).catch((error: unknown) => error);
    await clock.advance(10_000);
    const error = await waiting;
    expect(error).toBeInstanceOf(ServerBehindError);
    expect(error).toBeInstanceOf(UnreachableError);
    expect(error).toMatchObject({ code: 'ZK_SERVER_BEHIND', outcome: 'not-applied' });
    expect((error as Error).message).toContain(
      'transaction 0x1000, which this client has seen; its newest is 0x500',
    );
    expect(log).toContain('warn: a server is behind, and not taken');
    await closed(zk, clock);
  });

  test('is not said to be behind where one of the servers is merely down', async () => {
    const { clock, zk } = await afterALoss();
    const waiting = zk.connected({ timeoutMs: 1_000 }).catch((error: unknown) => error);
    await clock.advance(1_000);
    expect(await waiting).toMatchObject({ code: 'ZK_UNREACHABLE' });
    await closed(zk, clock);
  });

  test('a server that does not look at what was seen is found out by its first answer', async () => {
    const { clock, zk, behind } = await afterALoss({}, { looksAtZxid: false });
    const answers: unknown[] = [];
    for (let round = 0; round < 3; round++) {
      void zk.set('/counter', '1').then(
        () => answers.push('done'),
        (error: { code: string; cause: unknown }) =>
          answers.push([error.code, error.cause instanceof ServerBehindError]),
      );
      await clock.advance(2_000);
    }
    expect(behind.handshakeCount).toBeGreaterThan(1);
    expect(answers).not.toContain('done');
    expect(answers).toContainEqual(['ZK_CONNECTION_LOSS', true]);
    await closed(zk, clock);
  });

  test('it is taken where that is meant', async () => {
    const { clock, zk } = await afterALoss({ acceptOlderServers: true });
    expect(zk.session.state).toBe('connected');
    const synced = zk.sync();
    await clock.advance(10);
    await synced;
    expect(zk.session.lastZxid).toBe(0x500n);
    await closed(zk, clock);
  });

  test('a server is asked how far it is only now and then', async () => {
    const { clock, zk, behind } = await afterALoss();
    const { dialCount, handshakeCount } = behind;
    await clock.advance(20_000);
    const questions = behind.dialCount - dialCount - (behind.handshakeCount - handshakeCount);
    expect(questions).toBeGreaterThan(0);
    expect(questions).toBeLessThanOrEqual(5);
    await closed(zk, clock);
  });

  test('a first session has seen nothing, and takes any server', async () => {
    const network = new ScriptedServers();
    network.add('older', { ensemble: OLDER });
    const zk = ZooKeeper.open('older:2181', { transport: network, clock: network.clock });
    await network.clock.advance(100);
    expect(zk.session.state).toBe('connected');
    await closed(zk, network.clock);
  });
});

async function closed(zk: ZooKeeper, clock: ScriptedServers['clock']): Promise<void> {
  const closing = zk.close();
  await clock.advance(5_000);
  await closing;
  expect(clock.alarmCount).toBe(0);
}
