import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Leader } from '../../src/holdfast.ts';
import { until } from '../support/until.ts';
import { timed } from './lock-history.ts';
import { LockPeer } from './lock-peer.ts';
import { Scene } from './scene.ts';

let java: LockPeer;
beforeAll(async () => {
  java = await LockPeer.curator();
});
afterAll(() => java[Symbol.asyncDispose]());

const PATH = '/locks/scheduler';

test("leadership passes from Curator's LeaderLatch to Holdfast and back", async () => {
  await using scene = await Scene.onZooKeeper();
  const [holdfast, first, third] = await Promise.all([scene.holdfast(), scene.peer(java), scene.peer(java)]);
  const election = holdfast.election('scheduler', { id: 'second' });
  const seen: (Leader | undefined)[] = [];
  const watching = (async () => {
    for await (const leader of holdfast.election('scheduler').observe()) {
      seen.push(leader);
      if (leader?.id === 'third') return;
    }
  })();

  await first.ask('latch', PATH, 'first');
  await first.ask('await-leadership');
  expect(await election.leader()).toMatchObject({ id: 'first' });
  await until('the first being seen', () => seen.at(-1)?.id === 'first');
  const campaigning = timed(election.campaign());
  await scene.untilInQueue(PATH, 2);
  await third.ask('latch', PATH, 'third');
  await scene.untilInQueue(PATH, 3);
  expect(await first.ask('candidates')).toBe('first,second,third');
  expect(await first.ask('leader')).toBe('first');

  const firstLeftNs = BigInt(await first.ask('resign'));
  const { lease: leadership, enteredNs } = await campaigning;
  expect(enteredNs).toBeGreaterThan(firstLeftNs);
  expect(await election.leader()).toEqual({ id: 'second', epoch: leadership.epoch });
  expect(await third.ask('candidates')).toBe('second,third');
  expect(await third.ask('leader')).toBe('second');

  await until('the second being seen', () => seen.at(-1)?.id === 'second');
  expect(await third.ask('leads')).toBe('false');
  const next = third.ask('await-leadership');
  const resignedNs = process.hrtime.bigint();
  await leadership.resign();
  expect(BigInt(await next)).toBeGreaterThan(resignedNs);
  await watching;
  const leaders = seen.filter((leader) => leader !== undefined);
  expect(leaders.map(({ id }) => id)).toEqual(['first', 'second', 'third']);
  const epochs = leaders.map(({ epoch }) => epoch);
  expect(epochs).toEqual([...epochs].sort((a, b) => (a < b ? -1 : 1)));
  expect(epochs[1]).toBe(leadership.epoch);
});
