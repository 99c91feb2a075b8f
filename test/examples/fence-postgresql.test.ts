import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { inFencedTransaction, putBalance, SCHEMA, updateBalance } from '../../examples/fence-postgresql.ts';
import { connect } from '../../src/holdfast.ts';
import { startServer } from '../../src/server.ts';
import { type PostgresqlProcess, startPostgresql } from '../support/postgresql-process.ts';
import { until } from '../support/until.ts';

const root = new URL('../..', import.meta.url).pathname;
/** Neighbours in the last epoch there can be: as doubles they are one number. */
const [OLDER, NEWER] = [0x7fffffff_00000001n, 0x7fffffff_00000002n] as const;

let postgresql: PostgresqlProcess;
let pool: pg.Pool;
beforeAll(async () => {
  postgresql = await startPostgresql();
  pool = new pg.Pool({ connectionString: postgresql.connectionString, max: 10 });
  await pool.query(SCHEMA);
}, 120_000);
afterAll(async () => {
  await pool?.end();
  await postgresql?.[Symbol.asyncDispose]();
});

async function accountOf(id: string): Promise<{ balance: bigint; fence: bigint }> {
  const { rows } = await pool.query('select balance, fence from account where id = $1', [id]);
  return { balance: BigInt(rows[0].balance), fence: BigInt(rows[0].fence) };
}

const stale = (token: bigint, highest: bigint) =>
  expect.objectContaining({ code: 'LOCK_STALE_TOKEN', token, highest });

describe('a fence in PostgreSQL', () => {
  test('refuses what is no token, and writes nothing', async () => {
    await expect(putBalance(pool, 'odd', { balance: 1n, token: 7 as never })).rejects.toThrow(TypeError);
    await expect(putBalance(pool, 'odd', { balance: 1n, token: -1n })).rejects.toThrow(RangeError);
    await expect(putBalance(pool, 'odd', { balance: 1n, token: 2n ** 63n })).rejects.toThrow(/out of range/);
    const { rowCount } = await pool.query('select 1 from account where id = $1', ['odd']);
    expect(rowCount).toBe(0);
  });

  test('refuses the late token and leaves the row as it was', async () => {
    await putBalance(pool, 'late', { balance: 1n, token: 7n });
    await putBalance(pool, 'late', { balance: 2n, token: 9n });
    await expect(putBalance(pool, 'late', { balance: 3n, token: 8n })).rejects.toEqual(stale(8n, 9n));
    await expect(updateBalance(pool, 'late', { balance: 3n, token: 8n })).rejects.toEqual(stale(8n, 9n));
    expect(await accountOf('late')).toEqual({ balance: 2n, fence: 9n });
  });

  test('lets one holder write again and again', async () => {
    await putBalance(pool, 'again', { balance: 1n, token: 7n });
    await updateBalance(pool, 'again', { balance: 2n, token: 7n });
    await putBalance(pool, 'again', { balance: 3n, token: 7n });
    expect(await accountOf('again')).toEqual({ balance: 3n, fence: 7n });
  });

  test('says so when there is no row to update', async () => {
    await expect(updateBalance(pool, 'nobody', { balance: 1n, token: 7n })).rejects.toThrow('no row nobody');
  });

  test('tells tokens beyond 2^53 apart by their last digit', async () => {
    expect(Number(OLDER)).toBe(Number(NEWER));
    await putBalance(pool, 'large', { balance: 1n, token: NEWER });
    await expect(putBalance(pool, 'large', { balance: 2n, token: OLDER })).rejects.toEqual(
      stale(OLDER, NEWER),
    );
    await expect(updateBalance(pool, 'large', { balance: 2n, token: OLDER })).rejects.toEqual(
      stale(OLDER, NEWER),
    );
    await putBalance(pool, 'large', { balance: 3n, token: 2n ** 63n - 1n });
    expect(await accountOf('large')).toEqual({ balance: 3n, fence: 2n ** 63n - 1n });
  });

  test('looks again when the late writer had to wait for the newer one', async () => {
    await putBalance(pool, 'blocked', { balance: 1n, token: OLDER });
    const newer = await pool.connect();
    await newer.query('begin');
    await putBalance(newer, 'blocked', { balance: 2n, token: NEWER });
    const late = [
      putBalance(pool, 'blocked', { balance: 3n, token: OLDER }),
      updateBalance(pool, 'blocked', { balance: 4n, token: OLDER }),
    ];
    const outcomes = Promise.allSettled(late);
    await until('both wait for the row', async () => (await waitingCount()) === late.length);
    await newer.query('commit');
    newer.release();
    expect(await outcomes).toEqual(late.map(() => ({ status: 'rejected', reason: stale(OLDER, NEWER) })));
    expect(await accountOf('blocked')).toEqual({ balance: 2n, fence: NEWER });
  });

  test('writes nothing late under repeatable read either', async () => {
    await putBalance(pool, 'repeatable', { balance: 1n, token: OLDER });
    const [newer, late] = [await pool.connect(), await pool.connect()];
    await newer.query('begin');
    await putBalance(newer, 'repeatable', { balance: 2n, token: NEWER });
    await late.query('begin isolation level repeatable read');
    const writing = putBalance(late, 'repeatable', { balance: 3n, token: OLDER }).catch((error) => error);
    await until('it waits for the row', async () => (await waitingCount()) === 1);
    await newer.query('commit');
    expect(await writing).toMatchObject({ code: '40001' });
    await late.query('rollback');
    for (const connection of [newer, late]) connection.release();
    expect(await accountOf('repeatable')).toEqual({ balance: 2n, fence: NEWER });
  });

  test('keeps the largest of many writers at once', async () => {
    const tokens = Array.from({ length: 200 }, (_, index) => OLDER + BigInt((index * 73) % 200));
    const outcomes = await Promise.allSettled(
      tokens.map((token) => putBalance(pool, 'crowd', { balance: token, token })),
    );
    const largest = OLDER + 199n;
    expect(await accountOf('crowd')).toEqual({ balance: largest, fence: largest });
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') expect(outcome.reason.code).toBe('LOCK_STALE_TOKEN');
    }
    expect(outcomes[tokens.indexOf(largest)]!.status).toBe('fulfilled');
  });

  test('orders whole transactions by their tokens', async () => {
    await pool.query('create table written (at bigserial, token bigint, part int)');
    const tokens = Array.from({ length: 60 }, (_, index) => OLDER + BigInt((index * 17) % 60));
    await Promise.allSettled(
      tokens.map((token) =>
        inFencedTransaction(pool, { resource: 'ledger', token }, async (db) => {
          for (const part of [1, 2]) {
            await db.query('insert into written (token, part) values ($1, $2)', [String(token), part]);
          }
        }),
      ),
    );
    const { rows } = await pool.query<{ token: string; part: number }>(
      'select token, part from written order by at',
    );
    expect(rows.length).toBeGreaterThan(0);
    expect(rows.at(-1)).toEqual({ token: String(OLDER + 59n), part: 2 });
    const written = rows.map(({ token }) => BigInt(token));
    expect(written).toEqual([...written].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0)));
    expect(rows.map(({ part }) => part)).toEqual(rows.map((_, index) => (index % 2) + 1));
  });

  test('takes back everything of a transaction that fails, the token included', async () => {
    const failure = new Error('out of paper');
    const failing = inFencedTransaction(pool, { resource: 'printer', token: 9n }, async (db) => {
      await db.query("insert into entry values ('printer', 1)");
      throw failure;
    });
    await expect(failing).rejects.toBe(failure);
    const { rows } = await pool.query("select 1 from entry where account = 'printer'");
    expect(rows).toEqual([]);
    await inFencedTransaction(pool, { resource: 'printer', token: 8n }, async () => {});
  });

  test('goes with the tokens of a lock', async () => {
    await using server = await startServer();
    await using holdfast = await connect({ servers: server.connectString });
    const early = await holdfast.mutex('a').acquire();
    await early.release();
    await using lease = await holdfast.mutex('a').acquire();
    await putBalance(pool, 'lock', { balance: 1n, token: lease.token });
    await expect(putBalance(pool, 'lock', { balance: 2n, token: early.token })).rejects.toEqual(
      stale(early.token, lease.token),
    );
  });

  test('is shown by the example itself', async () => {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['--import', 'tsx', 'examples/fence-postgresql.ts'],
      { cwd: root, env: { ...process.env, DATABASE_URL: postgresql.connectionString } },
    );
    expect(stdout).toBe('LOCK_STALE_TOKEN\nbalance 75\n');
  });
});

async function waitingCount(): Promise<number> {
  const { rows } = await pool.query("select 1 from pg_stat_activity where wait_event_type = 'Lock'");
  return rows.length;
}
