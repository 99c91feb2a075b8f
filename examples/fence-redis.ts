// The resource's side of fencing, in Redis: one script compares the token and writes, with nobody in between.
// Run it on a Redis of your own:  REDIS_URL=redis://127.0.0.1:6379 npx tsx examples/fence-redis.ts
import { fileURLToPath } from 'node:url';
import { connect, StaleTokenError } from 'holdfast';
import { startServer } from 'holdfast/server';
import { createClient } from 'redis';

/**
 * KEYS[1] is a hash with the fields `value` and `fence`, so that both are in one slot and go together.
 *
 * A number in Lua is a double: beyond 2^53 `tonumber` makes neighbours equal, and a late token would be let in. Tokens
 * are compared as text of one width instead, 19 digits, which is enough for 63 bits.
 *
 * Not promised: anything about a Redis that forgets. A replica that takes over may not have the newest fence, and an
 * eviction or an expiry takes it away with the value; a late token is let in then.
 */
export const FENCED_SET = `
  local function padded(digits)
    return string.rep('0', 19 - #digits) .. digits
  end
  local value, token = ARGV[1], ARGV[2]
  if #token > 19 or not string.find(token, '^%d+$') then
    return redis.error_reply('ERR token: up to 19 digits are needed')
  end
  local highest = redis.call('HGET', KEYS[1], 'fence') or '0'
  if #highest > 19 or not string.find(highest, '^%d+$') then
    return redis.error_reply('ERR ' .. KEYS[1] .. ': its field fence is no token')
  end
  if padded(token) < padded(highest) then
    return { 'stale', highest }
  end
  redis.call('HSET', KEYS[1], 'value', value, 'fence', token)
  return { 'written', token }
`;

/** What runs a script: a client of `redis`. */
export interface Redis {
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
}

/** Writes unless a later token has written. */
export async function fencedSet(
  redis: Redis,
  key: string,
  { value, token }: { value: string; token: bigint },
): Promise<void> {
  if (typeof token !== 'bigint') throw new TypeError(`token: ${typeof token} given; a bigint is needed`);
  const options = { keys: [key], arguments: [value, String(token)] };
  const [outcome, highest] = (await redis.eval(FENCED_SET, options)) as [string, string];
  if (outcome === 'stale') throw new StaleTokenError(token, BigInt(highest));
}

/** Two holders, the first of which does not notice that it was overtaken. */
async function main(): Promise<void> {
  const redis = createClient({ url: process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379' });
  await redis.connect();
  try {
    await using server = await startServer();
    await using alice = await connect({ servers: server.connectString });
    await using bob = await connect({ servers: server.connectString });

    const early = await alice.mutex('member-123').acquire();
    await fencedSet(redis, 'member-123', { value: '100', token: early.token });

    // Alice stands still for too long and loses the lock; here an operator takes it away from her.
    const [holder] = (await bob.inspect('member-123')).holders;
    await bob.zk.delete(`/locks/member-123/${holder!.id}`);

    await using lease = await bob.mutex('member-123').acquire();
    await fencedSet(redis, 'member-123', { value: '75', token: lease.token });

    // Alice wakes up in the middle of her work, and does not look at her lease.
    await fencedSet(redis, 'member-123', { value: '50', token: early.token }).catch((error) =>
      console.log(error.code),
    );
    console.log(`balance ${await redis.hGet('member-123', 'value')}`);
  } finally {
    await redis.close();
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
