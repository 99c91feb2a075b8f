import { describe, expect } from 'vitest';
import { acls, digestId } from '../../src/zookeeper.ts';
import { onEveryBackend } from '../support/backends.ts';

describe('access lists', () => {
  onEveryBackend('keep others out, and are read back as words', async (workspace) => {
    const owner = await workspace.connect({ auth: [{ scheme: 'digest', auth: 'owner:secret' }] });
    const stranger = await workspace.connect();
    await owner.create('/private', 'mine', { acl: acls.creatorOnly });
    await stranger.sync();
    await expect(stranger.get('/private')).rejects.toMatchObject({
      code: 'ZK_NO_AUTH',
      outcome: 'not-applied',
    });
    expect((await owner.get('/private')).data).toEqual(Buffer.from('mine'));
    expect((await owner.getAcl('/private')).acl).toEqual([
      { scheme: 'digest', id: digestId('owner', 'secret'), permissions: ['all'] },
    ]);
    await stranger.addAuth('digest', 'owner:secret');
    expect((await stranger.get('/private')).data).toEqual(Buffer.from('mine'));
  });

  onEveryBackend('are changed under their own version', async (workspace) => {
    const zk = await workspace.connect();
    await zk.create('/node');
    const stat = await zk.setAcl('/node', acls.readOnly, { version: 0 });
    expect(stat.aversion).toBe(1);
    expect((await zk.getAcl('/node')).acl).toEqual([
      { scheme: 'world', id: 'anyone', permissions: ['read'] },
    ]);
    await expect(zk.set('/node', 'x')).rejects.toMatchObject({ code: 'ZK_NO_AUTH' });
    const mixed = [{ scheme: 'world', id: 'anyone', permissions: ['read', 'admin'] }] as const;
    await expect(zk.setAcl('/node', mixed)).rejects.toMatchObject({ code: 'ZK_NO_AUTH' });
  });

  onEveryBackend('that no server understands are refused', async (workspace) => {
    const zk = await workspace.connect();
    const acl = [{ scheme: 'nonsense', id: 'x', permissions: ['all'] }] as const;
    await expect(zk.create('/node', '', { acl })).rejects.toMatchObject({ code: 'ZK_INVALID_ACL' });
  });
});

describe('identity', () => {
  onEveryBackend('is what the server takes the connection for', async (workspace) => {
    const zk = await workspace.connect({ auth: [{ scheme: 'digest', auth: 'alice:pw' }] });
    const identities = await zk.whoAmI();
    expect(identities).toContainEqual({ authScheme: 'digest', user: 'alice' });
    expect(identities).toContainEqual({ authScheme: 'ip', user: '127.0.0.1' });
  });
});

describe('the ensemble', () => {
  onEveryBackend(
    'tells its configuration, and refuses to change it unless that is enabled',
    async (workspace) => {
      const zk = await workspace.connect();
      expect((await zk.config()).stat.aversion).toBe(-1);
      await expect(zk.reconfig({ leaving: '3' })).rejects.toMatchObject({ code: 'ZK_RECONFIG_DISABLED' });
    },
  );
});
