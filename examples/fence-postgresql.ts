// The resource's side of fencing, in PostgreSQL: the token is compared where the data is, in the statement that writes it.
// Run it on a database of your own:  DATABASE_URL=postgresql:///test npx tsx examples/fence-postgresql.ts
import { fileURLToPath } from 'node:url';
import { connect, StaleTokenError } from 'holdfast';
import { startServer } from 'holdfast/server';
import pg from 'pg';

/** `bigint` is 64 bits with a sign, as a token is. A `double precision` or a JSON number would merge neighbours. */
export const SCHEMA = `
  create table if not exists account (
    id text primary key,
    balance bigint not null,
    fence bigint not null               -- the largest token that has written this row
  );
  create table if not exists entry (account text not null, amount bigint not null);
  create table if not exists fence (
    resource text primary key,
    token bigint not null               -- the largest token that has been admitted to the resource
  );
`;

/** What runs SQL: a pool, a client, or one connection inside a transaction. */
export interface Database {
  query(
    text: string,
    values?: unknown[],
  ): Promise<{ readonly rowCount: number | null; readonly rows: unknown[] }>;
}

/**
 * One row with its own fence. Comparing and writing are one statement: a writer that had to wait for a newer one's
 * commit has its condition looked at again, with the row as it is then. Under `repeatable read` and above it fails with
 * 40001 instead, and nothing is written either.
 */
export async function updateBalance(
  db: Database,
  id: string,
  { balance, token }: { balance: bigint; token: bigint },
) {
  const { rowCount } = await db.query(
    'update account set balance = $2, fence = $3 where id = $1 and fence <= $3',
    [id, String(balance), textOf(token)],
  );
  if (rowCount === 0) throw await refusal(db, token, ['select fence from account where id = $1', id]);
}

/** The same for a row that may not be there yet. */
export async function putBalance(
  db: Database,
  id: string,
  { balance, token }: { balance: bigint; token: bigint },
) {
  const { rowCount } = await db.query(
    `insert into account (id, balance, fence) values ($1, $2, $3)
     on conflict (id) do update set balance = excluded.balance, fence = excluded.fence
     where account.fence <= excluded.fence`,
    [id, String(balance), textOf(token)],
  );
  if (rowCount === 0) throw await refusal(db, token, ['select fence from account where id = $1', id]);
}

/**
 * Several rows under one fence. The first statement of the transaction admits the token and locks the fence's row until
 * the commit, so that a newer holder's transaction comes wholly before or wholly after this one.
 */
export async function inFencedTransaction<T>(
  pool: pg.Pool,
  { resource, token }: { resource: string; token: bigint },
  work: (db: Database) => Promise<T>,
): Promise<T> {
  const db = await pool.connect();
  let failure: unknown;
  try {
    await db.query('begin');
    const { rowCount } = await db.query(
      `insert into fence (resource, token) values ($1, $2)
       on conflict (resource) do update set token = excluded.token where fence.token <= excluded.token`,
      [resource, textOf(token)],
    );
    if (rowCount === 0)
      throw await refusal(db, token, ['select token from fence where resource = $1', resource]);
    const result = await work(db);
    await db.query('commit');
    return result;
  } catch (error) {
    failure = error;
    await db.query('rollback').catch(() => {});
    throw error;
  } finally {
    // A connection whose transaction may be open still is not given to the next one.
    db.release(failure !== undefined && !(failure instanceof StaleTokenError));
  }
}

/** As it goes into a statement. A number is refused: beyond 2^53 it is a neighbour of the token. */
function textOf(token: bigint): string {
  if (typeof token !== 'bigint') throw new TypeError(`token: ${typeof token} given; a bigint is needed`);
  if (token < 0n) throw new RangeError(`token: ${token} given; a bigint from 0 is needed`);
  return String(token);
}

/** Says why nothing was written: no such row, or a later token. What it reads decides nothing any more. */
async function refusal(db: Database, token: bigint, [text, id]: [string, string]): Promise<Error> {
  const { rows } = await db.query(text, [id]);
  const [highest] = Object.values((rows[0] ?? {}) as Record<string, string>); // A bigint comes as text: no digit is lost.
  return highest === undefined ? new Error(`no row ${id}`) : new StaleTokenError(token, BigInt(highest));
}

/** Two holders, the first of which does not notice that it was overtaken. */
async function main(): Promise<void> {
  const pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'] });
  try {
    await pool.query(SCHEMA);
    await using server = await startServer();
    await using alice = await connect({ servers: server.connectString });
    await using bob = await connect({ servers: server.connectString });

    const early = await alice.mutex('member-123').acquire();
    await putBalance(pool, 'member-123', { balance: 100n, token: early.token });

    // Alice stands still for too long and loses the lock; here an operator takes it away from her.
    const [holder] = (await bob.inspect('member-123')).holders;
    await bob.zk.delete(`/locks/member-123/${holder!.id}`);

    await using lease = await bob.mutex('member-123').acquire();
    await putBalance(pool, 'member-123', { balance: 75n, token: lease.token });

    // Alice wakes up in the middle of her work, and does not look at her lease.
    await putBalance(pool, 'member-123', { balance: 50n, token: early.token }).catch((error) =>
      console.log(error.code),
    );
    const { rows } = await pool.query('select balance from account where id = $1', ['member-123']);
    console.log(`balance ${rows[0].balance}`);
  } finally {
    await pool.end();
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
