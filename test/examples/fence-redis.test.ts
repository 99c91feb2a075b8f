import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FENCED_SET, fencedSet } from '../../examples/fence-redis.ts';
import { connect } from '../../src/holdfast.ts';
import { startServer } from '../../src/server.ts';
import { type RedisProcess, startRedis } from '../support/redis-process.ts';

const root = new URL('../..', import.meta.url).pathname;
/** Neighbours in the last epoch there can be: as doubles they are one number. */
const [OLDER, NEWER] = [0x7fffffff_00000001n, 0x7fffffff_00000002n] as const;

let server: RedisProcess;
let redis: ReturnType<typeof createClient>;
beforeAll(async () => {
  server = await startRedis();
  redis = createClient({ url: server.url });
  await redis.connect();
}, 120_000);
afterAll(async () => {
  await redis?.close();
  await server?.[Symbol.asyncDispose]();
});

const stale = (token: bigint, highest: bigint) =>
  expect.objectContaining({ code: 'LOCK_STALE_TOKEN', token, highest });

describe('a fence in Redis', () => {
  test('refuses the late token and leaves the value as it was', async () => {
    await fencedSet(redis, 'late', { value: 'first', token: 7n });
    await fencedSet(redis, 'late', { value: 'second', token: 9n });
    await expect(fencedSet(redis, 'late', { value: 'late', token: 8n })).rejects.toEqual(stale(8n, 9n));
    expect({ ...(await redis.hGetAll('late')) }).toEqual({ value: 'second', fence: '9' });
  });

  test('lets one holder write again and again', async () => {
    await fencedSet(redis, 'again', { value: 'first', token: 7n });
    await fencedSet(redis, 'again', { value: 'second', token: 7n });
    expect(await redis.hGet('again', 'value')).toBe('second');
  });

  test.each([
    [9n, 10n],
    [99n, 100n],
    [2n ** 32n - 1n, 2n ** 32n],
    [2n ** 53n, 2n ** 53n + 1n],
    [OLDER, NEWER],
    [2n ** 63n - 2n, 2n ** 63n - 1n],
  ])('knows that %d is before %d', async (older, newer) => {
    const key = `order ${newer}`;
    await fencedSet(redis, key, { value: 'older', token: older });
    await fencedSet(redis, key, { value: 'newer', token: newer });
    await expect(fencedSet(redis, key, { value: 'late', token: older })).rejects.toEqual(stale(older, newer));
    expect(await redis.hGet(key, 'value')).toBe('newer');
  });

  test('needs text: Lua’s own numbers let a late neighbour in', async () => {
    const script = FENCED_SET.replace(
      'padded(token) < padded(highest)',
      'tonumber(token) < tonumber(highest)',
    );
    expect(script).not.toBe(FENCED_SET);
    const set = (value: string, token: bigint) =>
      redis.eval(script, { keys: ['doubles'], arguments: [value, String(token)] });
    await set('newer', NEWER);
    expect(await set('late', OLDER)).toEqual(['written', String(OLDER)]);
  });

  test.each(['', '-1', '1.5', '0x10', '12345678901234567890'])(
    'refuses what is no token: "%s"',
    async (text) => {
      const asking = redis.eval(FENCED_SET, { keys: ['odd'], arguments: ['x', text] });
      await expect(asking).rejects.toThrow(/digits are needed/);
      expect(await redis.exists('odd')).toBe(0);
    },
  );

  test.each(['-5', 'hello', '1e3', '12345678901234567890'])(
    'does not touch a key whose fence is something else: "%s"',
    async (fence) => {
      await redis.hSet('foreign', { value: 'theirs', fence });
      const setting = fencedSet(redis, 'foreign', { value: 'ours', token: 7n });
      await expect(setting).rejects.toThrow(/foreign: its field fence is no token/);
      expect({ ...(await redis.hGetAll('foreign')) }).toEqual({ value: 'theirs', fence });
    },
  );

  test('refuses a token that is a number before anything is sent', async () => {
    await expect(fencedSet(redis, 'number', { value: 'x', token: 7 as never })).rejects.toThrow(TypeError);
    expect(await redis.exists('number')).toBe(0);
  });

  test('keeps the largest of many writers at once', async () => {
    const clients = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const client = createClient({ url: server.url });
        await client.connect();
        return client;
      }),
    );
    try {
      const tokens = Array.from({ length: 800 }, (_, index) => OLDER + BigInt((index * 73) % 800));
      const outcomes = await Promise.allSettled(
        tokens.map((token, index) =>
          fencedSet(clients[index % 8]!, 'crowd', { value: String(token), token }),
        ),
      );
      const largest = OLDER + 799n;
      expect({ ...(await redis.hGetAll('crowd')) }).toEqual({
        value: String(largest),
        fence: String(largest),
      });
      for (const outcome of outcomes) {
        if (outcome.status === 'rejected') expect(outcome.reason.code).toBe('LOCK_STALE_TOKEN');
      }
      expect(outcomes[tokens.indexOf(largest)]!.status).toBe('fulfilled');
    } finally {
      await Promise.all(clients.map((client) => client.close()));
    }
  });

  test('goes with the tokens of a lock', async () => {
    await using zooKeeper = await startServer();
    await using holdfast = await connect({ servers: zooKeeper.connectString });
    const early = await holdfast.mutex('a').acquire();
    await early.release();
    await using lease = await holdfast.mutex('a').acquire();
    await fencedSet(redis, 'lock', { value: 'newer', token: lease.token });
    await expect(fencedSet(redis, 'lock', { value: 'late', token: early.token })).rejects.toEqual(
      stale(early.token, lease.token),
    );
  });

  test('is shown by the example itself', async () => {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['--import', 'tsx', 'examples/fence-redis.ts'],
      { cwd: root, env: { ...process.env, REDIS_URL: server.url } },
    );
    expect(stdout).toBe('LOCK_STALE_TOKEN\nbalance 75\n');
  });
});
