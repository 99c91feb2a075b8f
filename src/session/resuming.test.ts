import { describe, expect, test } from 'vitest';
import { granted, kinds, T, World } from './machine-world.test-data.ts';

const LEASE = { clockRateTolerance: 0.01, touchLagMs: 250 };

function holding(options: ConstructorParameters<typeof World>[0] = {}): World {
  const world = new World(options);
  world.connect(0);
  world.handle({ kind: 'hold-began' });
  return world;
}

describe('a lease, from when a handshake that resumes the session is sent', () => {
  const lease = { ...LEASE, grantedTimeoutMsMin: 1_000 };

  test('lasts no longer than the smallest timeout that a server may grant', () => {
    const world = holding({ lease });
    world.handle({ kind: 'link-closed' }, 100);
    world.handle({ kind: 'link-opened' }, 110);
    expect(world.machine.leaseEndMs).toBe(110 + 990);
    expect(kinds(world.passUntil(1_099))).not.toContain('leases-ended');
    expect(kinds(world.passUntil(1_100))).toContain('leases-ended');
  });

  test('counts from the first of several that are not answered: it may be the one that was carried out', () => {
    const world = holding({ lease });
    world.handle({ kind: 'link-closed' }, 100);
    for (const atMs of [110, 400, 700]) {
      world.handle({ kind: 'link-opened' }, atMs);
      world.handle({ kind: 'link-closed' }, atMs + 10);
    }
    expect(world.machine.leaseEndMs).toBe(110 + 990);
  });

  test('is what it was again once one is answered', () => {
    const world = holding({ lease });
    world.handle({ kind: 'link-closed' }, 100);
    world.open(110);
    expect(world.machine.leaseEndMs).toBe(110 + T * 0.99 - 250 - T / 5);
  });

  test('is not prolonged by a read-only server, which has not asked its leader', () => {
    const world = holding({ lease, readOnlyAllowed: true });
    world.handle({ kind: 'link-closed' }, 100);
    world.open(110, granted(0x1000n, 2 ** 31 - 1, true));
    expect(world.machine.leaseEndMs).toBe(110 + 990);
  });

  test('is not shortened by attempts that reach no server', () => {
    const world = holding({ lease });
    const { leaseEndMs } = world.machine;
    world.handle({ kind: 'link-closed' }, 100);
    for (let atMs = 100; atMs < 1_500; atMs += 100) world.handle({ kind: 'link-closed' }, atMs);
    expect(world.machine.leaseEndMs).toBe(leaseEndMs);
  });

  test('is never longer than without a handshake', () => {
    const world = holding({ lease: { ...LEASE, grantedTimeoutMsMin: 60_000 } });
    const { leaseEndMs } = world.machine;
    world.handle({ kind: 'link-closed' }, 1_000);
    world.handle({ kind: 'link-opened' }, 1_010);
    expect(world.machine.leaseEndMs).toBe(leaseEndMs);
  });

  test('lasts two thirds of the timeout where nothing else is said', () => {
    const world = holding({ lease: { ...LEASE, touchLagMs: 0 } });
    world.handle({ kind: 'link-closed' }, 100);
    world.handle({ kind: 'link-opened' }, 110);
    expect(world.machine.leaseEndMs).toBeCloseTo(110 + T * (2 / 3) * 0.99, 6);
  });
});

describe('a session that was granted less before', () => {
  /** A new leader restores the first timeout; what a snapshot has may be any of them. */
  test('promises leases by the smallest timeout it ever had', () => {
    const world = new World();
    world.handle({ kind: 'start' });
    world.open(0, granted(0x1000n, 1_000));
    world.handle({ kind: 'link-closed' }, 100);
    world.open(200, granted(0x1000n, T));
    expect(world.machine.timeoutMs).toBe(T);
    expect(world.machine.leaseEndMs).toBe(200 + 1_000 * 0.99 - 250 - 200);
  });

  test('sends its heartbeats as often as that takes', () => {
    const world = new World();
    world.handle({ kind: 'start' });
    world.open(0, granted(0x1000n, 1_000));
    world.handle({ kind: 'link-closed' }, 100);
    world.open(200, granted(0x1000n, T));
    world.handle({ kind: 'hold-began' });
    expect(world.machine.wakeAtMs).toBe(400);
  });
});
