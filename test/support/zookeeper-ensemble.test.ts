import { describe, expect, test, vi } from 'vitest';
import { sharedEnsemble } from './shared-servers.ts';
import { startEnsemble, ZooKeeperEnsemble } from './zookeeper-ensemble.ts';
import { fourLetterWord } from './zookeeper-process.ts';

describe('a zookeeper ensemble', () => {
  test('has one leader, elects another when that is killed, and takes the old one back', async () => {
    await using ensemble = await startEnsemble();
    const { servers } = ensemble;
    expect(servers.length).toBe(3);
    expect(ensemble.connectString).toBe(servers.map(({ port }) => `127.0.0.1:${port}`).join(','));
    const first = await ensemble.leader();
    expect(await ensemble.followers()).toEqual(servers.filter((server) => server !== first));

    await first.kill();
    const second = await ensemble.leader();
    expect(second).not.toBe(first);
    await ensemble.waitUntilServing();
    expect(await ensemble.followers()).toEqual(
      servers.filter((server) => server !== first && server !== second),
    );

    await first.restart();
    expect(await ensemble.leader()).toBe(second);
    expect((await ensemble.followers()).length).toBe(2);
  });

  test('elects another leader when that one is paused, and knows the new one once the old has woken', async () => {
    await using ensemble = await startEnsemble({ tickTimeMs: 200 });
    const first = await ensemble.leader();
    await first.pause();
    const second = await ensemble.leader();
    expect(second).not.toBe(first);
    await ensemble.waitUntilServing();
    first.resume();
    expect(await ensemble.leader()).toBe(second);
  });

  test('serves no longer without a majority', async () => {
    await using ensemble = await startEnsemble({ tickTimeMs: 200, syncLimitTicks: 2 });
    const [survivor, ...others] = ensemble.servers;
    await Promise.all(others.map((server) => server.kill()));
    await vi.waitFor(async () => expect(await survivor!.mode()).toBeUndefined(), { timeout: 5_000 });
    await expect(ensemble.leader(100)).rejects.toThrow('no single leader after 100 ms');
    await ensemble.start();
    await ensemble.waitUntilServing();
  });

  test('goes on without a follower that is cut off, which stops serving, and takes it back', async () => {
    await using ensemble = await startEnsemble({ tickTimeMs: 200, syncLimitTicks: 2, severable: true });
    const leader = await ensemble.leader();
    const [follower] = await ensemble.followers();
    ensemble.isolate(follower!);
    await vi.waitFor(async () => expect(await follower!.mode()).toBeUndefined(), { timeout: 10_000 });
    expect(follower!.running).toBe(true);
    expect(await ensemble.leader()).toBe(leader);
    ensemble.links.heal();
    await ensemble.waitUntilServing();
    expect((await ensemble.followers()).length).toBe(2);
  });

  test('elects another leader when that one is cut off, which stops leading, and takes it back', async () => {
    await using ensemble = await startEnsemble({ tickTimeMs: 200, syncLimitTicks: 2, severable: true });
    const first = await ensemble.leader();
    ensemble.isolate(first);
    await vi.waitFor(async () => expect(await first.mode()).toBeUndefined(), { timeout: 10_000 });
    const second = await ensemble.leader();
    expect(second).not.toBe(first);
    ensemble.links.heal();
    await ensemble.waitUntilServing();
    expect(await ensemble.leader()).toBe(second);
  });

  test('cuts nobody off whose links are direct', async () => {
    await using ensemble = await ZooKeeperEnsemble.create();
    expect(() => ensemble.isolate(ensemble.servers[0]!)).toThrow('make it severable');
  });

  test('is shared by all tests', async () => {
    const { servers, connectString } = sharedEnsemble();
    expect(connectString.split(',')).toEqual(servers.map((server) => server.connectString));
    const reports = await Promise.all(servers.map((server) => fourLetterWord(server, 'srvr')));
    const modes = reports.map((report) => /^Mode: (.*)$/m.exec(report)?.[1]);
    expect(modes.sort()).toEqual(['follower', 'follower', 'leader']);
  });
});
