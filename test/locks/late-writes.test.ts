import { describe, expect } from 'vitest';
import type { Holdfast, LockLease, MutexOptions } from '../../src/holdfast.ts';
import { Neighbours } from '../../src/queue/neighbours.ts';
import { ops } from '../../src/zookeeper.ts';
import { LateTransport } from '../support/late-transport.ts';
import { type LockWorkspace, onEveryLockBackend } from '../support/lock-backends.ts';

/** Two connections of one process. What the first one sends can be held up. */
async function twoConnections(workspace: LockWorkspace) {
  const neighbours = new Neighbours();
  const transport = new LateTransport();
  const first = await workspace.holdfast({ neighbours, transport, sessionTimeoutMs: 30_000 });
  const second = await workspace.holdfast({ neighbours, sessionTimeoutMs: 30_000 });
  await workspace.admin.create('/written', 'nothing');
  return { first, second, transport };
}

/** Waits behind the holder, and writes as soon as it holds. */
async function waitAndWrite(workspace: LockWorkspace, holdfast: Holdfast): Promise<Promise<LockLease>[]> {
  const lock = holdfast.mutex('m');
  const waits = new Promise((resolve) => lock.on('waiting', resolve));
  const acquiring = lock.acquire().then(async (lease) => {
    await holdfast.zk.set('/written', 'by the second');
    return lease;
  });
  await workspace.untilEntries('m', 2);
  await waits;
  await holdfast.zk.sync(); // It knows of no other server.
  return [acquiring]; // In an array, or it would be waited for.
}

/** Whoever was to be granted without a word of the server has been granted, and has written. */
async function untilItWouldHave({ zk }: Holdfast): Promise<void> {
  for (let round = 0; round < 10; round++) await zk.sync('/', { by: 'quorum' });
}

describe('what a holder has written, and has heard nothing of when it lets go, comes before the next holder', () => {
  const kinds: readonly (readonly [string, MutexOptions | undefined])[] = [
    ['a mutex', undefined],
    ['a mutex with handOff', { handOff: { grantsMax: 3 } }],
    ['a mutex with cache', { cache: true }],
  ];
  for (const [kind, options] of kinds) {
    onEveryLockBackend(`a guarded write under ${kind}`, async (workspace) => {
      const { first, second, transport } = await twoConnections(workspace);
      await (await first.mutex('m', options).acquire()).release(); // One that is kept is watched from now on.
      const held = await first.mutex('m', options).acquire();
      const [acquiring] = await waitAndWrite(workspace, second);
      await first.zk.sync(); // It has heard of the one who waits.
      transport.hold();
      const writing = held.guard([ops.set('/written', 'by the first')]);
      const releasing = held.release();
      await untilItWouldHave(second);
      transport.deliver();
      await Promise.all([writing, releasing]);
      const lease = await acquiring!;
      await workspace.admin.sync('/', { by: 'quorum' });
      expect(String((await workspace.admin.get('/written')).data)).toBe('by the second');
      await lease.release();
    });
  }

  onEveryLockBackend('a guarded write of a section before the last one', async (workspace) => {
    const { first, second, transport } = await twoConnections(workspace);
    const mutex = first.mutex('m', { handOff: { grantsMax: 3 } });
    const held = await mutex.acquire();
    const passing = mutex.acquire();
    const [acquiring] = await waitAndWrite(workspace, second);
    await first.zk.sync();
    transport.hold();
    const writing = held.guard([ops.set('/written', 'by the first')]);
    await held.release();
    const passed = await passing;
    expect(passed).toMatchObject({ token: held.token, section: 1 });
    const releasing = passed.release();
    await untilItWouldHave(second);
    transport.deliver();
    await Promise.all([writing, releasing]);
    const lease = await acquiring!;
    await workspace.admin.sync('/', { by: 'quorum' });
    expect(String((await workspace.admin.get('/written')).data)).toBe('by the second');
    await lease.release();
  });

  for (const [kind, options] of kinds) {
    onEveryLockBackend(`a plain write whose connection is lost, under ${kind}`, async (workspace) => {
      const { first, second, transport } = await twoConnections(workspace);
      const held = await first.mutex('m', options).acquire();
      const [acquiring] = await waitAndWrite(workspace, second);
      await first.zk.sync();
      transport.hold();
      const writing = first.zk.set('/written', 'by the first');
      writing.catch(() => {});
      await new Promise((resolve) => setImmediate(resolve)); // It has been sent.
      transport.drop();
      await expect(writing).rejects.toMatchObject({ code: 'ZK_CONNECTION_LOSS', outcome: 'unknown' });
      const releasing = held.release();
      await untilItWouldHave(second);
      transport.deliver();
      await releasing;
      const lease = await acquiring!;
      await workspace.admin.sync('/', { by: 'quorum' });
      expect(String((await workspace.admin.get('/written')).data)).toBe('by the second');
      await lease.release();
    });
  }

  onEveryLockBackend('a plain write that was given up', async (workspace) => {
    const { first, second, transport } = await twoConnections(workspace);
    const held = await first.mutex('m').acquire();
    const [acquiring] = await waitAndWrite(workspace, second);
    transport.hold();
    const giveUp = new AbortController();
    const writing = first.zk.set('/written', 'by the first', { signal: giveUp.signal });
    writing.catch(() => {});
    const other = first.zk.set('/written', 'by the first', { signal: AbortSignal.timeout(1) });
    await expect(other).rejects.toMatchObject({ name: 'TimeoutError' });
    giveUp.abort(new Error('enough'));
    await expect(writing).rejects.toThrow('enough');
    const releasing = held.release();
    await untilItWouldHave(second);
    transport.deliver();
    await releasing;
    const lease = await acquiring!;
    await workspace.admin.sync('/', { by: 'quorum' });
    expect(String((await workspace.admin.get('/written')).data)).toBe('by the second');
    await lease.release();
    // Once it was answered, releases are told at once again.
    const again = await first.mutex('m').acquire();
    const [next] = await waitAndWrite(workspace, second);
    transport.hold();
    const letGo = again.release();
    await (await next!).release();
    transport.deliver();
    await letGo;
  });
});
