import { describe, expect, test } from 'vitest';
import { errorCodes } from '../protocol/error-codes.ts';
import { Connect, Connected } from '../protocol/handshake.ts';
import { JuteReader } from '../protocol/jute-reader.ts';
import { operations } from '../protocol/operations.ts';
import {
  dataReply,
  event,
  failures,
  frame,
  get,
  granted,
  kinds,
  opcodes,
  PASSWORD,
  pong,
  remove,
  reply,
  SERVER,
  sentFrames,
  states,
  T,
  World,
} from './machine-world.test-data.ts';
import type { AuthInfo, SessionEffect } from './session-io.ts';
import { SessionRequest } from './session-request.ts';
import type { Watcher } from './watch-registry.ts';

describe('handshake', () => {
  test('asks for a new session with zeros and takes what the server grants', () => {
    const world = new World();
    expect(kinds(world.handle({ kind: 'start' }))).toEqual(['dial']);
    const [sent] = world.handle({ kind: 'link-opened' }, 10);
    const bytes = (sent as Extract<SessionEffect, { kind: 'send' }>).bytes;
    expect(Connect.read(new JuteReader(bytes.subarray(4)))).toMatchObject({
      lastZxidSeen: 0n,
      timeOut: T,
      sessionId: 0n,
      readOnly: false,
    });
    expect(states(world.receive(granted(77n, 2_000), 20))).toEqual(['connected']);
    expect(world.machine.id).toBe(77n);
    expect(world.machine.timeoutMs).toBe(2_000);
  });

  test('sends nothing before the server has answered it', () => {
    const world = new World();
    world.handle({ kind: 'start' });
    world.request(get('/a'));
    world.handle({ kind: 'link-opened' });
    world.effects.length = 0;
    world.flush();
    expect(world.effects).toEqual([]);
    expect(opcodes(world.receive(granted()))).toEqual([operations.getData.opcode]);
  });

  test('gives up a server that accepts the connection and never answers', () => {
    const world = new World();
    world.handle({ kind: 'start' });
    world.handle({ kind: 'link-opened' }, 100);
    expect(kinds(world.passUntil(999))).toEqual([]);
    expect(kinds(world.passUntil(1_000))).toEqual(['hang-up', 'attempt-failed', 'dial']);
  });

  test('gives up a server that never accepts the connection', () => {
    const world = new World();
    world.handle({ kind: 'start' });
    expect(kinds(world.passUntil(1_000))).toEqual(['hang-up', 'attempt-failed', 'dial']);
  });

  test('waits as long as the plan says before the next server', () => {
    const world = new World();
    world.delays.push(0, 250);
    world.handle({ kind: 'start' });
    expect(kinds(world.handle({ kind: 'link-closed' }, 5))).toEqual(['hang-up', 'attempt-failed']);
    expect(kinds(world.passUntil(254))).toEqual([]);
    expect(kinds(world.passUntil(255))).toEqual(['dial']);
  });

  test('renews with the id, the password and the newest zxid it has seen', () => {
    const world = new World();
    world.connect();
    const request = world.request(get('/a'));
    world.flush();
    world.receive(dataReply(request.xid, 42n));
    world.handle({ kind: 'link-closed' }, 100);
    const [sent] = world.handle({ kind: 'link-opened' }, 110);
    const bytes = (sent as Extract<SessionEffect, { kind: 'send' }>).bytes;
    expect(Connect.read(new JuteReader(bytes.subarray(4)))).toMatchObject({
      lastZxidSeen: 42n,
      sessionId: 0x1000n,
      passwd: PASSWORD,
    });
  });

  test('accepts an answer without the read-only byte', () => {
    const world = new World();
    world.handle({ kind: 'start' });
    world.handle({ kind: 'link-opened' });
    const old = frame((out) =>
      Connected.write(out, {
        protocolVersion: 0,
        timeOut: T,
        sessionId: 1n,
        passwd: PASSWORD,
        readOnly: null,
      }),
    );
    expect(states(world.receive(old))).toEqual(['connected']);
  });
});

describe('keep-alive', () => {
  test('pings when nothing was sent for a third of the timeout', () => {
    const world = new World();
    world.connect(0);
    expect(opcodes(world.passUntil(999))).toEqual([]);
    expect(sentFrames(world.passUntil(1_000))).toEqual([{ xid: -2, type: 11 }]);
  });

  test('pings although events keep coming in: only what we send keeps the session alive', () => {
    const world = new World();
    world.connect(0);
    for (let atMs = 100; atMs <= 900; atMs += 100) world.receive(event(3, '/busy'), atMs);
    expect(opcodes(world.passUntil(1_000))).toEqual([11]);
  });

  test('does not ping while requests go out', () => {
    const world = new World();
    world.connect(0);
    world.nowMs = 900;
    world.request(get('/a'));
    world.flush();
    expect(opcodes(world.passUntil(1_899))).toEqual([]);
    expect(opcodes(world.passUntil(1_900))).toEqual([11]);
  });

  test('is suspended after two thirds of the timeout in which nothing came in', () => {
    const world = new World();
    world.connect(0);
    expect(states(world.passUntil(1_999))).toEqual([]);
    expect(states(world.passUntil(2_000))).toEqual(['suspended']);
  });

  test('is suspended when events come in but nothing of ours is answered', () => {
    const world = new World();
    world.connect(0);
    for (let atMs = 100; atMs <= 2_400; atMs += 100) {
      world.passUntil(atMs);
      world.receive(event(3, '/busy'), atMs);
    }
    expect(world.machine.state.kind).toBe('connected');
    expect(states(world.passUntil(2_500))).toEqual(['suspended']);
  });

  test('looks at waiting input before it holds a silence against the server, after a stall', () => {
    const world = new World();
    world.connect(0);
    world.handle({ kind: 'time-passed' }, 2_900); // The process stood still from 0 to 2900.
    expect(world.machine.state.kind).toBe('connected');
    expect(world.machine.wakeAtMs).toBe(2_901);
    world.receive(event(3, '/a'), 2_900);
    world.handle({ kind: 'time-passed' }, 2_901);
    expect(world.machine.state.kind).not.toBe('lost');
  });

  test('counts a stall as silence if there was no input waiting', () => {
    const world = new World();
    world.connect(0);
    world.handle({ kind: 'time-passed' }, 2_900);
    expect(states(world.handle({ kind: 'time-passed' }, 2_901))).toEqual(['suspended']);
  });
});

describe('loss', () => {
  test('comes one timeout after the last request known to have arrived, by the local clock', () => {
    const world = new World();
    world.connect(0);
    world.passUntil(1_000); // A ping, sent at 1000…
    world.receive(pong, 1_400); // …and answered at 1400: counted from 1000.
    expect(states(world.passUntil(3_999))).toEqual(['suspended']);
    const effects = world.passUntil(4_000);
    expect(states(effects)).toEqual(['lost']);
    expect(world.machine.state).toEqual({ kind: 'lost', cause: 'local-clock' });
  });

  test('is the server’s word when a renewal is answered with zeros', () => {
    const world = new World();
    world.connect(0);
    world.handle({ kind: 'link-closed' }, 100);
    expect(states(world.open(200, granted(0n, 0)))).toEqual(['lost']);
    expect(world.machine.state).toEqual({ kind: 'lost', cause: 'expired-by-server' });
  });

  test('fails everything: in flight as unknown, queued as not applied', () => {
    const world = new World();
    world.connect(0);
    world.handle({ kind: 'link-closed' }, 100);
    world.request(remove('/queued'));
    const effects = world.open(200, granted(0n, 0));
    expect(failures(effects)).toEqual(['delete: ZK_SESSION_LOST not-applied']);
    expect(world.machine.pendingCount).toBe(0);
  });

  test('is taken from an answer that says the session has expired', () => {
    const world = new World();
    world.connect(0);
    const first = world.request(remove('/a'));
    world.request(remove('/b'));
    world.flush();
    const effects = world.receive(reply(first.xid, 9n, errorCodes['session-expired']));
    expect(states(effects)).toEqual(['lost']);
    expect(failures(effects)).toEqual([
      'delete: ZK_SESSION_LOST not-applied',
      'delete: ZK_SESSION_LOST unknown',
    ]);
  });

  test('tells every watcher', () => {
    const world = new World();
    world.connect(0);
    const watcher = () => {};
    const request = world.request(get('/w', watcher));
    world.flush();
    world.receive(dataReply(request.xid));
    const told = world.passUntil(T).filter((effect) => effect.kind === 'watcher-told');
    expect(told).toMatchObject([{ watcher, event: { type: 'session-lost', path: '/w' } }]);
  });

  test('is final: later requests fail at once', () => {
    const world = new World();
    world.connect(0);
    world.passUntil(T);
    world.effects.length = 0;
    world.request(get('/a'));
    expect(failures(world.effects)).toEqual(['getData: ZK_SESSION_LOST not-applied']);
    expect(world.machine.wakeAtMs).toBeUndefined();
  });
});

describe('requests', () => {
  test('of one tick leave in one piece', () => {
    const world = new World();
    world.connect();
    for (const path of ['/a', '/b', '/c']) world.request(get(path));
    const effects = world.flush();
    expect(kinds(effects)).toEqual(['send']);
    expect(opcodes(effects)).toEqual([4, 4, 4]);
  });

  test('are answered in order; an answer for another xid costs the connection', () => {
    const world = new World();
    world.connect();
    const first = world.request(get('/a'));
    world.request(get('/b'));
    world.flush();
    const effects = world.receive(dataReply(first.xid + 1));
    expect(states(effects)).toEqual(['suspended']);
    expect(effects.some((effect) => effect.kind === 'request-answered')).toBe(false);
  });

  test('that are reads are sent again after a lost connection, before anything newer', () => {
    const world = new World();
    world.connect();
    world.request(get('/a'));
    world.flush();
    world.handle({ kind: 'link-closed' });
    world.request(remove('/later'));
    expect(opcodes(world.open())).toEqual([4, 2]);
  });

  test('that are writes fail as unknown after a lost connection', () => {
    const world = new World();
    world.connect();
    world.request(remove('/a'));
    world.flush();
    expect(failures(world.handle({ kind: 'link-closed' }))).toEqual(['delete: ZK_CONNECTION_LOSS unknown']);
    expect(opcodes(world.open())).toEqual([]);
  });

  test('that had not reached the socket are kept, writes too', () => {
    const world = new World();
    world.connect();
    world.request(remove('/a'));
    expect(failures(world.handle({ kind: 'link-closed' }))).toEqual([]);
    expect(opcodes(world.open())).toEqual([2]);
  });

  test('whose answer cannot be read fail, and are not repeated for ever', () => {
    const world = new World();
    world.connect();
    const request = world.request(get('/a'));
    world.request(get('/b'));
    world.flush();
    const effects = world.receive(reply(request.xid, 1n, 0, (out) => out.int(1_000)));
    expect(failures(effects)).toEqual(['getData: ZK_CONNECTION_LOSS unknown']);
    expect(sentFrames(world.open())).toHaveLength(1);
  });

  test('are given up after four connections died under them', () => {
    const world = new World();
    world.connect();
    world.request(get('/a'));
    world.flush();
    for (let round = 0; round < 3; round++) {
      expect(failures(world.handle({ kind: 'link-closed' }))).toEqual([]);
      world.open();
    }
    expect(failures(world.handle({ kind: 'link-closed' }))).toEqual(['getData: ZK_CONNECTION_LOSS unknown']);
  });

  test('longer than a server accepts are refused before anything happens', () => {
    const world = new World({ requestBytesMax: 100 });
    world.handle({ kind: 'start' });
    const long = get(`/${'a'.repeat(100)}`) as unknown as SessionRequest;
    expect(() => world.handle({ kind: 'request-made', request: long })).toThrow(RangeError);
    world.open();
    expect(() => world.handle({ kind: 'request-made', request: long })).toThrow(RangeError);
    world.request(get('/short'));
    expect(sentFrames(world.flush())).toHaveLength(1);
    expect(world.machine.pendingCount).toBe(1);
  });

  test('with a watch that could not be set again after a reconnect are refused', () => {
    const world = new World({ requestBytesMax: 200 });
    world.connect();
    const path = `/${'a'.repeat(180)}`;
    const watched = get(path, () => {}) as unknown as SessionRequest;
    expect(() => world.handle({ kind: 'request-made', request: watched })).toThrow(/a request with a watch/);
    world.request(get(path));
    expect(sentFrames(world.flush())).toHaveLength(1);
  });

  test('given up while queued are never sent; given up in flight are read past', () => {
    const world = new World();
    world.handle({ kind: 'start' });
    const queued = world.request(remove('/queued'));
    world.handle({ kind: 'request-abandoned', request: queued });
    expect(opcodes(world.open())).toEqual([]);
    const sent = world.request(get('/sent'));
    const next = world.request(get('/next'));
    world.flush();
    world.handle({ kind: 'request-abandoned', request: sent });
    const effects = world.receive(Buffer.concat([dataReply(sent.xid), dataReply(next.xid)]));
    expect(effects).toMatchObject([{ kind: 'request-answered', request: next }]);
  });

  test('of a session that moved cost the connection, not the session', () => {
    const world = new World();
    world.connect();
    const request = world.request(remove('/a'));
    world.flush();
    const effects = world.receive(reply(request.xid, 1n, errorCodes['session-moved']));
    expect(kinds(effects)).toContain('request-refused');
    expect(states(effects)).toEqual(['suspended']);
  });

  test('hears nothing more of a connection it has given up, even in the same chunk', () => {
    const world = new World();
    world.connect();
    const first = world.request(remove('/a'));
    const second = world.request(remove('/b'));
    world.flush();
    const moved = reply(first.xid, 1n, errorCodes['session-moved']);
    const effects = world.receive(Buffer.concat([moved, reply(second.xid, 2n), reply(99, 3n)]));
    expect(effects.filter(({ kind }) => kind === 'dial')).toHaveLength(1);
    expect(failures(effects)).toEqual(['delete: ZK_CONNECTION_LOSS unknown']);
  });

  test('use xids from 1 and wrap before the sign bit', () => {
    const world = new World();
    world.connect();
    expect(world.request(get('/a')).xid).toBe(1);
    expect(world.request(get('/b')).xid).toBe(2);
  });
});

describe('watches', () => {
  const watched = (world: World, path: string, watcher: Watcher, err = 0) => {
    const request = world.request(get(path, watcher));
    world.flush();
    world.receive(err === 0 ? dataReply(request.xid) : reply(request.xid, 5n, err));
  };

  test('fire once, and only if the read that set them succeeded', () => {
    const world = new World();
    world.connect();
    const watcher = () => {};
    watched(world, '/there', watcher);
    watched(world, '/absent', watcher, errorCodes['no-node']);
    expect(world.receive(event(3, '/there'))).toMatchObject([
      { kind: 'watcher-told', watcher, event: { type: 'node-data-changed', path: '/there' } },
    ]);
    expect(world.receive(event(3, '/there'))).toEqual([]);
    expect(world.receive(event(1, '/absent'))).toEqual([]);
  });

  test('are set again on a new connection, after the credentials and before what has waited', () => {
    const auth: AuthInfo = { scheme: 'digest', auth: Buffer.from('u:p') };
    const world = new World({ credentials: { auths: [auth], sasl: undefined } });
    world.connect();
    watched(world, '/w', () => {});
    world.handle({ kind: 'link-closed' });
    world.request(remove('/waited'));
    expect(opcodes(world.open())).toEqual([100, 101, 2]);
  });

  test('are asked for from where they left off, until all of them are set again', () => {
    const world = new World();
    world.connect();
    for (let index = 0; index < 3_000; index++)
      watched(world, `/watched/${'x'.repeat(90)}/${index}`, () => {});
    const relativeZxids = (effects: readonly SessionEffect[]) =>
      effects.flatMap((effect) => {
        if (effect.kind !== 'send') return [];
        const found: bigint[] = [];
        for (let at = 0; at < effect.bytes.byteLength; at += 4 + effect.bytes.readInt32BE(at)) {
          found.push(effect.bytes.readBigInt64BE(at + 12));
        }
        return found;
      });
    world.handle({ kind: 'link-closed' });
    const first = world.open();
    const [frame] = sentFrames(first);
    expect(relativeZxids(first)).toEqual([5n, 5n, 5n]);
    world.receive(reply(frame!.xid, 900n)); // One of three is set again; what the others missed is not known.
    world.handle({ kind: 'link-closed' });
    const second = world.open();
    expect(relativeZxids(second)).toEqual([5n, 5n, 5n]);
    for (const { xid } of sentFrames(second)) world.receive(reply(xid, 901n));
    world.handle({ kind: 'link-closed' });
    expect(relativeZxids(world.open())).toEqual([901n, 901n, 901n]);
  });

  const setWatches = (path: string, watcher: Watcher) =>
    new SessionRequest(
      operations.setWatches,
      { relativeZxid: 1n, dataWatches: [path], existWatches: [], childWatches: [] },
      undefined,
      [{ kind: 'data', path, watcher }],
    );
  const toldOf = (effects: readonly SessionEffect[]) =>
    effects.flatMap((effect) => (effect.kind === 'watcher-told' ? [effect.event.type] : []));

  test('asked for together are told what they have missed before the answer', () => {
    const world = new World();
    world.connect();
    world.request(setWatches('/a', () => {}));
    world.flush();
    expect(toldOf(world.receive(event(2, '/a')))).toEqual(['node-deleted']);
    world.request(get('/b')); // The next flush does not register what has fired.
    world.flush();
    expect(toldOf(world.receive(Buffer.concat([event(2, '/a'), reply(1, 5n)])))).toEqual([]);
    expect(world.machine.watches.pathCount).toBe(0);
  });

  test('asked for together outlive the removal of others that was sent before them', () => {
    const world = new World();
    world.connect();
    world.request(get('/a', () => {}));
    world.request(new SessionRequest(operations.removeWatches, { path: '/a', type: 3 }));
    world.request(setWatches('/a', () => {}));
    world.flush();
    const answers = [dataReply(1), reply(2, 5n), reply(3, 5n)];
    expect(toldOf(world.receive(Buffer.concat(answers)))).toEqual(['watch-removed']);
    expect(toldOf(world.receive(event(2, '/a')))).toEqual(['node-deleted']);
  });

  test('asked for together are asked for again on a new connection, and registered again', () => {
    const world = new World();
    world.connect();
    world.request(setWatches('/a', () => {}));
    world.flush();
    world.handle({ kind: 'link-closed' });
    expect(opcodes(world.open())).toEqual([101, 101]); // What was registered, and what was asked for.
    expect(toldOf(world.receive(event(2, '/a')))).toEqual(['node-deleted']);
  });

  test('in great number are set again in frames far below a server’s limit', () => {
    const world = new World();
    world.connect();
    for (let index = 0; index < 20_000; index++) watched(world, `/watched/node-${index}`, () => {});
    world.handle({ kind: 'link-closed' });
    const effects = world.open();
    const frames = sentFrames(effects);
    expect(frames.length).toBeGreaterThan(2);
    expect(frames.every(({ type }) => type === operations.setWatches.opcode)).toBe(true);
    const [send] = effects.filter((effect) => effect.kind === 'send');
    expect(send!.bytes.byteLength / frames.length).toBeLessThan(200_000);
  });
});

describe('reads that could be gathered', () => {
  const crowd = (world: World) => {
    for (let index = 0; index < 8; index++) world.request(get(`/${index}`));
    return world.flush();
  };

  test('are, once the server of this very connection is known to understand it', () => {
    const world = new World();
    world.connect();
    const [asked] = crowd(world);
    expect(asked).toMatchObject({ kind: 'ask-for-multi-read', server: SERVER });
    const { connection } = asked as Extract<SessionEffect, { kind: 'ask-for-multi-read' }>;
    world.handle({ kind: 'link-closed' });
    world.open();
    world.handle({ kind: 'multi-read-understood', connection }); // An answer that comes late.
    const [again, ...sent] = crowd(world);
    expect(again).toMatchObject({ kind: 'ask-for-multi-read', connection: connection + 1 });
    expect(new Set(opcodes(sent))).toEqual(new Set([operations.getData.opcode]));
    world.handle({ kind: 'multi-read-understood', connection: connection + 1 });
    expect(opcodes(crowd(world))).toEqual([operations.multiRead.opcode]);
  });

  test('and are given up in time do not count as something sent, so that pings come when they must', () => {
    const world = new World({ gatherReads: true });
    world.connect(0);
    world.nowMs = 900;
    const read = world.request(get('/a'));
    world.handle({ kind: 'request-abandoned', request: read });
    expect(world.flush()).toEqual([]);
    expect(opcodes(world.passUntil(T / 3))).toEqual([operations.ping.opcode]);
  });
});

describe('leases', () => {
  const END = T * 0.99 - 250 - T / 5;

  test('end by the local clock, counted from when the newest confirmed request was sent', () => {
    const world = new World();
    world.connect(0);
    world.handle({ kind: 'hold-began' }, 0);
    world.passUntil(600); // The heartbeat of T/5: a sync, never answered.
    expect(world.machine.leaseEndMs).toBe(END);
    expect(kinds(world.passUntil(END - 1))).not.toContain('leases-ended');
    expect(kinds(world.passUntil(END))).toContain('leases-ended');
  });

  test('are renewed by a sync every fifth of the timeout while something is held', () => {
    const world = new World();
    world.connect(0);
    world.handle({ kind: 'hold-began' }, 0);
    const [beat] = sentFrames(world.passUntil(600));
    expect(beat).toMatchObject({ type: operations.sync.opcode });
    world.receive(
      reply(beat!.xid, 9n, 0, (out) => out.ustring('/')),
      900,
    );
    expect(world.machine.leaseEndMs).toBe(600 + END);
    expect(opcodes(world.passUntil(1_200))).toEqual([operations.sync.opcode]);
    world.handle({ kind: 'hold-ended' });
    expect(opcodes(world.passUntil(2_100))).not.toContain(operations.sync.opcode);
  });

  test('are renewed by a write of a quorum where that is asked for', () => {
    const world = new World({ heartbeat: 'quorum' });
    world.connect(0);
    world.handle({ kind: 'hold-began' }, 0);
    expect(opcodes(world.passUntil(600))).toEqual([operations.multi.opcode]);
  });

  test('are not renewed by a ping or a read, which a follower answers by itself', () => {
    const world = new World();
    world.connect(0);
    world.passUntil(1_000);
    world.receive(pong, 1_001);
    const request = world.request(get('/a'));
    world.flush();
    world.receive(dataReply(request.xid), 1_100);
    expect(world.machine.leaseEndMs).toBe(END);
  });

  test('are renewed by any write that succeeds, without a heartbeat of their own', () => {
    const world = new World();
    world.connect(0);
    world.handle({ kind: 'hold-began' }, 0);
    world.nowMs = 500;
    const request = world.request(remove('/a'));
    world.flush();
    world.receive(reply(request.xid, 7n), 520);
    expect(world.machine.leaseEndMs).toBe(500 + END);
    expect(opcodes(world.passUntil(1_099))).toEqual([]);
  });

  test('end before waiting input is looked at, after a stall', () => {
    const world = new World();
    world.connect(0);
    world.handle({ kind: 'hold-began' }, 0);
    const [beat] = sentFrames(world.passUntil(600));
    const answer = reply(beat!.xid, 9n, 0, (out) => out.ustring('/'));
    expect(kinds(world.receive(answer, END + 1))[0]).toBe('leases-ended');
  });

  test('that begin too late are ended at once', () => {
    const world = new World();
    world.connect(0);
    world.passUntil(1_000);
    world.receive(pong, 1_000);
    world.passUntil(2_000);
    world.receive(pong, 2_000);
    expect(kinds(world.handle({ kind: 'hold-began' }, END + 1))).toEqual(['leases-ended']);
  });

  test('end when the client is closed, before the server is told', () => {
    const world = new World();
    world.connect(0);
    world.handle({ kind: 'hold-began' });
    expect(kinds(world.handle({ kind: 'close' }))).toEqual(['leases-ended', 'send', 'state-changed']);
  });
});

describe('credentials', () => {
  test('that are refused end the session, and are not tried again', () => {
    const auth: AuthInfo = { scheme: 'nonsense', auth: Buffer.alloc(0) };
    const world = new World({ credentials: { auths: [auth], sasl: undefined } });
    world.handle({ kind: 'start' });
    world.request(remove('/a'));
    world.open();
    const effects = world.receive(reply(-4, 0n, errorCodes['auth-failed']));
    expect(states(effects)).toEqual(['lost']);
    // It was sent behind them, and a server that refuses them may have read it.
    expect(failures(effects)).toEqual(['delete: ZK_AUTH_FAILED unknown']);
    expect(world.machine.wakeAtMs).toBeUndefined();
  });

  test('by SASL come before everything else, and the server must prove itself too', () => {
    const world = new World({ credentials: { auths: [], sasl: { username: 'bob', password: 'bobpw' } } });
    world.handle({ kind: 'start' });
    world.request(get('/a'));
    expect(opcodes(world.open())).toEqual([102]);
    const challenge = Buffer.from('realm="zk-sasl-md5",nonce="abc",charset=utf-8,algorithm=md5-sess');
    const effects = world.receive(reply(1, 0n, 0, (out) => out.buffer(challenge)));
    expect(opcodes(effects)).toEqual([102]);
    const wrong = world.receive(reply(2, 0n, 0, (out) => out.buffer(Buffer.from('rspauth=00'))));
    expect(kinds(wrong)).toEqual(['hang-up', 'attempt-failed', 'dial']);
    expect(world.machine.state.kind).toBe('connecting');
  });
});

describe('a server that is not to be trusted', () => {
  test('is left for the next one, with the same session', () => {
    const world = new World();
    world.handle({ kind: 'start' });
    world.open(0, granted(5n));
    const error = new Error('it showed a node that is not there');
    const effects = world.handle({ kind: 'server-mistrusted', error }, 100);
    expect(kinds(effects)).toEqual(['hang-up', 'state-changed', 'dial']);
    expect(effects[1]).toMatchObject({ state: { kind: 'suspended' }, error });
    const [sent] = world.handle({ kind: 'link-opened' }, 110);
    const bytes = (sent as Extract<SessionEffect, { kind: 'send' }>).bytes;
    expect(Connect.read(new JuteReader(bytes.subarray(4)))).toMatchObject({ sessionId: 5n });
  });

  test('is nobody’s business once the connection has gone by itself', () => {
    const world = new World();
    world.handle({ kind: 'start' });
    world.open(0, granted(5n));
    world.handle({ kind: 'link-closed' }, 100);
    expect(world.handle({ kind: 'server-mistrusted', error: new Error('late') }, 100)).toEqual([]);
  });
});

describe('read-only servers', () => {
  test('are refused unless asked for', () => {
    const world = new World();
    world.handle({ kind: 'start' });
    expect(kinds(world.open(0, granted(5n, T, true)))).toContain('hang-up');
  });

  test('are served from, while a read-write one is sought and then taken with a new session', () => {
    const world = new World({ readOnlyAllowed: true });
    world.handle({ kind: 'start' });
    world.open(0, granted(5n, T, true));
    expect(world.machine.state).toEqual({ kind: 'connected', readOnly: true });
    expect(kinds(world.passUntil(100))).toEqual(['seek-read-write-server']);
    const effects = world.handle({ kind: 'read-write-server-found', server: SERVER }, 110);
    expect(kinds(effects)).toContain('dial');
    expect(world.preferred).toEqual([SERVER]);
    const [sent] = world.handle({ kind: 'link-opened' });
    const bytes = (sent as Extract<SessionEffect, { kind: 'send' }>).bytes;
    expect(Connect.read(new JuteReader(bytes.subarray(4)))).toMatchObject({ sessionId: 0n, readOnly: true });
  });

  test('confirm no lease', () => {
    const world = new World({ readOnlyAllowed: true });
    world.handle({ kind: 'start' });
    world.open(0, granted(5n, T, true));
    expect(kinds(world.handle({ kind: 'hold-began' }))).toEqual(['leases-ended']);
  });
});

describe('close', () => {
  test('lets what is in flight be answered, then the session', () => {
    const world = new World();
    world.connect();
    const request = world.request(get('/a'));
    expect(opcodes(world.handle({ kind: 'close' }))).toEqual([4, -11]);
    expect(kinds(world.receive(dataReply(request.xid)))).toEqual(['request-answered']);
    expect(states(world.receive(reply(request.xid + 1, 9n)))).toEqual(['closed']);
    expect(world.machine.wakeAtMs).toBeUndefined();
  });

  test('does not wait for a server that does not answer', () => {
    const world = new World();
    world.connect(0);
    world.request(remove('/a'));
    world.handle({ kind: 'close' }, 0);
    const effects = world.passUntil(1_000);
    expect(states(effects)).toEqual(['closed']);
    expect(failures(effects)).toEqual(['delete: ZK_CLOSED unknown']);
  });

  test.each(['connecting', 'suspended'] as const)('while %s ends at once', (state) => {
    const world = new World();
    if (state === 'suspended') world.connect();
    else world.handle({ kind: 'start' });
    if (state === 'suspended') world.handle({ kind: 'link-closed' });
    world.request(remove('/a'));
    const effects = world.handle({ kind: 'close' });
    expect(states(effects)).toEqual(['closed']);
    expect(failures(effects)).toEqual(['delete: ZK_CLOSED not-applied']);
  });

  test('is not undone by a server that says the session has expired', () => {
    const world = new World();
    world.connect();
    world.handle({ kind: 'close' });
    expect(states(world.receive(reply(1, 9n, errorCodes['session-expired'])))).toEqual(['closed']);
  });
});

test('survives any split of the byte stream', () => {
  const whole = () => {
    const world = new World();
    world.connect();
    const first = world.request(get('/a', () => {}));
    const second = world.request(remove('/b'));
    world.flush();
    const stream = Buffer.concat([
      dataReply(first.xid),
      event(3, '/a'),
      reply(second.xid, 9n),
      pong.subarray(0, 0),
    ]);
    return { world, stream };
  };
  const expected = (() => {
    const { world, stream } = whole();
    return kinds(world.receive(stream));
  })();
  expect(expected).toEqual(['request-answered', 'watcher-told', 'request-answered']);
  const { stream } = whole();
  for (let cut = 0; cut <= stream.byteLength; cut++) {
    const { world } = whole();
    const effects = [...world.receive(stream.subarray(0, cut)), ...world.receive(stream.subarray(cut))];
    expect(kinds(effects)).toEqual(expected);
  }
});
