import { describe, expect, test } from 'vitest';
import { connect, type LockLease } from '../../src/holdfast.ts';
import { startTestServer } from '../../src/testing.ts';
import { until } from '../support/until.ts';

describe('use of a mutex whose session ends', () => {
  // Seed 349 of the simulation: a lease that the work had released was reported as lost, for one that it had kept.
  test('resolves if the work had released its lease before, whatever else it still held', async () => {
    await using server = await startTestServer();
    await using holdfast = await connect({ servers: server.connectString });
    const lock = holdfast.mutex('m');
    const work = async (lease: LockLease) => {
      const again = await lock.acquire({ within: lease });
      await lease.release();
      server.expireSession(holdfast.zk.session.id);
      await until('the other lease to be lost', () => again.remainingMs() === 0);
      return 'written';
    };
    expect(await lock.use(work)).toBe('written');
  });

  test('rejects with the result of the work if its lease was held until then', async () => {
    await using server = await startTestServer();
    await using holdfast = await connect({ servers: server.connectString });
    const work = async (lease: LockLease) => {
      server.expireSession(holdfast.zk.session.id);
      await until('the lease to be lost', () => lease.remainingMs() === 0);
      return 'written';
    };
    const rejection = { code: 'LOCK_LOST', result: 'written' };
    await expect(holdfast.mutex('m').use(work)).rejects.toMatchObject(rejection);
  });
});
