import { describe, expect } from 'vitest';
import type { Holdfast, LockLease } from '../../src/holdfast.ts';
import { onEveryLockBackend } from '../support/lock-backends.ts';
import { until } from '../support/until.ts';

/** Every way to lock a name; each names the kinds it goes together with. */
const recipes = {
  mutex: {
    acquire: (holdfast: Holdfast) => holdfast.mutex('x').acquire({ timeoutMs: 3_000 }),
    kind: 'mutex',
  },
  'multi-lock': {
    acquire: (holdfast: Holdfast) => holdfast.multiLock(['x', 'y']).acquire({ timeoutMs: 3_000 }),
    kind: 'mutex',
  },
  reader: {
    acquire: (holdfast: Holdfast) => holdfast.readWriteLock('x').read.acquire({ timeoutMs: 3_000 }),
    kind: 'read-write',
  },
  writer: {
    acquire: (holdfast: Holdfast) => holdfast.readWriteLock('x').write.acquire({ timeoutMs: 3_000 }),
    kind: 'read-write',
  },
  semaphore: {
    acquire: (holdfast: Holdfast) => holdfast.semaphore('x', { permits: 2 }).acquire({ timeoutMs: 3_000 }),
    kind: 'semaphore',
  },
  election: {
    acquire: (holdfast: Holdfast) => holdfast.election('x').campaign({ timeoutMs: 3_000 }),
    kind: 'election',
  },
  'simple lock': {
    acquire: (holdfast: Holdfast) => holdfast.simpleLock('x').acquire({ timeoutMs: 3_000 }),
    kind: 'simple',
  },
} as const;
const names = Object.keys(recipes) as (keyof typeof recipes)[];

describe('locks of different kinds under one name', () => {
  for (const held of names) {
    onEveryLockBackend(`are refused while a ${held} is held`, async (workspace) => {
      const [holder, other] = await workspace.holdfasts(2);
      await using lease = await recipes[held].acquire(holder!);
      const before = await workspace.livingNodes();
      for (const wanted of names) {
        if (recipes[wanted].kind === recipes[held].kind) continue;
        await expect(
          recipes[wanted].acquire(other!),
          `${wanted} while a ${held} is held`,
        ).rejects.toMatchObject({ code: 'LOCK_WRONG_KIND', lockName: expect.stringContaining('x') });
      }
      lease.assertHeld();
      expect(await workspace.livingNodes()).toEqual(before);
      // And whoever belongs there is not disturbed by what was tried.
      await lease.release();
      await (await recipes[held].acquire(holder!)).release();
    });
  }
});

describe('a stranger in the folder', () => {
  const byRecipe: Record<string, (holdfast: Holdfast) => Promise<LockLease | null>> = {
    mutex: (holdfast) => holdfast.mutex('x').acquire(),
    'mutex, tried': (holdfast) => holdfast.mutex('x').tryAcquire(),
    'multi-lock': (holdfast) => holdfast.multiLock(['x', 'y']).acquire(),
    'multi-lock, tried': (holdfast) => holdfast.multiLock(['x', 'y']).tryAcquire(),
    reader: (holdfast) => holdfast.readWriteLock('x').read.acquire(),
    writer: (holdfast) => holdfast.readWriteLock('x').write.acquire(),
    semaphore: (holdfast) => holdfast.semaphore('x', { permits: 2 }).acquire(),
    election: (holdfast) => holdfast.election('x').campaign(),
  };

  // CURATOR-43, and those who share no folder with Curator
  for (const [whose, name] of [
    ['nested', '0'],
    ["kazoo's", '0123456789abcdef0123456789abcdef__lock__0000000001'],
    ["WriteLock's", 'x-72057594037927936-0000000001'],
  ] as const) {
    onEveryLockBackend(`is refused, with nothing left behind: ${whose}`, async (workspace) => {
      const holdfast = await workspace.holdfast();
      await workspace.admin.ensurePath('/locks/x');
      await workspace.admin.create(`/locks/x/${name}`);
      for (const [recipe, acquire] of Object.entries(byRecipe)) {
        const refused = expect(acquire(holdfast), recipe);
        await refused.rejects.toMatchObject({ code: 'LOCK_FOREIGN_NODE', lockName: expect.any(String) });
        await workspace.untilEntries('x', 1);
      }
      expect(await holdfast.inspect('x')).toMatchObject({ kind: 'unknown', foreign: [name] });
    });
  }

  onEveryLockBackend('that comes while one waits ends the wait at the next look', async (workspace) => {
    const holdfast = await workspace.holdfast();
    const held = await holdfast.mutex('x').acquire();
    const waiting = holdfast.mutex('x').acquire();
    const caught = expect(waiting).rejects.toMatchObject({ code: 'LOCK_FOREIGN_NODE' });
    const [holder] = await workspace.untilEntries('x', 2);
    await until('all watches', async () => (await workspace.watchedPaths()).length === 2);
    await workspace.admin.create('/locks/x/stranger');
    await workspace.admin.set(`/locks/x/${holder}`, 'touched'); // Which makes the one behind look.
    await caught;
    await held.release();
    await workspace.admin.delete('/locks/x/stranger');
  });

  // go-zookeeper's zk.Lock, which Curator and we can share with
  onEveryLockBackend('that is a contender of Go is waited for', async (workspace) => {
    const holdfast = await workspace.holdfast();
    await workspace.admin.ensurePath('/locks/x');
    const { path } = await workspace.admin.create('/locks/x/_c_0123456789abcdef0123456789abcdef-lock-', '', {
      mode: 'ephemeral-sequential',
    });
    expect(await holdfast.mutex('x').tryAcquire()).toBeNull();
    const waiting = holdfast.mutex('x').acquire();
    await workspace.untilEntries('x', 2);
    expect((await holdfast.inspect('x')).holders).toMatchObject([{ id: path.slice('/locks/x/'.length) }]);
    await workspace.admin.delete(path);
    await (await waiting).release();
  });
});
