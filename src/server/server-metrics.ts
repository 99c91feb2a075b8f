import type { ProcessFacts } from '../base/process-facts.ts';
import { averageLatencyMs, outstandingCount, type Reported, VERSION_TEXT } from './reported.ts';

/** One thing that is measured. Those that ZooKeeper has too bear its name; the others begin with `holdfast_`. */
export interface Metric {
  readonly name: string;
  readonly help: string;
  readonly type: 'gauge' | 'counter' | 'summary';
  readonly samples: readonly Sample[];
}

export interface Sample {
  readonly suffix?: '_count' | '_sum';
  readonly label?: readonly [name: string, value: string];
  readonly value: number;
}

export const OWN_PREFIX = 'holdfast_';

/** Everything that is measured, as of now. What this server or this system cannot tell is left out. */
export function metricsOf(server: Reported, nowMs: number, facts: ProcessFacts): Metric[] {
  return [...gauges(server, nowMs, facts), ...counters(server), ...diskMetrics(server)];
}

/** What `mntr` shows: version, state, and every metric that has a ZooKeeper name. */
export function monitorValues(
  server: Reported,
  nowMs: number,
  facts: ProcessFacts,
): Readonly<Record<string, string | number>> {
  const values: Record<string, string | number> = {
    version: VERSION_TEXT,
    server_state: server.readOnly ? 'read-only' : 'standalone',
  };
  for (const { name, samples } of metricsOf(server, nowMs, facts)) {
    if (name.startsWith(OWN_PREFIX)) continue;
    for (const { suffix, value } of samples) {
      const prefix = suffix === undefined ? '' : suffix === '_count' ? 'cnt_' : 'sum_';
      values[`${prefix}${name}`] = value;
    }
  }
  return values;
}

function gauges(server: Reported, nowMs: number, facts: ProcessFacts): Metric[] {
  const { statistics, connections, tree, sessions, watches, disk } = server;
  const { latencies } = statistics;
  const { openFileCount, openFilesMax } = facts;
  const last = disk?.statistics.lastSnapshot;
  const values: readonly [name: string, help: string, value: number | undefined][] = [
    ['ephemerals_count', 'Ephemeral nodes', tree.ephemeralCount],
    ['num_alive_connections', 'Client connections', connections.size],
    [
      'avg_latency',
      'Average milliseconds from a request to its answer, since the last srst',
      averageLatencyMs(statistics),
    ],
    ['min_latency', 'Least milliseconds from a request to its answer, since the last srst', latencies.minMs],
    ['max_latency', 'Most milliseconds from a request to its answer, since the last srst', latencies.maxMs],
    ['outstanding_requests', 'Answers that wait for the disk', outstandingCount(connections)],
    ['packets_received', 'Frames received, since the last srst', statistics.receivedCount],
    ['packets_sent', 'Frames sent, since the last srst', statistics.sentCount],
    ['znode_count', 'Nodes', tree.nodeCount],
    ['watch_count', 'Watches', watches.count],
    ['global_sessions', 'Sessions, connected or not', sessions.count],
    ['local_sessions', 'Sessions that only one server of an ensemble knows: none', 0],
    ['approximate_data_size', 'Bytes of paths and contents', tree.dataBytes],
    ['open_file_descriptor_count', 'Open files of the process', openFileCount],
    ['max_file_descriptor_count', 'Open files the process may have', openFilesMax],
    ['uptime', 'Milliseconds since the start', Math.floor(nowMs - server.startedAtMs)],
    ['holdfast_writes_refused', '1 while the disk takes no writes', server.writeFault === undefined ? 0 : 1],
    ['holdfast_folder_bytes', 'Bytes of the files in the folder', disk?.bytes()],
    ['holdfast_fsync_ms_max', 'Longest fsync of the log, in milliseconds', disk?.statistics.syncMsMax],
    ['holdfast_last_snapshot_bytes', 'Size of the newest snapshot of this run', last?.bytes],
    [
      'holdfast_last_snapshot_timestamp_seconds',
      'When the newest snapshot of this run was taken',
      last && last.wallMs / 1000,
    ],
  ];
  return values.flatMap(([name, help, value]): Metric[] =>
    value === undefined ? [] : [{ name, help, type: 'gauge', samples: [{ value }] }],
  );
}

function counters({ statistics }: Reported): Metric[] {
  const { counts } = statistics;
  const dropped = Object.entries(counts.dropped);
  const values: readonly [name: string, help: string, value: number][] = [
    ['connection_request_count', 'Connect requests', counts.connectRequestCount],
    ['connection_rejected', 'Connections refused by a limit', counts.refusedConnectionCount],
    ['connection_drop_count', 'Connections the server cut off', dropped.reduce((sum, [, n]) => sum + n, 0)],
    [
      'sessionless_connections_expired',
      'Connections without a connect request in time',
      counts.dropped['handshake-time'],
    ],
    ['stale_sessions_expired', 'Sessions expired', counts.expiredSessionCount],
    ['holdfast_sessions_opened_total', 'Sessions opened', counts.openedSessionCount],
    [
      'holdfast_sessions_renewed_total',
      'Sessions taken up by another connection',
      counts.renewedSessionCount,
    ],
    ['holdfast_sessions_closed_total', 'Sessions closed by their clients', counts.closedSessionCount],
  ];
  return [
    ...values.map(([name, help, value]): Metric => ({ name, help, type: 'counter', samples: [{ value }] })),
    {
      name: 'holdfast_connections_dropped_total',
      help: 'Connections the server cut off, by reason',
      type: 'counter',
      samples: dropped.map(([reason, value]) => ({ label: ['reason', reason], value })),
    },
  ];
}

function diskMetrics({ disk }: Reported): Metric[] {
  if (!disk) return [];
  const { syncCount, syncMsSum, snapshotCount, snapshotMsSum, logBytes, slowSyncCount } = disk.statistics;
  const summary = (name: string, help: string, count: number, sum: number): Metric => ({
    name,
    help,
    type: 'summary',
    samples: [
      { suffix: '_count', value: count },
      { suffix: '_sum', value: sum },
    ],
  });
  const counter = (name: string, help: string, value: number): Metric => ({
    name,
    help,
    type: 'counter',
    samples: [{ value }],
  });
  return [
    summary('fsynctime', 'Milliseconds of fsyncs of the log', syncCount, syncMsSum),
    summary('snapshottime', 'Milliseconds of snapshots', snapshotCount, snapshotMsSum),
    counter('holdfast_log_bytes_total', 'Bytes of transactions written', logBytes),
    counter('holdfast_slow_fsyncs_total', 'Fsyncs that took a second or more', slowSyncCount),
  ];
}
