import { describe, expect, test } from 'vitest';
import { connect, type Holdfast, type Lock } from '../../src/holdfast.ts';
import { FaultProxy, startTestServer } from '../../src/testing.ts';
import { until } from '../support/until.ts';

const locks: readonly (readonly [string, (holdfast: Holdfast) => Lock])[] = [
  ['mutex', (holdfast) => holdfast.mutex('a')],
  ['writer', (holdfast) => holdfast.readWriteLock('b').write],
  ['semaphore', (holdfast) => holdfast.semaphore('c', { permits: 1 }) as unknown as Lock],
  ['multi-lock', (holdfast) => holdfast.multiLock(['d', 'e'])],
  ['candidate', (holdfast) => holdfast.election('f')],
  ['simple lock', (holdfast) => holdfast.simpleLock('g')],
];
/** More than the client repeats a read by itself. */
const CUTS = 6;
/** A handshake's answer is 41 bytes or 42: the connection ends within the first answer behind it. */
const BYTES_PASSED = 50;

/** The answer that a node is there already, after which a simple lock looks at it. */
const REFUSAL_BYTES = 20;

/** Locks whose connection ends within the next answer, and the next after that, and so on; then all is well. */
function cutAgainAndAgain(
  proxy: FaultProxy,
  holdfast: Holdfast,
  firstBytes = 0,
): { readonly left: () => number } {
  let left = CUTS;
  const cut = (bytes: number) => {
    left--;
    proxy.cutAfter({ direction: 'to-client', bytes });
  };
  holdfast.zk.on('suspended', () => {
    if (left > 0) cut(BYTES_PASSED);
  });
  cut(firstBytes);
  return { left: () => left };
}

// Found by the nemesis: the client gives a read up after four connections, and some locks passed that on.
describe('a connection that is cut again and again', () => {
  test.each(locks)('leaves nobody without an answer who tries: a %s', async (_kind, lockOf) => {
    await using server = await startTestServer();
    await using proxy = await FaultProxy.start({ target: server });
    await using holdfast = await connect({ servers: manyTimes(proxy) });
    const cuts = cutAgainAndAgain(proxy, holdfast);
    const lease = await lockOf(holdfast).tryAcquire();
    expect(cuts.left()).toBe(0);
    expect(lease?.remainingMs()).toBeGreaterThan(0);
    await lease?.release();
  });

  test.each(
    [0, REFUSAL_BYTES].flatMap((firstBytes) =>
      locks.map(([kind, lockOf]) => [firstBytes, kind, lockOf] as const),
    ),
  )('ends nobody’s wait, first at byte %i: a %s', async (firstBytes, _kind, lockOf) => {
    await using server = await startTestServer();
    await using proxy = await FaultProxy.start({ target: server });
    await using holder = await connect({ servers: server.connectString });
    await using holdfast = await connect({ servers: manyTimes(proxy) });
    const held = await lockOf(holder).acquire();
    const cuts = cutAgainAndAgain(proxy, holdfast, firstBytes);
    const waiting = lockOf(holdfast).acquire();
    let failure: unknown;
    waiting.catch((error: unknown) => {
      failure = error;
    });
    await until('all cuts to be over', () => cuts.left() === 0 || failure !== undefined);
    await held.release();
    const lease = await waiting;
    expect(lease.token).toBeGreaterThan(held.token);
    await lease.release();
  });

  test('leaves one who observes an election with what it is to see', async () => {
    await using server = await startTestServer();
    await using proxy = await FaultProxy.start({ target: server });
    await using holder = await connect({ servers: server.connectString });
    await using holdfast = await connect({ servers: manyTimes(proxy) });
    const leadership = await holder.election('f', { id: 'leader' }).campaign();
    const cuts = cutAgainAndAgain(proxy, holdfast);
    const observing = holdfast.election('f').observe();
    expect((await observing.next()).value).toEqual({ id: 'leader', epoch: leadership.epoch });
    expect(cuts.left()).toBe(0);
    await observing.return();
    await leadership.resign();
  });
});

/** A client waits longer and longer for a server that hangs up soon; one with many servers, all of them this one, does not. */
function manyTimes({ connectString }: FaultProxy): string {
  return Array<string>(50).fill(connectString).join(',');
}
