import { describe, expect, test } from 'vitest';
import { connect } from '../../src/holdfast.ts';
import { startTestServer } from '../../src/testing.ts';

/** One process with a lock, and so many of its readers behind its writer. */
async function queue(readerCount: number, name = 'rw', options: { readonly root?: string } = {}) {
  const server = await startTestServer();
  const holdfast = await connect({
    servers: server.connectString,
    sessionTimeoutMs: 60_000,
    ...options,
  });
  const lock = holdfast.readWriteLock(name);
  const held = await lock.write.acquire();
  let waitingCount = 0;
  const allWait = new Promise<void>((resolve) => {
    lock.read.on('waiting', () => {
      if (++waitingCount === readerCount) resolve();
    });
  });
  const readers = Array.from({ length: readerCount }, () => lock.read.acquire());
  await allWait;
  return {
    ...{ holdfast, lock, held, readers },
    async [Symbol.asyncDispose]() {
      await holdfast.close();
      await server[Symbol.asyncDispose]();
    },
  };
}

describe('a writer with very many readers of its own process behind it', () => {
  // 12 000 checks of readers' nodes are longer than a server accepts a request to be.
  test('releases, and all of them hold at once', { timeout: 120_000 }, async () => {
    await using scene = await queue(12_500);
    const { holdfast, lock, held, readers } = scene;
    const releasing = held.release();
    const other = holdfast.mutex('unrelated').acquire(); // In the same tick, and so in the same transaction.
    await Promise.all([releasing, other]);
    const leases = await Promise.all(readers);
    expect(leases.every((lease) => lease.remainingMs() > 0)).toBe(true);
    expect(await holdfast.zk.children('/locks/rw')).toHaveLength(12_500);
    await Promise.all(leases.map((lease) => lease.release()));
    await (await lock.write.acquire({ timeoutMs: 30_000 })).release();
  });

  test('with the longest name there is, in the longest folder', { timeout: 60_000 }, async () => {
    const root = `/${'r'.repeat(1_023)}`;
    await using scene = await queue(400, 'n'.repeat(1_024), { root });
    await scene.held.release();
    for (const lease of await Promise.all(scene.readers)) await lease.release();
  });
});
