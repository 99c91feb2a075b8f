import { describe, expect } from 'vitest';
import type { Holdfast, LockLease } from '../../src/holdfast.ts';
import { type LockBackend, type LockWorkspace, onEveryLockBackend } from '../support/lock-backends.ts';

/** Longer than anything here takes, so that no heartbeat is among the bytes that are counted. */
const SESSION_MS = 30_000;
/** More than the answers to an acquire: beyond them the cut comes later, or not at all. */
const ANSWER_BYTES = 420;
const REQUEST_BYTES = 340;

const recipes: Readonly<Record<string, (holdfast: Holdfast) => Promise<LockLease>>> = {
  mutex: (holdfast) => holdfast.mutex('x').acquire({ timeoutMs: 20_000 }),
  writer: (holdfast) => holdfast.readWriteLock('x').write.acquire({ timeoutMs: 20_000 }),
  semaphore: (holdfast) => holdfast.semaphore('x', { permits: 2 }).acquire({ permits: 2, timeoutMs: 20_000 }),
  'multi-lock': (holdfast) => holdfast.multiLock(['x', 'y']).acquire({ timeoutMs: 20_000 }),
  'simple lock': (holdfast) => holdfast.simpleLock('simple').acquire({ timeoutMs: 20_000 }),
};
const folders = ['/locks/x', '/locks/y', '/locks/x/leases'];
const nodesOf = { mutex: 1, writer: 1, semaphore: 2, 'multi-lock': 2, 'simple lock': 1 } as Record<
  string,
  number
>;

/** Folders that are there before, and stay: no container is reaped, so that every creation moves a number. */
async function makeFolders({ admin }: LockWorkspace, recipe: string): Promise<void> {
  for (const path of folders) if (!path.endsWith('leases')) await admin.ensurePath(path);
  if (recipe === 'semaphore')
    for (const name of ['locks', 'leases']) await admin.ensurePath(`/locks/x/${name}`);
}

/** How many nodes were ever made in the folders: twice the creations less those there, as cversion counts. */
async function creationCount({ admin }: LockWorkspace): Promise<number> {
  await admin.sync('/');
  const stats = await Promise.all(folders.map((path) => admin.exists(path)));
  return stats.reduce((sum, stat) => sum + (stat ? (stat.cversion + stat.numChildren) / 2 : 0), 0);
}

// F1, F3, L5, E15; CURATOR-45, 79: at whichever byte the connection ends
function cutting(
  direction: 'to-client' | 'to-server',
  bytes: number,
  plans: readonly [string, number, LockBackend][],
) {
  for (const [recipe, step, backend] of plans) {
    onEveryLockBackend(
      `at every ${step === 1 ? '' : `${step}. `}byte ${direction}: one node per acquire, none after it: ${recipe}`,
      async (workspace) => {
        const { holdfast, proxy } = await workspace.faulty({ sessionTimeoutMs: SESSION_MS, dials: 1_000 });
        await makeFolders(workspace, recipe);
        let created = await creationCount(workspace);
        for (let offset = 0; offset <= bytes; offset += step) {
          await holdfast.zk.sync('/'); // Connected, and nothing else under way.
          proxy.cutAfter({ direction, bytes: offset });
          const lease = await recipes[recipe]!(holdfast);
          lease.assertHeld();
          expect(await workspace.livingNodes(), `cut at ${offset}`).toHaveLength(nodesOf[recipe]!);
          await lease.release();
          proxy.heal();
          const creations = (await creationCount(workspace)) - created;
          created += creations;
          if (recipe !== 'simple lock') expect(creations, `cut at ${offset}`).toBe(nodesOf[recipe]);
        }
      },
      [backend],
    );
  }
}

describe('a connection that is cut inside an acquire', () => {
  cutting('to-client', ANSWER_BYTES, [
    ['mutex', 1, 'embedded server'],
    ['mutex', 5, 'ZooKeeper standalone'],
    ['writer', 29, 'embedded server'],
    ['semaphore', 23, 'embedded server'],
    ['semaphore', 41, 'ZooKeeper standalone'],
    ['multi-lock', 19, 'embedded server'],
    ['multi-lock', 37, 'ZooKeeper standalone'],
    ['simple lock', 13, 'embedded server'],
  ]);
  cutting('to-server', REQUEST_BYTES, [
    ['mutex', 7, 'embedded server'],
    ['multi-lock', 31, 'embedded server'],
    ['simple lock', 31, 'embedded server'],
  ]);
});

describe('a connection that is cut inside a release', () => {
  for (const direction of ['to-client', 'to-server'] as const) {
    onEveryLockBackend(
      `${direction}: it is done all the same, with and without a baton`,
      async (workspace) => {
        const { holdfast, proxy } = await workspace.faulty({ sessionTimeoutMs: SESSION_MS, dials: 1_000 });
        const other = await workspace.holdfast();
        await workspace.admin.ensurePath('/locks/x');
        for (let offset = 0; offset <= 140; offset += 13) {
          for (const contended of [false, true]) {
            const held = await holdfast.mutex('x').acquire();
            const waiting = contended ? other.mutex('x').acquire() : undefined;
            await workspace.untilEntries('x', contended ? 2 : 1);
            proxy.cutAfter({ direction, bytes: offset });
            await held.release();
            expect(await workspace.entries('x')).toHaveLength(contended ? 1 : 0);
            await (await waiting)?.release();
            proxy.heal();
            await holdfast.zk.sync('/');
          }
        }
      },
    );
  }
});
