import { expect, test } from 'vitest';
import { seededRandom } from '../base/random.ts';
import { JuteReader } from '../protocol/jute-reader.ts';
import { WatcherEvent } from '../protocol/records.ts';
import { MemoryClient, node, OPEN_ACL, StillClock } from './memory-client.test-data.ts';
import { ServerCore } from './server-core.ts';

const OWNER_ACL = [{ perms: 31, id: { scheme: 'auth', id: '' } }];
const NODE_CREATED = 1;
const NODE_DELETED = 2;
const NODE_DATA_CHANGED = 3;
const NODE_CHILDREN_CHANGED = 4;

/** A node that only its owner may read, an open one, and a client of each. */
function scene() {
  const core = new ServerCore({ clock: new StillClock(), random: seededRandom(1) });
  const [owner, stranger] = [MemoryClient.connected(core), MemoryClient.connected(core)];
  owner.ask(['auth', { type: 0, scheme: 'digest', auth: Buffer.from('owner:secret') }]);
  owner.replies();
  owner.call('create', { ...node('/secret'), acl: OWNER_ACL });
  owner.call('create', node('/open'));
  owner.call('create', node('/secret/child'));
  owner.call('create', node('/open/child'));
  return { owner, stranger };
}

/** Sets watches as after a reconnect; returns the events, as type and path. */
function missed(
  client: MemoryClient,
  relativeZxid: bigint,
  lists: Record<string, readonly string[]>,
): unknown[] {
  const none = { dataWatches: [], existWatches: [], childWatches: [] };
  client.ask(['setWatches', { relativeZxid, ...none, ...lists }]);
  return eventsOf(client);
}

function eventsOf(client: MemoryClient): unknown[] {
  return client
    .replies()
    .filter(({ xid }) => xid === -1)
    .map(({ body }) => WatcherEvent.read(new JuteReader(body)))
    .map(({ type, path }) => [type, path]);
}

const lists = ['dataWatches', 'existWatches', 'childWatches'] as const;

test.each(lists)(
  '%s: nothing is reported of a node that may not be read, whatever was seen before',
  (list) => {
    const { stranger } = scene();
    for (const zxid of [0n, 2n ** 62n]) expect(missed(stranger, zxid, { [list]: ['/secret'] })).toEqual([]);
  },
);

test('what may be read is reported in full, beside what may not', () => {
  const { owner, stranger } = scene();
  const both = ['/secret', '/open'];
  const all = { dataWatches: both, existWatches: both, childWatches: both };
  const open = [
    [NODE_DATA_CHANGED, '/open'],
    [NODE_CREATED, '/open'],
    [NODE_CHILDREN_CHANGED, '/open'],
  ];
  expect(missed(stranger, 0n, all)).toEqual(open);
  expect(missed(owner, 0n, all)).toHaveLength(6);
});

test('that a node is absent is reported, as exists does', () => {
  const { stranger } = scene();
  expect(missed(stranger, 0n, { dataWatches: ['/gone'], childWatches: ['/gone'] })).toEqual([
    [NODE_DELETED, '/gone'],
    [NODE_DELETED, '/gone'],
  ]);
});

test('a watch of a node that may not be read is set, and fires once it may be', () => {
  const { owner, stranger } = scene();
  missed(stranger, 0n, { dataWatches: ['/secret'] });
  expect(stranger.call('checkWatches', { path: '/secret', type: 2 }).err).toBe(0);
  owner.call('setAcl', { path: '/secret', acl: OPEN_ACL, version: -1 });
  owner.call('setData', { path: '/secret', data: Buffer.from('x'), version: -1 });
  expect(eventsOf(stranger)).toEqual([[NODE_DATA_CHANGED, '/secret']]);
});
