import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { machineNowMs } from '../../base/machine-clock.ts';
import { enterDoor, type HoldState, ReentryDoor } from './tcp-reentry.ts';

const NEVER = new AbortController().signal;

/** A door and a guest, who notes each state; `next` waits for the next one. */
async function entered() {
  const leaseEndMs = machineNowMs() + 60_000;
  const door = (await ReentryDoor.open({ leaseEndMs, sessionTimeoutMs: 15_000 }))!;
  const guest = (await enterDoor(door.path, NEVER))!;
  const states: (HoldState | undefined)[] = [];
  let arrived = () => {};
  guest.onChange((state) => {
    states.push(state);
    arrived();
  });
  const next = async () => {
    if (states.length === 0) await new Promise<void>((resolve) => (arrived = resolve));
    return states.shift();
  };
  expect(await next()).toEqual({ leaseEndMs, sessionTimeoutMs: 15_000 });
  return { door, guest, leaseEndMs, next };
}

test('what runs under a hold that is being ended has the time that is given, and is expelled after it', async () => {
  const { door, guest, leaseEndMs, next } = await entered();
  const beganAtMs = machineNowMs();
  door.endWithin(50);
  const state = await next();
  expect(state).toMatchObject({ leaseEndMs });
  expect(state!.endByMs).toBeGreaterThanOrEqual(beganAtMs + 50);
  expect(await next()).toBeUndefined();
  expect(machineNowMs()).toBeGreaterThanOrEqual(beganAtMs + 50);
  guest.leave();
  await door.close();
});

test('it gets less time where less is left, never more; and none where the lock is lost', async () => {
  const { door, guest, next } = await entered();
  door.endWithin(30_000);
  const first = (await next())!.endByMs!;
  door.endWithin(40_000);
  door.endWithin(20_000);
  expect((await next())!.endByMs!).toBeLessThan(first);
  door.expel();
  expect(await next()).toBeUndefined();
  expect(await enterDoor(door.path, NEVER)).toBeUndefined();
  guest.leave();
  await door.close();
});

test('it has until the end of the lease where the run above is gone without a word', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-door-'));
  const leaseEndMs = machineNowMs() + 60_000;
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.write(`${JSON.stringify({ leaseEndMs, sessionTimeoutMs: 15_000 })}\n`);
    socket.end();
  });
  await new Promise<void>((resolve) => server.listen(join(folder, 'door'), resolve));
  const guest = (await enterDoor(join(folder, 'door'), NEVER))!;
  const last = await new Promise<HoldState | undefined>((resolve) => {
    guest.onChange((state) => {
      if (state?.endByMs !== undefined || !state) resolve(state);
    });
  });
  expect(last).toEqual({ leaseEndMs, sessionTimeoutMs: 15_000, endByMs: leaseEndMs });
  guest.leave();
  server.close();
  rmSync(folder, { recursive: true });
});
