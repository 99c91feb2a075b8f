import { describe, expect, test } from 'vitest';
import { connect, type Holdfast, type Lock } from '../../src/holdfast.ts';
import { startTestServer } from '../../src/testing.ts';
import { looseEnds } from '../support/loose-ends.ts';

const notFunctions = [undefined, null, 5, 'run', {}] as never[];

const locks: Readonly<Record<string, (holdfast: Holdfast) => Lock<never>>> = {
  mutex: (holdfast) => holdfast.mutex('x'),
  'mutex with cache': (holdfast) => holdfast.mutex('c', { cache: true }),
  reader: (holdfast) => holdfast.readWriteLock('x').read,
  writer: (holdfast) => holdfast.readWriteLock('x').write,
  'upgradable reader': (holdfast) => holdfast.readWriteLock('x').upgradable,
  semaphore: (holdfast) => holdfast.semaphore('x', { permits: 1 }) as unknown as Lock<never>,
  'multi-lock': (holdfast) => holdfast.multiLock(['x', 'y']),
  election: (holdfast) => holdfast.election('x'),
  'simple lock': (holdfast) => holdfast.simpleLock('x'),
};

describe('bad input is refused before the lock is taken', () => {
  for (const [kind, lockOf] of Object.entries(locks)) {
    test(`what is no function, no event, no signal and no lease: ${kind}`, async () => {
      await using _ends = looseEnds();
      await using server = await startTestServer();
      await using holdfast = await connect({ servers: server.connectString });
      const lock = lockOf(holdfast);
      const refused = async (call: () => unknown, message: string) => {
        const refusal = (async () => call())();
        await expect(refusal).rejects.toThrow(message);
        await expect(refusal).rejects.toBeInstanceOf(TypeError);
      };
      for (const given of notFunctions) {
        await refused(() => lock.use(given), 'use: ');
        await refused(() => lock.on('lost', given), 'listener: ');
      }
      await refused(
        () => lock.on('nope' as never, () => {}),
        'event: "nope" given; allowed are lockAcquired',
      );
      await refused(() => lock.off('nope' as never, () => {}), 'event: "nope" given');
      for (const signal of [null, {}, 5, { aborted: true }]) {
        await refused(() => lock.acquire({ signal } as never), 'signal: ');
        await refused(() => lock.tryAcquire({ signal } as never), 'signal: ');
      }
      for (const within of [null, {}, 5]) {
        await refused(() => lock.acquire({ within } as never), 'within: ');
        await refused(() => lock.use(async () => {}, { within } as never), 'within: ');
      }
      expect(await holdfast.zk.exists('/locks')).toBeUndefined();
    });
  }

  test('of lead, locks.request and the client', async () => {
    await using _ends = looseEnds();
    await using server = await startTestServer();
    await using holdfast = await connect({ servers: server.connectString });
    const election = holdfast.election('e');
    const { signal } = new AbortController();
    for (const given of notFunctions) {
      await expect(election.lead(given, { signal })).rejects.toThrow(/^lead: .* a function is needed$/);
      await expect(holdfast.locks.request('w', {}, given)).rejects.toThrow(
        /^callback: .* a function is needed$/,
      );
      expect(() => holdfast.zk.on('lost', given)).toThrow(/^listener: .* a function is needed$/);
    }
    await expect(holdfast.locks.request('w', 5 as never)).rejects.toBeInstanceOf(TypeError);
    await expect(election.lead(async () => {}, {} as never)).rejects.toThrow('signal: none given');
    expect(() => holdfast.zk.on('nope' as never, () => {})).toThrow(
      'event: "nope" given; allowed are connected',
    );
    expect(await holdfast.zk.exists('/locks')).toBeUndefined();
  });
});
