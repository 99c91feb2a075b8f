import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { FaultProxy } from '../../src/testing.ts';
import { connect, type WatchEvent } from '../../src/zookeeper.ts';
import { looseEnds } from '../support/loose-ends.ts';
import { sharedEnsemble } from '../support/shared-servers.ts';
import { until } from '../support/until.ts';

describe('a session that moves to another server', () => {
  test('stays the same, with its ephemeral nodes and watches, and hears what happened meanwhile', async () => {
    await using _ends = looseEnds();
    await using proxies = await startProxies();
    await using observer = await connect(sharedEnsemble().connectString);
    await using zk = await connect(proxies.connectString, { sessionTimeoutMs: 10_000 });
    const { session } = zk;
    const { id } = session;
    const root = `/${randomUUID()}`;
    await zk.create(root);
    await zk.create(`${root}/mine`, '', { mode: 'ephemeral' });
    await zk.create(`${root}/changed`);
    await zk.create(`${root}/untouched`);
    const events: string[] = [];
    const watch = ({ type, path }: WatchEvent) => events.push(`${type} ${path.slice(root.length + 1)}`);
    await zk.get(`${root}/changed`, { watch });
    await zk.get(`${root}/untouched`, { watch });
    await zk.exists(`${root}/created`, { watch });
    const states: string[] = [];
    for (const name of ['connected', 'suspended', 'lost'] as const) zk.on(name, () => states.push(name));

    const [home, ...others] = proxies.byUse();
    for (const other of others) other.acceptSilently();
    home!.refuse();
    home!.resetAll();
    await until('the client to dial another server', () => others.some((other) => other.connectionCount > 0));
    await observer.set(`${root}/changed`, 'while it moved');
    await observer.create(`${root}/created`);
    for (const other of others) other.heal();
    await until('what happened meanwhile', () => events.length >= 2);
    await observer.set(`${root}/untouched`, 'after it moved');
    await until('what happened then', () => events.length >= 3);
    await zk.sync();

    expect(events.slice(0, 2).sort()).toEqual(['node-created created', 'node-data-changed changed']);
    expect(events.slice(2)).toEqual(['node-data-changed untouched']);
    expect([zk.session === session, session.id]).toEqual([true, id]);
    expect((await zk.get(`${root}/mine`)).stat.ephemeralOwner).toBe(id);
    expect(await observer.exists(`${root}/mine`)).toMatchObject({ ephemeralOwner: id });
    expect(home!.connectionCount).toBe(0);
    expect(states).toEqual(['suspended', 'connected']);
    await observer.deleteTree(root);
  });

  // What giving a silent connection up after 2/3 of the timeout, and not later, is for.
  test('does so in time when its server falls silent', async () => {
    await using _ends = looseEnds();
    await using proxies = await startProxies();
    await using zk = await connect(proxies.connectString, { sessionTimeoutMs: 3_000 });
    const { session } = zk;
    const path = `/${randomUUID()}`;
    const { stat } = await zk.create(path, '', { mode: 'ephemeral' });
    const [home] = proxies.byUse();
    home!.blackhole('both');
    expect((await zk.get(path)).stat).toMatchObject({ czxid: stat.czxid, ephemeralOwner: session.id });
    expect(zk.session).toBe(session);
    expect(session.lost.aborted).toBe(false);
  });
});

/** A proxy for each server of the shared ensemble. */
async function startProxies() {
  const { servers } = sharedEnsemble();
  const proxies = await Promise.all(servers.map((target) => FaultProxy.start({ target })));
  return {
    connectString: proxies.map((proxy) => proxy.connectString).join(','),
    /** The one that carries a connection first. */
    byUse: () => [...proxies].sort((a, b) => b.connectionCount - a.connectionCount),
    async [Symbol.asyncDispose]() {
      await Promise.all(proxies.map((proxy) => proxy[Symbol.asyncDispose]()));
    },
  };
}
