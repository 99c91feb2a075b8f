import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connect, type Holdfast, type UpgradableLease } from '../../src/holdfast.ts';
import { type RunningServer, startServer } from '../../src/server.ts';
import { CountingTransport } from '../support/counting-transport.ts';

// In plain JavaScript a misspelt option would be ignored: `acquire({ timeout: 100 })` would wait for ever.

let server: RunningServer;
let holdfast: Holdfast;
const transport = new CountingTransport();

beforeAll(async () => {
  server = await startServer();
  holdfast = await connect({ servers: server.connectString, transport, sessionTimeoutMs: 30_000 });
});

afterAll(async () => {
  await holdfast.close();
  await server.stop();
});

const locks = {
  'a mutex': () => holdfast.mutex('m'),
  'a mutex that is passed on': () => holdfast.mutex('shared', { cache: true, handOff: true }),
  'a reader': () => holdfast.readWriteLock('rw').read,
  'a writer': () => holdfast.readWriteLock('rw').write,
  'an upgradable reader': () => holdfast.readWriteLock('rw').upgradable,
  'a semaphore': () => holdfast.semaphore('s', { permits: 2 }),
  'a multi-lock': () => holdfast.multiLock(['m1', 'm2']),
  'a candidate': () => holdfast.election('e'),
  'a simple lock': () => holdfast.simpleLock('x'),
};

const work = () => expect.unreachable('the lock was granted');
const calls = {
  acquire: (lock, options) => lock.acquire(options),
  tryAcquire: (lock, options) => lock.tryAcquire(options),
  attempt: (lock, options) => lock.attempt(options),
  use: (lock, options) => lock.use(work, options),
} satisfies Record<string, (lock: ReturnType<(typeof locks)['a mutex']>, options: never) => unknown>;

const wrong = [
  [{ timeout: 100 }, 'there is no option "timeout", did you mean timeoutMs? options are signal, timeoutMs, '],
  [{ timeoutMS: 100 }, 'there is no option "timeoutMS", did you mean timeoutMs?'],
  [{ timeoutMs: 5, Signal: undefined }, 'there is no option "Signal", did you mean signal?'],
  [{ ttl: 1 }, 'there is no option "ttl"; options are signal, timeoutMs, within, reason'],
  [{ trace: {} }, 'there is no option "trace"'],
  [null, 'null given; an object of options is needed'],
  [5, 'a number given; an object of options is needed'],
  ['soon', 'the string "soon" given; an object of options is needed'],
  [[100], 'an array given; an object of options is needed'],
] as const;

/** It rejects, and does not throw, with nothing sent. */
async function expectRefusal(call: () => unknown, message: string): Promise<void> {
  transport.reset();
  const refusal = call() as Promise<unknown>;
  await expect(refusal).rejects.toThrow(message);
  await expect(refusal).rejects.toBeInstanceOf(TypeError);
  expect(transport.traffic.requests).toEqual([]);
}

describe.each(Object.keys(locks) as (keyof typeof locks)[])('%s', (recipe) => {
  const lock = () => locks[recipe]() as ReturnType<(typeof locks)['a mutex']>;

  test.each(Object.keys(calls) as (keyof typeof calls)[])('refuses what is no option of %s', async (call) => {
    for (const [options, message] of wrong) {
      await expectRefusal(() => calls[call](lock(), options as never), `${call}: ${message}`);
    }
  });

  test('takes every option that there is', async () => {
    const { signal } = new AbortController();
    const options = { signal, timeoutMs: 5_000, reason: 'why' };
    const acquiring = lock().acquire(options);
    const lease = await acquiring;
    await (await lock().acquire({ within: lease })).release();
    await lease.release();
    await (await lock().tryAcquire(options))!.release();
    expect(await lock().use(() => 'done', { ...options, releaseTimeoutMs: 5_000 })).toBe('done');
  });
});

describe('calls of one recipe', () => {
  const bad = { timeout: 100 } as never;
  const advice = 'there is no option "timeout", did you mean timeoutMs?';

  test('campaign and lead', async () => {
    const election = holdfast.election('e');
    await expectRefusal(() => election.campaign(bad), `campaign: ${advice}`);
    await expectRefusal(() => election.lead(async () => work(), bad), `lead: ${advice}`);
  });

  test('the permits of a semaphore', async () => {
    const semaphore = holdfast.semaphore('s', { permits: 2 });
    await expectRefusal(
      () => semaphore.acquire({ permit: 2 } as never),
      'acquire: there is no option "permit", did you mean permits?',
    );
    await expectRefusal(
      () => holdfast.mutex('m').acquire({ permits: 2 } as never),
      'acquire: there is no option "permits"; options are signal, timeoutMs, within, reason',
    );
  });

  test('within a lease, upgrade and downgrade', async () => {
    const { read, write, upgradable } = holdfast.readWriteLock('rw');
    const reading: UpgradableLease = await upgradable.acquire();
    for (const lock of [read, write, upgradable]) {
      const options = { within: reading, timeout: 100 } as never;
      await expectRefusal(() => lock.acquire(options), `acquire: ${advice}`);
      await expectRefusal(() => lock.tryAcquire(options), `tryAcquire: ${advice}`);
    }
    await expectRefusal(() => reading.upgrade(bad), `upgrade: ${advice}`);
    await expectRefusal(
      () => reading.upgrade({ within: reading } as never),
      'upgrade: there is no option "within"',
    );
    const writing = await reading.upgrade({ timeoutMs: 5_000, reason: 'why' });
    await expectRefusal(() => read.acquire({ within: writing, timeout: 100 } as never), `acquire: ${advice}`);
    await writing.release();
    await expectRefusal(() => holdfast.readWriteLock('rw').downgrade(reading, bad), `downgrade: ${advice}`);
    const beside = await holdfast.readWriteLock('rw').downgrade(reading, { timeoutMs: 5_000 });
    await beside.release();
  });

  test.each([
    [
      'mutex: there is no option "caches", did you mean cache?',
      () => holdfast.mutex('m', { caches: true } as never),
    ],
    ['semaphore: there is no option "permit"', () => holdfast.semaphore('s', { permit: 2 } as never)],
    [
      'election: there is no option "name"; options are id',
      () => holdfast.election('e', { name: 'me' } as never),
    ],
    ['observe: there is no option "signals"', () => holdfast.election('e').observe({ signals: 1 } as never)],
  ])('%s', (message, call) => {
    expect(call).toThrow(message);
    expect(call).toThrow(TypeError);
  });
});
