import { describe, expect, test } from 'vitest';
import { connect, type HoldfastOptions } from '../../src/holdfast.ts';
import { startServer } from '../../src/server.ts';
import { acls, digestId } from '../../src/zookeeper.ts';
import { sharedStandalone } from '../support/shared-servers.ts';
import { until } from '../support/until.ts';

const TEAM = { auth: [{ scheme: 'digest', auth: 'team:secret' }] };
const PROTECTED: HoldfastOptions = {
  ...TEAM,
  acl: [...acls.creatorOnly, ...acls.readOnly],
  folderAcl: [...acls.creatorOnly, ...acls.readOnly],
};

/** A chroot of its own on each backend. */
async function freshServers(backend: 'embedded server' | 'ZooKeeper') {
  const embedded = backend === 'ZooKeeper' ? undefined : await startServer();
  const { connectString } = embedded ?? sharedStandalone();
  await using admin = await connect({ servers: connectString });
  const { path } = await admin.zk.create('/access-', '', { mode: 'persistent-sequential' });
  return {
    servers: `${connectString}${path}`,
    [Symbol.asyncDispose]: async () => embedded?.stop(),
  };
}

describe.each(['embedded server', 'ZooKeeper'] as const)('who may do what with a lock, %s', (backend) => {
  test('a stranger cannot remove a contender, ask for the lock or queue up, where the folder is the team’s', async () => {
    await using world = await freshServers(backend);
    await using member = await connect({ servers: world.servers, ...PROTECTED });
    await using stranger = await connect({ servers: world.servers });
    await using lease = await member.mutex('m').acquire();
    const { holders } = await stranger.inspect('m');
    const path = `/locks/m/${holders[0]!.id}`;
    await expect(stranger.zk.delete(path)).rejects.toMatchObject({ code: 'ZK_NO_AUTH' });
    await expect(stranger.revoke('m')).rejects.toMatchObject({ code: 'ZK_NO_AUTH' });
    await expect(stranger.mutex('m').acquire()).rejects.toMatchObject({ code: 'ZK_NO_AUTH' });
    lease.assertHeld();
  });

  test('a list on the contenders alone protects nothing: deleting is checked at the folder', async () => {
    await using world = await freshServers(backend);
    await using member = await connect({ servers: world.servers, ...TEAM, acl: acls.creatorOnly });
    await using stranger = await connect({ servers: world.servers });
    const lease = await member.mutex('m').acquire();
    const [name] = await stranger.zk.children('/locks/m');
    await stranger.zk.delete(`/locks/m/${name}`);
    await until('it is lost', () => lease.signal.aborted);
    expect(lease.signal.reason).toMatchObject({ code: 'LOCK_LOST' });
  });

  test('the folder that a simple lock makes is the team’s too', async () => {
    await using world = await freshServers(backend);
    await using member = await connect({ servers: world.servers, ...PROTECTED });
    await using stranger = await connect({ servers: world.servers });
    await using lease = await member.simpleLock('x').acquire();
    await expect(stranger.zk.delete('/locks/x')).rejects.toMatchObject({ code: 'ZK_NO_AUTH' });
    lease.assertHeld();
  });

  test('whoever shares a protected lock passes it on as before', async () => {
    await using world = await freshServers(backend);
    await using first = await connect({ servers: world.servers, ...PROTECTED });
    await using second = await connect({ servers: world.servers, ...PROTECTED });
    const lease = await first.mutex('m').acquire();
    const waiting = second.mutex('m').acquire();
    await until('it waits', async () => (await first.inspect('m')).queue.length === 1);
    await lease.release();
    await (await waiting).release();
  });

  test('the folder of batons is no wider than the locks: a stranger cannot forge a release', async () => {
    await using world = await freshServers(backend);
    await using first = await connect({ servers: world.servers, ...PROTECTED });
    await using second = await connect({ servers: world.servers, ...PROTECTED });
    // A waiter that became the holder passes the baton, and finds that there is no folder for it.
    const lease = await first.mutex('m').acquire();
    const waiting = second.mutex('m').acquire();
    await until('it waits', async () => (await first.inspect('m')).queue.length === 1);
    await lease.release();
    await (await waiting).release();
    await until('the folder is made', async () => Boolean(await first.zk.exists('/holdfast/batons')));
    const team = { scheme: 'digest', id: digestId('team', 'secret'), permissions: ['all'] };
    for (const path of ['/holdfast', '/holdfast/batons']) {
      expect((await first.zk.getAcl(path)).acl).toEqual([team, acls.readOnly[0]]);
    }
    await using stranger = await connect({ servers: world.servers });
    const forging = stranger.zk.create('/holdfast/batons/anything');
    await expect(forging).rejects.toMatchObject({ code: 'ZK_NO_AUTH' });
  });
});
