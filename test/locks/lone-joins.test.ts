import { describe, expect } from 'vitest';
import type { Holdfast } from '../../src/holdfast.ts';
import { CountingTransport } from '../support/counting-transport.ts';
import { type LockWorkspace, onEveryLockBackend } from '../support/lock-backends.ts';

/** After so many the next needs no list. */
const ENOUGH = 8;

async function counted(workspace: LockWorkspace) {
  const transport = new CountingTransport();
  return { holdfast: await workspace.holdfast({ transport }), transport };
}

async function cycle(holdfast: Holdfast, name: string, count: number): Promise<void> {
  for (let done = 0; done < count; done++) await (await holdfast.mutex(name).acquire()).release();
}

/** The requests of the next acquire. */
async function requestsOfAcquire(holdfast: Holdfast, transport: CountingTransport, name: string) {
  transport.reset();
  const lease = await holdfast.mutex(name).acquire();
  const { requests, writeCount } = transport.traffic;
  const asked = { requests: [...requests], writeCount };
  await lease.release();
  return asked;
}

describe('a lock that one session takes again and again', () => {
  onEveryLockBackend('is taken by one request, without a list', async (workspace) => {
    const { holdfast, transport } = await counted(workspace);
    await cycle(holdfast, 'a', ENOUGH);
    const once = { requests: ['create2'], writeCount: 1 };
    expect(await requestsOfAcquire(holdfast, transport, 'a')).toEqual(once);
    expect(await requestsOfAcquire(holdfast, transport, 'a')).toEqual(once);
    transport.reset();
    await cycle(holdfast, 'a', 100);
    expect(transport.traffic.requests).toEqual(
      Array.from({ length: 100 }, () => ['create2', 'delete']).flat(),
    );
  });

  onEveryLockBackend('is looked at again when another has had it in between', async (workspace) => {
    const { holdfast, transport } = await counted(workspace);
    const other = await workspace.holdfast();
    await cycle(holdfast, 'a', ENOUGH);
    await cycle(other, 'a', 1);
    expect(await requestsOfAcquire(holdfast, transport, 'a')).toEqual({
      requests: ['create2', 'getChildren'],
      writeCount: 2,
    });
    expect(await requestsOfAcquire(holdfast, transport, 'a')).toEqual({
      requests: ['create2', 'getChildren'],
      writeCount: 1,
    });
  });

  onEveryLockBackend('is waited for when another holds it', async (workspace) => {
    const [holdfast, other] = await workspace.holdfasts(2);
    await cycle(holdfast!, 'a', ENOUGH);
    const lease = await other!.mutex('a').acquire();
    const waiting = holdfast!.mutex('a').acquire();
    await workspace.untilEntries('a', 2);
    expect(await holdfast!.mutex('a').tryAcquire()).toBeNull();
    await lease.release();
    await (await waiting).release();
  });

  onEveryLockBackend(
    'is waited for when another holds it in a new folder, whose counter has come to the same number',
    async (workspace) => {
      const [holdfast, other] = await workspace.holdfasts(2);
      await cycle(holdfast!, 'a', ENOUGH);
      await workspace.admin.delete('/locks/a');
      await cycle(other!, 'a', ENOUGH - 1);
      const held = await other!.mutex('a').acquire();
      const [name] = await workspace.entries('a');
      expect(Number(name!.slice(-10))).toBe(ENOUGH - 1);
      const waiting = holdfast!.mutex('a').attempt({ timeoutMs: 300 });
      const [, second] = await workspace.untilEntries('a', 2);
      expect(Number(second!.slice(-10))).toBe(ENOUGH); // The very number that it would expect.
      expect(await waiting).toMatchObject({ ok: false, reason: 'timeout' });
      held.assertHeld();
      await held.release();
    },
  );

  onEveryLockBackend('leaves no watch behind when it is no longer taken', async (workspace) => {
    const { holdfast } = await counted(workspace);
    await cycle(holdfast, 'a', ENOUGH);
    expect(await workspace.watchedPaths()).toEqual(['/locks/a']);
    await workspace.expectNoResidue();
  });
});
