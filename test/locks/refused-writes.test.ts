import { describe, expect, test } from 'vitest';
import { connect } from '../../src/holdfast.ts';
import { startTestServer } from '../../src/testing.ts';
import { looseEnds } from '../support/loose-ends.ts';

// A server without its quorum, or whose disk is full: it may answer so for any time, and take writes again.
describe('a server that takes no writes for a while', () => {
  for (const operation of ['delete', 'multi'] as const) {
    test(`gets a release again (${operation}), and nobody is left in the queue`, async () => {
      await using _ends = looseEnds();
      await using server = await startTestServer();
      await using holdfast = await connect({ servers: server.connectString });
      await using other = await connect({ servers: server.connectString });
      await holdfast.zk.ensurePath('/holdfast/batons');
      const lock = holdfast.mutex('m');
      const lease = await lock.acquire();
      const waiting = operation === 'multi' ? lock.acquire() : undefined;
      if (waiting) await (await other.mutex('n').acquire()).release();
      const refusal = server.refuse({ operation, error: 'not-read-only', times: 2 });
      const released = lease.release();
      if (waiting) await (await waiting).release();
      await released;
      if (operation === 'delete') expect(refusal.count).toBe(2);
      expect(await other.zk.children('/locks/m')).toEqual([]);
      expect(await other.mutex('m').tryAcquire()).not.toBeNull();
    });
  }

  test('and whose client is closed meanwhile keeps nothing open', async () => {
    await using _ends = looseEnds();
    await using server = await startTestServer();
    const holdfast = await connect({ servers: server.connectString });
    const lease = await holdfast.mutex('m').acquire();
    server.refuse({ operation: 'delete', error: 'not-read-only', times: 1_000 });
    const released = lease.release();
    await holdfast.close();
    await released;
  });
});
