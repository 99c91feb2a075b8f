import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { FrameDecoder } from '../../src/protocol/frame-decoder.ts';
import { JuteReader } from '../../src/protocol/jute-reader.ts';
import { operations } from '../../src/protocol/operations.ts';
import { RequestHeader, SetWatches } from '../../src/protocol/records.ts';
import { FaultProxy } from '../../src/testing.ts';
import { connect, ops, type WatchEvent, type ZooKeeper } from '../../src/zookeeper.ts';
import { looseEnds } from '../support/loose-ends.ts';
import { BLANK_STAT, RawServer } from '../support/raw-server.ts';
import { sharedStandalone } from '../support/shared-servers.ts';
import { until } from '../support/until.ts';

const SERVER_FRAME_BYTES_MAX = 0xfffff;
const CONNECT_RESPONSE_BYTES = 4 + 37;
const SET_WATCHES_REPLY_BYTES = 4 + 16;
const SESSION_MS = 30_000;

describe('watches over a reconnect', () => {
  // 4 MB of paths: in one frame they would cost the connection, and the next one, and the next one.
  test('are restored by the thousand without a storm, and each fires exactly once', {
    timeout: 90_000,
  }, async () => {
    await using _ends = looseEnds();
    await using proxy = await FaultProxy.start({ target: sharedStandalone() });
    await using observer = await connect(sharedStandalone().connectString);
    await using zk = await connect(proxy.connectString, { sessionTimeoutMs: SESSION_MS });
    const { session } = zk;
    const paths = await makeNodes(observer, 20_000);
    const fired: string[] = [];
    const watch = (event: WatchEvent) => isChange(event) && fired.push(nameOf(event.path));
    await Promise.all(paths.map((path) => zk.get(path, { watch })));
    const states: string[] = [];
    for (const name of ['connected', 'suspended', 'lost'] as const) zk.on(name, () => states.push(name));

    const frames = recordSetWatches(proxy);
    proxy.acceptSilently();
    proxy.resetAll();
    await until('the client to dial again', () => proxy.acceptedCount === 2);
    const meanwhile = paths.filter((_, index) => index % 400 === 7);
    const later = paths.filter((_, index) => index % 400 === 8);
    await Promise.all(meanwhile.map((path) => observer.set(path, 'changed while disconnected')));
    proxy.heal();
    await until('what was missed', () => fired.length >= meanwhile.length);
    await Promise.all([...meanwhile, ...later].map((path) => observer.set(path, 'changed after that')));
    await until('what came then', () => fired.length >= meanwhile.length + later.length);
    await zk.sync();

    expect(fired.sort()).toEqual([...meanwhile, ...later].map(nameOf).sort());
    expect(states).toEqual(['suspended', 'connected']);
    expect(proxy.acceptedCount).toBe(2);
    expect(zk.session).toBe(session);
    expect(Math.max(...frames.map(({ bytes }) => bytes))).toBeLessThan(SERVER_FRAME_BYTES_MAX);
    expect(frames.flatMap((frame) => frame.paths.map(nameOf)).sort()).toEqual(paths.map(nameOf));
  });

  test('are restored in frames of the length that the client was told to keep to', async () => {
    await using _ends = looseEnds();
    await using proxy = await FaultProxy.start({ target: sharedStandalone() });
    await using observer = await connect(sharedStandalone().connectString);
    await using zk = await connect(proxy.connectString, {
      sessionTimeoutMs: SESSION_MS,
      requestBytesMax: 10_000,
    });
    const paths = await makeNodes(observer, 200);
    const fired: string[] = [];
    const watch = (event: WatchEvent) => isChange(event) && fired.push(nameOf(event.path));
    await Promise.all(paths.map((path) => zk.get(path, { watch })));
    const frames = recordSetWatches(proxy);
    proxy.resetAll();
    await zk.sync('/', { timeoutMs: 10_000 });
    await Promise.all(paths.map((path) => observer.set(path, 'changed')));
    await until('all events', () => fired.length === paths.length);
    expect(Math.max(...frames.map(({ bytes }) => bytes))).toBeLessThanOrEqual(10_000);
    expect(proxy.acceptedCount).toBe(2);
  });

  // A read of such a path just fits into a request; the request that restores its watch is a little longer.
  test('on a path so long that it cannot be restored do not cost the client', async () => {
    await using _ends = looseEnds();
    const requestBytesMax = 1_000;
    const longPath = `/${'x'.repeat(requestBytesMax - 8 - 4 - 1 - 1)}`;
    await using server = await RawServer.start(async (connection) => {
      await connection.grant();
      for await (const request of connection.requests()) {
        const reply = request.operation === 'getData' ? { data: null, stat: BLANK_STAT } : { path: '/' };
        connection.answer(request, request.operation === 'setWatches' ? undefined : reply);
      }
    });
    await using zk = await connect(server.connectString, { requestBytesMax });
    const watched = (async () => zk.get(longPath, { watch: () => {} }))();
    // Refusing the watch at once would be as good as living without it later.
    await watched.catch((reason: unknown) => expect(reason).toBeInstanceOf(RangeError));
    server.connections[0]!.destroy();
    await until('another connection', () => server.connections.length === 2);
    await zk.sync('/', { timeoutMs: 5_000 });
    expect(server.connections).toHaveLength(2);
  });

  // The answer to the first frame says how new the server is. A client that takes that for what it has seen
  // asks, on the next connection, only for changes since then, and never hears of older ones.
  test('are not forgotten when the connection is cut between two of the frames that restore them', async () => {
    await using _ends = looseEnds();
    await using proxy = await FaultProxy.start({ target: sharedStandalone() });
    await using observer = await connect(sharedStandalone().connectString);
    await using zk = await connect(proxy.connectString, { sessionTimeoutMs: SESSION_MS });
    const paths = await makeNodes(observer, 2_000);
    const fired: string[] = [];
    const watch = (event: WatchEvent) => isChange(event) && fired.push(nameOf(event.path));
    await Promise.all(paths.map((path) => zk.get(path, { watch })));

    const frames = recordSetWatches(proxy);
    proxy.acceptSilently();
    proxy.resetAll();
    await until('the client to dial again', () => proxy.acceptedCount === 2);
    const last = paths.at(-1)!;
    await observer.set(last, 'changed while disconnected');
    proxy.heal();
    proxy.cutAfter({ direction: 'to-client', bytes: CONNECT_RESPONSE_BYTES + SET_WATCHES_REPLY_BYTES });
    await until('the connection after the cut', () => proxy.acceptedCount === 3);
    await zk.sync();

    expect(frames.length).toBeGreaterThan(2);
    expect(fired).toEqual([nameOf(last)]);
  });

  test('tell of every kind of change that happened meanwhile, once', async () => {
    await using _ends = looseEnds();
    await using proxy = await FaultProxy.start({ target: sharedStandalone() });
    await using observer = await connect(sharedStandalone().connectString);
    await using zk = await connect(proxy.connectString, { sessionTimeoutMs: SESSION_MS });
    const root = `/${randomUUID()}`;
    await observer.create(root);
    for (const name of ['changed', 'deleted', 'parent', 'untouched'])
      await observer.create(`${root}/${name}`);
    const events: string[] = [];
    const watch = ({ type, path }: WatchEvent) => events.push(`${type} ${path.slice(root.length)}`);
    await Promise.all([
      zk.get(`${root}/changed`, { watch }),
      zk.exists(`${root}/deleted`, { watch }),
      zk.exists(`${root}/created`, { watch }),
      zk.children(`${root}/parent`, { watch }),
      zk.get(`${root}/untouched`, { watch }),
      zk.addWatch(`${root}/changed`, 'persistent', ({ type }) => events.push(`persistent: ${type}`)),
      zk.addWatch(root, 'persistent-recursive', ({ type }) => events.push(`recursive: ${type}`)),
    ]);

    proxy.acceptSilently();
    proxy.resetAll();
    await until('the client to dial again', () => proxy.acceptedCount === 2);
    await observer.set(`${root}/changed`, '');
    await observer.delete(`${root}/deleted`);
    await observer.create(`${root}/created`);
    await observer.create(`${root}/parent/child`);
    expect(events).toEqual([]);
    proxy.heal();
    await until('the gap of the persistent watches', () => events.includes('recursive: watch-gap'));
    await zk.sync();

    const oneShot = events.filter((event) => event.startsWith('node-')).sort();
    expect(oneShot).toEqual([
      'node-children-changed /parent',
      'node-created /created',
      'node-data-changed /changed',
      'node-deleted /deleted',
    ]);
    // A server does not replay to persistent watches what they missed: that there was a gap is all they hear.
    expect(events.filter((event) => event.includes('gap'))).toHaveLength(2);
    expect(proxy.acceptedCount).toBe(2);
    await observer.deleteTree(root);
  });
});

const nameOf = (path: string) => path.slice(path.lastIndexOf('/') + 1);
const isChange = ({ type }: WatchEvent) => type.startsWith('node-');

/** So many nodes with paths of about 200 bytes, in the order of their names. */
async function makeNodes(zk: ZooKeeper, count: number): Promise<string[]> {
  const parent = `/${randomUUID()}-${'x'.repeat(155)}`;
  await zk.create(parent);
  const paths = Array.from({ length: count }, (_, index) => `${parent}/${String(index).padStart(6, '0')}`);
  const PER_MULTI = 1_000;
  const multis = [];
  for (let start = 0; start < count; start += PER_MULTI) {
    multis.push(zk.multi(paths.slice(start, start + PER_MULTI).map((path) => ops.create(path))));
  }
  await Promise.all(multis);
  return paths;
}

interface SetWatchesFrame {
  readonly bytes: number;
  readonly paths: readonly string[];
}

/** The setWatches frames that pass a proxy on connections made from now on. */
function recordSetWatches(proxy: FaultProxy): SetWatchesFrame[] {
  const found: SetWatchesFrame[] = [];
  let decoder = new FrameDecoder(Number.MAX_SAFE_INTEGER);
  let accepted = proxy.acceptedCount;
  proxy.onBytes((direction, chunk) => {
    if (direction !== 'to-server') return;
    if (accepted !== proxy.acceptedCount) {
      accepted = proxy.acceptedCount;
      decoder = new FrameDecoder(Number.MAX_SAFE_INTEGER);
    }
    for (const frame of decoder.push(chunk)) {
      const input = new JuteReader(frame);
      const { type } = RequestHeader.read(input);
      if (type !== operations.setWatches.opcode) continue;
      const { dataWatches, existWatches, childWatches } = SetWatches.read(input);
      found.push({ bytes: frame.byteLength, paths: [...dataWatches, ...existWatches, ...childWatches] });
    }
  });
  return found;
}
