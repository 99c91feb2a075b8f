import { describe, expect } from 'vitest';
import { LockLostError } from '../../src/holdfast.ts';
import { onEveryLockBackend } from '../support/lock-backends.ts';
import { until } from '../support/until.ts';
import { turns } from '../support/witness.ts';

const never = () => new Promise<never>(() => {});

describe('locks.request', () => {
  onEveryLockBackend(
    'holds while its callback runs, and resolves with what it returns',
    async (workspace) => {
      const [one, two] = await workspace.holdfasts(2);
      const seen: string[] = [];
      const result = await one!.locks.request('x', async (lock) => {
        seen.push(`${lock!.name} ${lock!.mode}`);
        lock!.lease.assertHeld();
        expect(await two!.locks.request('x', { ifAvailable: true }, (none) => none)).toBeNull();
        expect(await two!.readWriteLock('x').write.tryAcquire(), 'the same lock').toBeNull();
        return 42;
      });
      expect([result, ...seen]).toEqual([42, 'x exclusive']);
      await expect(
        one!.locks.request('x', () => {
          throw new Error('from the callback');
        }),
      ).rejects.toThrow('from the callback');
      await workspace.untilEntries('x', 0);
    },
  );

  onEveryLockBackend('shares among those who share, and gives up by its signal', async (workspace) => {
    const [one, two] = await workspace.holdfasts(2);
    await one!.locks.request('x', { mode: 'shared' }, async () => {
      await two!.locks.request('x', { mode: 'shared' }, async () => {
        const controller = new AbortController();
        const writing = two!.locks.request('x', { signal: controller.signal }, () => 'never');
        await workspace.untilEntries('x', 3);
        const { held, pending } = await one!.locks.query();
        const clientId = (each: typeof one) => BigInt.asUintN(64, each!.zk.session.id).toString(16);
        expect(held).toEqual([
          { name: 'x', mode: 'shared', clientId: clientId(one) },
          { name: 'x', mode: 'shared', clientId: clientId(two) },
        ]);
        expect(pending).toEqual([{ name: 'x', mode: 'exclusive', clientId: clientId(two) }]);
        controller.abort(new Error('no more'));
        await expect(writing).rejects.toThrow('no more');
      });
    });
    expect(await one!.locks.query()).toEqual({ held: [], pending: [] });
  });

  onEveryLockBackend(
    'steals from the holder, who is told, and leaves a record; not a turn',
    async (workspace) => {
      const [victim, waiter, thief] = await workspace.holdfasts(3);
      let token: bigint | undefined;
      const robbed = victim!.locks.request('x', (lock) => {
        token = lock!.lease.token;
        return never();
      });
      const caught = expect(robbed).rejects.toBeInstanceOf(LockLostError);
      await until('the holder is watched', async () => (await workspace.watchedPaths()).length > 0);
      const order: string[] = [];
      const waited = waiter!.locks.request('x', async (lock) => {
        order.push('the one who waited');
        await turns();
        return lock!.lease.token;
      });
      await workspace.untilEntries('x', 2);
      const stolen = thief!.locks.request('x', { steal: true, reason: 'it hangs' }, (lock) => {
        order.push('the thief');
        return lock!.lease.token;
      });
      await caught;
      const tokens = [token!, await waited, await stolen];
      expect(order).toEqual(['the one who waited', 'the thief']);
      expect(tokens).toEqual(tokens.toSorted((a, b) => (a < b ? -1 : 1)));
      expect(await thief!.audit('x')).toMatchObject([{ action: 'released', reason: 'it hangs', token }]);
      await workspace.untilEntries('x', 0);
    },
  );

  onEveryLockBackend('refuses what contradicts itself before anything happens', async (workspace) => {
    const { locks } = await workspace.holdfast();
    const signal = new AbortController().signal;
    const refused = [
      [{ steal: true, ifAvailable: true }, 'steal and ifAvailable'],
      [{ steal: true, mode: 'shared' }, 'steal and mode'],
      [{ steal: true, signal }, 'steal and signal'],
      [{ ifAvailable: true, signal }, 'ifAvailable and signal'],
      [{ ifAvailable: true, timeoutMs: 1 }, 'ifAvailable and timeoutMs'],
      [{ mode: 'other' }, 'mode: "other" given'],
      [{ steel: true }, 'locks.request: there is no option "steel", did you mean steal?'],
    ] as const;
    for (const [options, message] of refused) {
      await expect(locks.request('x', options as never, () => {})).rejects.toThrow(message);
    }
    await expect(locks.request('x', {}, undefined as never)).rejects.toThrow('callback');
    await expect(locks.request('a/b', () => {})).rejects.toThrow(TypeError);
    expect(await workspace.admin.exists('/locks')).toBeUndefined();
  });

  onEveryLockBackend('puts nobody out for a request that it refuses', async (workspace) => {
    const [victim, thief] = await workspace.holdfasts(2);
    const holding = await victim!.readWriteLock('x').write.acquire();
    const refused = [
      [{ signal: AbortSignal.abort() }, 'steal and signal'],
      [{ signal: new AbortController().signal }, 'steal and signal'],
      [{ signal: 'soon' }, 'signal: a string given'],
      [{ timeoutMs: Number.NaN }, 'timeoutMs: NaN given'],
      [{ timeoutMs: -1 }, 'timeoutMs: -1 given'],
      [{ timeoutMs: '5' }, 'timeoutMs: 5 given'],
      [{ reason: 7 }, 'reason: a number given'],
      [{ reason: ' ' }, 'reason: a text is needed'],
      [{ mode: null }, 'mode: null given'],
      [{ timeout: 100 }, 'no option "timeout", did you mean timeoutMs?'],
    ] as const;
    for (const [options, message] of refused) {
      const requested = thief!.locks.request('x', { steal: true, ...options } as never, () => {});
      await expect(requested).rejects.toThrow(message);
    }
    await expect(thief!.locks.request('x', { steal: true }, 'no function' as never)).rejects.toThrow(
      TypeError,
    );
    expect(await workspace.entries('x')).toHaveLength(1);
    expect(await thief!.audit('x')).toEqual([]);
    expect(holding.remainingMs()).toBeGreaterThan(0);
    await holding.release();
  });
});
