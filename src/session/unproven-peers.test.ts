import { describe, expect, test } from 'vitest';
import { errorCodes } from '../protocol/error-codes.ts';
import {
  BOB,
  dataReply,
  event,
  failures,
  get,
  granted,
  kinds,
  openWithSasl,
  PASSWORD,
  pong,
  reply,
  states,
  T,
  token,
  World,
} from './machine-world.test-data.ts';
import type { SessionEffect } from './session-io.ts';

const attempts = (effects: readonly SessionEffect[]) =>
  effects.flatMap((effect) => (effect.kind === 'attempt-failed' ? [effect.error.message] : []));

/** A client that holds something, whose connection to a server that knew the password has been cut. */
function cutOff(): World {
  const world = new World({ credentials: { auths: [], sasl: BOB } });
  world.handle({ kind: 'start' });
  expect(states(openWithSasl(world, 0))).toEqual(['connected']);
  world.handle({ kind: 'hold-began' });
  world.handle({ kind: 'link-closed' }, 100);
  return world;
}

describe('a peer that has not proven that it knows the password', () => {
  test('prolongs no lease and no session by its answer to the handshake', () => {
    const world = cutOff();
    const { leaseEndMs } = world.machine;
    world.open(200, granted(0x1000n, 2 ** 31 - 1));
    expect(world.machine.leaseEndMs).toBeLessThanOrEqual(leaseEndMs);
    expect(world.machine.timeoutMs).toBe(T);
    expect(states(world.passUntil(T))).toContain('lost');
  });

  test('prolongs nothing by greeting again and again', () => {
    const world = cutOff();
    const { leaseEndMs } = world.machine;
    for (let atMs = 200; atMs < leaseEndMs; atMs += 200) {
      world.passUntil(atMs);
      if (world.machine.state.kind === 'lost') break;
      world.open(atMs);
      world.receive(token(-4, null), atMs); // Not spoken here: it costs the connection.
    }
    expect(kinds(world.passUntil(leaseEndMs))).toContain('leases-ended');
    world.passUntil(T);
    expect(world.machine.state).toEqual({ kind: 'lost', cause: 'local-clock' });
  });

  test('ends no session by a timeout of 0: the next server is tried', () => {
    const world = cutOff();
    const effects = world.open(200, granted(0n, 0));
    expect(kinds(effects)).toEqual(['hang-up', 'attempt-failed', 'dial']);
    expect(states(openWithSasl(world, 210))).toEqual(['connected']);
    expect(world.machine.id).toBe(0x1000n);
  });

  test.each([errorCodes['session-expired'], errorCodes['unknown-session'], errorCodes['system-error']])(
    'ends no session by answering its token with %i',
    (err) => {
      const world = cutOff();
      world.open(200);
      const effects = world.receive(reply(3, 0n, err), 210);
      expect(kinds(effects)).toEqual(['hang-up', 'attempt-failed', 'dial']);
      expect(states(openWithSasl(world, 220))).toEqual(['connected']);
    },
  );

  test('does not change the session’s number and password', () => {
    const world = cutOff();
    const other = granted(0x1000n);
    other.writeUInt8(99, other.byteLength - 2); // In its password.
    world.open(200, other);
    world.handle({ kind: 'link-closed' }, 210);
    expect(world.machine.password).toEqual(PASSWORD);
  });

  test('does not say how far the session has seen', () => {
    const world = cutOff();
    world.open(200);
    world.receive(
      reply(3, 2n ** 62n, 0, (out) => out.buffer(Buffer.from('nonce="a"'))),
      210,
    );
    expect(world.machine.lastZxid).toBe(0n);
  });

  test('fires no watch', () => {
    const world = new World({ credentials: { auths: [], sasl: BOB } });
    world.handle({ kind: 'start' });
    openWithSasl(world);
    const request = world.request(get('/w', () => {}));
    world.flush();
    world.receive(dataReply(request.xid));
    world.handle({ kind: 'link-closed' }, 100);
    world.open(200);
    const effects = world.receive(event(3, '/w'), 210);
    expect(kinds(effects)).toEqual(['hang-up', 'attempt-failed', 'dial']);
  });

  test('does not answer a ping of the connection before', () => {
    const world = new World({ credentials: { auths: [], sasl: BOB } });
    world.handle({ kind: 'start' });
    openWithSasl(world, 0);
    world.passUntil(1_000); // A ping is sent, and the connection cut before its answer.
    world.handle({ kind: 'link-closed' }, 1_010);
    world.open(1_100);
    world.receive(pong, 1_110);
    expect(states(world.passUntil(T))).toEqual(['lost']); // Counted from 0, not from 1000.
  });

  test('is left for the next server when its proof is wrong, and the session goes on', () => {
    const world = cutOff();
    const effects = openWithSasl(world, 200, { knows: 'another' });
    expect(attempts(effects)).toEqual(['sasl: the server does not know the password']);
    expect(states(openWithSasl(world, 300))).toEqual(['connected']);
  });

  test('counts once it has proven it', () => {
    const world = cutOff();
    openWithSasl(world, 200, { answer: granted(0x1000n, 2_000) });
    expect(world.machine.timeoutMs).toBe(2_000);
    expect(world.machine.leaseEndMs).toBe(200 + 2_000 * 0.99 - 250 - 400);
  });
});

describe('a server that does not take the credentials', () => {
  test.each([
    ['has no SASL', token(1, null), 'sasl: the server has no SASL'],
    ['does not know what SASL is', reply(1, 0n, errorCodes.unimplemented), 'sasl: the server has no SASL'],
    ['refuses them', reply(1, 0n, errorCodes['auth-failed']), 'sasl: the server refused the credentials'],
    [
      'is throttled',
      reply(1, 0n, errorCodes['throttled-op']),
      'sasl: the server answered throttled-op (-127)',
    ],
  ])('since it %s is left for the next, which may', (_why, answer, message) => {
    const world = new World({ credentials: { auths: [], sasl: BOB } });
    world.serversLeft = 2;
    world.handle({ kind: 'start' });
    world.request(get('/a'));
    world.open();
    const effects = world.receive(answer);
    expect(kinds(effects)).toEqual(['hang-up', 'attempt-failed', 'dial']);
    expect(attempts(effects)).toEqual([message]);
    expect(states(openWithSasl(world))).toEqual(['connected']);
  });

  test.each([
    ['refuses', 'sasl: the server refused the credentials', reply(1, 0n, errorCodes['auth-failed'])],
    ['has no SASL', 'sasl: the server has no SASL', token(1, null)],
  ])('ends the client if it is the last, and %s', (_what, message, answer) => {
    const world = new World({ credentials: { auths: [], sasl: BOB } });
    world.handle({ kind: 'start' });
    world.request(get('/a'));
    world.open();
    const effects = world.receive(answer);
    expect(states(effects)).toEqual(['lost']);
    expect(failures(effects)).toEqual(['getData: ZK_AUTH_FAILED not-applied']);
    expect(effects.find(({ kind }) => kind === 'request-failed')).toMatchObject({ error: { message } });
  });

  test('is not the last while another is merely in trouble', () => {
    const world = new World({ credentials: { auths: [], sasl: BOB } });
    world.handle({ kind: 'start' });
    world.open();
    world.receive(reply(1, 0n, errorCodes['system-error']));
    expect(world.machine.state.kind).toBe('connecting');
    expect(world.serversLeft).toBe(1);
  });

  const auth = { scheme: 'digest', auth: Buffer.from('u:p') };

  test('by its scheme is left for the next as well', () => {
    const world = new World({ credentials: { auths: [auth], sasl: undefined } });
    world.serversLeft = 2;
    world.connect();
    expect(states(world.receive(reply(-4, 0n, errorCodes['auth-failed'])))).toEqual(['suspended']);
    world.open();
    expect(world.receive(reply(-4, 0n))).toEqual([{ kind: 'auth-accepted', auth }]);
  });

  test('is not said to have refused them when it answers with another error', () => {
    const world = new World({ credentials: { auths: [auth], sasl: undefined } });
    world.connect();
    const effects = world.receive(reply(-4, 0n, errorCodes['throttled-op']));
    expect(states(effects)).toEqual(['suspended']);
    expect(effects.find(({ kind }) => kind === 'state-changed')).toMatchObject({
      error: { message: 'auth: the server answered throttled-op (-127) to scheme digest' },
    });
  });
});
