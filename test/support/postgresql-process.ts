import { execFile } from 'node:child_process';
import { chown, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { ServerChild } from './server-child.ts';
import { until } from './until.ts';

const run = promisify(execFile);
const PACKAGES_FOLDER = '/usr/lib/postgresql';
const USER = 'postgres';
const START_TIMEOUT_MS = 60_000;

/** A PostgreSQL of the test's own, on a unix socket in its own folder: no port, and no password to know. */
export interface PostgresqlProcess extends AsyncDisposable {
  readonly connectionString: string;
}

export async function startPostgresql(): Promise<PostgresqlProcess> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-postgresql-'));
  const data = join(folder, 'data');
  const socketFolder = folder;
  const programs = await programFolder();
  const privileges = await lesserPrivileges(folder);
  let child: ServerChild | undefined;
  try {
    const initdb = [`${programs}/initdb`, '-D', data, '-U', USER, '-A', 'trust', '--no-sync', '-E', 'UTF8'];
    await run('setpriv', [...privileges, ...initdb, '--locale', 'C'], { cwd: folder });
    const settings = {
      listen_addresses: '',
      unix_socket_directories: socketFolder,
      fsync: 'off',
      shared_buffers: '16MB',
    };
    const options = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    child = await ServerChild.start(folder, [`${programs}/postgres`, '-D', data, ...options], privileges);
    const connectionString = `postgresql://${USER}@/${USER}?host=${encodeURIComponent(socketFolder)}`;
    await untilServing(child, connectionString);
    const started = child;
    return { connectionString, [Symbol.asyncDispose]: () => started[Symbol.asyncDispose]() };
  } catch (error) {
    await child?.[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

/** Debian keeps the programs of each version in a folder of their own, out of the path. */
async function programFolder(): Promise<string> {
  const versions = await readdir(PACKAGES_FOLDER);
  const [newest] = versions.map(Number).sort((a, b) => b - a);
  return `${PACKAGES_FOLDER}/${newest}/bin`;
}

/** PostgreSQL refuses to run as root: then it runs as the user that its package has made. */
async function lesserPrivileges(folder: string): Promise<string[]> {
  if (process.getuid!() !== 0) return [];
  const [uid, gid] = await Promise.all(
    ['-u', '-g'].map(async (flag) => Number((await run('id', [flag, USER])).stdout)),
  );
  await chown(folder, uid!, gid!);
  return ['--reuid', String(uid), '--regid', String(gid), '--clear-groups'];
}

async function untilServing(child: ServerChild, connectionString: string): Promise<void> {
  await until(
    'postgresql serves',
    async () => {
      if (child.exited) throw new Error(`postgresql exited; its log says:\n${await child.log()}`);
      const client = new pg.Client({ connectionString });
      client.on('error', () => {});
      try {
        await client.connect();
        await client.end();
        return true;
      } catch {
        return false;
      }
    },
    START_TIMEOUT_MS,
  );
}
