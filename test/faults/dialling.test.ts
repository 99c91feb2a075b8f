import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { FaultProxy, seededRandom } from '../../src/testing.ts';
import { connect, UnreachableError } from '../../src/zookeeper.ts';
import { freePorts } from '../support/free-port.ts';
import { looseEnds } from '../support/loose-ends.ts';
import { sharedStandalone } from '../support/shared-servers.ts';
import { until } from '../support/until.ts';

/** Seeds that between them try the servers of a list in many orders. */
const SEEDS = [1, 2, 3, 4, 5, 6];

describe('connecting', () => {
  test('gives up in time on a server that accepts and never answers, and names it', async () => {
    await using _ends = looseEnds();
    await using silent = await startSilentServer();
    const startedAtMs = performance.now();
    const error = await connect(silent.connectString, { timeoutMs: 1_200, sessionTimeoutMs: 1_000 }).then(
      () => expect.fail('connected to a server that never answers'),
      (reason: unknown) => reason,
    );
    expect(error).toBeInstanceOf(UnreachableError);
    expect((error as Error).message).toContain(`${silent.connectString} within 1200 ms`);
    const attempts = (error as { cause: AggregateError }).cause.errors as Error[];
    expect(attempts[0]?.message).toMatch(new RegExp(`^${silent.connectString}: no answer within \\d+ ms`));
    expect(performance.now() - startedAtMs).toBeGreaterThanOrEqual(1_200);
    expect(performance.now() - startedAtMs).toBeLessThan(5_000);
  });

  test('does not wait for ever for a server that accepts and never answers when there is another', async () => {
    await using _ends = looseEnds();
    await using silent = await startSilentServer();
    const list = `${silent.connectString},${sharedStandalone().connectString}`;
    await Promise.all(
      SEEDS.map(async (seed) => {
        await using zk = await connect(list, {
          timeoutMs: 10_000,
          sessionTimeoutMs: 3_000,
          random: seededRandom(seed),
        });
        await zk.sync();
      }),
    );
    expect(silent.acceptedCount).toBeGreaterThan(0);
  });

  test('finds the one live server among dead ones, and finds it again when its connection is cut', async () => {
    await using _ends = looseEnds();
    await using silent = await startSilentServer();
    await using refusing = await FaultProxy.start({ target: sharedStandalone() });
    refusing.refuse();
    const [closedPort] = await freePorts(1);
    const dead = [
      silent.connectString,
      refusing.connectString,
      `127.0.0.1:${closedPort}`,
      'no-such-host.invalid:2181',
    ];
    await Promise.all(
      SEEDS.map(async (seed) => {
        await using live = await FaultProxy.start({ target: sharedStandalone() });
        await using zk = await connect([...dead, live.connectString].join(','), {
          timeoutMs: 10_000,
          sessionTimeoutMs: 6_000,
          random: seededRandom(seed),
        });
        const { session } = zk;
        const path = `/${randomUUID()}`;
        await zk.create(path, '', { mode: 'ephemeral' });
        live.resetAll();
        expect((await zk.get(path)).stat.ephemeralOwner).toBe(session.id);
        expect(zk.session).toBe(session);
        expect(live.acceptedCount).toBe(2);
      }),
    );
  });

  test('comes back to its only server once that answers again', async () => {
    await using _ends = looseEnds();
    await using proxy = await FaultProxy.start({ target: sharedStandalone() });
    await using zk = await connect(proxy.connectString, { sessionTimeoutMs: 10_000 });
    const { session } = zk;
    proxy.refuse();
    proxy.resetAll();
    // Refused a few times, not hundreds of times.
    await until('three refusals', () => proxy.acceptedCount >= 4);
    proxy.heal();
    await zk.sync();
    expect(zk.session).toBe(session);
    expect(proxy.acceptedCount).toBeLessThan(10);
  });
});

async function startSilentServer(): Promise<FaultProxy> {
  const proxy = await FaultProxy.start({ target: sharedStandalone() });
  proxy.acceptSilently();
  return proxy;
}
