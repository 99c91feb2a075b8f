import { describe, expect, test, vi } from 'vitest';
import { seededRandom } from '../base/random.ts';
import { FrameDecoder } from '../protocol/frame-decoder.ts';
import { Connect, Connected } from '../protocol/handshake.ts';
import { JuteReader } from '../protocol/jute-reader.ts';
import { JuteWriter } from '../protocol/jute-writer.ts';
import { operations } from '../protocol/operations.ts';
import { RequestHeader } from '../protocol/records.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';
import { acls } from './acl.ts';
import type { ConnectOptions } from './connect-options.ts';
import { ops } from './operations-of-multi.ts';
import type { LinkHandlers, Transport } from './transport.ts';
import { connect, ZooKeeper } from './zookeeper.ts';

/** A server in the same process, under the same virtual clock: answers what it is asked, in zero time. */
class ScriptedServer implements Transport {
  readonly clock = new VirtualClock();
  readonly writes: Buffer[] = [];
  /** What each connection calls, in the order they were dialled. */
  readonly links: LinkHandlers[] = [];
  dialCount = 0;
  sessionCount = 0;
  /** While false, connections are accepted and nothing is answered. */
  answering = true;
  /** Session ids the server has forgotten. */
  readonly expired = new Set<bigint>();
  #handlers: LinkHandlers | undefined;

  dial(_server: unknown, handlers: LinkHandlers) {
    this.dialCount++;
    this.links.push(handlers);
    this.#handlers = handlers;
    const frames = new FrameDecoder(1 << 20);
    let greeted = false;
    this.clock.endOfTick(() => handlers.opened());
    return {
      write: (bytes: Buffer) => {
        if (greeted) this.writes.push(bytes);
        for (const frame of frames.push(bytes)) {
          const answer = greeted ? this.#answer(frame) : this.#greet(frame);
          greeted = true;
          if (this.answering) this.clock.endOfTick(() => handlers.received(answer));
        }
      },
      destroy: () => {
        if (this.#handlers === handlers) this.#handlers = undefined;
      },
    };
  }

  cut(): void {
    this.#handlers?.closed(new Error('cut'));
  }

  #greet(frame: Buffer): Buffer {
    const { sessionId, timeOut } = Connect.read(new JuteReader(frame));
    const over = this.expired.has(sessionId);
    const id = over ? 0n : sessionId || BigInt(++this.sessionCount);
    return framed((out) =>
      Connected.write(out, {
        protocolVersion: 0,
        timeOut: over ? 0 : timeOut,
        sessionId: id,
        passwd: Buffer.alloc(16),
        readOnly: false,
      }),
    );
  }

  /** Says that the node does not exist, and yes to everything else. */
  #answer(frame: Buffer): Buffer {
    const { xid, type } = RequestHeader.read(new JuteReader(frame));
    return framed((out) => {
      out.int(xid);
      out.long(1n);
      out.int(type === operations.exists.opcode ? -101 : 0);
      if (type === operations.sync.opcode) out.ustring('/');
    });
  }
}

function framed(write: (out: JuteWriter) => void): Buffer {
  const out = new JuteWriter();
  const mark = out.beginFrame();
  write(out);
  out.endFrame(mark);
  return out.take();
}

function open(options: ConnectOptions = {}) {
  const server = new ScriptedServer();
  const { clock } = server;
  const zk = ZooKeeper.open('zk:2181', { transport: server, clock, random: seededRandom(1), ...options });
  return { server, clock, zk };
}

describe('a client under a virtual clock', () => {
  test('sends all requests of one tick in one write, also those made in promise reactions', async () => {
    const { server, clock, zk } = open();
    await clock.advance(1);
    server.writes.length = 0;
    const direct = Array.from({ length: 50 }, () => zk.exists('/a'));
    const chained = Array.from({ length: 50 }, () => Promise.resolve().then(() => zk.exists('/b')));
    await clock.advance(0);
    await Promise.all([...direct, ...chained]);
    expect(server.writes).toHaveLength(1);
  });

  test.each([
    { busyPollMs: 0, isPolled: false },
    { busyPollMs: 1, isPolled: true },
  ])('takes turns of the event loop until it is answered only if told to ($busyPollMs ms)', async (given) => {
    const { clock, zk } = open({ busyPollMs: given.busyPollMs });
    await clock.advance(1);
    const turns = vi.spyOn(clock, 'afterInput');
    const asked = zk.exists('/a');
    await clock.advance(1);
    await asked;
    expect(turns.mock.calls.length > 0).toBe(given.isPolled);
    turns.mockClear();
    await clock.advance(10);
    expect(turns).not.toHaveBeenCalled();
  });

  test('does not hear a connection that it has given up', async () => {
    const { server, clock, zk } = open({ dialTimeoutMs: 1_000 });
    server.answering = false;
    await clock.advance(500);
    const [stale] = server.links;
    server.answering = true;
    await clock.advance(1_500); // The first attempt timed out; the second was answered.
    expect(zk.session.state).toBe('connected');
    stale!.received(Buffer.from([0xff, 0xff, 0xff, 0xff]));
    stale!.closed(new Error('late'));
    await clock.advance(0);
    expect(zk.session.state).toBe('connected');
    expect(server.dialCount).toBe(2);
  });

  test('leaves no alarm behind when it is closed', async () => {
    const { clock, zk } = open();
    await clock.advance(1);
    const pending = zk.exists('/a', { timeoutMs: 500 });
    const closed = zk.close();
    await clock.advance(1);
    await closed;
    await expect(pending).resolves.toBeUndefined();
    expect(clock.alarmCount).toBe(0);
  });

  test('opens another session when one is lost, under the same client', async () => {
    const { server, clock, zk } = open({ sessionTimeoutMs: 3_000 });
    await clock.advance(1);
    const first = zk.session;
    const lost: unknown[] = [];
    zk.on('lost', ({ session }) => lost.push(session));
    server.expired.add(first.id);
    server.cut();
    await clock.advance(500);
    expect(lost).toEqual([first]);
    expect(first.lost.aborted).toBe(true);
    expect(zk.session.id).toBe(2n);
    await expect(zk.exists('/a', { session: first })).rejects.toMatchObject({
      code: 'ZK_SESSION_LOST',
      outcome: 'not-applied',
    });
  });

  test('aborts what is held before the server can give it away', async () => {
    const { server, clock, zk } = open({ sessionTimeoutMs: 10_000 });
    await clock.advance(1);
    await clock.advance(3_000);
    const write = zk.sync();
    await clock.advance(0);
    await write;
    const hold = zk.session.hold();
    const startedAtMs = clock.nowMs();
    expect(hold.remainingMs()).toBeGreaterThan(6_000);
    server.answering = false;
    await clock.advance(6_800);
    expect(hold.signal.aborted).toBe(false);
    await clock.advance(200);
    expect(hold.signal.aborted).toBe(true);
    expect(hold.signal.reason).toMatchObject({ code: 'ZK_LEASE_ENDED' });
    expect(clock.nowMs() - startedAtMs).toBeLessThan(10_000);
    expect(hold.remainingMs()).toBe(0);
  });

  test('keeps what is held for as long as the leader answers', async () => {
    const { server, clock, zk } = open({ sessionTimeoutMs: 10_000 });
    await clock.advance(1);
    const hold = zk.session.hold();
    await clock.advance(120_000);
    expect(hold.signal.aborted).toBe(false);
    const sent = server.writes.map((bytes) => RequestHeader.read(new JuteReader(bytes.subarray(4))).type);
    expect(new Set(sent)).toEqual(new Set([operations.sync.opcode]));
    expect(sent).toHaveLength(60);
    hold.release();
    await clock.advance(10_000);
    expect(server.writes).toHaveLength(63);
  });

  test('dials no more often than the back-off allows while every server is down', async () => {
    const { server, clock, zk } = open();
    server.answering = false;
    await clock.advance(0);
    for (let second = 0; second < 60; second++) {
      server.cut();
      await clock.advance(1_000);
    }
    expect(server.dialCount).toBeLessThan(65);
    await zk.close();
  });

  test('rejects connect with what went wrong at each server', async () => {
    const server = new ScriptedServer();
    server.answering = false;
    const failed = connect('zk1,zk2', {
      transport: server,
      clock: server.clock,
      random: seededRandom(1),
      timeoutMs: 20_000,
    }).catch((error: unknown) => error);
    await server.clock.advance(20_000);
    const error = (await failed) as Error & { cause: AggregateError };
    expect(error).toMatchObject({ code: 'ZK_UNREACHABLE', outcome: 'not-applied' });
    expect(error.cause.errors.length).toBeGreaterThanOrEqual(2);
    expect(server.clock.alarmCount).toBe(0);
  });
});

describe('bad input throws before anything is sent', () => {
  const { server, zk } = open();
  const cases: [string, () => unknown, typeof TypeError | typeof RangeError, string][] = [
    ['a relative path', () => zk.get('a'), TypeError, 'path "a": it does not begin with /'],
    ['an empty path', () => zk.get(''), TypeError, 'path "": it is empty'],
    ['a path that is no string', () => zk.get(7 as never), TypeError, 'path number: it is not a string'],
    ['a trailing slash', () => zk.children('/a/'), TypeError, 'path "/a/": it ends with /'],
    ['a dotted element', () => zk.delete('/a/../b'), TypeError, 'it has the relative element ..'],
    ['a control character', () => zk.exists('/a\u0001'), TypeError, 'U+0001'],
    ['a fractional version', () => zk.set('/a', 'x', { version: 1.5 }), RangeError, 'version: 1.5 given'],
    [
      'a version too large',
      () => zk.delete('/a', { version: 2 ** 31 }),
      RangeError,
      'version: 2147483648 given',
    ],
    ['data that is no data', () => zk.set('/a', {} as never), TypeError, 'data: object given'],
    [
      'data over the limit',
      () => zk.create('/a', Buffer.alloc(2 ** 20)),
      RangeError,
      'accepts at most 1048575',
    ],
    [
      'an unknown mode',
      () => zk.create('/a', '', { mode: 'eternal' as never }),
      TypeError,
      'allowed are persistent,',
    ],
    [
      'a ttl without its mode',
      () => zk.create('/a', '', { ttlMs: 5 }),
      TypeError,
      'ttlMs: given for mode persistent',
    ],
    [
      'a ttl mode without a ttl',
      () => zk.create('/a', '', { mode: 'persistent-with-ttl' }),
      RangeError,
      'ttlMs: NaN given',
    ],
    [
      'a bare record in a multi',
      () => zk.multi([{ path: '/a' } as never]),
      TypeError,
      'operation 0 was not made by',
    ],
    ['an unknown kind of sync', () => zk.sync('/', { by: 'you' as never }), TypeError, 'by: "you" given'],
    ['an empty acl', () => zk.setAcl('/a', []), TypeError, 'acl: an empty list given'],
    [
      'an unknown permission',
      () => zk.setAcl('/a', [{ scheme: 'world', id: 'anyone', permissions: ['fly' as never] }]),
      TypeError,
      'permission fly; allowed are read,',
    ],
    [
      'a watch that is no function',
      () => zk.get('/a', { watch: true as never }),
      TypeError,
      'watch: boolean given',
    ],
    ['a negative timeout', () => zk.get('/a', { timeoutMs: -1 }), RangeError, 'timeoutMs: -1 given'],
    ['an unknown watch type', () => zk.removeWatches('/a', 'all' as never), TypeError, 'type: "all" given'],
    ['an unnamed auth scheme', () => zk.addAuth('', 'x'), TypeError, 'auth: scheme "" given'],
    ['an empty server list', () => ZooKeeper.open(''), TypeError, 'connect string "": server ""'],
    ['a bad port', () => ZooKeeper.open('a:99999'), TypeError, 'port 99999; 1 to 65535 is allowed'],
    ['a bad chroot', () => ZooKeeper.open('a:1/x//y'), TypeError, 'chroot "/x//y"'],
    ['a bare ipv6 address', () => ZooKeeper.open('::1:2181'), TypeError, '[ipv6]:port is needed'],
    [
      'a zero session timeout',
      () => ZooKeeper.open('a', { sessionTimeoutMs: 0 }),
      RangeError,
      'sessionTimeoutMs: 0',
    ],
    [
      'a negative time to poll',
      () => ZooKeeper.open('a', { busyPollMs: -1 }),
      RangeError,
      'busyPollMs: -1 given; an integer from 0 to 1000 is needed',
    ],
    [
      'an unknown heartbeat',
      () => ZooKeeper.open('a', { heartbeat: 'x' as never }),
      TypeError,
      'heartbeat: "x" given',
    ],
  ];

  const misspelt = { timeout: 5 } as never;
  const calls: Record<string, () => unknown> = {
    addAuth: () => zk.addAuth('digest', 'a:b', misspelt),
    addWatch: () => zk.addWatch('/a', 'persistent', () => {}, misspelt),
    children: () => zk.children('/a', misspelt),
    close: () => zk.close(misspelt),
    childrenWithStat: () => zk.childrenWithStat('/a', misspelt),
    config: () => zk.config(misspelt),
    connected: () => zk.connected(misspelt),
    countDescendants: () => zk.countDescendants('/a', misspelt),
    create: () => zk.create('/a', '', misspelt),
    delete: () => zk.delete('/a', misspelt),
    deleteTree: () => zk.deleteTree('/a', misspelt),
    ensurePath: () => zk.ensurePath('/a', misspelt),
    ephemerals: () => zk.ephemerals('/a', misspelt),
    events: () => zk.events('/a', misspelt).next(),
    exists: () => zk.exists('/a', misspelt),
    get: () => zk.get('/a', misspelt),
    getAcl: () => zk.getAcl('/a', misspelt),
    hasWatches: () => zk.hasWatches('/a', 'any', misspelt),
    multi: () => zk.multi([], misspelt),
    multiRead: () => zk.multiRead([], misspelt),
    observe: () => zk.observe('/a', misspelt).next(),
    observeChildren: () => zk.observeChildren('/a', misspelt).next(),
    reconfig: () => zk.reconfig({}, misspelt),
    removeWatches: () => zk.removeWatches('/a', 'any', misspelt),
    set: () => zk.set('/a', '', misspelt),
    setAcl: () => zk.setAcl('/a', acls.open, misspelt),
    sync: () => zk.sync('/', misspelt),
    unwatch: () => zk.unwatch('/a', 'data', () => {}, misspelt),
    whoAmI: () => zk.whoAmI(misspelt),
    connect: () => connect('zk:2181', misspelt),
  };
  /** What takes no options, or is not public. */
  const without = ['constructor', 'session', 'on', 'off', 'bounded', 'serverPath', 'watchSince'];

  test.each(Object.entries(calls))('an option of %s that does not exist', async (call, make) => {
    await expect((async () => make())()).rejects.toThrow(
      call.startsWith('observe')
        ? `${call}: there is no option "timeout"; options are signal`
        : 'there is no option "timeout", did you mean timeoutMs? options are ',
    );
    expect(server.writes).toEqual([]);
  });

  test('an option of ops.create that does not exist', () => {
    expect(() => ops.create('/a', '', { ttl: 5 } as never)).toThrow('ops.create: there is no option "ttl"');
  });

  test('the table above has every call of the client', () => {
    const methods = Object.getOwnPropertyNames(ZooKeeper.prototype).filter((name) => !without.includes(name));
    expect(Object.keys(calls)).toEqual(expect.arrayContaining(methods));
  });

  test.each(cases)('%s', (_what, call, type, message) => {
    expect(call).toThrow(type);
    expect(call).toThrow(message);
    expect(server.writes).toEqual([]);
    expect(zk.session.state).toBe('connecting');
  });
});
