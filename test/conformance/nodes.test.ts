import { describe, expect } from 'vitest';
import { type CreateMode, isServerError } from '../../src/zookeeper.ts';
import { onEveryBackend } from '../support/backends.ts';

describe('create', () => {
  onEveryBackend('returns the path and the stat of the new node', async (workspace) => {
    const zk = await workspace.connect();
    const { path, stat } = await zk.create('/node', 'data');
    expect(path).toBe('/node');
    expect(stat).toMatchObject({ version: 0, cversion: 0, aversion: 0, dataLength: 4, ephemeralOwner: 0n });
    expect(stat.czxid).toBeGreaterThan(0n);
    expect(stat.mzxid).toBe(stat.czxid);
    expect(await zk.get('/node')).toEqual({ data: Buffer.from('data'), stat });
  });

  onEveryBackend('makes nodes of every mode', async (workspace) => {
    const zk = await workspace.connect();
    const modes: [CreateMode, RegExp, bigint][] = [
      ['persistent', /^\/n-persistent$/, 0n],
      ['ephemeral', /^\/n-ephemeral$/, zk.session.id],
      ['persistent-sequential', /^\/n-persistent-sequential\d{10}$/, 0n],
      ['ephemeral-sequential', /^\/n-ephemeral-sequential\d{10}$/, zk.session.id],
      ['container', /^\/n-container$/, 0n],
      ['persistent-with-ttl', /^\/n-persistent-with-ttl$/, 0n],
      ['persistent-sequential-with-ttl', /^\/n-persistent-sequential-with-ttl\d{10}$/, 0n],
    ];
    for (const [mode, pattern, owner] of modes) {
      const ttl = mode.endsWith('-with-ttl') ? { ttlMs: 60_000 } : {};
      const { path, stat } = await zk.create(`/n-${mode}`, '', { mode, ...ttl });
      expect(path).toMatch(pattern);
      expect(stat.ephemeralOwner).toBe(owner);
    }
  });

  onEveryBackend('numbers sequential nodes in the order of the requests, pipelined', async (workspace) => {
    const zk = await workspace.connect();
    const created = await Promise.all(
      Array.from({ length: 100 }, () =>
        zk.create('/', '', { mode: 'persistent-sequential' }).then(({ path }) => path),
      ),
    );
    expect(created).toEqual(created.map((_, index) => `/${String(index).padStart(10, '0')}`));
  });

  onEveryBackend('keeps null data apart from empty data', async (workspace) => {
    const zk = await workspace.connect();
    await zk.create('/null', null);
    await zk.create('/empty', '');
    expect((await zk.get('/null')).data).toBeNull();
    expect((await zk.get('/empty')).data).toEqual(Buffer.alloc(0));
  });

  onEveryBackend('keeps bytes and letters as they are', async (workspace) => {
    const zk = await workspace.connect();
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, index) => index));
    await zk.create('/blåbær-漢字', bytes);
    expect((await zk.get('/blåbær-漢字')).data).toEqual(bytes);
    expect(await zk.children('/')).toEqual(['blåbær-漢字']);
  });

  onEveryBackend('carries a node of almost a megabyte', async (workspace) => {
    const zk = await workspace.connect();
    const bytes = Buffer.alloc(1_000_000, 'x');
    await zk.create('/large', bytes);
    expect((await zk.get('/large')).data?.equals(bytes)).toBe(true);
  });

  onEveryBackend('is refused with the condition as a word', async (workspace) => {
    const zk = await workspace.connect();
    await zk.create('/there', '');
    await zk.create('/ephemeral', '', { mode: 'ephemeral' });
    await expect(zk.create('/there')).rejects.toMatchObject({
      name: 'ServerError',
      code: 'ZK_NODE_EXISTS',
      condition: 'node-exists',
      outcome: 'not-applied',
      path: '/there',
      message: 'create /there: node exists',
    });
    await expect(zk.create('/missing/child')).rejects.toMatchObject({ code: 'ZK_NO_NODE' });
    await expect(zk.create('/ephemeral/child')).rejects.toMatchObject({
      code: 'ZK_NO_CHILDREN_FOR_EPHEMERALS',
    });
  });
});

describe('read and write', () => {
  onEveryBackend('compares versions, and takes 0 for a version', async (workspace) => {
    const zk = await workspace.connect();
    await zk.create('/node', 'a');
    expect((await zk.set('/node', 'b', { version: 0 })).version).toBe(1);
    await expect(zk.set('/node', 'c', { version: 0 })).rejects.toMatchObject({ condition: 'bad-version' });
    await expect(zk.delete('/node', { version: 0 })).rejects.toMatchObject({ condition: 'bad-version' });
    expect((await zk.set('/node', 'd')).version).toBe(2);
    await zk.delete('/node', { version: 2 });
    expect(await zk.exists('/node')).toBeUndefined();
  });

  onEveryBackend('tells what is not there', async (workspace) => {
    const zk = await workspace.connect();
    expect(await zk.exists('/nothing')).toBeUndefined();
    for (const call of [
      () => zk.get('/nothing'),
      () => zk.children('/nothing'),
      () => zk.childrenWithStat('/nothing'),
      () => zk.set('/nothing', ''),
      () => zk.delete('/nothing'),
      () => zk.getAcl('/nothing'),
    ]) {
      await expect(call()).rejects.toSatisfy((error) => isServerError(error, 'no-node'));
    }
  });

  onEveryBackend('lists children, with and without the stat', async (workspace) => {
    const zk = await workspace.connect();
    await zk.create('/parent', '');
    await Promise.all(['a', 'b', 'c'].map((name) => zk.create(`/parent/${name}`)));
    expect((await zk.children('/parent')).sort()).toEqual(['a', 'b', 'c']);
    const { children, stat } = await zk.childrenWithStat('/parent');
    expect(children.sort()).toEqual(['a', 'b', 'c']);
    expect(stat).toMatchObject({ numChildren: 3, cversion: 3 });
    await expect(zk.delete('/parent')).rejects.toMatchObject({ code: 'ZK_NOT_EMPTY' });
  });

  onEveryBackend('counts descendants and finds the session’s own ephemerals', async (workspace) => {
    const zk = await workspace.connect();
    const other = await workspace.connect();
    await zk.ensurePath('/a/b/c');
    await zk.create('/a/mine', '', { mode: 'ephemeral' });
    await other.create('/a/theirs', '', { mode: 'ephemeral' });
    await zk.sync(); // The other may be on another server, which is ahead of this one.
    expect(await zk.countDescendants('/a')).toBe(4);
    expect(await zk.ephemerals()).toEqual(['/a/mine']);
    expect(await zk.ephemerals('/b')).toEqual([]);
  });

  onEveryBackend('sees the writes of others after a sync by a quorum', async (workspace) => {
    const [writer, reader] = [await workspace.connect(), await workspace.connect()];
    for (let round = 0; round < 20; round++) {
      await writer.create(`/round-${round}`);
      const [, stat] = await Promise.all([
        reader.sync('/', { by: 'quorum' }),
        reader.exists(`/round-${round}`),
      ]);
      expect(stat).toBeDefined();
    }
  });

  onEveryBackend('sees its own pipelined writes in order', async (workspace) => {
    const zk = await workspace.connect();
    const [created, listed, , gone] = await Promise.all([
      zk.create('/n-', '', { mode: 'ephemeral-sequential' }),
      zk.children('/'),
      zk.delete('/n-0000000000'),
      zk.exists('/n-0000000000'),
    ]);
    expect(created.path).toBe('/n-0000000000');
    expect(listed).toEqual(['n-0000000000']);
    expect(gone).toBeUndefined();
  });
});

describe('trees', () => {
  onEveryBackend('are made and removed whole', async (workspace) => {
    const zk = await workspace.connect();
    await zk.ensurePath('/deep/er/still');
    await zk.ensurePath('/deep/er/still'); // Again is fine.
    await zk.create('/deep/er/leaf', 'x');
    await zk.deleteTree('/deep');
    await zk.deleteTree('/deep');
    expect(await zk.children('/')).toEqual([]);
  });
});

describe('ephemeral nodes', () => {
  onEveryBackend('go with an orderly close, at once', async (workspace) => {
    const [owner, observer] = [await workspace.connect(), await workspace.connect()];
    await owner.create('/lock', '', { mode: 'ephemeral' });
    await owner.close();
    await observer.sync();
    expect(await observer.exists('/lock')).toBeUndefined();
  });
});
