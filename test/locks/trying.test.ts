import { describe, expect, test } from 'vitest';
import { connect, type Holdfast } from '../../src/holdfast.ts';
import { startTestServer } from '../../src/testing.ts';
import { SwitchedTransport } from '../support/switched-transport.ts';

const kinds = [
  ['mutex', (holdfast: Holdfast) => holdfast.mutex('a')],
  ['reader', (holdfast: Holdfast) => holdfast.readWriteLock('b').read],
  ['semaphore', (holdfast: Holdfast) => holdfast.semaphore('c', { permits: 2 })],
  ['multi-lock', (holdfast: Holdfast) => holdfast.multiLock(['d', 'e'])],
  ['simple lock', (holdfast: Holdfast) => holdfast.simpleLock('f')],
] as const;

// What `timeoutMs: 0` means everywhere else: what is free is taken, and nobody is waited for
test('a wait of no time takes a lock that is free, and no other', async () => {
  await using server = await startTestServer();
  await using holdfast = await connect({ servers: server.connectString });
  await using other = await connect({ servers: server.connectString });
  const locks = [
    ...kinds.filter(([kind]) => kind !== 'reader' && kind !== 'semaphore').map(([, lockOf]) => lockOf),
    (of: Holdfast) => of.readWriteLock('b').write,
    (of: Holdfast) => of.semaphore('s', { permits: 1 }),
    (of: Holdfast) => of.election('e'),
  ];
  for (const lockOf of locks) {
    const lease = await lockOf(holdfast).acquire({ timeoutMs: 0 });
    await expect(lockOf(other).acquire({ timeoutMs: 0 })).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
    expect(await lockOf(other).attempt({ timeoutMs: 0 })).toEqual({ ok: false, reason: 'timeout' });
    await lease.release();
  }
});

describe('trying a lock', () => {
  // `{ timeoutMs: config.timeout }` is what a program writes whose configuration says nothing of it
  test.each(kinds)(
    'is bounded by the session timeout, given options that are undefined: a %s',
    async (kind, lockOf) => {
      await using server = await startTestServer();
      const transport = new SwitchedTransport();
      await using holdfast = await connect({
        servers: server.connectString,
        transport,
        sessionTimeoutMs: 300,
      });
      const lock = lockOf(holdfast);
      transport.off();
      const names = ['timeoutMs', 'signal', 'within', 'reason', ...(kind === 'semaphore' ? ['permits'] : [])];
      const options = Object.fromEntries(names.map((name) => [name, undefined]));
      await expect(lock.tryAcquire(options)).rejects.toMatchObject({ code: 'LOCK_UNREACHABLE' });
    },
  );

  test.each(kinds)('asks again when its session ends before the answer: a %s', async (_kind, lockOf) => {
    await using server = await startTestServer();
    await using holdfast = await connect({ servers: server.connectString });
    const { session } = holdfast.zk;
    const trying = lockOf(holdfast).tryAcquire();
    server.expireSession(session.id);
    const lease = await trying;
    expect(holdfast.zk.session).not.toBe(session);
    expect(lease?.remainingMs()).toBeGreaterThan(0);
    await lease?.release();
  });
});
