import { describe, expect } from 'vitest';
import { NotHolderError, WrongKindError } from '../../src/holdfast.ts';
import { onEveryLockBackend } from '../support/lock-backends.ts';
import { until } from '../support/until.ts';

describe('a forced release', () => {
  onEveryLockBackend('removes exactly that holder, tells it, and leaves a record', async (workspace) => {
    const [holder, next, operator] = await workspace.holdfasts(3, { app: 'billing' });
    const lease = await holder!.mutex('a').acquire({ reason: 'import' });
    let lost: unknown;
    lease.signal.addEventListener('abort', () => {
      lost = lease.signal.reason;
    });
    const waiting = next!.mutex('a').acquire();
    await workspace.untilEntries('a', 2);
    const [id] = (await operator!.inspect('a')).holders.map((each) => each.id);

    const record = await operator!.forceRelease('a', { holder: id!, reason: 'ticket 77', by: 'ops' });
    const after = await waiting;
    expect(after.token).toBeGreaterThan(lease.token);
    await until('the old holder to be told', () => lost !== undefined);
    expect((lost as { code: string }).code).toBe('LOCK_LOST');
    expect(await operator!.audit('a')).toEqual([record]);
    expect(record).toMatchObject({
      action: 'released',
      lockName: 'a',
      by: 'ops',
      reason: 'ticket 77',
      holder: id,
      token: lease.token,
      session: holder!.zk.session.id,
      owner: { app: 'billing', reason: 'import' },
    });
    await after.release();
  });

  onEveryLockBackend('of anyone but a holder does nothing and says who holds', async (workspace) => {
    const [holder, waiter] = await workspace.holdfasts(2);
    const lease = await holder!.mutex('a').acquire();
    const waiting = waiter!.mutex('a').acquire();
    await workspace.untilEntries('a', 2);
    const { holders, queue } = await holder!.inspect('a');
    for (const wrong of [queue[0]!.id, 'nobody', `${holders[0]!.id}0`]) {
      const error = await waiter!.forceRelease('a', { holder: wrong, reason: 'x' }).catch((thrown) => thrown);
      expect(error).toBeInstanceOf(NotHolderError);
      expect(error.holders).toEqual([holders[0]!.id]);
    }
    expect(await holder!.audit('a')).toEqual([]);
    expect(lease.remainingMs()).toBeGreaterThan(0);
    await lease.release();
    await (await waiting).release();
  });

  onEveryLockBackend('that comes too late leaves no record', async (workspace) => {
    const [holder, operator] = await workspace.holdfasts(2);
    const lease = await holder!.mutex('a').acquire();
    const { holders } = await operator!.inspect('a');
    // Between its look and its transaction the holder lets go.
    const { zk } = operator!;
    const ensurePath = zk.ensurePath.bind(zk);
    zk.ensurePath = async (...args) => {
      await ensurePath(...args);
      await lease.release();
    };
    await expect(operator!.forceRelease('a', { holder: holders[0]!.id, reason: 'x' })).rejects.toBeInstanceOf(
      NotHolderError,
    );
    expect(await operator!.audit('a')).toEqual([]);
  });

  onEveryLockBackend(
    'takes a permit of a semaphore, a reader, a leader; no simple lock',
    async (workspace) => {
      const [holder, operator] = await workspace.holdfasts(2);
      await holder!.semaphore('s', { permits: 2 }).acquire();
      await holder!.readWriteLock('rw').read.acquire();
      await holder!.election('e').campaign();
      const simple = await holder!.simpleLock('x').acquire();
      for (const name of ['s', 'rw', 'e']) {
        const { holders } = await operator!.inspect(name);
        await operator!.forceRelease(name, { holder: holders[0]!.id, reason: 'x' });
        expect((await operator!.inspect(name)).holders).toEqual([]);
      }
      await expect(operator!.forceRelease('x', { holder: 'x', reason: 'x' })).rejects.toBeInstanceOf(
        WrongKindError,
      );
      await simple.release();
    },
  );

  onEveryLockBackend(
    'of one that was asked before and did not listen still says who it was',
    async (workspace) => {
      const operator = await workspace.holdfast();
      await workspace.admin.ensurePath('/locks/a', { mode: 'container' });
      const id = '_c_3f1c8a52-6a5b-4a53-8a0d-0f6a3d1c9b11-lock-0000000000';
      const data = JSON.stringify({ app: 'hung', host: 'web-3', pid: 7 });
      await workspace.admin.create(`/locks/a/${id}`, data, { mode: 'ephemeral' });
      expect(await operator.revoke('a', { reason: 'please' })).toBe(1);
      const record = await operator.forceRelease('a', { holder: id, reason: 'ticket 77' });
      expect(record.owner).toEqual({ app: 'hung', host: 'web-3', pid: 7 });
    },
  );

  onEveryLockBackend('needs a holder and a reason', async (workspace) => {
    const operator = await workspace.holdfast();
    await expect(operator.forceRelease('a', { holder: 'x', reason: ' ' })).rejects.toThrow(
      'reason: a text is needed',
    );
    await expect(operator.forceRelease('a', { holder: '', reason: 'x' })).rejects.toThrow(
      'holder: a text is needed',
    );
    await expect(operator.forceRelease('a/b', { holder: 'x', reason: 'x' })).rejects.toThrow(TypeError);
  });
});

describe('the audit of a lock', () => {
  onEveryLockBackend('tells of requests with a reason, and keeps the last hundred', async (workspace) => {
    const [holder, operator] = await workspace.holdfasts(2);
    const lease = await holder!.mutex('a').acquire();
    for (let asked = 1; asked <= 103; asked++) {
      await operator!.revoke('a', { reason: `request ${asked}` });
    }
    await operator!.revoke('a'); // Without a reason: nothing to write down.
    const records = await operator!.audit('a');
    expect(records.map(({ reason }) => reason)).toEqual(
      Array.from({ length: 100 }, (_, at) => `request ${at + 4}`),
    );
    expect(records[0]).toMatchObject({ action: 'asked', token: lease.token });
    await lease.release();
  });

  onEveryLockBackend('leaves out what is no record', async (workspace) => {
    const operator = await workspace.holdfast();
    await workspace.admin.ensurePath('/holdfast/audit/a');
    for (const data of [
      '',
      'x',
      '{}',
      '{"path":"/other/a","action":"asked"}',
      '{"path":"/locks/a","action":"asked","at":1,"token":"x"}',
    ])
      await workspace.admin.create('/holdfast/audit/a/record-', data, { mode: 'persistent-sequential' });
    expect(await operator.audit('a')).toEqual([]);
  });
});

describe('inspection', () => {
  onEveryLockBackend('tells how many numbers a folder has given out', async (workspace) => {
    const holdfast = await workspace.holdfast();
    for (let count = 1; count <= 3; count++) await (await holdfast.mutex('a').acquire()).release();
    expect((await holdfast.inspect('a')).numbered).toBe(3);
    const lease = await holdfast.mutex('a').acquire();
    expect((await holdfast.inspect('a')).numbered).toBe(4);
    await lease.release();
    const permits = await holdfast.semaphore('s', { permits: 3 }).acquire({ permits: 3 });
    expect((await holdfast.inspect('s')).numbered).toBe(3);
    await permits.release();
    expect((await holdfast.inspect('nothing')).numbered).toBe(0);
  });
});
