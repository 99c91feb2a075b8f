import { describe, expect, test } from 'vitest';
import { connect } from '../../src/holdfast.ts';
import { startTestServer } from '../../src/testing.ts';
import { looseEnds } from '../support/loose-ends.ts';
import { until } from '../support/until.ts';

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

  // A server that has too many requests says so of those it has not done
  test('because it has too many gets a release again', async () => {
    await using _ends = looseEnds();
    await using server = await startTestServer();
    await using holdfast = await connect({ servers: server.connectString });
    const lease = await holdfast.mutex('m').acquire();
    const refusal = server.refuse({ operation: 'delete', error: 'throttled-op', times: 3 });
    await lease.release();
    expect(refusal.count).toBe(3);
    expect(await holdfast.zk.children('/locks/m')).toEqual([]);
  });

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

describe('a release that the server refuses', () => {
  test('says so, and is tried again by the next call', async () => {
    await using _ends = looseEnds();
    await using server = await startTestServer();
    await using holdfast = await connect({ servers: server.connectString });
    const lease = await holdfast.mutex('m').acquire();
    const refusal = server.refuse({ operation: 'delete', error: 'no-auth', times: 1_000 });
    await expect(lease.release()).rejects.toMatchObject({ code: 'ZK_NO_AUTH' });
    await expect(lease.release()).rejects.toMatchObject({ code: 'ZK_NO_AUTH' });
    expect(lease.remainingMs()).toBe(0);
    refusal.cancel();
    await lease.release();
    expect(await holdfast.zk.children('/locks/m')).toEqual([]);
    await lease.release();
  });

  test('leaves no reader behind where it was to be downgraded', async () => {
    await using _ends = looseEnds();
    await using server = await startTestServer();
    await using holdfast = await connect({ servers: server.connectString });
    const lock = holdfast.readWriteLock('rw');
    const writer = await lock.write.acquire();
    const [name] = await holdfast.zk.children('/locks/rw');
    const path = `/locks/rw/${name}`;
    const refusal = server.refuse({ operation: 'delete', error: 'no-auth', times: 1_000, path });
    await expect(lock.downgrade(writer)).rejects.toMatchObject({ code: 'ZK_NO_AUTH' });
    await until('the reader to be gone', async () => {
      const names = await holdfast.zk.children('/locks/rw');
      return names.length === 1 && names[0] === name;
    });
    refusal.cancel();
    await writer.release();
    expect(await holdfast.zk.children('/locks/rw')).toEqual([]);
  });
});
