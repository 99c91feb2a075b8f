import { describe, expect, test } from 'vitest';
import { errorCodes } from '../protocol/error-codes.ts';
import { JuteReader } from '../protocol/jute-reader.ts';
import { operations, xids } from '../protocol/operations.ts';
import {
  connectFrame,
  MemoryClient,
  node,
  OPEN_ACL,
  requestFrame,
  StillClock,
} from './memory-client.test-data.ts';
import { ServerCore, type ServerCoreOptions } from './server-core.ts';
import type { Transaction } from './transaction.ts';

/** A disk that takes things when it is told to. */
class SlowDisk {
  readonly taken: Transaction[] = [];
  append(transaction: Transaction): void {
    this.taken.push(transaction);
  }
}

function world(limits: ServerCoreOptions['limits'] = {}, options: Partial<ServerCoreOptions> = {}) {
  const clock = new StillClock();
  return { clock, core: new ServerCore({ clock, limits, ...options }) };
}

function slowWorld(limits: ServerCoreOptions['limits'] = {}) {
  const disk = new SlowDisk();
  const { clock, core } = world(limits, { journal: disk });
  const sync = () => core.durable(core.zxid);
  const connected = () => {
    const client = new MemoryClient(core);
    client.send(connectFrame());
    sync();
    client.handshakeAnswer();
    return client;
  };
  return { clock, core, disk, sync, connected };
}

const creates = (count: number, prefix = '/n') =>
  Array.from({ length: count }, (_, index) => ['create', node(`${prefix}${index}`)] as const);
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);
const xidsOf = (client: MemoryClient) => client.replies().map(({ xid }) => xid);

describe('answers and the disk', () => {
  const read = (path: string) => ['getData', { path, watch: false }] as const;
  const list = (path: string) => ['getChildren2', { path, watch: false }] as const;

  test('wait for the last change that they show, and for no later one', () => {
    const { core, connected } = slowWorld();
    const [writer, reader] = [connected(), connected()];
    writer.ask(['create', node('/a')]);
    const shown = core.zxid;
    writer.ask(['create', node('/b')]);
    reader.ask(read('/a'), read('/b'));
    expect(reader.replies()).toEqual([]);
    core.durable(shown);
    expect(reader.replies()).toMatchObject([{ xid: 1, zxid: shown, err: 0 }]);
    core.durable(core.zxid);
    expect(reader.replies()).toMatchObject([{ xid: 2, zxid: core.zxid, err: 0 }]);
  });

  test('that show what a refused transaction did and took back wait for nothing', () => {
    const { core, connected } = slowWorld();
    const [writer, reader] = [connected(), connected()];
    writer.ask(['create', node('/a')]);
    core.durable(core.zxid);
    writer.ask(['create', node('/b')]);
    const made = { op: 'create', request: node('/a/x') };
    writer.ask(['multi', [made, { op: 'delete', request: { path: '/none', version: -1 } }]]);
    reader.ask(list('/a'));
    expect(xidsOf(reader)).toEqual([1]);
  });

  test('that need no disk go out before those that wait for it, and those in one write', () => {
    const { sync, connected } = slowWorld({ outstandingPerConnectionMax: 2 });
    const client = connected();
    client.ask(read('/'), ...creates(3, '/zookeeper/n'), read('/'));
    expect(xidsOf(client)).toEqual([1]);
    const before = client.link.writeCount;
    sync();
    expect(xidsOf(client)).toEqual([2, 3]);
    expect(client.link.writeCount - before).toBe(1);
    sync();
    expect(xidsOf(client)).toEqual([4, 5]);
    expect(client.link.writeCount - before).toBe(2);
  });

  test.each([
    ['a node that was made', read('/a/new'), ['create', node('/a/new')]],
    ['the list it is in', list('/a'), ['create', node('/a/new')]],
    ['the stat of the one above', ['exists', { path: '/a', watch: false }], ['create', node('/a/new')]],
    ['data that was written', read('/a'), ['setData', { path: '/a', data: Buffer.from('x'), version: -1 }]],
    ['who may do what', ['getAcl', { path: '/a' }], ['setAcl', { path: '/a', acl: OPEN_ACL, version: -1 }]],
    [
      'that a node is gone',
      ['exists', { path: '/b', watch: false }],
      ['delete', { path: '/b', version: -1 }],
    ],
    ['the list it was in', list('/'), ['delete', { path: '/b', version: -1 }]],
    ['the list it was in, by the empty path', list(''), ['delete', { path: '/b', version: -1 }]],
    [
      'that all before it is done',
      ['sync', { path: '/' }],
      ['setData', { path: '/b', data: null, version: -1 }],
    ],
  ] as const)('wait for it if they show what it has not taken: %s', (_what, question, change) => {
    const { sync, connected } = slowWorld();
    const [writer, reader] = [connected(), connected()];
    writer.ask(['create', node('/a')], ['create', node('/b')]);
    sync();
    writer.ask(change);
    reader.ask(question);
    expect(xidsOf(reader)).toEqual([]);
    sync();
    expect(xidsOf(reader)).toEqual([1]);
  });

  test('do not wait if they show other nodes, and say no later transaction than is on disk', () => {
    const { core, sync, connected } = slowWorld();
    const [writer, reader] = [connected(), connected()];
    writer.ask(['create', node('/a')], ['create', node('/b')]);
    sync();
    const settled = core.zxid;
    writer.ask(['create', node('/a/new')]);
    reader.ask(read('/b'), list('/b'), ['exists', { path: '/b', watch: false }], ['ping', undefined]);
    const replies = reader.replies();
    expect(replies).toHaveLength(4);
    expect(replies.every(({ zxid }) => zxid === settled)).toBe(true);
    // Its own requests are answered in order all the same.
    writer.ask(read('/b'));
    expect(xidsOf(writer).slice(2)).toEqual([]);
    sync();
    expect(xidsOf(writer)).toEqual([3, 4]);
  });
});

describe('requests that wait for the disk', () => {
  test('are so many of a connection; the rest of the chunk is handled later, in order, and nothing is read meanwhile', () => {
    const { core, disk, sync, connected } = slowWorld({ outstandingPerConnectionMax: 10 });
    const client = connected();
    const before = disk.taken.length;
    client.ask(...creates(25));
    expect(disk.taken.length - before).toBe(10);
    expect(client.link.paused).toBe(true);
    expect(client.frames()).toEqual([]);
    sync();
    expect(xidsOf(client)).toEqual(range(1, 10));
    expect(client.link.paused).toBe(true);
    expect(core.tree.get('/n19')).toBeDefined();
    expect(core.tree.get('/n20')).toBeUndefined();
    sync();
    expect(client.link.paused).toBe(false);
    expect(core.tree.get('/n24')).toBeDefined();
    sync();
    expect(xidsOf(client)).toEqual(range(11, 25));
  });

  test('are so many in all; those who have none are still heard', () => {
    const { disk, sync, connected } = slowWorld({ outstandingMax: 10, outstandingPerConnectionMax: 8 });
    const [greedy, second, third] = [connected(), connected(), connected()];
    const before = disk.taken.length;
    greedy.ask(...creates(8, '/a'));
    second.ask(...creates(8, '/b'));
    expect(disk.taken.length - before).toBe(10);
    expect(greedy.link.paused).toBe(false); // It has asked for no more than it may.
    expect(second.link.paused).toBe(true);
    third.ask(...creates(2, '/c'));
    expect(disk.taken.length - before).toBe(11);
    for (let round = 0; round < 3; round++) sync();
    expect([xidsOf(greedy), xidsOf(second), xidsOf(third)]).toEqual([range(1, 8), range(1, 8), [1, 2]]);
  });

  test('are counted by what waits, not by what was asked: reads of durable state pass', () => {
    const { connected } = slowWorld({ outstandingPerConnectionMax: 2 });
    const client = connected();
    client.ask(...Array.from({ length: 50 }, () => ['exists', { path: '/', watch: false }] as const));
    expect(xidsOf(client)).toHaveLength(50);
  });

  test('are forgotten with their connection', () => {
    const { core, sync, connected } = slowWorld({ outstandingMax: 3, outstandingPerConnectionMax: 3 });
    const [gone, client] = [connected(), connected()];
    gone.ask(...creates(3, '/a'));
    core.closed(gone.connection);
    client.ask(...creates(1, '/b'));
    sync();
    client.ask(...creates(3, '/c'));
    expect(client.link.paused).toBe(false);
  });

  test('never cost the session, however long the disk takes', () => {
    const { clock, core, sync, connected } = slowWorld({ outstandingPerConnectionMax: 1 });
    const client = connected();
    client.ask(...creates(2));
    clock.ms += 100_000;
    core.tick();
    sync();
    sync();
    expect(xidsOf(client)).toEqual([1, 2]);
    expect(client.link.destroyed).toBe(false);
    clock.ms += 100_000; // Nothing is in its way now.
    core.tick();
    expect(client.link.destroyed).toBe(true);
  });

  test('are done although their client hangs up before it is their turn', () => {
    const { core, connected } = slowWorld({ outstandingPerConnectionMax: 2 });
    const client = connected();
    const { session } = client.connection;
    client.ask(...creates(5), ['create', node('/mine', null, 1)], ['closeSession']);
    expect(core.tree.get('/n2')).toBeUndefined();
    core.closed(client.connection);
    expect(core.tree.get('/n4')).toBeDefined();
    expect(core.tree.get('/mine')).toBeUndefined();
    expect(core.sessions.get(session!.id)).toBeUndefined();
    expect(core.watches.count).toBe(0);
  });

  test('leave nothing behind when their client hangs up: no watch, no place in the line', () => {
    const { core, sync, connected } = slowWorld({ outstandingPerConnectionMax: 1 });
    const client = connected();
    client.ask(...creates(2), ['exists', { path: '/x', watch: true }]);
    core.closed(client.connection);
    expect(core.watches.count).toBe(0);
    sync();
    expect(core.connections.size).toBe(0);
  });

  test('come before bytes that are not the protocol, which cost the connection only then', () => {
    const { core, sync, connected } = slowWorld({ outstandingPerConnectionMax: 1 });
    const client = connected();
    const bomb = Buffer.from([0x7f, 0xff, 0xff, 0xff]);
    client.send(
      Buffer.concat([requestFrame(1, 'create', node('/a')), requestFrame(2, 'create', node('/b')), bomb]),
    );
    expect(client.link.destroyed).toBe(false);
    sync();
    expect(core.tree.get('/b')).toBeDefined();
    expect(client.link.destroyed).toBe(true);
  });
});

describe('output', () => {
  const big = Buffer.alloc(100_000, 7);
  const limits = { replyBytesMax: 150_000, outputBytesMax: 250_000, nodeBytesMax: 120_000 };

  test('that is not taken stops the requests that would add to it, not the connection', () => {
    const { core } = world(limits);
    const client = MemoryClient.connected(core);
    client.call('create', node('/big', big));
    client.link.reads = false;
    const asked = client.ask(
      ...Array.from({ length: 20 }, () => ['getData', { path: '/big', watch: false }] as const),
    );
    expect(client.link.bufferedBytes).toBeLessThanOrEqual(250_000);
    expect(client.link.destroyed).toBe(false);
    expect(client.link.paused).toBe(true);
    client.readAll();
    expect(client.link.paused).toBe(false);
    expect(xidsOf(client)).toEqual(asked);
  });

  test('that nobody takes ends with the session, since its pings are not heard', () => {
    const { core, clock } = world(limits);
    const client = MemoryClient.connected(core);
    client.call('create', node('/big', big));
    client.link.reads = false;
    client.ask(...Array.from({ length: 3 }, () => ['getData', { path: '/big', watch: false }] as const));
    expect(client.link.paused).toBe(true);
    clock.ms += 20_000;
    core.tick();
    expect(client.link.destroyed).toBe(true);
    expect(core.sessions.count).toBe(0);
  });

  test('of events beyond the limit costs the connection', () => {
    const { core } = world({ replyBytesMax: 2_000, outputBytesMax: 4_000, nodeBytesMax: 100 });
    const [watcher, writer] = [MemoryClient.connected(core), MemoryClient.connected(core)];
    watcher.call('addWatch', { path: '/', mode: 1 });
    watcher.link.reads = false;
    for (let index = 0; index < 200; index++) writer.call('create', node(`/n${index}`));
    expect(watcher.link.destroyed).toBe(true);
    expect(watcher.link.bufferedBytes).toBeLessThan(4_000 + 100);
    expect(core.watches.count).toBe(0);
  });

  test('that is held for the disk counts as well', () => {
    const { sync, connected } = slowWorld({ replyBytesMax: 300, outputBytesMax: 4_000, nodeBytesMax: 100 });
    const [watcher, ...writers] = [connected(), connected(), connected()];
    watcher!.call('addWatch', { path: '/', mode: 1 });
    writers.forEach((writer, index) => void writer.ask(...creates(90, `/${index}-`)));
    expect(watcher!.link.destroyed).toBe(true);
    sync();
    for (const writer of writers) expect(xidsOf(writer)).toEqual(range(1, 90));
  });
});

describe('an answer that is too long', () => {
  const limits = { replyBytesMax: 3_000, outputBytesMax: 10_000, nodeBytesMax: 2_000 };

  test.each(['getChildren', 'getChildren2'] as const)(
    'is an error of %s alone, and the connection goes on',
    (name) => {
      const { core } = world(limits);
      const client = MemoryClient.connected(core);
      for (let index = 0; index < 300; index++) client.call('create', node(`/some-name-${index}`));
      expect(client.call(name, { path: '/', watch: true }).err).toBe(errorCodes['marshalling-error']);
      expect(core.watches.count).toBe(0);
      expect(client.call('exists', { path: '/', watch: false }).err).toBe(0);
    },
  );

  test('is an error of getEphemerals', () => {
    const { core } = world(limits);
    const client = MemoryClient.connected(core);
    for (let index = 0; index < 300; index++) client.call('create', node(`/some-name-${index}`, null, 1));
    expect(client.call('getEphemerals', { prefixPath: '/' }).err).toBe(errorCodes['marshalling-error']);
    expect(client.call('getEphemerals', { prefixPath: '/some-name-1' }).err).toBe(0);
  });

  test('is an error of the multiRead as a whole, before anything is gathered', () => {
    const { core } = world(limits);
    const client = MemoryClient.connected(core);
    client.call('create', node('/big', Buffer.alloc(2_000)));
    const ops = Array.from({ length: 900 }, () => ({
      op: 'getData',
      request: { path: '/big', watch: false },
    }));
    expect(client.call('multiRead', ops).err).toBe(errorCodes['marshalling-error']);
    expect(client.call('multiRead', ops.slice(0, 1)).err).toBe(0);
  });
});

describe('the tree', () => {
  test('has so many nodes', () => {
    const { core } = world({ nodesMax: 6 });
    const client = MemoryClient.connected(core);
    expect(creates(3).map(([, record]) => client.call('create', record).err)).toEqual([
      0,
      0,
      errorCodes['quota-exceeded'],
    ]);
    const two = [
      { op: 'delete', request: { path: '/n0', version: -1 } },
      { op: 'create', request: node('/new') },
    ];
    expect(client.call('multi', two).err).toBe(0);
    expect(core.tree.nodeCount).toBe(6);
  });

  test('has nodes of so many bytes, a node so many', () => {
    const { core } = world({ nodeBytesMax: 1_000, dataBytesMax: 3_000 });
    const client = MemoryClient.connected(core);
    const of = (bytes: number) => Buffer.alloc(bytes);
    const refused = errorCodes['quota-exceeded'];
    expect(client.call('create', node('/a', of(1_001))).err).toBe(refused);
    expect(client.call('create', node('/a', of(1_000))).err).toBe(0);
    expect(client.call('setData', { path: '/a', data: of(1_001), version: -1 }).err).toBe(refused);
    expect(client.call('create', node('/b', of(1_000))).err).toBe(0);
    expect(client.call('create', node('/c', of(1_000))).err).toBe(refused);
    expect(client.call('create', node('/c', of(500))).err).toBe(0);
    expect(client.call('setData', { path: '/c', data: of(1_000), version: -1 }).err).toBe(refused);
    // What makes room is always allowed.
    expect(client.call('setData', { path: '/a', data: of(10), version: -1 }).err).toBe(0);
    expect(client.call('setData', { path: '/c', data: of(1_000), version: -1 }).err).toBe(0);
  });

  test('has access lists of so many bytes, which count as well', () => {
    const { core } = world({ aclBytesMax: 2_000, dataBytesMax: 4_000 });
    const client = MemoryClient.connected(core);
    const acl = (entries: number) =>
      Array.from({ length: entries }, (_, index) => ({ ...OPEN_ACL[0], perms: index }));
    const invalid = errorCodes['invalid-acl'];
    expect(client.call('create', { ...node('/a'), acl: acl(100) }).err).toBe(invalid);
    expect(client.call('create', { ...node('/a'), acl: acl(60) }).err).toBe(0);
    expect(client.call('setAcl', { path: '/a', acl: acl(100), version: -1 }).err).toBe(invalid);
    expect(client.call('create', { ...node('/b'), acl: acl(70) }).err).toBe(0);
    expect(client.call('create', { ...node('/c'), acl: acl(60) }).err).toBe(errorCodes['quota-exceeded']);
    expect(client.call('setAcl', { path: '/a', acl: acl(1), version: -1 }).err).toBe(0);
    expect(client.call('create', { ...node('/c'), acl: acl(60) }).err).toBe(0);
  });

  test('has access lists that do not multiply: one word for many identities counts as all of them', () => {
    const { core } = world({ aclBytesMax: 1_000 });
    const client = MemoryClient.connected(core);
    for (let index = 0; index < 10; index++)
      client.call('auth', { type: 0, scheme: 'digest', auth: Buffer.from(`user${index}:x`) });
    const acl = Array.from({ length: 50 }, (_, perms) => ({ perms, id: { scheme: 'auth', id: '' } }));
    expect(client.call('create', { ...node('/a'), acl: acl.slice(0, 1) }).err).toBe(0);
    expect(client.call('create', { ...node('/b'), acl }).err).toBe(errorCodes['invalid-acl']);
  });

  test('may be deeper than the stack', { timeout: 30_000 }, () => {
    const { core } = world();
    const client = MemoryClient.connected(core);
    const depth = 12_000;
    let path = '';
    for (let index = 0; index < depth; index++) {
      path += '/d';
      core.tree.apply(
        { kind: 'create', path, data: null, acl: OPEN_ACL, owner: 0n },
        { zxid: 1n, timeMs: 0 },
      );
    }
    const { body } = client.call('getAllChildrenNumber', { path: '/d' });
    expect(body.readInt32BE(0)).toBe(depth - 1);
  });
});

describe('a multi', () => {
  test.each(['multi', 'multiRead'] as const)('that is a %s has so many operations', (name) => {
    const { core } = world({ multiOpsMax: 3 });
    const client = MemoryClient.connected(core);
    const op =
      name === 'multi'
        ? { op: 'check', request: { path: '/', version: -1 } }
        : { op: 'getChildren', request: { path: '/', watch: false } };
    expect(client.call(name, [op, op, op]).err).toBe(0);
    expect(client.call(name, [op, op, op, op]).err).toBe(errorCodes['bad-arguments']);
  });

  test('writes access lists of so many bytes in all, and otherwise nothing', () => {
    const open = Array.from({ length: 3 }, (_, perms) => ({ ...OPEN_ACL[0], perms }));
    const mine = [{ perms: 1, id: { scheme: 'auth', id: '' } }]; // Stands for both identities.
    const identities = ['anna', 'bert'].map((user) => `${user}:x`);
    const bytesOf = (entries: number, scheme: string, id: string) =>
      entries * (12 + scheme.length + id.length);
    const digestBytes = bytesOf(2, 'digest', `anna:${'='.repeat(28)}`);
    const multiAclBytesMax = 2 * bytesOf(3, 'world', 'anyone') + digestBytes;
    const codesOf = (limit: number) => {
      const { core } = world({ multiAclBytesMax: limit });
      const client = MemoryClient.connected(core);
      for (const auth of identities)
        client.call('auth', { type: 0, scheme: 'digest', auth: Buffer.from(auth) });
      client.call('create', node('/old'));
      const { body } = client.call('multi', [
        { op: 'create', request: { ...node('/a'), acl: open } },
        { op: 'create', request: { ...node('/b'), acl: open } },
        { op: 'create', request: { ...node('/c'), acl: mine } },
        { op: 'delete', request: { path: '/old', version: -1 } },
      ]);
      // A result that is an error: its header of 9 bytes, and the code.
      const failed = body.readInt32BE(0) === -1;
      const codes = failed ? [0, 1, 2, 3].map((index) => body.readInt32BE(13 * index + 9)) : [];
      return { codes, made: ['/a', '/b', '/c', '/old'].filter((path) => core.tree.get(path)) };
    };
    expect(codesOf(multiAclBytesMax)).toEqual({ codes: [], made: ['/a', '/b', '/c'] });
    const refused = { codes: [0, 0, errorCodes['invalid-acl'], -2], made: ['/old'] };
    expect(codesOf(multiAclBytesMax - 1)).toEqual(refused);
  });
});

describe('watches', () => {
  const watch = (path: string) => ({ path, watch: true });
  const refused = errorCodes['throttled-op'];

  test('are so many of a connection', () => {
    const { core } = world({ watchesPerConnectionMax: 2 });
    const [client, other] = [MemoryClient.connected(core), MemoryClient.connected(core)];
    client.call('exists', watch('/a'));
    client.call('getChildren', watch('/'));
    for (const name of ['exists', 'getData', 'getChildren', 'getChildren2'] as const)
      expect(client.call(name, watch('/zookeeper')).err).toBe(refused);
    expect(client.call('addWatch', { path: '/b', mode: 0 }).err).toBe(refused);
    expect(client.call('addWatch', { path: '/b', mode: 1 }).err).toBe(refused);
    expect(core.watches.count).toBe(2);
    expect(other.call('getData', watch('/')).err).toBe(0);
  });

  test('are so many in all, those set again included, all or none', () => {
    const { core } = world({ watchesMax: 4 });
    const client = MemoryClient.connected(core);
    const lists = { relativeZxid: core.zxid, dataWatches: [], existWatches: ['/a', '/b'], childWatches: [] };
    expect(client.call('setWatches', lists).err).toBe(0);
    expect(client.call('setWatches', { ...lists, existWatches: ['/c', '/d', '/e'] }).err).toBe(refused);
    expect(core.watches.count).toBe(2);
    const more = { persistentWatches: [], persistentRecursiveWatches: ['/x', '/y', '/z'] };
    expect(client.call('setWatches2', { ...lists, existWatches: [], ...more }).err).toBe(refused);
    expect(core.watches.count).toBe(2);
  });

  test('have paths of so many bytes, of which those that are gone do not count', () => {
    const { core } = world({ watchBytesMax: 1_000 });
    const client = MemoryClient.connected(core);
    const path = `/${'x'.repeat(599)}`;
    expect(client.call('exists', watch(path)).err).toBe(errorCodes['no-node']);
    expect(client.call('exists', watch(`${path}2`)).err).toBe(refused);
    client.call('create', node(path));
    client.replies();
    expect(client.call('exists', watch(`${path}2`)).err).toBe(errorCodes['no-node']);
    core.closed(client.connection);
    expect(core.watches.pathBytes).toBe(0);
  });
});

describe('a connection', () => {
  test('is known by so many bytes of identities', () => {
    const { core } = world({ identityBytesMax: 200 });
    const client = MemoryClient.connected(core);
    const auth = (credentials: string) =>
      client.call('auth', { type: 0, scheme: 'digest', auth: Buffer.from(credentials) });
    for (let index = 0; index < 50; index++) expect(auth('the-same:x').err).toBe(0);
    expect(auth('another:x').err).toBe(0);
    expect(auth(`${'long'.repeat(50)}:x`).err).toBe(errorCodes['auth-failed']);
    expect(client.link.ended).toBe(true);
  });

  test('has so long to become a session, however slowly it goes about it', () => {
    const { core, clock } = world({ handshakeMs: 10_000 });
    const [silent, dribbling, half] = [
      new MemoryClient(core),
      new MemoryClient(core),
      new MemoryClient(core),
    ];
    half.send(connectFrame().subarray(0, 20));
    const frame = connectFrame();
    for (let second = 0; second < 9; second++) {
      clock.ms += 1_000;
      dribbling.send(frame.subarray(second, second + 1));
      core.tick();
    }
    expect([silent, dribbling, half].map(({ link }) => link.destroyed)).toEqual([false, false, false]);
    expect(core.wakeAtMs).toBe(clock.ms + 1_000);
    clock.ms += 1_000;
    core.tick();
    expect([silent, dribbling, half].map(({ link }) => link.destroyed)).toEqual([true, true, true]);
    expect(core.connections.size).toBe(0);
  });

  test('that never completes a frame ends with its session', () => {
    const { core, clock } = world();
    const client = MemoryClient.connected(core, { timeOut: 4_000 });
    const frame = requestFrame(1, 'create', node('/a', Buffer.alloc(1_000)));
    for (let second = 0; second < 7; second++) {
      client.send(frame.subarray(second, second + 1));
      clock.ms += 1_000;
      core.tick();
    }
    expect(client.link.destroyed).toBe(true);
  });

  test('is closed without a word if there are too many sessions', () => {
    const { core } = world({ sessionsMax: 2 });
    const first = MemoryClient.connected(core);
    MemoryClient.connected(core);
    const third = new MemoryClient(core);
    third.send(connectFrame());
    expect(third.link.destroyed).toBe(true);
    expect(third.frames()).toEqual([]);
    // Whoever has one may come back to it.
    const { id, password } = first.connection.session!;
    const again = new MemoryClient(core);
    again.send(connectFrame({ sessionId: id, passwd: password }));
    expect(again.handshakeAnswer()?.sessionId).toBe(id);
  });

  test('whose frame is too long is closed, after what came before was answered', () => {
    const { core } = world({ frameBytesMax: 100 });
    const client = MemoryClient.connected(core);
    const tooLong = requestFrame(2, 'create', node('/a', Buffer.alloc(100)));
    client.send(Buffer.concat([requestFrame(1, 'ping'), tooLong]));
    expect(xidsOf(client)).toEqual([xids.ping]);
    expect(client.link.destroyed).toBe(true);
  });
});

describe('requests per second', () => {
  test('are handled as they may be, in order, and none is lost', () => {
    const { core, clock } = world({ requestsPerSecondMax: 10 });
    const client = MemoryClient.connected(core);
    client.ask(...Array.from({ length: 30 }, () => ['exists', { path: '/', watch: false }] as const));
    const atOnce = xidsOf(client);
    expect(atOnce).toEqual(range(1, 9)); // The handshake was the tenth.
    expect(client.link.paused).toBe(true);
    const seen: number[] = [];
    let ticks = 0;
    while (client.link.paused) {
      expect(core.wakeAtMs).toBeGreaterThan(clock.ms);
      clock.ms = core.wakeAtMs;
      core.tick();
      seen.push(...xidsOf(client));
      expect(++ticks).toBeLessThan(50);
    }
    expect(seen).toEqual(range(10, 30));
    expect(clock.ms).toBeGreaterThanOrEqual(1_000 + 2_000);
    expect(clock.ms).toBeLessThan(1_000 + 2_300);
  });

  test('are of each connection by itself', () => {
    const { core } = world({ requestsPerSecondMax: 5 });
    const [client, other] = [MemoryClient.connected(core), MemoryClient.connected(core)];
    client.ask(...Array.from({ length: 20 }, () => ['ping'] as const));
    expect(other.call('exists', { path: '/', watch: false }).err).toBe(0);
  });

  test('may be less than one', () => {
    const { core, clock } = world({ requestsPerSecondMax: 0.5 });
    const client = MemoryClient.connected(core);
    client.ask(['exists', { path: '/', watch: false }]);
    expect(xidsOf(client)).toEqual([]);
    expect(core.wakeAtMs).toBe(clock.ms + 2_000);
    clock.ms += 2_000;
    core.tick();
    expect(xidsOf(client)).toEqual([1]);
  });
});

describe('a client that asks for much at once', () => {
  test('lets the others have their turn', () => {
    const { core, clock } = world();
    const [busy, other] = [MemoryClient.connected(core), MemoryClient.connected(core)];
    const slowly = clock.nowMs.bind(clock);
    clock.nowMs = () => {
      clock.ms += 0.5; // Everything takes time now.
      return slowly();
    };
    busy.ask(...Array.from({ length: 500 }, () => ['exists', { path: '/', watch: false }] as const));
    const first = xidsOf(busy);
    expect(first.length).toBeGreaterThan(0);
    expect(first.length).toBeLessThan(20);
    expect(other.call('exists', { path: '/', watch: false }).err).toBe(0);
    expect(core.turnIsLong).toBe(true);
    // That it has read its answers does not make it its turn again.
    core.drained(busy.connection);
    expect(xidsOf(busy)).toEqual([]);
    const rest: number[] = [];
    while (busy.link.paused) {
      core.tick();
      rest.push(...xidsOf(busy));
    }
    expect([...first, ...rest]).toEqual(range(1, 500));
  });
});

describe('a session', () => {
  test('is not given to whoever knows its number', () => {
    const { core } = world();
    const owner = MemoryClient.connected(core);
    const { id, password } = owner.connection.session!;
    const guesses = [Buffer.alloc(16), Buffer.alloc(0), password.subarray(0, 15), null];
    const almost = Buffer.from(password);
    almost[15]! ^= 1;
    for (const passwd of [...guesses, almost, Buffer.concat([password, Buffer.alloc(1)])]) {
      const thief = new MemoryClient(core);
      thief.send(connectFrame({ sessionId: id, passwd }));
      expect(thief.handshakeAnswer()).toMatchObject({ sessionId: 0n, timeOut: 0, passwd: Buffer.alloc(16) });
      expect(thief.link.ended).toBe(true);
    }
    expect(core.sessions.get(id)).toBeDefined();
    expect(owner.link.over).toBe(false);
    expect(owner.call('exists', { path: '/', watch: false }).err).toBe(0);
  });

  test('moves to a connection that knows its password, and the one before it is closed', () => {
    const { core } = world();
    const owner = MemoryClient.connected(core);
    const { id, password } = owner.connection.session!;
    const again = new MemoryClient(core);
    again.send(connectFrame({ sessionId: id, passwd: password }));
    expect(again.handshakeAnswer()?.sessionId).toBe(id);
    expect(owner.link.destroyed).toBe(true);
  });

  test('has a password of its own, never in the log', () => {
    const told: string[] = [];
    const { core } = world(
      {},
      {
        log: (...entry) =>
          void told.push(
            JSON.stringify(entry, (_, value) => (typeof value === 'bigint' ? `${value}` : value)),
          ),
      },
    );
    const passwords = Array.from(
      { length: 50 },
      () => MemoryClient.connected(core).connection.session!.password,
    );
    expect(new Set(passwords.map((each) => each.toString('hex'))).size).toBe(50);
    const thief = new MemoryClient(core);
    thief.send(connectFrame({ sessionId: core.sessions.all().next().value!.id, passwd: Buffer.alloc(16) }));
    expect(told.length).toBeGreaterThan(0);
    for (const password of passwords) expect(told.join()).not.toContain(password.toString('hex'));
  });
});

describe('the super user', () => {
  const digest = 'super:xQJmxLMiHGwaqBvst5y6rkB6HQs='; // Of super:admin.
  const secret = { ...node('/secret'), acl: [{ perms: 31, id: { scheme: 'digest', id: 'ann:x' } }] };
  const asSuper = (core: ServerCore) => {
    const client = MemoryClient.connected(core);
    client.call('create', secret);
    client.call('auth', { type: 0, scheme: 'digest', auth: Buffer.from('super:admin') });
    return client.call('getData', { path: '/secret', watch: false }).err;
  };

  test('is nobody unless a digest is given', () => {
    expect(asSuper(world().core)).toBe(errorCodes['no-auth']);
    expect(asSuper(world({}, { superDigest: 'super:other' }).core)).toBe(errorCodes['no-auth']);
    expect(asSuper(world({}, { superDigest: digest }).core)).toBe(0);
  });
});

describe('a watcher', () => {
  test('without READ hears nothing of a node, below it or of its end', () => {
    const { core } = world();
    const [owner, stranger] = [MemoryClient.connected(core), MemoryClient.connected(core)];
    owner.call('auth', { type: 0, scheme: 'digest', auth: Buffer.from('ann:secret') });
    stranger.call('addWatch', { path: '/', mode: 1 });
    stranger.call('addWatch', { path: '/private', mode: 0 });
    stranger.call('exists', { path: '/private', watch: true });
    const acl = [{ perms: 31, id: { scheme: 'auth', id: '' } }];
    owner.call('create', { ...node('/private'), acl });
    owner.call('create', { ...node('/private/child'), acl });
    owner.call('setData', { path: '/private', data: Buffer.from('x'), version: -1 });
    owner.call('delete', { path: '/private/child', version: -1 });
    owner.call('delete', { path: '/private', version: -1 });
    expect(stranger.replies()).toEqual([]);
    owner.call('create', node('/public'));
    const [event, ...others] = stranger.replies();
    expect(others).toEqual([]);
    expect(event).toMatchObject({ xid: xids.notification });
    expect(operations.sync.reply.read(new JuteReader(event!.body.subarray(8)))).toEqual({ path: '/public' });
  });
});
