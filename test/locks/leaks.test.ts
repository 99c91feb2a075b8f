import { getEventListeners } from 'node:events';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect } from 'vitest';
import type { Holdfast } from '../../src/holdfast.ts';
import { onEveryLockBackend } from '../support/lock-backends.ts';

/** Of each kind; HOLDFAST_LEAK_ROUNDS=100000 for the whole of it. */
const ROUNDS = Number(process.env['HOLDFAST_LEAK_ROUNDS'] ?? 200);
/** What the heap may have grown by from the end of the second quarter to the end of the last. */
const HEAP_GROWTH_BYTES_MAX = 2 * 1024 * 1024;
const TIMEOUT_MS = 60_000 + ROUNDS * 10;

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

/** Runs four quarters; resolves with what the heap has grown by after the first half. */
async function heapGrowth(quarter: () => Promise<void>): Promise<number> {
  const sizes: number[] = [];
  for (let count = 0; count < 4; count++) {
    await quarter();
    await new Promise((resolve) => setImmediate(resolve));
    collectGarbage();
    sizes.push(process.memoryUsage().heapUsed);
  }
  return sizes[3]! - sizes[1]!;
}

async function repeat(rounds: number, act: (round: number) => Promise<unknown>): Promise<void> {
  for (let round = 0; round < rounds; round++) await act(round);
}

describe(`${ROUNDS} times over`, () => {
  onEveryLockBackend(
    'trying, taken and free, leaves nothing, and memory where it was',
    async (workspace) => {
      const [holdfast, holder] = await workspace.holdfasts(2);
      const taken = await holder!.mutex('taken').acquire();
      const { signal } = new AbortController();
      const growth = await heapGrowth(() =>
        repeat(ROUNDS / 8, async () => {
          expect(await holdfast!.mutex('taken').tryAcquire({ signal })).toBeNull();
          const lease = await holdfast!.mutex('free').tryAcquire({ signal });
          await lease!.release();
        }),
      );
      expect(growth).toBeLessThan(HEAP_GROWTH_BYTES_MAX);
      expect(getEventListeners(signal, 'abort')).toHaveLength(0);
      expect(getEventListeners(holdfast!.zk.session.lost, 'abort')).toHaveLength(0);
      await taken.release();
    },
    undefined,
    TIMEOUT_MS,
  );

  onEveryLockBackend(
    'contending, with some who give up, leaves nothing, and memory where it was',
    async (workspace) => {
      const clients = await workspace.holdfasts(4);
      const { signal } = new AbortController();
      const contend = async (holdfast: Holdfast, round: number) => {
        if (round % 10 < 9) {
          await (await holdfast.mutex('x').acquire({ signal, timeoutMs: 60_000 })).release();
          return;
        }
        const controller = new AbortController();
        const acquiring = holdfast.mutex('x').acquire({ signal: controller.signal });
        setImmediate(() => controller.abort());
        await acquiring.then(
          (lease) => lease.release(),
          () => {},
        );
      };
      const growth = await heapGrowth(async () => {
        const rounds = ROUNDS / 4 / clients.length;
        await Promise.all(clients.map((client) => repeat(rounds, (round) => contend(client, round))));
      });
      expect(growth).toBeLessThan(HEAP_GROWTH_BYTES_MAX);
      expect(getEventListeners(signal, 'abort')).toHaveLength(0);
      for (const { zk } of clients) expect(getEventListeners(zk.session.lost, 'abort')).toHaveLength(0);
    },
    undefined,
    TIMEOUT_MS,
  );
});
