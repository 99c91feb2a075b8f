import { describe, expect, test } from 'vitest';
import { JuteReader } from '../protocol/jute-reader.ts';
import { operations, xids } from '../protocol/operations.ts';
import { DataTree } from './data-tree.ts';
import { connectFrame, MemoryClient, node, OPEN_ACL, SlowClock } from './memory-client.test-data.ts';
import { ServerCore } from './server-core.ts';
import type { Transaction } from './transaction.ts';

const READ = ['exists', { path: '/', watch: false }] as const;

/** A chunk after the other, as a socket with much to read hands them out in one turn of the event loop. */
function askInChunks(client: MemoryClient): { readonly asked: number; readonly answered: number } {
  let asked = 0;
  while (!client.link.paused && asked < 200) asked += client.ask(READ, READ).length;
  return { asked, answered: client.replies().length };
}

describe('in one turn of the event loop', () => {
  test('a client has its share once, in however many chunks its requests come', () => {
    const core = new ServerCore({ clock: new SlowClock() });
    const busy = MemoryClient.connected(core);
    core.tick();
    const { asked, answered } = askInChunks(busy);
    expect(answered).toBeGreaterThan(0);
    expect(asked).toBeLessThan(20);
    expect(core.turnIsLong).toBe(true);
    core.tick();
    expect(busy.link.paused).toBe(false);
    expect(busy.replies()).toHaveLength(asked - answered);
    expect(askInChunks(busy).answered).toBeGreaterThan(0);
  });

  test('many busy clients have less each, and whoever has had nothing is heard', () => {
    const core = new ServerCore({ clock: new SlowClock() });
    const clients = Array.from({ length: 30 }, () => MemoryClient.connected(core));
    const quiet = MemoryClient.connected(core);
    core.tick();
    const heard = clients.map(askInChunks);
    expect(Math.min(...heard.map(({ answered }) => answered))).toBeGreaterThan(0);
    expect(heard.at(-1)!.answered).toBeLessThan(heard[0]!.answered);
    expect(quiet.call('exists', { path: '/', watch: false }).err).toBe(0);
    // What waits is done in later turns, and nothing is lost.
    for (let turns = 0; clients.some(({ link }) => link.paused); turns++) {
      expect(turns).toBeLessThan(clients.length);
      core.tick();
    }
    for (const [index, { asked, answered }] of heard.entries())
      expect(clients[index]!.replies()).toHaveLength(asked - answered);
  });
});

describe('what a client asked before it left', () => {
  const creates = (count: number) =>
    Array.from({ length: count }, (_, index) => ['create', node(`/n${index}`)] as const);

  type Asked = readonly [name: keyof typeof operations, record?: unknown];
  /** A client that has used its share and more, and left; nothing of what it asked last has been done. */
  function left(core: ServerCore, ...last: readonly Asked[]) {
    const client = MemoryClient.connected(core);
    askInChunks(client);
    client.ask(...last);
    const { session } = client.connection;
    core.closed(client.connection);
    return session!;
  }

  test('is done in slices, in order, and before the end of its session that it asked for', () => {
    const core = new ServerCore({ clock: new SlowClock() });
    const session = left(core, ...creates(300), ['create', node('/last', null, 1)], ['closeSession']);
    const before = core.tree.nodeCount;
    expect(before).toBeLessThan(100);
    expect(core.connections.size).toBe(0);
    const counts = [before];
    while (core.turnIsLong) {
      core.tick();
      counts.push(core.tree.nodeCount);
      expect(counts.length).toBeLessThan(100);
    }
    const steps = counts.slice(1).map((count, index) => count - counts[index]!);
    expect(Math.max(...steps)).toBeLessThan(60);
    expect(core.tree.get('/n299')).toBeDefined();
    expect(core.tree.get('/last')).toBeUndefined();
    expect(core.sessions.get(session.id)).toBeUndefined();
  });

  test('does not happen behind what it sees once it is back', () => {
    const core = new ServerCore({ clock: new SlowClock() });
    const { id, password } = left(core, ...creates(300));
    const back = new MemoryClient(core);
    back.send(connectFrame({ sessionId: id, passwd: password }));
    while (core.turnIsLong) core.tick();
    expect(back.handshakeAnswer()?.sessionId).toBe(id);
    expect(core.tree.get('/n299')).toBeUndefined();
    const seen = core.tree.nodeCount;
    expect(back.call('exists', { path: '/', watch: false }).err).toBe(0);
    core.tick();
    expect(core.tree.nodeCount).toBe(seen);
  });

  test('keeps no other client waiting for longer than a slice', () => {
    const clock = new SlowClock();
    const core = new ServerCore({ clock });
    const quiet = MemoryClient.connected(core);
    core.tick();
    left(core, ...creates(2_000));
    const startedAtMs = clock.ms;
    expect(quiet.call('exists', { path: '/', watch: false }).err).toBe(0);
    expect(clock.ms - startedAtMs).toBeLessThan(5);
  });
});

describe('a dear request', () => {
  test('shows one moment, and events of later ones come behind it', () => {
    const core = new ServerCore({ clock: new SlowClock() });
    const [reader, writer] = [MemoryClient.connected(core), MemoryClient.connected(core)];
    const names = Array.from({ length: 20_000 }, (_, index) => `n${index}`);
    core.tree.apply(change('/names'), { zxid: core.takeZxid(), timeMs: 0 });
    for (const name of names) core.tree.apply(change(`/names/${name}`), { zxid: core.zxid, timeMs: 0 });
    reader.ask(['getChildren2', { path: '/names', watch: true }]);
    expect(reader.replies()).toEqual([]);
    const shownZxid = core.zxid;
    writer.ask(['delete', { path: '/names/n0', version: -1 }]);
    while (core.turnIsLong) core.tick();
    expect(writer.replies()).toMatchObject([{ err: 0 }]);
    const [listed, event, ...others] = reader.replies();
    expect(listed!.zxid).toBe(shownZxid);
    const { children, stat } = operations.getChildren2.reply.read(new JuteReader(listed!.body));
    expect(children).toEqual(names);
    expect(stat.numChildren).toBe(names.length);
    expect(event!.xid).toBe(xids.notification);
    expect(others).toEqual([]);
  });

  test('that is ended by its session leaves nothing open', () => {
    const core = new ServerCore({ clock: new SlowClock(), limits: { watchesMax: 30_000 } });
    const client = MemoryClient.connected(core);
    const paths = Array.from({ length: 20_000 }, (_, index) => `/w${index}`);
    const lists = { relativeZxid: 0n, dataWatches: [], existWatches: paths, childWatches: [] };
    client.ask(['setWatches', lists]);
    while (core.watches.count === 0) core.tick();
    expect(core.watches.count).toBeLessThan(paths.length);
    core.closed(client.connection);
    while (core.turnIsLong) core.tick();
    expect(core.watches.count).toBe(0);
    // There is room again for as many.
    const next = MemoryClient.connected(core);
    const [xid] = next.ask(['setWatches', lists]);
    while (core.turnIsLong) core.tick();
    expect(next.replies()).toMatchObject([{ xid, err: 0 }]);
  });
});

describe('many events', () => {
  test('are told in slices, each watcher before it can see what happened', () => {
    const clock = new SlowClock();
    const core = new ServerCore({ clock });
    const [writer, ...watchers] = Array.from({ length: 40 }, () => MemoryClient.connected(core));
    const paths = Array.from({ length: 200 }, (_, index) => `/n${index}`);
    writer!.ask(['multi', paths.map((path) => ({ op: 'create', request: node(path) }))]);
    while (core.turnIsLong) core.tick();
    writer!.replies();
    for (const watcher of watchers) watcher.call('addWatch', { path: '/', mode: 1 });
    writer!.call('addWatch', { path: '/n0', mode: 0 });
    const writes = paths.map((path) => ({
      op: 'setData',
      request: { path, data: Buffer.of(1), version: -1 },
    }));
    writer!.ask(['multi', writes]);
    while (core.turnIsLong && !core.busy) core.tick();
    expect(core.busy).toBe(true);
    const last = watchers.at(-1)!;
    last.ask(['getData', { path: '/n199', watch: false }]);
    watchers[0]!.ask(['setData', { path: '/n0', data: null, version: -1 }]);
    const heard: number[] = [];
    const told: number[] = [];
    for (let turns = 0; core.turnIsLong; turns++) {
      expect(turns).toBeLessThan(1_000);
      core.tick();
      heard.push(...last.replies().map(({ xid }) => xid));
      told.push(...writer!.replies().map(({ xid }) => xid));
    }
    expect(heard).toHaveLength(paths.length + 2);
    expect(heard.indexOf(2)).toBe(paths.length);
    // Its own event, the answer, and what another client did behind it.
    expect(told).toEqual([xids.notification, 3, xids.notification]);
  });
});

describe('the end of a session', () => {
  test('with very many nodes is done in slices, and answered when they are gone', () => {
    const clock = new SlowClock();
    const core = new ServerCore({ clock });
    const client = MemoryClient.connected(core);
    const { id } = client.connection.session!;
    core.tree.apply(change('/e'), { zxid: core.takeZxid(), timeMs: 0 });
    for (let index = 0; index < 20_000; index++)
      core.tree.apply(change(`/e/${index}`, id), { zxid: core.zxid, timeMs: 0 });
    const [xid] = client.ask(['closeSession']);
    expect(core.sessions.get(id)).toBeUndefined();
    let left = core.tree.ephemeralCount;
    expect(left).toBeGreaterThan(0);
    while (core.turnIsLong) {
      expect(client.replies()).toEqual([]);
      core.tick();
      expect(left - core.tree.ephemeralCount).toBeLessThan(8_000);
      left = core.tree.ephemeralCount;
    }
    expect(left).toBe(0);
    expect(client.replies()).toMatchObject([{ xid, err: 0 }]);
    expect(client.link.ended).toBe(true);
  });

  test('drops its connection once if the disk fails while nodes are left', () => {
    const logged: Transaction[] = [];
    const journal = { append: (transaction: Transaction) => logged.push(transaction) };
    const core = new ServerCore({ clock: new SlowClock(), journal });
    const client = new MemoryClient(core);
    client.send(connectFrame());
    core.durable(core.zxid);
    const { id } = client.connection.session!;
    core.tree.apply(change('/e'), { zxid: core.takeZxid(), timeMs: 0 });
    for (let index = 0; index < 20_000; index++)
      core.tree.apply(change(`/e/${index}`, id), { zxid: core.zxid, timeMs: 0 });
    client.ask(['closeSession']);
    core.durable(logged.find(({ kind }) => kind === 'close-session')!.zxid);
    core.tick();
    core.storeFailed(new Error('no space left on device'));
    while (core.turnIsLong) core.tick();
    expect(core.tree.ephemeralCount).toBeGreaterThan(0);
    expect(client.link.destroyed).toBe(true);
    expect(core.statistics.counts.dropped.disk).toBe(1);
  });

  test('that a crash interrupted goes on at the next start', () => {
    const tree = new DataTree();
    const moment = { zxid: 1n, timeMs: 0 };
    tree.apply(change('/e'), moment);
    for (let index = 0; index < 1_000; index++)
      tree.apply(change(`/e/${index}`, index % 2 === 0 ? 7n : 8n), moment);
    const kept = { id: 8n, password: Buffer.alloc(16, 1), timeoutMs: 10_000 };
    const sessions = new Map([[kept.id, kept]]);
    const recovered = { tree, sessions, zxid: 1n, usedZxid: 1n, logBytes: 0, logCount: 0 };
    const logged: Transaction[] = [];
    const core = new ServerCore({
      clock: new SlowClock(),
      recovered,
      journal: { append: (transaction) => logged.push(transaction) },
    });
    while (core.turnIsLong) core.tick();
    expect(tree.ephemeralsOf(7n)).toEqual([]);
    expect(tree.ephemeralsOf(8n)).toHaveLength(500);
    expect(logged.flatMap((each) => ('changes' in each ? each.changes : []))).toHaveLength(500);
  });
});

function change(path: string, owner = 0n) {
  return { kind: 'create', path, data: null, acl: OPEN_ACL, owner } as const;
}
