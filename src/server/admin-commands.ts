import type { FourLetterWord } from './four-letter-words.ts';
import { type Json, JsonEntries, JsonItems, type JsonObject } from './json-text.ts';
import {
  type Asking,
  addressOf,
  averageLatencyMs,
  environmentOf,
  interestOf,
  mapped,
  operationLabel,
  outstandingCount,
  type Reported,
  VERSION_TEXT,
} from './reported.ts';
import type { ServerConnection } from './server-connection.ts';
import { monitorValues } from './server-metrics.ts';

/** One command of ZooKeeper's AdminServer, with its field names. */
export interface AdminCommand {
  readonly name: string;
  readonly otherNames: readonly string[];
  /** The four-letter word that tells the same: who may not ask the one may not ask the other. */
  readonly word: FourLetterWord;
  /** It shows something of each connection, session or watch. */
  readonly long?: true;
  report(server: Reported, asking: Asking): JsonObject;
}

/**
 * What may be asked. ZooKeeper's commands that reset counters are left out: a GET changes nothing here, whichever web
 * page makes a browser send it.
 */
export const adminCommands: readonly AdminCommand[] = [
  {
    name: 'configuration',
    otherNames: ['conf', 'config'],
    word: 'conf',
    report: ({ listening, limits, disk }) => ({
      client_port: listening.port ?? -1,
      data_dir: disk?.path ?? '',
      data_log_dir: disk?.path ?? '',
      tick_time: limits.tickMs,
      max_client_cnxns: limits.connectionsPerAddressMax,
      min_session_timeout: limits.sessionTimeoutMsMin,
      max_session_timeout: limits.sessionTimeoutMsMax,
      server_id: 0,
      client_port_listen_backlog: -1,
    }),
  },
  {
    name: 'connections',
    otherNames: ['cons'],
    word: 'cons',
    long: true,
    report: (server, asking) => connectionLists(server, (connection) => connectionDetail(connection, asking)),
  },
  {
    name: 'dirs',
    otherNames: [],
    word: 'dirs',
    report: ({ disk }) => {
      const bytes = disk?.bytes() ?? 0;
      return { datadir_size: bytes, logdir_size: bytes };
    },
  },
  {
    name: 'dump',
    otherNames: [],
    word: 'dump',
    long: true,
    report: ({ sessions, tree }) => ({
      expiry_time_to_session_ids: new JsonEntries(
        mapped(sessions.buckets(), ([atMs, bucket]) => [
          String(atMs),
          new JsonItems(mapped(bucket, ({ id }) => id)),
        ]),
      ),
      session_id_to_ephemeral_paths: new JsonEntries(
        mapped(tree.sessionsWithEphemerals(), ([id, paths]) => [String(id), new JsonItems(paths)]),
      ),
    }),
  },
  {
    name: 'environment',
    otherNames: ['env', 'envi'],
    word: 'envi',
    report: (_server, { processFacts }) => environmentOf(processFacts()),
  },
  {
    name: 'is_read_only',
    otherNames: ['isro'],
    word: 'isro',
    report: ({ readOnly }) => ({ read_only: readOnly }),
  },
  {
    name: 'last_snapshot',
    otherNames: ['lsnp'],
    word: 'srvr',
    report: ({ disk }) => {
      const last = disk?.statistics.lastSnapshot;
      return {
        zxid: BigInt.asUintN(64, last?.zxid ?? -1n).toString(16),
        timestamp: last ? Math.floor(last.wallMs / 1000) : -1,
      };
    },
  },
  {
    name: 'monitor',
    otherNames: ['mntr'],
    word: 'mntr',
    report: (server, { nowMs, processFacts }) => monitorValues(server, nowMs, processFacts()),
  },
  { name: 'ruok', otherNames: [], word: 'ruok', report: () => ({}) },
  { name: 'server_stats', otherNames: ['srvr'], word: 'srvr', report: serverStats },
  {
    name: 'stats',
    otherNames: ['stat'],
    word: 'stat',
    long: true,
    report: (server, asking) => ({
      ...serverStats(server, asking),
      ...connectionLists(server, connectionBrief),
    }),
  },
  {
    name: 'watch_summary',
    otherNames: ['wchs'],
    word: 'wchs',
    report: ({ watches }) => {
      const { watcherCount, pathCount, watchCount } = watches.dataSummary();
      return { num_connections: watcherCount, num_paths: pathCount, num_total_watches: watchCount };
    },
  },
  {
    name: 'watches',
    otherNames: ['wchc'],
    word: 'wchc',
    long: true,
    report: ({ watches }) => ({
      session_id_to_watched_paths: new JsonEntries(
        mapped(watches.dataWatchers(), (watcher) => [
          String(sessionIdOf(watcher)),
          new JsonItems(watches.dataPathsOf(watcher)),
        ]),
      ),
    }),
  },
  {
    name: 'watches_by_path',
    otherNames: ['wchp'],
    word: 'wchp',
    long: true,
    report: ({ watches }) => ({
      path_to_session_ids: new JsonEntries(
        mapped(watches.dataWatches(), ([path, watching]) => [
          path,
          new JsonItems(mapped(watching.keys(), sessionIdOf)),
        ]),
      ),
    }),
  },
];

function serverStats(server: Reported, { nowMs }: Asking): JsonObject {
  const { statistics, connections, tree, disk } = server;
  const { latencies } = statistics;
  const folderBytes = disk?.bytes() ?? 0;
  return {
    version: VERSION_TEXT,
    read_only: server.readOnly,
    server_stats: {
      packets_sent: statistics.sentCount,
      packets_received: statistics.receivedCount,
      fsync_threshold_exceed_count: disk?.statistics.slowSyncCount ?? 0,
      data_dir_size: folderBytes,
      log_dir_size: folderBytes,
      provider_null: false,
      server_state: server.readOnly ? 'read-only' : 'standalone',
      last_processed_zxid: server.zxid,
      outstanding_requests: outstandingCount(connections),
      avg_latency: averageLatencyMs(statistics),
      max_latency: latencies.maxMs,
      min_latency: latencies.minMs,
      num_alive_client_connections: connections.size,
      uptime: Math.floor(nowMs - server.startedAtMs),
    },
    node_count: tree.nodeCount,
  };
}

function connectionLists(
  { connections, listening }: Reported,
  show: (connection: ServerConnection) => JsonObject,
): JsonObject {
  const shown = new JsonItems(mapped(connections, show));
  const secure = listening.securePort !== undefined;
  return { connections: secure ? [] : shown, secure_connections: secure ? shown : [] };
}

function connectionBrief(connection: ServerConnection): JsonObject {
  const { heldCount, receivedCount, sentCount } = connection;
  return {
    remote_socket_address: addressOf(connection),
    interest_ops: interestOf(connection),
    outstanding_requests: heldCount,
    packets_received: receivedCount,
    packets_sent: sentCount,
  };
}

function connectionDetail(connection: ServerConnection, { nowMs, wallMs }: Asking): JsonObject {
  const { session, latencies } = connection;
  const detail: Record<string, Json> = { ...connectionBrief(connection) };
  if (!session) return detail;
  return {
    ...detail,
    session_id: session.id,
    last_operation: operationLabel(connection),
    established: Math.round(wallMs - (nowMs - connection.openedAtMs)),
    session_timeout: session.timeoutMs,
    last_cxid: connection.lastXid,
    last_zxid: connection.lastZxid,
    last_response_time: Math.floor(connection.lastResponseAtMs),
    last_latency: latencies.lastMs,
    min_latency: latencies.minMs,
    avg_latency: Math.floor(latencies.averageMs),
    max_latency: latencies.maxMs,
  };
}

function sessionIdOf({ session }: ServerConnection): bigint {
  return session?.id ?? 0n;
}
