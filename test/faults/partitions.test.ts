import { randomUUID } from 'node:crypto';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { FaultProxy } from '../../src/testing.ts';
import { connect, LeaseEndedError, SessionLostError, type ZooKeeper } from '../../src/zookeeper.ts';
import { looseEnds } from '../support/loose-ends.ts';
import { sharedStandalone } from '../support/shared-servers.ts';

const SESSION_MS = 2_000;
const LOOP_RESOLUTION_MS = 5;

/** What happened to a client and its nodes, in milliseconds of the one clock that all of them share. */
interface Timeline {
  readonly heldUntilMs: number;
  readonly suspendedAtMs: number;
  readonly lostAtMs: number;
  readonly goneAtMs: number;
  /** The longest time this process stood still: by so much it may learn late of what its clock says. */
  readonly stalledMs: number;
}

describe('a silent partition', () => {
  // Nothing is reset and nothing refused: the only sign of these partitions is that nothing comes back.
  test.for(['both', 'to-server', 'to-client'] as const)(
    'is known to the client before the server acts on it, then survived (bytes dropped: %s)',
    async (direction) => {
      await using _ends = looseEnds();
      await using proxy = await FaultProxy.start({ target: sharedStandalone() });
      await using observer = await connect(sharedStandalone().connectString);
      await using zk = await connect(proxy.connectString, { sessionTimeoutMs: SESSION_MS });
      const path = `/${randomUUID()}`;
      await zk.create(path, '', { mode: 'ephemeral' });
      const { session } = zk;
      const states = recordStates(zk);
      const timeline = observeTimeline(zk, observer, path);
      await observer.sync();

      const lastAskedAtMs = performance.now();
      await zk.get(path);
      proxy.blackhole(direction);
      const cutAtMs = performance.now();

      const { heldUntilMs, suspendedAtMs, lostAtMs, goneAtMs, stalledMs } = await timeline;
      expect(heldUntilMs).toBeLessThan(suspendedAtMs);
      expect(suspendedAtMs).toBeLessThan(lostAtMs);
      expect(lostAtMs - stalledMs).toBeLessThan(goneAtMs);
      // Early enough to reach another server, were there one; and not given up while it may well live.
      expect(suspendedAtMs - cutAtMs - stalledMs).toBeLessThan(SESSION_MS * 0.9);
      expect(lostAtMs - lastAskedAtMs).toBeGreaterThanOrEqual(SESSION_MS);
      expect(session.lost.reason).toBeInstanceOf(SessionLostError);
      expect(session.lost.reason).toMatchObject({ lossCause: 'local-clock' });

      proxy.heal();
      const renewed = await zk.connected();
      expect(renewed).not.toBe(session);
      expect(await zk.exists(path)).toBeUndefined();
      expect(states).toEqual(['suspended', 'lost', 'connected']);
    },
  );

  test('of the way out is known to the client although events keep coming in', async () => {
    await using _ends = looseEnds();
    await using proxy = await FaultProxy.start({ target: sharedStandalone() });
    await using observer = await connect(sharedStandalone().connectString);
    await using zk = await connect(proxy.connectString, { sessionTimeoutMs: SESSION_MS });
    const path = `/${randomUUID()}`;
    await zk.create(path, '', { mode: 'ephemeral' });
    const eventsAtMs: number[] = [];
    await zk.addWatch(path, 'persistent', () => eventsAtMs.push(performance.now()));
    const timeline = observeTimeline(zk, observer, path);

    proxy.blackhole('to-server');
    let suspended = false;
    zk.on('suspended', () => {
      suspended = true;
    });
    let changeCount = 0;
    while (!suspended) {
      await observer.set(path, String(++changeCount));
      await delay(50);
    }

    const { heldUntilMs, suspendedAtMs, lostAtMs, goneAtMs, stalledMs } = await timeline;
    expect(heldUntilMs).toBeLessThan(suspendedAtMs);
    expect(suspendedAtMs).toBeLessThan(lostAtMs);
    expect(lostAtMs - stalledMs).toBeLessThan(goneAtMs);
    // The link was anything but silent: it was given up because nothing of ours was answered.
    const lastEventAtMs = eventsAtMs.findLast((atMs) => atMs < suspendedAtMs)!;
    expect(suspendedAtMs - lastEventAtMs).toBeLessThan(SESSION_MS / 3);
  });
});

function recordStates(zk: ZooKeeper): string[] {
  const states: string[] = [];
  for (const name of ['connected', 'suspended', 'lost'] as const) zk.on(name, () => states.push(name));
  return states;
}

/** Follows what a client believes of itself, and what another one sees of its ephemeral node. */
async function observeTimeline(zk: ZooKeeper, observer: ZooKeeper, path: string): Promise<Timeline> {
  const hold = zk.session.hold();
  const heldUntil = momentOf((now) => hold.signal.addEventListener('abort', now, { once: true }));
  const suspended = momentOf((now) => zk.on('suspended', now));
  const lost = momentOf((now) => zk.on('lost', now));
  const gone = momentOf((now) => {
    void observer.addWatch(path, 'persistent', ({ type }) => type === 'node-deleted' && now());
  });
  const loop = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS });
  loop.enable();
  const [heldUntilMs, suspendedAtMs, lostAtMs, goneAtMs] = await Promise.all([
    heldUntil,
    suspended,
    lost,
    gone,
  ]);
  loop.disable();
  expect(hold.signal.reason).toBeInstanceOf(LeaseEndedError);
  expect(hold.remainingMs()).toBe(0);
  return { heldUntilMs, suspendedAtMs, lostAtMs, goneAtMs, stalledMs: loop.max / 1e6 - LOOP_RESOLUTION_MS };
}

function momentOf(follow: (now: () => void) => unknown): Promise<number> {
  return new Promise((resolve) => follow(() => resolve(performance.now())));
}
