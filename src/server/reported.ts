import type { ProcessFacts } from '../base/process-facts.ts';
import type { ServerConnection } from './server-connection.ts';
import type { ServerState } from './server-state.ts';
import type { ServerStatistics } from './server-statistics.ts';

/**
 * The version shown to operators and clients, in ZooKeeper's form.
 *
 * 3.9 because that is whose semantics are implemented: kazoo takes the digits out of `envi` and offers create2,
 * containers and reconfig from 3.5 on only; monitors take 3.6 and later to have `zk_uptime` and a decimal average
 * latency. What follows the dash is where ZooKeeper has its commit, which no client reads. The date is part of the
 * form; it is fixed, as two builds of one source are to be the same.
 */
export const VERSION_TEXT = '3.9.0-holdfast, built on 2025-01-01 00:00 UTC';

/** What operators may ask about. */
export type Reported = Pick<
  ServerState,
  | 'tree'
  | 'sessions'
  | 'watches'
  | 'connections'
  | 'statistics'
  | 'limits'
  | 'zxid'
  | 'writeFault'
  | 'readOnly'
  | 'startedAtMs'
  | 'listening'
  | 'disk'
>;

/** One asking of an operator: when, and the facts of the process. */
export interface Asking {
  readonly nowMs: number;
  readonly wallMs: number;
  processFacts(): ProcessFacts;
}

/** The last operation of a connection, in ZooKeeper's abbreviation. */
export function operationLabel({ lastOperation }: ServerConnection): string {
  return OPERATION_NAMES[lastOperation] ?? 'NA';
}

const OPERATION_NAMES: Readonly<Record<string, string>> = {
  openSession: 'SESS',
  closeSession: 'CLOS',
  ping: 'PING',
  create: 'CREA',
  create2: 'CREA',
  createContainer: 'CREA',
  createTtl: 'CREA',
  delete: 'DELE',
  exists: 'EXIS',
  getData: 'GETD',
  setData: 'SETD',
  getAcl: 'GETA',
  setAcl: 'SETA',
  getChildren: 'GETC',
  getChildren2: 'GETC',
  getAllChildrenNumber: 'GETACN',
  getEphemerals: 'GETE',
  sync: 'SYNC',
  multi: 'MULT',
  multiRead: 'MLTR',
  setWatches: 'SETW',
  setWatches2: 'STW2',
  addWatch: 'ADDW',
  checkWatches: 'CHKW',
  removeWatches: 'REMW',
  whoAmI: 'HOMI',
  reconfig: 'RECO',
};

/** Answers that wait for the disk. */
export function outstandingCount(connections: ReadonlySet<ServerConnection>): number {
  let count = 0;
  for (const { heldCount } of connections) count += heldCount;
  return count;
}

/** The process and its machine, under ZooKeeper's names where it has one. */
export function environmentOf(facts: ProcessFacts): Readonly<Record<string, string>> {
  return {
    'zookeeper.version': VERSION_TEXT,
    'host.name': facts.hostName,
    'node.version': facts.nodeVersion,
    'os.name': facts.systemName,
    'os.arch': facts.architecture,
    'os.version': facts.systemVersion,
    'user.name': facts.userName,
    'user.home': facts.userFolder,
    'user.dir': facts.workingFolder,
    'os.memory.free': megabytes(facts.memoryFreeBytes),
    'os.memory.max': megabytes(facts.memoryTotalBytes),
    'os.memory.total': megabytes(facts.memoryUsedBytes),
  };
}

/** As Java prints a long: no sign. */
export function hex(value: bigint): string {
  return `0x${BigInt.asUintN(64, value).toString(16)}`;
}

function megabytes(bytes: number): string {
  return `${Math.floor(bytes / 2 ** 20)}MB`;
}

/** Rounded to four places, as ZooKeeper does. */
export function averageLatencyMs({ latencies }: ServerStatistics): number {
  return Math.round(latencies.averageMs * 10_000) / 10_000;
}

/** Who and where, as operators see it elsewhere: ids in ZooKeeper's form. */
export function placeOf(connection: ServerConnection): { session?: string; address: string } {
  const { session } = connection;
  return { ...(session && { session: hex(session.id) }), address: addressOf(connection) };
}

export function addressOf({ peer }: ServerConnection): string {
  return `${peer.address}:${peer.port}`;
}

/** What a connection waits for on its socket, as Java numbers it: to read, or to write as well. */
export function interestOf({ link }: ServerConnection): number {
  return link.bufferedBytes > 0 ? 5 : 1;
}

export function* mapped<T, R>(values: Iterable<T>, map: (value: T) => R): Generator<R> {
  for (const value of values) yield map(value);
}
