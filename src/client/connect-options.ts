import { type Clock, systemClock } from '../base/clock.ts';
import { type Log, silentLog } from '../base/log.ts';
import { checkOptionNames, type OptionNames } from '../base/option-names.ts';
import { type Random, systemRandom } from '../base/random.ts';
import { REQUEST_BYTES_MAX } from '../protocol/constants.ts';
import type { LeaseOptions } from '../session/contact.ts';
import type { SaslCredentials } from '../session/sasl-digest-md5.ts';
import type { QueueLimits } from '../session/session-io.ts';
import { checkChoice, checkDuration } from './arguments.ts';
import { type ConnectString, parseConnectString } from './connect-string.ts';
import { readLeaseOptions } from './lease-options.ts';
import type { TlsOptions } from './tcp-tls-options.ts';
import { type Resolve, TcpTransport } from './tcp-transport.ts';
import type { Transport } from './transport.ts';

/** Credentials for one scheme, e.g. `digest` with `user:password`. */
export interface AuthOption {
  readonly scheme: string;
  readonly auth: string | Uint8Array;
}

/** How a client connects, and what it is allowed to take for granted. */
export interface ConnectOptions {
  /** The session timeout to ask for; the server may grant another. 15 s if left out. */
  readonly sessionTimeoutMs?: number;
  /** How long `connect` waits for the first session. 15 s if left out. */
  readonly timeoutMs?: number;
  /** Ends the wait of `connect`; has no effect on the client once connected. */
  readonly signal?: AbortSignal;
  /** How long one server has for accepting a connection and answering. By default a share of the session timeout. */
  readonly dialTimeoutMs?: number;
  /** Credentials to present on every connection, e.g. `{ scheme: 'digest', auth: 'user:password' }`. */
  readonly auth?: readonly AuthOption[];
  /** SASL DIGEST-MD5. */
  readonly sasl?: SaslCredentials;
  /** Certificates; `{}` for TLS with the system's authorities. Plain TCP if left out. */
  readonly tls?: TlsOptions;
  /** Accept a server that is cut off from its quorum, for reads; a read-write one is looked for meanwhile. */
  readonly readOnly?: boolean;
  /**
   * Whether `get`s and `children`s of one tick leave as one request (`multiRead`, ZooKeeper 3.6). By default where the
   * server says, on being asked `srvr`, that it is new enough; it is asked when many are made in one tick. `true`: all
   * servers are new enough. `false`: never.
   */
  readonly gatherReads?: boolean;
  /**
   * How long the answer to a request is waited for without letting the processor sleep; 0 if left out, 1 is enough for a
   * near server. Buys latency with processor time: see docs/performance.md.
   */
  readonly busyPollMs?: number;
  /** What proves to a holder that the leader still knows it: a `sync`, or a write by a quorum. */
  readonly heartbeat?: 'leader' | 'quorum';
  /** How the end of a lease is reckoned. */
  readonly lease?: Partial<LeaseOptions>;
  /**
   * After a lost session, take a server that is behind what this client has seen: of another ensemble, or restored from
   * an older backup. Fencing tokens start lower there, so it is refused by default, and the next server tried.
   */
  readonly acceptOlderServers?: boolean;
  /** How many requests may wait while there is no connection, and of how many bytes together; 100 000 and 64 MiB. */
  readonly queuedRequestsMax?: number;
  readonly queuedBytesMax?: number;
  /** The longest request; as the servers' `jute.maxbuffer` if that was changed. */
  readonly requestBytesMax?: number;
  /** The longest reply; a longer one costs the connection. 64 MiB if left out. */
  readonly replyBytesMax?: number;
  readonly log?: Log;
  /** How host names become addresses; the system's resolver if left out. */
  readonly resolve?: Resolve;
  /** For simulations: time, randomness and the network. */
  readonly clock?: Clock;
  readonly random?: Random;
  readonly transport?: Transport;
}

/** The names of all options of `connect`, for those that pass them on. */
export const connectOptionNames: OptionNames<ConnectOptions> = {
  sessionTimeoutMs: true,
  timeoutMs: true,
  signal: true,
  dialTimeoutMs: true,
  auth: true,
  sasl: true,
  tls: true,
  readOnly: true,
  gatherReads: true,
  busyPollMs: true,
  heartbeat: true,
  lease: true,
  acceptOlderServers: true,
  queuedRequestsMax: true,
  queuedBytesMax: true,
  requestBytesMax: true,
  replyBytesMax: true,
  log: true,
  resolve: true,
  clock: true,
  random: true,
  transport: true,
};
const authNames: OptionNames<AuthOption> = { scheme: true, auth: true };

/** The options with everything filled in and checked. */
export interface ClientConfig extends ConnectString {
  readonly sessionTimeoutMs: number;
  readonly dialTimeoutMs: number;
  readonly auth: readonly AuthOption[];
  readonly sasl: SaslCredentials | undefined;
  readonly readOnly: boolean;
  readonly gatherReads: boolean | undefined;
  readonly busyPollMs: number;
  readonly heartbeat: 'leader' | 'quorum';
  readonly lease: LeaseOptions;
  readonly acceptOlderServers: boolean;
  readonly queueLimits: QueueLimits;
  readonly requestBytesMax: number;
  readonly replyBytesMax: number;
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
  readonly transport: Transport;
}

const INT32_MAX = 2 ** 31 - 1;
const DEFAULT_SESSION_TIMEOUT_MS = 15_000;
const DEFAULT_REPLY_BYTES_MAX = 64 * 1024 * 1024;
/** More is no wait for a near server any more. */
const BUSY_POLL_MS_MAX = 1_000;
/** What waits for a connection, together. */
const QUEUED_REQUESTS_MAX = 100_000;
const QUEUED_BYTES_MAX = 64 * 1024 * 1024;
const DIAL_MS = { min: 500, max: 10_000 };

/** @throws TypeError, RangeError naming the option, what was given and what is allowed. */
export function readOptions(servers: string, options: ConnectOptions): ClientConfig {
  checkOptionNames('connect', options, connectOptionNames);
  const connectString = parseConnectString(servers);
  const random = options.random ?? systemRandom;
  const sessionTimeoutMs = checkDuration(
    'sessionTimeoutMs',
    options.sessionTimeoutMs ?? DEFAULT_SESSION_TIMEOUT_MS,
    { min: 1, max: INT32_MAX },
  );
  if (options.timeoutMs !== undefined)
    checkDuration('timeoutMs', options.timeoutMs, { min: 0, max: INT32_MAX });
  return {
    ...connectString,
    sessionTimeoutMs,
    dialTimeoutMs: checkDuration(
      'dialTimeoutMs',
      options.dialTimeoutMs ?? shareOf(sessionTimeoutMs, connectString.servers.length),
      { min: 1, max: INT32_MAX },
    ),
    auth: checkAuth(options.auth ?? []),
    sasl: options.sasl,
    readOnly: options.readOnly ?? false,
    gatherReads: options.gatherReads,
    busyPollMs: checkDuration('busyPollMs', options.busyPollMs ?? 0, { min: 0, max: BUSY_POLL_MS_MAX }),
    heartbeat: checkChoice('heartbeat', options.heartbeat ?? 'leader', { leader: 0, quorum: 0 }),
    lease: readLeaseOptions(options.lease),
    acceptOlderServers: options.acceptOlderServers ?? false,
    queueLimits: {
      requestsMax: checkCount('queuedRequestsMax', options.queuedRequestsMax ?? QUEUED_REQUESTS_MAX),
      bytesMax: checkCount('queuedBytesMax', options.queuedBytesMax ?? QUEUED_BYTES_MAX),
    },
    requestBytesMax: checkBytes('requestBytesMax', options.requestBytesMax ?? REQUEST_BYTES_MAX),
    replyBytesMax: checkBytes('replyBytesMax', options.replyBytesMax ?? DEFAULT_REPLY_BYTES_MAX),
    log: options.log ?? silentLog,
    clock: options.clock ?? systemClock,
    random,
    transport: options.transport ?? new TcpTransport({ tls: options.tls, random, resolve: options.resolve }),
  };
}

function checkBytes(name: string, bytes: number): number {
  return checkDuration(name, bytes, { min: 1, max: INT32_MAX });
}

function checkCount(name: string, count: number): number {
  return checkDuration(name, count, { min: 1, max: Number.MAX_SAFE_INTEGER });
}

/** A misspelt entry would connect as somebody else: without the rights that were meant. */
function checkAuth(auth: readonly AuthOption[]): readonly AuthOption[] {
  if (!Array.isArray(auth)) throw new TypeError('auth: an array of { scheme, auth } is needed');
  for (const each of auth) {
    checkOptionNames('auth', each, authNames);
    const isSecret = typeof each.auth === 'string' || each.auth instanceof Uint8Array;
    if (typeof each.scheme === 'string' && each.scheme !== '' && isSecret) continue;
    throw new TypeError('auth: an entry needs a scheme, and its credentials as a string or bytes');
  }
  return auth;
}

/** So that, after a silence of 2/3 of the timeout, every server can be tried within the third that is left. */
function shareOf(sessionTimeoutMs: number, serverCount: number): number {
  const share = Math.floor(sessionTimeoutMs / (3 * serverCount));
  return Math.min(DIAL_MS.max, Math.max(DIAL_MS.min, share));
}
