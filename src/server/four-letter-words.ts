import {
  type Asking,
  addressOf,
  environmentOf,
  hex,
  interestOf,
  mapped,
  operationLabel,
  outstandingCount,
  type Reported,
  VERSION_TEXT,
} from './reported.ts';
import type { ServerConnection } from './server-connection.ts';
import { monitorValues } from './server-metrics.ts';

/** One asking, and the connection that it comes from. */
type WordAsking = Asking & { readonly asker: ServerConnection };

/** In parts if it shows something of each connection, session or watch. */
type Report = (server: Reported, asking: WordAsking) => string | Iterable<string>;

/** The words that are answered, and with what. `gtmk`, `stmk` and `hash` tell of things there are none of here. */
const reports = {
  ruok: () => 'imok',
  isro: ({ readOnly }) => (readOnly ? 'ro' : 'rw'),
  srvr: (server) => `${versionLine()}${summary(server)}`,
  *stat(server, asking) {
    const { connections } = server;
    const after = summary(server);
    yield `${versionLine()}Clients:\n`;
    for (const connection of connections) yield `${connectionText(connection, asking)})\n`;
    yield `\n${after}`;
  },
  mntr: (server, { nowMs, processFacts }) =>
    Object.entries(monitorValues(server, nowMs, processFacts()))
      .map(([key, value]) => `zk_${key}\t${key === 'avg_latency' ? decimal(Number(value)) : value}\n`)
      .join(''),
  conf: configuration,
  *cons({ connections }, asking) {
    for (const connection of connections) yield `${connectionDetail(connection, asking)})\n`;
    yield '\n';
  },
  crst: (server) => {
    for (const connection of server.connections) connection.resetStatistics();
    return 'Connection stats reset.\n';
  },
  srst: (server) => {
    server.statistics.reset();
    return 'Server stats reset.\n';
  },
  *dump(server, asking) {
    yield* sessionDump(server, asking);
    yield* ephemeralDump(server);
    yield* connectionDump(server, asking);
  },
  envi: (_server, { processFacts }) => `Environment:\n${lines(environmentOf(processFacts()))}`,
  wchs: watchSummary,
  wchc: watchesBySession,
  wchp: watchesByPath,
  dirs: ({ disk }) => {
    // Logs and snapshots share a folder, so each counts both, as in a ZooKeeper without a `dataLogDir`.
    const bytes = disk?.bytes() ?? 0;
    return `datadir_size: ${bytes}\nlogdir_size: ${bytes}\n`;
  },
} as const satisfies Record<string, Report>;

/** One of the words. */
export type FourLetterWord = keyof typeof reports;

/** What is answered unless told otherwise: what monitors and clients ask for, and nothing that names clients. */
export const defaultFourLetterWords: readonly FourLetterWord[] = ['srvr', 'ruok', 'mntr', 'isro'];

/** @throws TypeError naming what is no word that could be answered. */
export function checkFourLetterWords(words: readonly string[] | '*'): void {
  if (words === '*') return;
  const unknown = words.find((word) => !Object.hasOwn(reports, word));
  if (unknown === undefined) return;
  const known = Object.keys(reports).join(', ');
  throw new TypeError(`fourLetterWords: ${JSON.stringify(unknown)} given; there are ${known}`);
}

/** The word that these bytes begin with, if they do. No frame can be as long as a word read as a length. */
export function fourLetterWordOf(bytes: Buffer): FourLetterWord | undefined {
  const text = bytes.toString('latin1', 0, WORD_BYTES);
  return Object.hasOwn(reports, text) ? (text as FourLetterWord) : undefined;
}
export const WORD_BYTES = 4;

/** The answer to a word, in parts if it may be very long. Unlike an unknown word, one that is not allowed is answered, with a sentence. */
export function answerFourLetterWord(
  word: FourLetterWord,
  allowed: readonly string[] | '*',
  server: Reported,
  asking: WordAsking,
): string | Iterable<string> {
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

function configuration({ listening, limits, disk }: Reported): string {
  const folder = disk?.path ?? '';
  const folderBytes = disk?.bytes() ?? 0;
  return lines({
    clientPort: listening.port ?? -1,
    secureClientPort: listening.securePort ?? -1,
    dataDir: folder,
    dataDirSize: folderBytes,
    dataLogDir: folder,
    dataLogSize: folderBytes,
    tickTime: limits.tickMs,
    maxClientCnxns: limits.connectionsPerAddressMax,
    minSessionTimeout: limits.sessionTimeoutMsMin,
    maxSessionTimeout: limits.sessionTimeoutMsMax,
    clientPortListenBacklog: -1,
    serverId: 0,
  });
}

// Connections

/** Without the closing bracket, before which `cons` has more to say. */
function connectionText(connection: ServerConnection, { asker }: WordAsking): string {
  // ZooKeeper shows what it waits for on the socket: nothing more of the one that asks, since that is about to end.
  const waitsFor = connection === asker ? 0 : interestOf(connection);
  const { heldCount, receivedCount, sentCount } = connection;
  return ` /${addressOf(connection)}[${waitsFor}](queued=${heldCount},recved=${receivedCount},sent=${sentCount}`;
}

function connectionDetail(connection: ServerConnection, asking: WordAsking): string {
  const { session, latencies, lastXid, lastZxid } = connection;
  const brief = connectionText(connection, asking);
  if (!session) return brief;
  const establishedAtMs = asking.wallMs - (asking.nowMs - connection.openedAtMs);
  return [
    brief,
    `sid=${hex(session.id)}`,
    `lop=${operationLabel(connection)}`,
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

// What is due when

function* sessionDump({ sessions }: Reported, asking: Asking): Generator<string> {
  const sets = sessions
    .buckets()
    .map(([atMs, bucket]): DueSet => [atMs, bucket.size, mapped(bucket, ({ id }) => hex(id))]);
  yield 'SessionTracker dump:\nSession Sets ';
  yield* dueSets(sets, asking);
}

function* ephemeralDump({ tree }: Reported): Generator<string> {
  const owners = [...tree.sessionsWithEphemerals()];
  yield `ephemeral nodes dump:\nSessions with Ephemerals (${owners.length}):\n`;
  yield* listing(mapped(owners, ([id, paths]) => [`${hex(id)}:`, paths]));
}

function* connectionDump({ connections, limits }: Reported, asking: Asking): Generator<string> {
  const due = new Map<number, ServerConnection[]>();
  for (const connection of connections) {
    const { session, openedAtMs } = connection;
    const atMs = session?.expiresAtMs ?? openedAtMs + limits.handshakeMs;
    const known = due.get(atMs);
    if (known) known.push(connection);
    else due.set(atMs, [connection]);
  }
  const lineOf = (connection: ServerConnection) =>
    `ip: /${addressOf(connection)} sessionId: ${hex(connection.session?.id ?? 0n)}`;
  yield 'Connections dump:\nConnections Sets ';
  yield* dueSets(
    [...due].map(([atMs, each]): DueSet => [atMs, each.length, mapped(each, lineOf)]),
    asking,
  );
}

type DueSet = [atMs: number, count: number, lines: Iterable<string>];

function* dueSets(sets: readonly DueSet[], { nowMs, wallMs }: Asking): Generator<string> {
  const total = sets.reduce((sum, [, count]) => sum + count, 0);
  const sorted = [...sets].sort(([a], [b]) => a - b);
  yield `(${sets.length})/(${total}):\n`;
  yield* listing(
    mapped(sorted, ([atMs, count, entries]) => [
      `${count} expire at ${dateText(wallMs + atMs - nowMs)}:`,
      entries,
    ]),
  );
}

// Watches: of the data table alone, as ZooKeeper shows them.

function watchSummary({ watches }: Reported): string {
  const { watcherCount, pathCount, watchCount } = watches.dataSummary();
  return `${watcherCount} connections watching ${pathCount} paths\nTotal watches:${watchCount}\n`;
}

function* watchesBySession({ watches }: Reported): Generator<string> {
  yield* listing(
    mapped(watches.dataWatchers(), (watcher) => [
      hex(watcher.session?.id ?? 0n),
      watches.dataPathsOf(watcher),
    ]),
  );
  yield '\n';
}

function* watchesByPath({ watches }: Reported): Generator<string> {
  yield* listing(
    mapped(watches.dataWatches(), ([path, watching]) => [
      path,
      mapped(watching.keys(), ({ session }) => hex(session?.id ?? 0n)),
    ]),
  );
  yield '\n';
}

// Forms

/** Heads at the margin, what belongs to each below it behind a tab. */
function* listing(groups: Iterable<readonly [head: string, entries: Iterable<string>]>): Generator<string> {
  for (const [head, entries] of groups) {
    yield `${head}\n`;
    for (const entry of entries) yield `\t${entry}\n`;
  }
}

function lines(values: Readonly<Record<string, string | number>>): string {
  return Object.entries(values)
    .map(([key, value]) => `${key}=${value}\n`)
    .join('');
}

/** As Java prints a double that was rounded to four places. */
function decimal(value: number): string {
  const rounded = Math.round(value * 10_000) / 10_000;
  return Number.isInteger(rounded) ? `${rounded}.0` : `${rounded}`;
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
