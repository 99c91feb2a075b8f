import { systemClock } from '../../base/clock.ts';
import { parseConnectString } from '../../client/connect-string.ts';
import type { Holdfast } from '../../locks/holdfast.ts';
import type { LockInfo } from '../../locks/inspection.ts';
import { isServerError, ServerError } from '../../protocol/errors.ts';
import { type ConnectionFlags, connectWith } from '../connection.ts';
import type { Console } from '../console.ts';
import { confirmedGraph } from '../graph/confirmed-graph.ts';
import type { Tell } from '../terminal/progress.ts';
import type { Finding } from './finding.ts';
import {
  checkClocks,
  checkDeadlocks,
  checkForeign,
  checkFreeFolders,
  checkOrphans,
  checkQueues,
  checkSequences,
  checkUnreadable,
} from './lock-checks.ts';
import { probeLock } from './probe-lock.ts';
import {
  checkEnsemble,
  checkLatency,
  checkReachability,
  checkReadOnly,
  checkSessionTimeout,
} from './server-checks.ts';
import { examineServer, type ServerFacts } from './server-facts.ts';

const SESSION_TIMEOUT_MS_DEFAULT = 15_000;
const BATON_FOLDER = '/holdfast/batons';

export interface ExaminationOptions {
  readonly flags: ConnectionFlags;
  readonly env: Console['env'];
  /** How long each server has for an answer. */
  readonly timeoutMs: number;
  readonly adminPort: number | undefined;
  /** Write nothing: no lock is taken. */
  readonly readOnly: boolean;
  readonly tell: Tell;
}

/** All checks, in the order of what depends on what. `reached` is false if no server answered. */
export async function examine(
  options: ExaminationOptions,
): Promise<{ readonly findings: readonly Finding[]; readonly reached: boolean }> {
  const { flags, env, timeoutMs, tell } = options;
  tell('asking each server');
  const servers = await Promise.all(
    serversOf(flags, env).map((server) => examineServer(server, { ...options, flags })),
  );
  const wantedMs = flags.sessionTimeout ?? SESSION_TIMEOUT_MS_DEFAULT;
  const findings = [
    ...checkReachability(servers),
    ...(isOneLocal(servers) ? [] : [checkEnsemble(servers)]),
    ...checkReadOnly(servers),
    ...checkLatency(servers),
    ...checkSessionTimeout(servers, wantedMs),
  ];
  if (!servers.some(({ session }) => session)) return { findings, reached: false };
  await using holdfast = await connectWith(flags, { timeoutMs });
  tell('reading all locks');
  return { findings: [...findings, ...(await lockFindings(holdfast, options))], reached: true };
}

async function lockFindings(holdfast: Holdfast, { readOnly, tell }: ExaminationOptions): Promise<Finding[]> {
  let locks: LockInfo[];
  try {
    locks = await holdfast.list();
  } catch (error) {
    if (!(error instanceof ServerError)) throw error;
    // What is known of the servers is not lost with it.
    const advice =
      'give credentials that may read the root (--auth, HOLDFAST_AUTH), or name another (--root)';
    return [{ check: 'unreadable', verdict: 'fail', detail: error.message, advice }];
  }
  const batons = await childrenOf(holdfast, BATON_FOLDER);
  const graph = await confirmedGraph(holdfast);
  tell('taking a lock');
  const probe = readOnly ? undefined : await probeLock(holdfast);
  return [
    probe?.finding ?? { check: 'lock', verdict: 'skip', detail: 'not taken: read-only' },
    checkDeadlocks(graph),
    ...checkQueues(locks, systemClock.wallMs()),
    ...checkOrphans(locks, batons),
    ...checkForeign(locks),
    ...checkUnreadable(locks),
    checkSequences(locks),
    ...checkFreeFolders(locks),
    ...checkClocks(locks, probe?.skewMs),
  ];
}

/** Each server of the list by itself; one without an address if it is the local one. */
function serversOf(flags: ConnectionFlags, env: Console['env']) {
  const list = flags.servers ?? env['HOLDFAST_SERVERS'];
  if (list === undefined || list === '' || list === 'local' || list.startsWith('unix:')) {
    return [{ name: 'the local server', address: undefined, chroot: '' }];
  }
  const { servers, chroot } = parseConnectString(list);
  return servers.map((address) => {
    const { host, port } = address as { host: string; port: number };
    return { name: host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`, address, chroot };
  });
}

function isOneLocal(servers: readonly ServerFacts[]): boolean {
  return servers.length === 1 && servers[0]!.name === 'the local server';
}

async function childrenOf({ zk }: Holdfast, path: string): Promise<string[]> {
  try {
    return await zk.children(path);
  } catch (error) {
    if (isServerError(error, 'no-node') || isServerError(error, 'no-auth')) return [];
    throw error;
  }
}
