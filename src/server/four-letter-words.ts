import type { ProcessFacts } from '../base/process-facts.ts';
import type { DataTree } from './data-tree.ts';
import type { ServerConnection } from './server-connection.ts';
import type { ServerStatistics } from './server-statistics.ts';
import type { SessionTable } from './session-table.ts';
import type { WatchTable } from './watch-table.ts';

/**
 * The version shown to operators and clients, in ZooKeeper's form.
 *
 * 3.9 because that is whose semantics are implemented: kazoo takes the digits out of `envi` and offers create2,
 * containers and reconfig from 3.5 on only; monitors take 3.6 and later to have `zk_uptime` and a decimal average
 * latency. What follows the dash is where ZooKeeper has its commit, which no client reads. The date is part of the
 * form; it is fixed, as two builds of one source are to be the same.
 */
export const VERSION_TEXT = '3.9.0-holdfast, built on 2025-01-01 00:00 UTC';

/** What the words tell of; the server core is one. */
export interface Reported {
  readonly tree: DataTree;
  readonly sessions: SessionTable<ServerConnection>;
  readonly watches: WatchTable<ServerConnection>;
  readonly connections: ReadonlySet<ServerConnection>;
  readonly statistics: ServerStatistics;
  readonly limits: {
    readonly tickMs: number;
    readonly sessionTimeoutMsMin: number;
    readonly sessionTimeoutMsMax: number;
    readonly connectionsPerAddressMax: number;
    readonly handshakeMs: number;
  };
  readonly zxid: bigint;
  readonly startedAtMs: number;
  /** Whether the disk takes nothing, so that nothing may change. */
  readonly readOnly: boolean;
  /** Where clients reach it; undefined for what it does not listen on. */
  readonly listening: { readonly port?: number; readonly securePort?: number };
}

/** One asking: who asks, and when. */
export interface Asking {
  readonly asker: ServerConnection;
  readonly nowMs: number;
  readonly wallMs: number;
  processFacts(): ProcessFacts;
}

type Report = (server: Reported, asking: Asking) => string;

/** The words that are answered, and with what. `gtmk`, `stmk` and `hash` tell of things there are none of here. */
const reports = {
  ruok: () => 'imok',
  isro: ({ readOnly }) => (readOnly ? 'ro' : 'rw'),
  srvr: (server) => `${versionLine()}${summary(server)}`,
  stat: (server, asking) => {
    const clients = [...server.connections].map((connection) => `${connectionText(connection, asking)})\n`);
    return `${versionLine()}Clients:\n${clients.join('')}\n${summary(server)}`;
  },
  mntr: monitor,
  conf: configuration,
  cons: (server, asking) => {
    const lines = [...server.connections].map((connection) => `${connectionDetail(connection, asking)})\n`);
    return `${lines.join('')}\n`;
  },
  crst: (server) => {
    for (const connection of server.connections) connection.resetStatistics();
    return 'Connection stats reset.\n';
  },
  srst: (server) => {
    server.statistics.reset();
    return 'Server stats reset.\n';
  },
  dump: (server, asking) =>
    `${sessionDump(server, asking)}${ephemeralDump(server)}${connectionDump(server, asking)}`,
  envi: environment,
  wchs: watchSummary,
  wchc: watchesBySession,
  wchp: watchesByPath,
  dirs: () => 'datadir_size: 0\nlogdir_size: 0\n',
} as const satisfies Record<string, Report>;

/** One of the words. */
export type FourLetterWord = keyof typeof reports;

/** What is answered unless told otherwise: what monitors and clients ask for, and nothing that names clients. */
export const defaultFourLetterWords: readonly FourLetterWord[] = ['srvr', 'ruok', 'mntr', 'isro'];

/** The word that these bytes begin with, if they do. No frame can be as long as a word read as a length. */
export function fourLetterWordOf(bytes: Buffer): FourLetterWord | undefined {
  const text = bytes.toString('latin1', 0, WORD_BYTES);
  return Object.hasOwn(reports, text) ? (text as FourLetterWord) : undefined;
}
export const WORD_BYTES = 4;

/** The answer to a word. Unlike an unknown word, one that is not allowed is answered, with a sentence. */
export function answerFourLetterWord(
  word: FourLetterWord,
  allowed: readonly string[] | '*',
  server: Reported,
  asking: Asking,
): string {
  if (allowed !== '*' && !allowed.includes(word)) {
    return `${word} is not executed because it is not in the whitelist.\n`;
  }
  return (reports[word] as Report)(server, asking);
}

function versionLine(): string {
  return `Zookeeper version: ${VERSION_TEXT}\n`;
}

function summary({ statistics, connections, zxid, tree, readOnly }: Reported): string {
  const { latencies, receivedCount, sentCount } = statistics;
  const average = decimal(latencies.averageMs);
  return [
    `Latency min/avg/max: ${latencies.minMs}/${average}/${latencies.maxMs}`,
    `Received: ${receivedCount}`,
    `Sent: ${sentCount}`,
    `Connections: ${connections.size}`,
    `Outstanding: ${outstandingCount(connections)}`,
    `Zxid: ${hex(zxid)}`,
    `Mode: ${readOnly ? 'read-only' : 'standalone'}`,
    `Node count: ${tree.nodeCount}`,
    '',
  ].join('\n');
}

function monitor(server: Reported, { nowMs, processFacts }: Asking): string {
  const { statistics, connections, tree, sessions, watches } = server;
  const { latencies } = statistics;
  const { openFileCount, openFilesMax } = processFacts();
  const values: Record<string, string | number | undefined> = {
    version: VERSION_TEXT,
    server_state: server.readOnly ? 'read-only' : 'standalone',
    ephemerals_count: tree.ephemeralCount,
    num_alive_connections: connections.size,
    avg_latency: decimal(latencies.averageMs),
    min_latency: latencies.minMs,
    max_latency: latencies.maxMs,
    outstanding_requests: outstandingCount(connections),
    packets_received: statistics.receivedCount,
    packets_sent: statistics.sentCount,
    znode_count: tree.nodeCount,
    watch_count: watches.count,
    global_sessions: sessions.count,
    local_sessions: 0,
    approximate_data_size: tree.dataBytes,
    open_file_descriptor_count: openFileCount,
    max_file_descriptor_count: openFilesMax,
    uptime: Math.floor(nowMs - server.startedAtMs),
  };
  return Object.entries(values)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `zk_${key}\t${value}\n`)
    .join('');
}

function configuration({ listening, limits }: Reported): string {
  return lines({
    clientPort: listening.port ?? -1,
    secureClientPort: listening.securePort ?? -1,
    dataDir: '',
    dataDirSize: 0,
    dataLogDir: '',
    dataLogSize: 0,
    tickTime: limits.tickMs,
    maxClientCnxns: limits.connectionsPerAddressMax,
    minSessionTimeout: limits.sessionTimeoutMsMin,
    maxSessionTimeout: limits.sessionTimeoutMsMax,
    clientPortListenBacklog: -1,
    serverId: 0,
  });
}

function environment(_server: Reported, { processFacts }: Asking): string {
  const facts = processFacts();
  const values = lines({
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
  });
  return `Environment:\n${values}`;
}

// Connections

const READS = 1;
const READS_AND_WRITES = 5;

/** Without the closing bracket, before which `cons` has more to say. */
function connectionText(connection: ServerConnection, { asker }: Asking): string {
  // ZooKeeper shows what it waits for on the socket: nothing more of the one that asks, since that is about to end.
  const waitsFor = connection === asker ? 0 : connection.link.bufferedBytes > 0 ? READS_AND_WRITES : READS;
  const { heldCount, receivedCount, sentCount } = connection;
  return ` ${socketName(connection)}[${waitsFor}](queued=${heldCount},recved=${receivedCount},sent=${sentCount}`;
}

function connectionDetail(connection: ServerConnection, asking: Asking): string {
  const { session, latencies, lastXid, lastZxid } = connection;
  const brief = connectionText(connection, asking);
  if (!session) return brief;
  const establishedAtMs = asking.wallMs - (asking.nowMs - connection.openedAtMs);
  return [
    brief,
    `sid=${hex(session.id)}`,
    `lop=${OPERATION_NAMES[connection.lastOperation] ?? 'NA'}`,
    `est=${Math.round(establishedAtMs)}`,
    `to=${session.timeoutMs}`,
    ...(lastXid >= 0 ? [`lcxid=${hex(BigInt(lastXid))}`] : []),
    `lzxid=${hex(lastZxid)}`,
    `lresp=${Math.floor(connection.lastResponseAtMs)}`,
    `llat=${latencies.lastMs}`,
    `minlat=${latencies.minMs}`,
    `avglat=${Math.floor(latencies.averageMs)}`,
    `maxlat=${latencies.maxMs}`,
  ].join(',');
}

/** ZooKeeper's abbreviations of our operations' names. */
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

function outstandingCount(connections: ReadonlySet<ServerConnection>): number {
  let count = 0;
  for (const { heldCount } of connections) count += heldCount;
  return count;
}

// What is due when

function sessionDump({ sessions }: Reported, asking: Asking): string {
  const sets = sessions
    .buckets()
    .map(([atMs, bucket]): DueSet => [atMs, [...bucket].map(({ id }) => hex(id))]);
  return `SessionTracker dump:\nSession Sets ${dueSets(sets, asking)}`;
}

function ephemeralDump({ tree }: Reported): string {
  const owners = [...tree.sessionsWithEphemerals()];
  return `ephemeral nodes dump:\nSessions with Ephemerals (${owners.length}):\n${listing(
    owners.map(([id, paths]) => [`${hex(id)}:`, paths]),
  )}`;
}

function connectionDump({ connections, limits }: Reported, asking: Asking): string {
  const due = new Map<number, string[]>();
  for (const connection of connections) {
    const { session, openedAtMs } = connection;
    const atMs = session?.expiresAtMs ?? openedAtMs + limits.handshakeMs;
    const line = `ip: ${socketName(connection)} sessionId: ${hex(session?.id ?? 0n)}`;
    due.set(atMs, [...(due.get(atMs) ?? []), line]);
  }
  return `Connections dump:\nConnections Sets ${dueSets([...due], asking)}`;
}

type DueSet = [atMs: number, lines: readonly string[]];

function dueSets(sets: readonly DueSet[], { nowMs, wallMs }: Asking): string {
  const total = sets.reduce((sum, [, entries]) => sum + entries.length, 0);
  const sorted = [...sets].sort(([a], [b]) => a - b);
  return `(${sets.length})/(${total}):\n${listing(
    sorted.map(([atMs, entries]) => [
      `${entries.length} expire at ${dateText(wallMs + atMs - nowMs)}:`,
      entries,
    ]),
  )}`;
}

// Watches: of the data table alone, as ZooKeeper shows them.

function watchSummary({ watches }: Reported): string {
  const watchers = new Set<ServerConnection>();
  let pathCount = 0;
  let watchCount = 0;
  for (const [, watching] of watches.dataWatches()) {
    pathCount++;
    watchCount += watching.size;
    for (const watcher of watching.keys()) watchers.add(watcher);
  }
  return `${watchers.size} connections watching ${pathCount} paths\nTotal watches:${watchCount}\n`;
}

function watchesBySession({ watches }: Reported): string {
  const paths = new Map<string, string[]>();
  for (const [path, watching] of watches.dataWatches()) {
    for (const { session } of watching.keys()) {
      const id = hex(session?.id ?? 0n);
      paths.set(id, [...(paths.get(id) ?? []), path]);
    }
  }
  return `${listing(paths)}\n`;
}

function watchesByPath({ watches }: Reported): string {
  const sessions = [...watches.dataWatches()].map(
    ([path, watching]) => [path, [...watching.keys()].map(({ session }) => hex(session?.id ?? 0n))] as const,
  );
  return `${listing(sessions)}\n`;
}

// Forms

/** Heads at the margin, what belongs to each below it behind a tab. */
function listing(groups: Iterable<readonly [head: string, entries: Iterable<string>]>): string {
  let text = '';
  for (const [head, entries] of groups) {
    text += `${head}\n`;
    for (const entry of entries) text += `\t${entry}\n`;
  }
  return text;
}

function lines(values: Readonly<Record<string, string | number>>): string {
  return Object.entries(values)
    .map(([key, value]) => `${key}=${value}\n`)
    .join('');
}

function socketName({ peer }: ServerConnection): string {
  return `/${peer.address}:${peer.port}`;
}

/** As Java prints a long: no sign. */
function hex(value: bigint): string {
  return `0x${BigInt.asUintN(64, value).toString(16)}`;
}

/** As Java prints a double that was rounded to four places. */
function decimal(value: number): string {
  const rounded = Math.round(value * 10_000) / 10_000;
  return Number.isInteger(rounded) ? `${rounded}.0` : `${rounded}`;
}

function megabytes(bytes: number): string {
  return `${Math.floor(bytes / 2 ** 20)}MB`;
}

const dateParts = new Intl.DateTimeFormat('en-US', {
  timeZone: 'UTC',
  hourCycle: 'h23',
  weekday: 'short',
  month: 'short',
  day: '2-digit',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  year: 'numeric',
});

/** As Java prints a date, e.g. `Mon Nov 16 01:43:36 UTC 2026`. */
function dateText(wallMs: number): string {
  const parts: Partial<Record<Intl.DateTimeFormatPartTypes, string>> = {};
  for (const { type, value } of dateParts.formatToParts(wallMs)) parts[type] = value;
  const { weekday, month, day, hour, minute, second, year } = parts;
  return `${weekday} ${month} ${day} ${hour}:${minute}:${second} UTC ${year}`;
}
