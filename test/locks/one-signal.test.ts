import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import { connect, type Holdfast, type Lock } from '../../src/holdfast.ts';
import { startTestServer } from '../../src/testing.ts';
import { looseEnds } from '../support/loose-ends.ts';
import { until } from '../support/until.ts';

const locks: Readonly<Record<string, (holdfast: Holdfast) => Lock<never>>> = {
  mutex: (holdfast) => holdfast.mutex('m'),
  'mutex with handOff': (holdfast) => holdfast.mutex('hand-off', { handOff: true }),
  'mutex with cache': (holdfast) => holdfast.mutex('cache', { cache: true }),
  'read lock': (holdfast) => holdfast.readWriteLock('rw').read,
  'write lock': (holdfast) => holdfast.readWriteLock('rw').write,
  'upgradable lock': (holdfast) => holdfast.readWriteLock('rw').upgradable,
  semaphore: (holdfast) => holdfast.semaphore('s', { permits: 1 }) as unknown as Lock<never>,
  'multi-lock': (holdfast) => holdfast.multiLock(['a', 'b']),
  election: (holdfast) => holdfast.election('e'),
  'simple lock': (holdfast) => holdfast.simpleLock('simple'),
};
/** Node prints a warning of a leak from the eleventh listener on. */
const WAIT_COUNT = 12;

// Node looks through all listeners of a signal for each that is added or removed.
describe('many waits that share one signal add one listener to it', () => {
  for (const [kind, lockOf] of Object.entries(locks)) {
    for (const timeoutMs of [undefined, 60_000]) {
      test(`${kind}, timeoutMs: ${timeoutMs}`, async () => {
        await using _ends = looseEnds();
        await using server = await startTestServer();
        await using holdfast = await connect({ servers: server.connectString });
        await using other = await connect({ servers: server.connectString });
        const held =
          kind === 'read lock'
            ? await other.readWriteLock('rw').write.acquire()
            : await lockOf(other).acquire();
        const controller = new AbortController();
        const { signal } = controller;
        const lock = lockOf(holdfast);
        let waitingCount = 0;
        lock.on('waiting', () => waitingCount++);
        const options = { signal, ...(timeoutMs !== undefined && { timeoutMs }) } as never;
        const waits = Array.from({ length: WAIT_COUNT }, () => lock.acquire(options));
        const outcomes = Promise.allSettled(waits);
        let listenerCountMax = 0;
        await until('all to wait', async () => {
          listenerCountMax = Math.max(listenerCountMax, getEventListeners(signal, 'abort').length);
          return waitingCount >= WAIT_COUNT - 1;
        });
        expect(listenerCountMax).toBe(1);
        const reason = new Error('given up');
        controller.abort(reason);
        for (const outcome of await outcomes) expect(outcome).toMatchObject({ status: 'rejected', reason });
        await held.release();
      });
    }
  }
});
