import { describe, expect } from 'vitest';
import { type LockLease, LockLostError, ops } from '../../src/holdfast.ts';
import { onEveryLockBackend } from '../support/lock-backends.ts';
import { until } from '../support/until.ts';
import { turns, Witness } from '../support/witness.ts';

/** Whether something has come about yet. */
function pending(promise: Promise<unknown>): { readonly settled: boolean } {
  const state = { settled: false };
  const settle = () => {
    state.settled = true;
  };
  promise.then(settle, settle);
  return state;
}

describe('an upgradable reader', () => {
  onEveryLockBackend('reads beside readers, one at a time, and keeps writers out', async (workspace) => {
    const [one, two] = await workspace.holdfasts(2);
    const ours = one!.readWriteLock('rw');
    const theirs = two!.readWriteLock('rw');
    const reader = await theirs.read.acquire();
    const upgradable = await ours.upgradable.acquire();
    const another = await theirs.read.acquire();
    expect(await theirs.upgradable.tryAcquire()).toBeNull();
    expect(await theirs.write.tryAcquire()).toBeNull();
    const next = theirs.upgradable.acquire();
    await workspace.untilEntries('rw', 4);
    const { kind, holders, queue } = await one!.inspect('rw');
    expect([kind, holders.map(({ role }) => role), queue.map(({ role }) => role)]).toEqual([
      'read-write',
      ['read', 'upgradable', 'read'],
      ['upgradable'],
    ]);
    await upgradable.release();
    await (await next).release();
    await Promise.all([reader.release(), another.release()]);
  });

  onEveryLockBackend(
    'becomes the writer when all other readers have gone, old and new',
    async (workspace) => {
      const [one, two, three] = await workspace.holdfasts(3);
      const ours = one!.readWriteLock('rw');
      const before = await two!.readWriteLock('rw').read.acquire();
      const upgradable = await ours.upgradable.acquire();
      const after = await three!.readWriteLock('rw').read.acquire();
      expect(await ours.write.tryAcquire({ within: upgradable })).toBeNull();
      const upgrading = upgradable.upgrade();
      const upgraded = pending(upgrading);
      await workspace.untilEntries('rw', 4);

      // The door is shut: who comes now waits for the writer.
      expect(await three!.readWriteLock('rw').read.tryAcquire()).toBeNull();
      const late = three!.readWriteLock('rw').read.acquire();
      const came = pending(late);
      await workspace.untilEntries('rw', 5);
      await before.release();
      await workspace.untilEntries('rw', 4);
      expect([upgraded.settled, came.settled]).toEqual([false, false]);
      await after.release();
      const writing = await upgrading;
      expect(came.settled).toBe(false);
      expect(writing.token).toBe(upgradable.token);
      expect((await two!.inspect('rw')).holders.map(({ role }) => role)).toEqual(['upgradable', 'upgraded']);
      await one!.zk.create('/written', '');
      await writing.guard([ops.set('/written', 'by the upgrade')]);

      // Back to reading: others read beside it, nobody writes.
      await writing.release();
      await (await late).release();
      upgradable.assertHeld();
      expect(await two!.readWriteLock('rw').write.tryAcquire()).toBeNull();
      await upgradable.release();
      await one!.zk.delete('/written');
    },
  );

  onEveryLockBackend('goes before writers that wait, whose tokens stay larger', async (workspace) => {
    const [one, two, three] = await workspace.holdfasts(3);
    const upgradable = await one!.readWriteLock('rw').upgradable.acquire();
    const reader = await two!.readWriteLock('rw').read.acquire();
    const writer = two!.readWriteLock('rw').write.acquire();
    await workspace.untilEntries('rw', 3);
    const behind = three!.readWriteLock('rw').read.acquire();
    await workspace.untilEntries('rw', 4);
    const [wrote, read] = [pending(writer), pending(behind)];

    const upgrading = upgradable.upgrade();
    await workspace.untilEntries('rw', 5);
    await reader.release();
    const writing = await upgrading;
    expect([wrote.settled, read.settled]).toEqual([false, false]);
    await writing.release();
    // And once more, from the same lease.
    const again = await upgradable.upgrade({ timeoutMs: 5_000 });
    expect([wrote.settled, read.settled]).toEqual([false, false]);
    await again.release();
    await upgradable.release();
    const written = await writer;
    expect(written.token).toBeGreaterThan(writing.token);
    expect(read.settled).toBe(false);
    await written.release();
    await (await behind).release();
  });

  // The writer kept the door shut; the upgrade must do so when it goes
  onEveryLockBackend('lets nobody in when the writer behind it gives up', async (workspace) => {
    const [one, two, three] = await workspace.holdfasts(3);
    const upgradable = await one!.readWriteLock('rw').upgradable.acquire();
    const controller = new AbortController();
    const writer = two!.readWriteLock('rw').write.acquire({ signal: controller.signal });
    await workspace.untilEntries('rw', 2);
    const behind = three!.readWriteLock('rw').read.acquire();
    await workspace.untilEntries('rw', 3);
    const writing = await upgradable.upgrade();
    const read = pending(behind);
    controller.abort(new Error('enough'));
    await expect(writer).rejects.toThrow('enough');
    await workspace.untilEntries('rw', 3);
    await three!.zk.sync('/');
    await turns(5);
    expect(read.settled).toBe(false);
    await writing.release();
    await (await behind).release();
    await upgradable.release();
  });

  onEveryLockBackend(
    'reads on when its upgrade is given up, and lets readers in again',
    async (workspace) => {
      const [one, two] = await workspace.holdfasts(2);
      const upgradable = await one!.readWriteLock('rw').upgradable.acquire();
      const reader = await two!.readWriteLock('rw').read.acquire();
      await expect(upgradable.upgrade({ timeoutMs: 30 })).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
      await (await two!.readWriteLock('rw').read.acquire({ timeoutMs: 5_000 })).release();
      upgradable.assertHeld();
      await reader.release();
      await (await upgradable.upgrade()).release();
      await upgradable.release();
      await expect(upgradable.upgrade()).rejects.toMatchObject({ code: 'LOCK_RELEASED' });
    },
  );

  onEveryLockBackend(
    'holds both until both are released, and keeps its place in between',
    async (workspace) => {
      const [one, two] = await workspace.holdfasts(2);
      const ours = one!.readWriteLock('rw');
      const upgradable = await ours.upgradable.acquire();
      const writing = await upgradable.upgrade();
      const next = two!.readWriteLock('rw').upgradable.acquire();
      const came = pending(next);
      await workspace.untilEntries('rw', 3);
      await upgradable.release();
      await two!.zk.sync('/');
      await turns(5);
      expect(came.settled).toBe(false);
      writing.assertHeld();
      await writing.release();
      await (await next).release();
    },
  );

  onEveryLockBackend(
    'is entered by use: writing in it upgrades, reading goes beside it',
    async (workspace) => {
      const holdfast = await workspace.holdfast();
      const lock = holdfast.readWriteLock('rw');
      const tokens = await lock.upgradable.use(async (outer) => {
        const written = await lock.write.use(async (lease) => lease.token);
        const read = await lock.read.use(async (lease) => lease.token);
        return [outer.token, written, read];
      });
      expect(new Set(tokens).size).toBe(1);
      const reading = await lock.downgrade(await lock.upgradable.acquire());
      await (await lock.upgradable.acquire({ timeoutMs: 5_000 })).release();
      await reading.release();
    },
  );

  onEveryLockBackend('re-enters its upgrade, also one that is waited for', async (workspace) => {
    const [holdfast, other] = await workspace.holdfasts(2);
    const { upgradable: side, write } = holdfast!.readWriteLock('rw');
    const reader = await other!.readWriteLock('rw').read.acquire();
    const upgradable = await side.acquire();
    const givenUp = upgradable.upgrade({ timeoutMs: 50 });
    const waiting = [upgradable.upgrade(), write.acquire({ within: upgradable }), upgradable.upgrade()];
    await expect(givenUp).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
    await reader.release();
    const leases = await Promise.all(waiting);
    const again = await upgradable.upgrade({ timeoutMs: 5_000 });
    const tried = await write.tryAcquire({ within: upgradable });
    expect(await workspace.entries('rw')).toHaveLength(2);
    const all = [...leases, again, tried!];
    for (const lease of all) {
      expect(lease.token).toBe(upgradable.token);
      expect(await other!.readWriteLock('rw').read.tryAcquire()).toBeNull();
      lease.assertHeld();
      await lease.release();
    }
    await (await other!.readWriteLock('rw').read.acquire({ timeoutMs: 5_000 })).release();
    await (await upgradable.upgrade({ timeoutMs: 5_000 })).release();
    await upgradable.release();
    await workspace.untilEntries('rw', 0);
  });

  onEveryLockBackend(
    'lets each use of the writing side inside its own exclude the others beside it',
    async (workspace) => {
      const { upgradable, write } = (await workspace.holdfast()).readWriteLock('rw');
      const witness = new Witness();
      await upgradable.use(async (outer) => {
        await Promise.all(
          [1, 2, 3].map(() =>
            write.use((lease) => witness.during(lease, () => turns(3)), { timeoutMs: 5_000 }),
          ),
        );
        const writing = await outer.upgrade();
        await write.use(async ({ token }) => expect(token).toBe(writing.token), { timeoutMs: 5_000 });
        await writing.release();
      });
      expect(witness.seenMax).toBe(1);
      await workspace.untilEntries('rw', 0);
    },
  );

  onEveryLockBackend('refuses a nested use that would wait for itself', async (workspace) => {
    const { upgradable, write, read } = (await workspace.holdfast()).readWriteLock('rw');
    const refusal = { code: 'LOCK_UPGRADE' };
    const writes = () => write.use(async () => 'written');
    await read.use(() => expect(writes()).rejects.toMatchObject(refusal));
    await upgradable.use(() => read.use(() => expect(writes()).rejects.toMatchObject(refusal)));
    await write.use(() => expect(upgradable.use(async () => {})).rejects.toMatchObject(refusal));
    // Nothing to wait for in these.
    expect(await write.use(() => read.use(writes))).toBe('written');
    expect(await upgradable.use(() => write.use(() => read.use(writes)))).toBe('written');
    expect(await upgradable.use(() => write.use(() => upgradable.use(writes)))).toBe('written');
    const reads = read.use(async (lease) => {
      await lease.release();
      return writes();
    });
    expect(await reads).toBe('written');
    const writesTwice = upgradable.use(() =>
      write.use(async (lease) => {
        await lease.release();
        return writes();
      }),
    );
    expect(await writesTwice).toBe('written');
    await workspace.untilEntries('rw', 0);
  });

  onEveryLockBackend('downgrades an upgrade, and other readers get in', async (workspace) => {
    const [holdfast, other] = await workspace.holdfasts(2);
    const lock = holdfast!.readWriteLock('rw');
    const upgradable = await lock.upgradable.acquire();
    const writing = await upgradable.upgrade();
    const theirs = other!.readWriteLock('rw');
    const waiting = theirs.read.acquire({ timeoutMs: 5_000 });
    await workspace.untilEntries('rw', 3);
    const reading = await lock.downgrade(writing);
    expect(writing.remainingMs()).toBe(0);
    await (await waiting).release();
    upgradable.assertHeld();
    await upgradable.release();
    reading.assertHeld();
    expect(await theirs.write.tryAcquire()).toBeNull();
    await (await theirs.upgradable.acquire({ timeoutMs: 5_000 })).release();
    await reading.release();
    await expect(lock.downgrade(writing)).rejects.toMatchObject({ code: 'LOCK_RELEASED' });
    await workspace.untilEntries('rw', 0);
  });

  onEveryLockBackend('loses the upgrade with its own place', async (workspace) => {
    const { holdfast, expire } = await workspace.faulty();
    const upgradable = await holdfast.readWriteLock('rw').upgradable.acquire();
    const writing = await upgradable.upgrade();
    const lost = new Promise((resolve) => writing.signal.addEventListener('abort', resolve, { once: true }));
    const [own] = await workspace.entries('rw');
    await until('the watch', async () =>
      (await workspace.watchedPaths()).some((path) => path.endsWith(own!)),
    );
    await workspace.admin.delete(`/locks/rw/${own}`);
    await lost;
    expect(writing.signal.reason).toBeInstanceOf(LockLostError);
    await workspace.untilEntries('rw', 0);

    const again = await holdfast.readWriteLock('rw').upgradable.acquire();
    const upgraded = await again.upgrade();
    await expire();
    await until('both to be lost', () => upgraded.remainingMs() === 0 && again.remainingMs() === 0);
    await workspace.untilEntries('rw', 0);
  });

  onEveryLockBackend('ends the wait for its upgrade with the loss of its own place', async (workspace) => {
    const [one, two] = await workspace.holdfasts(2);
    const reader = await two!.readWriteLock('rw').read.acquire();
    const upgradable = await one!.readWriteLock('rw').upgradable.acquire();
    const [, own] = await workspace.entries('rw');
    await workspace.untilWatched('rw');
    const upgrading = upgradable.upgrade();
    await workspace.untilEntries('rw', 3);
    const late = two!.readWriteLock('rw').read.acquire();
    const trying = expect(upgrading).rejects.toMatchObject({ code: 'LOCK_LOST' });
    await until('a watch on its place', async () =>
      (await workspace.watchedPaths()).some((path) => path.endsWith(own!)),
    );
    await workspace.admin.delete(`/locks/rw/${own}`);
    await trying;
    // The door is open, though the other reader has not gone.
    await (await late).release();
    reader.assertHeld();
    await reader.release();
    await expect(upgradable.upgrade()).rejects.toMatchObject({ code: 'LOCK_LOST' });
  });

  // L7: everybody at once, and nobody waits for ever
  onEveryLockBackend('excludes and progresses among many of all kinds', async (workspace) => {
    const clients = await workspace.holdfasts(4);
    const witness = new Witness();
    let readers = 0;
    const overlaps: string[] = [];
    const write = (lease: LockLease) =>
      witness.during(lease, async () => {
        if (readers > 0) overlaps.push('a writer beside a reader');
        await turns(2);
        if (readers > 0) overlaps.push('a reader beside a writer');
      });
    const ROUNDS = 12;
    await Promise.all(
      clients.flatMap((client) => {
        const lock = client.readWriteLock('rw');
        const repeat = async (act: () => Promise<unknown>) => {
          for (let round = 0; round < ROUNDS; round++) await act();
        };
        return [
          repeat(() => lock.write.use(write)),
          repeat(() =>
            lock.read.use(async () => {
              readers++;
              await turns(2);
              readers--;
            }),
          ),
          repeat(() => lock.upgradable.use(async (lease) => await upgradeAndWrite(lease.upgrade(), write))),
        ];
      }),
    );
    expect(overlaps).toEqual([]);
    expect(witness).toMatchObject({ seenMax: 1, tokensRise: true });
    expect(witness.tokens).toHaveLength(2 * clients.length * ROUNDS);
  });
});

async function upgradeAndWrite(upgrading: Promise<LockLease>, write: (lease: LockLease) => Promise<void>) {
  await using lease = await upgrading;
  await write(lease);
}
