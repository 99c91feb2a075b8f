// `holdfast history --follow`, from inside its process: whatever happens to its watch, it goes on.
import { expect, test } from 'vitest';
import { type FollowEvent, watchHolds } from '../../src/cli/history/hold-watch.ts';
import { connect, type Holdfast } from '../../src/holdfast.ts';
import { startTestServer } from '../../src/testing.ts';
import { until } from '../support/until.ts';

async function scene() {
  const server = await startTestServer();
  const [holdfast, other] = [await connect(server.connectString), await connect(server.connectString)];
  const stop = new AbortController();
  const events: FollowEvent['event'][] = [];
  return {
    ...{ server, holdfast, other, events },
    follow() {
      return (async () => {
        const follow = { signal: stop.signal, known: [] };
        for await (const { event } of watchHolds(holdfast, 'a', follow)) events.push(event);
      })();
    },
    async [Symbol.asyncDispose]() {
      stop.abort();
      await Promise.all([holdfast.close(), other.close()]);
      await server[Symbol.asyncDispose]();
    },
  };
}

/** A hold that lasts until it is seen, and is released then. */
async function expectSeen(holdfast: Holdfast, events: readonly FollowEvent['event'][]): Promise<void> {
  {
    await using _lease = await holdfast.mutex('a').acquire();
    await until('the hold', () => events.includes('holds'));
  }
  await until('its end', () => events.includes('ended'));
}

test('following goes on over a lost connection', async () => {
  await using world = await scene();
  const { server, holdfast, other, events } = world;
  world.follow().catch(() => {});
  await until('the watch', () => holdfast.zk.hasWatches(`${holdfast.root}/a`));
  await holdfast.zk.sync();
  server.dropConnection(holdfast.zk.session.id);
  await until('the gap', () => events.includes('gap') && holdfast.zk.session.state === 'connected');
  await until('the look after the gap', () => events.includes('back'));
  // All that the two watches have led to, also a look at the queue, is over before the change that is to be reported.
  for (let turn = 0; turn < 10; turn++) await holdfast.zk.sync();
  await expectSeen(other, events);
  expect(events).toEqual(['gap', 'back', 'holds', 'ended']);
});

test('following goes on when its watch is removed', async () => {
  await using world = await scene();
  const { holdfast, other, events } = world;
  world.follow().catch(() => {});
  const path = `${holdfast.root}/a`;
  await until('the watch', () => holdfast.zk.hasWatches(path));
  await holdfast.zk.removeWatches(path);
  await until('another watch', () => holdfast.zk.hasWatches(path));
  await expectSeen(other, events);
  expect(events).toEqual(['gap', 'back', 'holds', 'ended']);
});
