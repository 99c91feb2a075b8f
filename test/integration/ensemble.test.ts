import { describe, expect, test } from 'vitest';
import { connect, isServerError, type WatchEvent, type ZooKeeper } from '../../src/zookeeper.ts';
import { serverOf } from '../support/backends.ts';
import { until } from '../support/until.ts';
import { startEnsemble } from '../support/zookeeper-ensemble.ts';
import type { ZooKeeperProcess } from '../support/zookeeper-process.ts';

describe('an ensemble that loses servers', () => {
  test('keeps a session, its nodes and its watches while each of its servers is killed in turn', async () => {
    await using ensemble = await startEnsemble();
    await using zk = await connect(ensemble.connectString, { sessionTimeoutMs: 10_000 });
    await using other = await connect(ensemble.connectString, { sessionTimeoutMs: 10_000 });
    const lost: unknown[] = [];
    zk.on('lost', (event) => lost.push(event));
    const { id } = zk.session;
    await zk.create('/mine', '', { mode: 'ephemeral' });
    const { stat } = await zk.get('/mine');

    for (let round = 0; round < 3; round++) {
      const path = `/round-${round}`;
      const events: WatchEvent[] = [];
      await zk.create(path, 'before');
      await zk.get(path, { watch: (event) => events.push(event) });
      const victim = await serverOf(zk, ensemble);
      let reconnected = false;
      const off = zk.on('connected', () => {
        reconnected = true;
      });
      await victim.kill();
      // A read made while nobody serves it is answered by whoever serves next.
      expect((await zk.get(path)).data).toEqual(Buffer.from('before'));
      await until('the client moved', () => reconnected);
      off();
      await writeUntilDone(other, path, 'after');
      await until('the watch fired', () => events.length > 0);
      expect(events.map(({ type }) => type)).toEqual(['node-data-changed']);
      await victim.start();
      await ensemble.waitUntilServing();
    }
    expect(zk.session.id).toBe(id);
    expect((await zk.get('/mine')).stat).toEqual(stat);
    expect(lost).toEqual([]);
  });

  test('applies no write twice, whatever became of its answer', async () => {
    await using ensemble = await startEnsemble();
    await using zk = await connect(ensemble.connectString, { sessionTimeoutMs: 10_000 });
    await zk.create('/log');
    const outcomes = { done: 0, unknown: 0, notApplied: 0 };
    let running = true;
    const writing = (async () => {
      while (running) {
        await zk.create('/log/e-', '', { mode: 'persistent-sequential' }).then(
          () => outcomes.done++,
          (error) => (error.outcome === 'unknown' ? outcomes.unknown++ : outcomes.notApplied++),
        );
      }
    })();
    for (let round = 0; round < 2; round++) {
      const before = outcomes.done;
      await until('writes go on', () => outcomes.done > before + 50);
      const leader = await ensemble.leader();
      await leader.kill();
      await leader.start();
      await ensemble.waitUntilServing();
    }
    running = false;
    await writing;
    await zk.sync();
    const entries = await zk.children('/log');
    expect(entries.length).toBeGreaterThanOrEqual(outcomes.done);
    expect(entries.length).toBeLessThanOrEqual(outcomes.done + outcomes.unknown);
  });

  test('without a quorum serves reads to those who asked for it, and gives them back their writes later', async () => {
    await using ensemble = await startEnsemble({ readOnlyMode: true });
    const [first, second, third] = ensemble.servers as [ZooKeeperProcess, ZooKeeperProcess, ZooKeeperProcess];
    {
      await using writer = await connect(third.connectString);
      await writer.create('/kept', 'value'); // Answered by the one that will be asked for it.
    }
    await Promise.all([first.kill(), second.kill()]);
    await until('the last one is read-only', async () => (await third.mode()) === 'read-only', 30_000);
    await expect(connect(third.connectString, { timeoutMs: 1_000 })).rejects.toMatchObject({
      code: 'ZK_UNREACHABLE',
    });
    await using zk = await connect(ensemble.connectString, { readOnly: true, timeoutMs: 20_000 });
    expect(zk.session.readOnly).toBe(true);
    expect((await zk.get('/kept')).data).toEqual(Buffer.from('value'));
    await expect(zk.set('/kept', 'x')).rejects.toSatisfy((error) => isServerError(error, 'not-read-only'));
    const hold = zk.session.hold();
    await until('nothing can be held', () => hold.signal.aborted);

    await Promise.all([first.start(), second.start()]);
    await ensemble.waitUntilServing();
    await until(
      'the client found a read-write server',
      () => zk.session.state === 'connected' && !zk.session.readOnly,
      30_000,
    );
    await zk.set('/kept', 'written');
    expect((await zk.get('/kept')).data).toEqual(Buffer.from('written'));
  });

  test('changes its members when it is told to', async () => {
    const superDigest = 'super:xQJmxLMiHGwaqBvst5y6rkB6HQs=';
    await using ensemble = await startEnsemble({ reconfigEnabled: true, superDigest });
    await using zk = await connect(ensemble.connectString, {
      auth: [{ scheme: 'digest', auth: 'super:admin' }],
    });
    const before = await zk.config();
    expect(before.data?.toString()).toMatch(/server\.1=.*\n.*server\.2=.*\n.*server\.3=/);
    const leader = await ensemble.leader();
    const leaving = ensemble.servers.findIndex((server) => server !== leader) + 1;
    const after = await zk.reconfig({ leaving: String(leaving) });
    expect(after.data?.toString()).not.toContain(`server.${leaving}=`);
    await expect(zk.reconfig({ leaving: '1', fromConfig: 1n })).rejects.toMatchObject({
      code: 'ZK_BAD_VERSION',
    });
  });
});

describe('sync', () => {
  test('lets a follower catch up with what was written on any other server', async () => {
    await using ensemble = await startEnsemble();
    const [follower] = await ensemble.followers();
    for (const server of ensemble.servers.filter((each) => each !== follower)) {
      await using writer = await connect(server.connectString);
      await using reader = await connect(follower!.connectString);
      for (let round = 0; round < 100; round++) {
        const { path } = await writer.create('/n-', '', { mode: 'persistent-sequential' });
        const [, stat] = await Promise.all([reader.sync(), reader.exists(path)]);
        expect(stat).toBeDefined();
      }
    }
  });
});

describe('a hold', () => {
  test.each(['leader', 'quorum'] as const)(
    'lasts over many timeouts with the %s heartbeat',
    async (heartbeat) => {
      await using ensemble = await startEnsemble();
      await using zk = await connect(ensemble.connectString, {
        sessionTimeoutMs: 1_000,
        heartbeat,
        lease: { touchLagMs: 250 },
      });
      const hold = zk.session.hold();
      const startedAtMs = performance.now();
      await until('three timeouts passed', () => performance.now() - startedAtMs > 3_000);
      expect(hold.signal.aborted).toBe(false);
      expect(hold.remainingMs()).toBeGreaterThan(0);
      hold.release();
      expect(hold.remainingMs()).toBe(0);
    },
  );
});

async function writeUntilDone(zk: ZooKeeper, path: string, data: string): Promise<void> {
  for (;;) {
    try {
      await zk.set(path, data);
      return;
    } catch (error) {
      if ((error as { outcome?: string }).outcome !== 'unknown') throw error;
    }
  }
}
