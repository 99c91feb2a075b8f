import { describe, expect, test } from 'vitest';
import { connect, type Holdfast } from '../../src/holdfast.ts';
import { startTestServer } from '../../src/testing.ts';

describe('trying a lock', () => {
  test.each([
    ['mutex', (holdfast: Holdfast) => holdfast.mutex('a')],
    ['reader', (holdfast: Holdfast) => holdfast.readWriteLock('b').read],
    ['semaphore', (holdfast: Holdfast) => holdfast.semaphore('c', { permits: 2 })],
    ['multi-lock', (holdfast: Holdfast) => holdfast.multiLock(['d', 'e'])],
    ['simple lock', (holdfast: Holdfast) => holdfast.simpleLock('f')],
  ] as const)('asks again when its session ends before the answer: a %s', async (_kind, lockOf) => {
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
