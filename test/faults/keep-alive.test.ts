import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { connect } from '../../src/zookeeper.ts';
import { looseEnds } from '../support/loose-ends.ts';
import { sharedStandalone } from '../support/shared-servers.ts';
import { until } from '../support/until.ts';

const SESSION_MS = 2_000;

describe('the heartbeat', () => {
  // A client that resets its ping timer on what it *receives* loses its session on a healthy network here.
  test('goes on while a steady stream of events comes in and nothing is asked', async () => {
    await using _ends = looseEnds();
    await using observer = await connect(sharedStandalone().connectString);
    await using zk = await connect(sharedStandalone().connectString, { sessionTimeoutMs: SESSION_MS });
    const path = `/${randomUUID()}`;
    await zk.create(path, '', { mode: 'ephemeral' });
    const { session } = zk;
    let suspendedCount = 0;
    zk.on('suspended', () => suspendedCount++);
    const events: string[] = [];
    await zk.addWatch(path, 'persistent', (event) => events.push(event.type));

    const CHANGES = 50;
    for (let change = 1; change <= CHANGES; change++) {
      await observer.set(path, String(change));
      await delay(SESSION_MS / 20);
    }

    await until('all events', () => events.length >= CHANGES);
    expect(events).toEqual(Array(CHANGES).fill('node-data-changed'));
    expect(suspendedCount).toBe(0);
    expect(zk.session).toBe(session);
    expect((await zk.get(path)).stat.ephemeralOwner).toBe(session.id);
  });
});
