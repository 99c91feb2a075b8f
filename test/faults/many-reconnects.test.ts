import { randomUUID } from 'node:crypto';
import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { FrameDecoder } from '../../src/protocol/frame-decoder.ts';
import { JuteReader } from '../../src/protocol/jute-reader.ts';
import { operations } from '../../src/protocol/operations.ts';
import { RequestHeader, SetWatches } from '../../src/protocol/records.ts';
import { type Clock, FaultProxy } from '../../src/testing.ts';
import { connect } from '../../src/zookeeper.ts';
import { looseEnds } from '../support/loose-ends.ts';
import { sharedStandalone } from '../support/shared-servers.ts';
import { until } from '../support/until.ts';

const ROUNDS = 200;
const WATCHES_PER_ROUND = 3;

describe('a client that is cut off again and again', () => {
  test('keeps its session, hears of every change once, and grows no fatter', async () => {
    await using _ends = looseEnds();
    await using proxy = await FaultProxy.start({ target: sharedStandalone() });
    await using observer = await connect(sharedStandalone().connectString);
    const clock = countingClock();
    // Named many times, so that the client finds another server of its list each time and need not wait.
    const servers = Array(ROUNDS * 2).fill(proxy.connectString);
    await using zk = await connect(servers.join(','), { sessionTimeoutMs: 20_000, clock });
    const { session } = zk;
    const states = { connected: 0, suspended: 0, lost: 0, listenerError: 0 };
    for (const name of Object.keys(states) as (keyof typeof states)[]) zk.on(name, () => states[name]++);
    const controller = new AbortController();
    const restored = countRestored(proxy);
    const parent = `/${randomUUID()}`;
    const standing = `${parent}/standing`;
    await observer.create(parent);
    await observer.create(standing);
    let standingCount = 0;
    await zk.get(standing, { watch: () => standingCount++ });

    const sizes = new Set<string>();
    let told = 0;
    for (let round = 1; round <= ROUNDS; round++) {
      await Promise.all(
        Array.from({ length: WATCHES_PER_ROUND }, () =>
          zk.children(parent, { watch: () => told++, signal: controller.signal, timeoutMs: 60_000 }),
        ),
      );
      proxy.resetAll();
      await until('the connection to be known as down', () => states.suspended === round);
      await observer.create(`${parent}/${round}`, '', { mode: 'ephemeral' });
      await until('the events', () => told >= round * WATCHES_PER_ROUND);
      await zk.sync('/', { signal: controller.signal });
      sizes.add(
        JSON.stringify({
          restored: restored(),
          timers: clock.timerCount(),
          abortListeners: getEventListeners(controller.signal, 'abort').length,
          lossListeners: getEventListeners(session.lost, 'abort').length,
          connections: proxy.connectionCount,
        }),
      );
      expect(told).toBe(round * WATCHES_PER_ROUND);
    }

    // The same after the first round as after the last: two paths to restore, one timer, one connection.
    expect([...sizes]).toEqual([
      JSON.stringify({ restored: 2, timers: 1, abortListeners: 0, lossListeners: 0, connections: 1 }),
    ]);
    expect(standingCount).toBe(0);
    await observer.set(standing, 'changed');
    await until('the watch that stood all the time', () => standingCount === 1);
    expect(zk.session).toBe(session);
    expect(states).toEqual({ connected: ROUNDS, suspended: ROUNDS, lost: 0, listenerError: 0 });
    expect(proxy.acceptedCount).toBe(ROUNDS + 1);
    await observer.deleteTree(parent);
  });
});

/** The system's clock, which also says how many timers are set. */
function countingClock(): Clock & { timerCount(): number } {
  const live = new Set<object>();
  return {
    ...systemClock,
    at(atMs, run) {
      const timer = {};
      live.add(timer);
      const cancel = systemClock.at(atMs, () => {
        live.delete(timer);
        run();
      });
      return () => {
        live.delete(timer);
        cancel();
      };
    },
    timerCount: () => live.size,
  };
}

/** How many paths the newest connection was asked to restore: the size of the client's watch tables. */
function countRestored(proxy: FaultProxy): () => number {
  let frames = new FrameDecoder(Number.MAX_SAFE_INTEGER);
  let accepted = 0;
  let count = 0;
  proxy.onBytes((direction, chunk) => {
    if (direction !== 'to-server') return;
    if (accepted !== proxy.acceptedCount) {
      accepted = proxy.acceptedCount;
      frames = new FrameDecoder(Number.MAX_SAFE_INTEGER);
      count = 0;
    }
    for (const frame of frames.push(chunk)) {
      const input = new JuteReader(frame);
      if (RequestHeader.read(input).type !== operations.setWatches.opcode) continue;
      const { dataWatches, existWatches, childWatches } = SetWatches.read(input);
      count += dataWatches.length + existWatches.length + childWatches.length;
    }
  });
  return () => count;
}
