import { describe, expect, test } from 'vitest';
import { systemClock } from '../base/clock.ts';
import type { Session } from '../client/session.ts';
import type { ZooKeeper } from '../client/zookeeper.ts';
import { BatchedWatches } from './batched-watches.ts';

/** Watches by a client that writes down how many each request sets, and throws for those that it is told to refuse. */
function gathering(refuse: (paths: readonly string[]) => Error | undefined = () => undefined) {
  const requests: string[][] = [];
  const zk = {
    watchSince(_zxid: bigint, watches: readonly { readonly path: string }[]) {
      const paths = watches.map(({ path }) => path);
      const refusal = refuse(paths);
      if (refusal) throw refusal;
      requests.push(paths);
      return Promise.resolve();
    },
  } as unknown as ZooKeeper;
  const watches = new BatchedWatches(zk, {} as Session, systemClock);
  const set = (path: string, sinceZxid = 1n) =>
    watches.set(sinceZxid, [{ kind: 'data', path, listener: () => {} }], () => {});
  return { requests, set };
}

describe('watches of one tick', () => {
  test('are set by one request, of the newest transaction that any of them begins with', async () => {
    const { requests, set } = gathering();
    expect(await Promise.all([set('/a', 5n), set('/b', 7n), set('/c', 6n)])).toEqual([7n, 7n, 7n]);
    expect(requests).toEqual([['/a', '/b', '/c']]);
  });

  test('are set by another request beyond 300', async () => {
    const { requests, set } = gathering();
    await Promise.all(Array.from({ length: 301 }, (_, index) => set(`/${index}`)));
    expect(requests.map(({ length }) => length)).toEqual([300, 1]);
  });

  test('are set by another request beyond 128 KiB, counted in UTF-8', async () => {
    const { requests, set } = gathering();
    const path = `/${'é'.repeat(16_381)}`; // 32 763 bytes, and 4 for its length: four of them are 128 KiB less 4 bytes.
    await Promise.all(Array.from({ length: 5 }, () => set(path)));
    expect(requests.map(({ length }) => length)).toEqual([4, 1]);
  });

  test('that cannot be sent fail alone, and throw nothing at the end of the tick', async () => {
    const refusal = new RangeError('setWatches: a request of 1890040 bytes');
    const { requests, set } = gathering((paths) => (paths.includes('/long') ? refusal : undefined));
    const settled = await Promise.allSettled([set('/a'), set('/long'), set('/b')]);
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(requests).toEqual([['/a'], ['/b']]);
  });
});
