import { describe, expect, test } from 'vitest';
import { seededRandom } from '../base/random.ts';
import { errorCodes } from '../protocol/error-codes.ts';
import { FrameDecoder } from '../protocol/frame-decoder.ts';
import { Connect, Connected } from '../protocol/handshake.ts';
import { JuteReader } from '../protocol/jute-reader.ts';
import { JuteWriter } from '../protocol/jute-writer.ts';
import type { MultiReadOp, MultiResult } from '../protocol/multi.ts';
import { operationOf, operations } from '../protocol/operations.ts';
import { RequestHeader, type Stat } from '../protocol/records.ts';
import type { ServerAddress } from '../session/session-io.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';
import type { ConnectOptions } from './connect-options.ts';
import type { LinkHandlers, Transport } from './transport.ts';
import { ZooKeeper } from './zookeeper.ts';

const STAT: Stat = {
  czxid: 1n,
  mzxid: 1n,
  ctime: 0n,
  mtime: 0n,
  version: 0,
  cversion: 0,
  aversion: 0,
  ephemeralOwner: 0n,
  dataLength: 0,
  numChildren: 0,
  pzxid: 1n,
};

/** A server with a few nodes in the same process, under a virtual clock, that notes what it was asked. */
class ReadServer implements Transport {
  readonly clock = new VirtualClock();
  readonly data = new Map<string, string>();
  /** The requests of all connections in their order; a multiRead with its number of reads. */
  readonly asked: string[] = [];
  /** The four-letter words, each with the address it was asked at. */
  readonly words: string[] = [];
  /** What `srvr` is answered with; nothing at all if undefined. */
  srvr: string | undefined = 'Zookeeper version: 3.8.0-abc, built on 2022-01-01 00:00 UTC\nLatency min';
  answering = true;
  /** What every multiRead is refused with. */
  multiReadRefusal = 0;
  /** Spoils the results of a multiRead. */
  spoil: ((results: MultiResult[]) => MultiResult[]) | undefined;
  openCount = 0;
  expired = false;
  #hangUp: (() => void) | undefined;

  dial(server: ServerAddress, handlers: LinkHandlers) {
    const frames = new FrameDecoder(1 << 24);
    let greeted = false;
    let open = true;
    this.openCount++;
    const say = (bytes: Buffer) => this.clock.endOfTick(() => open && handlers.received(bytes));
    this.clock.endOfTick(() => open && handlers.opened());
    const end = () => {
      if (open) this.openCount--;
      open = false;
    };
    return {
      address: '10.0.0.7',
      write: (bytes: Buffer) => {
        if (bytes.byteLength === 4) {
          this.words.push(`${bytes} ${server.address}`);
          if (this.srvr !== undefined) say(Buffer.from(this.srvr));
          return;
        }
        this.#hangUp = () => {
          end();
          handlers.closed(new Error('cut'));
        };
        for (const frame of frames.push(bytes)) {
          const answer = greeted ? this.#answer(frame) : this.#greet(frame);
          greeted = true;
          if (this.answering && answer) say(answer);
        }
      },
      destroy: end,
    };
  }

  cut(): void {
    this.#hangUp?.();
  }

  #greet(frame: Buffer): Buffer {
    const { sessionId, timeOut } = Connect.read(new JuteReader(frame));
    return framed((out) =>
      Connected.write(out, {
        protocolVersion: 0,
        timeOut: this.expired ? 0 : timeOut,
        sessionId: sessionId || 1n,
        passwd: Buffer.alloc(16),
        readOnly: false,
      }),
    );
  }

  #answer(frame: Buffer): Buffer | undefined {
    const input = new JuteReader(frame);
    const { xid, type } = RequestHeader.read(input);
    const operation = operationOf(type)!;
    if (xid < 0) return framed((out) => header(out, xid, 0));
    const record = operation.request.read(input) as { path: string; data?: Buffer } & MultiReadOp[];
    const many = operation === operations.multiRead;
    this.asked.push(many ? `multiRead ${record.length}` : operation.name);
    if (many && this.multiReadRefusal !== 0) return framed((out) => header(out, xid, this.multiReadRefusal));
    if (operation === operations.setData) this.data.set(record.path, `${record.data}`);
    if (many) {
      const results = record.map(({ op, request }) => this.#read(op, request.path));
      return framed((out) => {
        header(out, xid, 0);
        operations.multiRead.reply.write(out, this.spoil?.(results) ?? results);
      });
    }
    const result =
      type === operations.getData.opcode || type === operations.getChildren.opcode
        ? this.#read(operation.name as MultiReadOp['op'], record.path)
        : { kind: 'setData', stat: STAT };
    if (result.kind === 'error') return framed((out) => header(out, xid, (result as { err: number }).err));
    return framed((out) => {
      header(out, xid, 0);
      operation.reply.write(out, { children: [], ...result, path: '/' } as never);
    });
  }

  #read(op: MultiReadOp['op'], path: string): MultiResult {
    const data = this.data.get(path);
    if (data === undefined) return { kind: 'error', err: errorCodes['no-node'] };
    if (op === 'getData') return { kind: 'getData', data: Buffer.from(data), stat: STAT };
    return { kind: 'getChildren', children: [`child-of-${data}`] };
  }
}

function header(out: JuteWriter, xid: number, err: number): void {
  out.int(xid);
  out.long(1n);
  out.int(err);
}

function framed(write: (out: JuteWriter) => void): Buffer {
  const out = new JuteWriter();
  const mark = out.beginFrame();
  write(out);
  out.endFrame(mark);
  return out.take();
}

/** A client that is connected to a server with the nodes /a and /b. */
async function connected(options: ConnectOptions & { chroot?: string; srvr?: string | undefined } = {}) {
  const { chroot = '', srvr, ...rest } = options;
  const server = new ReadServer();
  if ('srvr' in options) server.srvr = srvr;
  server.data.set(`${chroot}/a`, 'A');
  server.data.set(`${chroot}/b`, 'B');
  const { clock } = server;
  const zk = ZooKeeper.open(`zk:2181${chroot}`, {
    transport: server,
    clock,
    random: seededRandom(1),
    ...rest,
  });
  await clock.advance(1);
  return { server, clock, zk };
}

/** A client that was told that its servers understand it. */
const gathering = (options: ConnectOptions & { chroot?: string } = {}) =>
  connected({ gatherReads: true, ...options });

const times = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(i));

describe('reads of one tick', () => {
  test('leave as one request, and each has the result that it would have alone', async () => {
    const { server, clock, zk } = await gathering();
    const single = zk.get('/a');
    await clock.advance(1);
    const reads = Promise.all([zk.get('/a'), zk.children('/b'), zk.get('/b')]);
    await clock.advance(1);
    const [a, children, b] = await reads;
    expect(a).toEqual(await single);
    expect(Object.keys(a)).toEqual(['data', 'stat']);
    expect(children).toEqual(['child-of-B']);
    expect(b.data).toEqual(Buffer.from('B'));
    expect(server.asked).toEqual(['getData', 'multiRead 3']);
  });

  test('are one request for each 32, and for one that is left over a plain one', async () => {
    const { server, clock, zk } = await gathering();
    const reads = Promise.all(times(65, () => zk.get('/a')));
    await clock.advance(1);
    expect((await reads).map(({ data }) => `${data}`)).toEqual(times(65, () => 'A'));
    expect(server.asked).toEqual(['multiRead 32', 'multiRead 32', 'getData']);
  });

  test('keep their places between writes and whatever else is asked', async () => {
    const { server, clock, zk } = await gathering();
    const values = Promise.all([
      zk.get('/a'),
      zk.get('/a'),
      zk.set('/a', 'later'),
      zk.get('/a'),
      zk.get('/a'),
      zk.exists('/a'),
      zk.get('/a'),
      zk.get('/a', { watch: () => {} }),
      zk.get('/a'),
      zk.childrenWithStat('/a'),
      zk.children('/a'),
      zk.children('/a'),
      zk.sync(),
      zk.children('/a'),
    ]);
    await clock.advance(1);
    const [first, second, , third] = await values;
    expect([first, second, third].map(({ data }) => `${data}`)).toEqual(['A', 'A', 'later']);
    expect(server.asked).toEqual([
      'multiRead 2',
      'setData',
      'multiRead 2',
      'exists',
      'getData',
      'getData',
      'getData',
      'getChildren2',
      'multiRead 2',
      'sync',
      'getChildren',
    ]);
  });

  test('are executed before the end of the session that is asked for behind them', async () => {
    const { server, clock, zk } = await gathering();
    const reads = Promise.all([zk.get('/a'), zk.get('/b')]);
    const closed = zk.close();
    await clock.advance(1);
    await closed;
    expect((await reads).map(({ data }) => `${data}`)).toEqual(['A', 'B']);
    expect(server.asked).toEqual(['multiRead 2', 'closeSession']);
    expect(clock.alarmCount).toBe(0);
  });

  test('fail one by one, as they would alone and by the path that the caller wrote', async () => {
    const { clock, zk } = await gathering({ chroot: '/app' });
    const alone = zk.get('/none').catch((error: unknown) => error);
    await clock.advance(1);
    const settled = Promise.allSettled([
      zk.get('/a'),
      zk.get('/none'),
      zk.children('/none/below'),
      zk.get('/b'),
    ]);
    await clock.advance(1);
    const [a, data, children, b] = await settled;
    expect([a.status, b.status]).toEqual(['fulfilled', 'fulfilled']);
    expect(data).toEqual({ status: 'rejected', reason: await alone });
    expect(data).toMatchObject({ reason: { message: 'get /none: no node', code: 'ZK_NO_NODE' } });
    expect(children).toMatchObject({ reason: { message: 'children /none/below: no node' } });
  });

  test('are not sent if they are given up before the tick ends', async () => {
    const { server, clock, zk } = await gathering();
    const abort = new AbortController();
    const { signal } = abort;
    const given = [zk.get('/a', { signal }), zk.get('/b', { signal })].map((read) =>
      read.catch(({ message }: Error) => message),
    );
    const kept = zk.get('/b');
    abort.abort(new Error('no longer wanted'));
    await clock.advance(1);
    expect(await Promise.all(given)).toEqual(['no longer wanted', 'no longer wanted']);
    expect(`${(await kept).data}`).toBe('B');
    expect(server.asked).toEqual(['getData']);
  });

  test('that are all given up leave nothing to send', async () => {
    const { server, clock, zk } = await gathering();
    const abort = new AbortController();
    const given = zk.get('/a', { signal: abort.signal }).catch(({ message }: Error) => message);
    abort.abort(new Error('no longer wanted'));
    await clock.advance(1);
    expect(await given).toBe('no longer wanted');
    expect(server.asked).toEqual([]);
  });

  test('are given up one by one while they are under way', async () => {
    const { server, clock, zk } = await gathering();
    server.answering = false;
    const abort = new AbortController();
    const aborted = zk.get('/a', { signal: abort.signal }).catch(({ message }: Error) => message);
    const late = zk.get('/a', { timeoutMs: 50 }).catch((error: unknown) => error);
    const kept = zk.get('/b');
    await clock.advance(1);
    abort.abort(new Error('no longer wanted'));
    await clock.advance(100);
    expect(await aborted).toBe('no longer wanted');
    expect(await late).toMatchObject({ code: 'ZK_REQUEST_TIMEOUT', outcome: 'unknown' });
    server.answering = true;
    server.cut();
    await clock.advance(1_000);
    expect(`${(await kept).data}`).toBe('B');
    expect(server.asked).toEqual(['multiRead 3', 'getData']); // Those that were given up are not repeated.
  });

  test('are asked again, each by itself and in their places, when the connection is lost under them', async () => {
    const { server, clock, zk } = await gathering();
    server.answering = false;
    const reads = Promise.all([zk.get('/a'), zk.children('/b')]);
    await clock.advance(1);
    const behind = zk.exists('/a');
    await clock.advance(1);
    server.answering = true;
    server.cut();
    await clock.advance(1_000);
    expect((await reads)[1]).toEqual(['child-of-B']);
    await behind;
    expect(server.asked).toEqual(['multiRead 2', 'exists', 'getData', 'getChildren', 'exists']);
  });

  test('fail one by one when the session is lost under them', async () => {
    const { server, clock, zk } = await gathering();
    server.answering = false;
    const reads = Promise.allSettled([zk.get('/a'), zk.children('/b')]);
    await clock.advance(1);
    server.expired = true;
    server.answering = true;
    server.cut();
    await clock.advance(1_000);
    for (const read of await reads) {
      expect(read).toMatchObject({ reason: { code: 'ZK_SESSION_LOST' } });
    }
  });

  test('fail one by one when the client is closed and no answer comes', async () => {
    const { server, clock, zk } = await gathering();
    server.answering = false;
    const reads = Promise.allSettled([zk.get('/a'), zk.children('/b')]);
    await clock.advance(1);
    const closed = zk.close();
    const late = Promise.allSettled([zk.get('/a'), zk.children('/b')]);
    await clock.advance(5_000);
    await closed;
    for (const read of await reads) expect(read).toMatchObject({ reason: { code: 'ZK_CLOSED' } });
    expect(await late).toMatchObject([
      {
        reason: { message: 'get /a: not sent, since the client was closed before; connect() opens another' },
      },
      {
        reason: {
          message: 'children /b: not sent, since the client was closed before; connect() opens another',
        },
      },
    ]);
    expect(clock.alarmCount).toBe(0);
  });

  test('are asked one by one if the answer to all of them is too long, which fails the long one alone', async () => {
    const { server, clock, zk } = await gathering({ replyBytesMax: 4_000 });
    server.data.set('/long', 'x'.repeat(5_000));
    const reads = Promise.allSettled([zk.get('/a'), zk.get('/long'), zk.get('/b')]);
    await clock.advance(2_000);
    const [a, long, b] = await reads;
    expect([a.status, b.status]).toEqual(['fulfilled', 'fulfilled']);
    expect(long).toMatchObject({
      reason: { code: 'ZK_CONNECTION_LOSS', cause: { name: 'ProtocolError' } },
    });
    const pair = Promise.all([zk.get('/a'), zk.get('/b')]);
    await clock.advance(1);
    await pair;
    // It has cost a connection once, and does not again.
    expect(server.asked.filter((name) => name.startsWith('multiRead'))).toEqual(['multiRead 3']);
  });

  test.each<[string, (results: MultiResult[]) => MultiResult[]]>([
    ['too few', (results) => results.slice(1)],
    ['of another kind', (results) => results.reverse()],
    ['an error that is none', (results) => [{ kind: 'error', err: 0 }, ...results.slice(1)]],
  ])('are asked one by one if the results are %s', async (_what, spoil) => {
    const { server, clock, zk } = await gathering();
    server.spoil = spoil;
    const reads = Promise.all([zk.get('/a'), zk.children('/b')]);
    await clock.advance(1_000);
    const [a, b] = await reads;
    expect([`${a.data}`, b]).toEqual(['A', ['child-of-B']]);
    expect(server.asked).toEqual(['multiRead 2', 'getData', 'getChildren']);
  });

  test('are asked one by one, and from then on singly, if the server knows no such request', async () => {
    const { server, clock, zk } = await gathering();
    server.multiReadRefusal = errorCodes.unimplemented;
    const reads = Promise.all([zk.get('/a'), zk.children('/b')]);
    await clock.advance(1);
    const [a, b] = await reads;
    expect([`${a.data}`, b]).toEqual(['A', ['child-of-B']]);
    const again = Promise.all([zk.get('/a'), zk.get('/b')]);
    await clock.advance(1);
    await again;
    expect(server.asked).toEqual(['multiRead 2', 'getData', 'getChildren', 'getData', 'getData']);
  });

  test('are fewer in one request for a while if it was refused as a whole, as for a long answer', async () => {
    const { server, clock, zk } = await gathering();
    server.multiReadRefusal = errorCodes['marshalling-error'];
    const reads = Promise.all(times(32, () => zk.get('/a')));
    await clock.advance(1);
    await reads;
    server.multiReadRefusal = 0;
    server.asked.length = 0;
    for (let round = 0; round < 20; round++) {
      const more = Promise.all(times(32, () => zk.get('/a')));
      await clock.advance(1);
      await more;
    }
    expect(server.asked[0]).not.toBe('multiRead 32');
    expect(server.asked.at(-1)).toBe('multiRead 32');
  });

  test('each have the refusal that is not of their number but of the connection', async () => {
    const { server, clock, zk } = await gathering();
    server.multiReadRefusal = errorCodes['throttled-op'];
    const reads = Promise.allSettled([zk.get('/a'), zk.children('/b')]);
    await clock.advance(1);
    expect(await reads).toMatchObject([
      { reason: { condition: 'throttled-op', path: '/a' } },
      { reason: { condition: 'throttled-op', path: '/b' } },
    ]);
    expect(server.asked).toEqual(['multiRead 2']);
  });

  test('are fewer in one request where answers are long', async () => {
    const { server, clock, zk } = await gathering();
    server.data.set('/long', 'x'.repeat(300_000));
    const first = zk.get('/long');
    await clock.advance(1);
    await first;
    const reads = Promise.all(times(6, () => zk.get('/long')));
    await clock.advance(1);
    await reads;
    expect(server.asked).toEqual(['getData', 'multiRead 4', 'multiRead 2']);
  });

  test('with a path that would make the request too long go singly, and too long ones throw as ever', async () => {
    const { server, clock, zk } = await gathering({ requestBytesMax: 4_000 });
    const path = `/${'long'.repeat(200)}`;
    server.data.set(path, 'A');
    const reads = Promise.all(times(32, () => zk.get(path)));
    expect(() => zk.get(`/${'x'.repeat(5_000)}`)).toThrow(RangeError);
    await clock.advance(1);
    await reads;
    expect(server.asked).toEqual(times(32, () => 'getData'));
  });

  test('that waited for a connection are gathered too', async () => {
    const { server, clock, zk } = await gathering();
    server.cut();
    const reads = Promise.all([zk.get('/a'), zk.get('/b')]);
    await clock.advance(1_000);
    await reads;
    expect(server.asked).toEqual(['multiRead 2']);
  });
});

describe('whether reads are gathered', () => {
  /** So many reads in one tick. */
  const read = async ({ clock, zk }: { clock: VirtualClock; zk: ZooKeeper }, count: number) => {
    const reads = Promise.all(times(count, () => zk.get('/a')));
    await clock.advance(1);
    await reads;
  };

  test('is asked of the server of the connection, at its very address, once many are made in one tick', async () => {
    const world = await connected();
    await read(world, 7);
    expect(world.server.words).toEqual([]);
    await read(world, 8);
    expect(world.server.asked).toEqual(times(15, () => 'getData')); // Nobody waits for the answer.
    expect(world.server.words).toEqual(['srvr 10.0.0.7']);
    await read(world, 40);
    expect(world.server.asked.slice(15)).toEqual(['multiRead 32', 'multiRead 8']);
    expect(world.server.words).toHaveLength(1);
    expect(world.server.openCount).toBe(1);
  });

  test('is not asked for many reads that do not stand behind each other', async () => {
    const world = await connected();
    const { clock, zk, server } = world;
    const mixed = Promise.all(times(20, (i) => [zk.get('/a'), zk.set('/b', `${i}`)]).flat());
    await clock.advance(1);
    await mixed;
    for (let tick = 0; tick < 20; tick++) await read(world, 1);
    expect(server.words).toEqual([]);
  });

  test.each([
    ['3.5', 'Zookeeper version: 3.5.10-1234, built on 2022\n'],
    ['2.9', 'Zookeeper version: 2.9.0-1234, built on 2022\n'],
    ['a refusal', 'srvr is not executed because it is not in the whitelist.\n'],
    ['another product', 'ClickHouse Keeper version: v23.8.1\n'],
    ['an endless line', 'x'.repeat(10_000)],
    ['silence', undefined],
  ])('is never where the answer is %s', async (_what, srvr) => {
    const world = await connected({ srvr });
    await read(world, 40);
    await read(world, 40);
    await world.clock.advance(20_000);
    await read(world, 40);
    expect(world.server.asked.filter((name) => name.startsWith('multiRead'))).toEqual([]);
    expect(world.server.words).toHaveLength(1);
    expect(world.server.openCount).toBe(1);
  });

  test.each(['3.6.0', '3.10.1', '4.0.0'])('is where the answer is %s', async (version) => {
    const world = await connected({ srvr: `Zookeeper version: ${version}-x, built on 2022\n` });
    await read(world, 8);
    await read(world, 8);
    expect(world.server.asked.at(-1)).toBe('multiRead 8');
  });

  test('is asked anew on each connection, since another server may be behind the same name', async () => {
    const world = await connected();
    await read(world, 8);
    world.server.srvr = 'Zookeeper version: 3.5.10-1234, built on 2022\n';
    world.server.cut();
    await world.clock.advance(1_000);
    world.server.asked.length = 0;
    await read(world, 8);
    await read(world, 8);
    expect(world.server.words).toHaveLength(2);
    expect(world.server.asked).toEqual(times(16, () => 'getData'));
  });

  test('is not believed of another connection than the one it was asked for', async () => {
    const world = await connected({ srvr: undefined });
    await read(world, 8);
    expect(world.server.openCount).toBe(2);
    world.server.cut();
    await world.clock.advance(1_000);
    expect(world.server.openCount).toBe(1);
    await read(world, 4);
    expect(world.server.asked).toEqual(times(12, () => 'getData'));
  });

  test('is not asked any more once the client is closed', async () => {
    const { server, clock, zk } = await connected({ srvr: undefined });
    const reads = Promise.all(times(8, () => zk.get('/a')));
    await clock.advance(1);
    await reads;
    expect(server.openCount).toBe(2);
    const closed = zk.close();
    await clock.advance(0);
    await closed;
    expect(server.openCount).toBe(0);
    expect(clock.alarmCount).toBe(0);
  });

  test('is never, and not asked, if the option says so', async () => {
    const world = await connected({ gatherReads: false });
    await read(world, 40);
    await read(world, 40);
    expect(world.server.words).toEqual([]);
    expect(world.server.asked).toEqual(times(80, () => 'getData'));
  });
});
