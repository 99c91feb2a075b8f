import { givenOf } from '../base/option-names.ts';
import { REQUEST_BYTES_MAX } from '../protocol/constants.ts';

/**
 * What a server is allowed to use up, and how it keeps time. Counts and sizes may be `Infinity`; times may not.
 * What happens beyond each is in docs/embedded-server.md.
 */
export interface ServerLimits {
  readonly tickMs: number;
  readonly sessionTimeoutMsMin: number;
  readonly sessionTimeoutMsMax: number;
  /** How often empty containers and outlived nodes are looked for. */
  readonly reapMs: number;

  readonly connectionsMax: number;
  /** Of one address that is not this machine's own. */
  readonly connectionsPerAddressMax: number;
  /** Of this machine's own programs, which share one address. */
  readonly connectionsPerLoopbackMax: number;
  /** Sessions outlive their connections, by their timeout. */
  readonly sessionsMax: number;
  /** How long a connection may take to become a session. */
  readonly handshakeMs: number;
  /** How long the TLS handshake before it may take. */
  readonly tlsHandshakeMs: number;
  /** How long a peer may take to close after it was told that the connection is over. */
  readonly lingerMs: number;

  readonly frameBytesMax: number;
  /** A longer answer to a read is an error instead; ZooKeeper would send it, and most clients hang up on it. */
  readonly replyBytesMax: number;
  /** Output that a client has not taken: beyond this it is cut off. */
  readonly outputBytesMax: number;
  /** Requests that wait for the disk, of all clients together: beyond this no more is read from those who wait. */
  readonly outstandingMax: number;
  readonly outstandingPerConnectionMax: number;
  /** Requests that are handled per second and connection, as many at once; the rest wait unread. */
  readonly requestsPerSecondMax: number;
  /** Operations in one multi or multiRead. */
  readonly multiOpsMax: number;
  /** What a connection may be known by: schemes and ids. */
  readonly identityBytesMax: number;

  readonly watchesMax: number;
  readonly watchesPerConnectionMax: number;
  /** The paths of all watches: nothing else bounds how long the path of a node may be that is not there. */
  readonly watchBytesMax: number;

  readonly nodesMax: number;
  /** The data of one node. */
  readonly nodeBytesMax: number;
  /** The access list of one node. */
  readonly aclBytesMax: number;
  /** The access lists that one multi writes, together. */
  readonly multiAclBytesMax: number;
  /** Paths, data and access lists of all nodes. */
  readonly dataBytesMax: number;
}

const KIBIBYTE = 1024;
const MEBIBYTE = 1024 * KIBIBYTE;

/** What a server allows unless told otherwise. */
export const defaultLimits: ServerLimits = {
  tickMs: 2_000,
  sessionTimeoutMsMin: 4_000,
  sessionTimeoutMsMax: 40_000,
  reapMs: 60_000,

  connectionsMax: 10_000,
  connectionsPerAddressMax: 60,
  connectionsPerLoopbackMax: 10_000,
  sessionsMax: 100_000,
  handshakeMs: 10_000,
  tlsHandshakeMs: 5_000,
  lingerMs: 5_000,

  frameBytesMax: REQUEST_BYTES_MAX,
  replyBytesMax: 3 * MEBIBYTE,
  outputBytesMax: 4 * MEBIBYTE,
  outstandingMax: 1_000,
  outstandingPerConnectionMax: 100,
  requestsPerSecondMax: Number.POSITIVE_INFINITY,
  multiOpsMax: 1_000,
  identityBytesMax: 16 * KIBIBYTE,

  watchesMax: 1_000_000,
  watchesPerConnectionMax: 100_000,
  watchBytesMax: 128 * MEBIBYTE,

  nodesMax: 1_000_000,
  nodeBytesMax: REQUEST_BYTES_MAX,
  aclBytesMax: 16 * KIBIBYTE,
  multiAclBytesMax: MEBIBYTE,
  dataBytesMax: 1024 * MEBIBYTE,
};

const INT_MAX = 2 ** 31 - 1;
/** What an answer takes besides the data: the header, the data's length, the stat. */
const REPLY_OVERHEAD_BYTES = 128;

/** What a value may be, in words and as a test. */
interface Rule {
  readonly words: string;
  allows(value: number): boolean;
}
const time: Rule = {
  words: 'a positive number of milliseconds',
  allows: (value) => value > 0 && value <= INT_MAX,
};
const amount: Rule = {
  words: 'a positive whole number or Infinity',
  allows: (value) => value === Number.POSITIVE_INFINITY || (Number.isSafeInteger(value) && value > 0),
};
const rate: Rule = { words: 'a positive number or Infinity', allows: (value) => value > 0 };
const frame: Rule = {
  words: `a whole number from 64 to ${INT_MAX}`,
  allows: (value) => Number.isInteger(value) && value >= 64 && value <= INT_MAX,
};

function ruleOf(name: keyof ServerLimits): Rule {
  if (name === 'frameBytesMax') return frame;
  if (name === 'requestsPerSecondMax') return rate;
  return name.includes('Ms') ? time : amount;
}

/**
 * The defaults with what was given in their place. Limits that were left out follow the ones given: whoever allows
 * longer frames gets room for the answers that show them.
 *
 * @throws TypeError for a limit there is none of or that is no number; RangeError for one that cannot be.
 */
export function limitsFrom(given: Partial<ServerLimits> = {}): ServerLimits {
  for (const [name, value] of Object.entries(given) as [keyof ServerLimits, unknown][]) {
    if (!Object.hasOwn(defaultLimits, name)) throw new TypeError(`there is no limit ${name}`);
    if (value === undefined) continue;
    if (typeof value !== 'number') throw new TypeError(`limit ${name} is ${String(value)}; it is a number`);
    const rule = ruleOf(name);
    if (!rule.allows(value)) throw new RangeError(`limit ${name} is ${value}; it is ${rule.words}`);
  }
  const chosen = givenOf(given);
  const frameBytesMax = chosen.frameBytesMax ?? defaultLimits.frameBytesMax;
  const nodeBytesMax = chosen.nodeBytesMax ?? frameBytesMax;
  const replyBytesMax =
    chosen.replyBytesMax ?? Math.max(defaultLimits.replyBytesMax, nodeBytesMax + REPLY_OVERHEAD_BYTES);
  const limits: ServerLimits = {
    ...defaultLimits,
    connectionsPerLoopbackMax: chosen.connectionsMax ?? defaultLimits.connectionsPerLoopbackMax,
    nodeBytesMax,
    replyBytesMax,
    outputBytesMax: Math.max(defaultLimits.outputBytesMax, replyBytesMax + MEBIBYTE),
    ...chosen,
  };
  if (limits.sessionTimeoutMsMin > limits.sessionTimeoutMsMax) {
    throw notAbove(limits, 'sessionTimeoutMsMin', 'sessionTimeoutMsMax');
  }
  // What can be written can be read.
  if (limits.nodeBytesMax + REPLY_OVERHEAD_BYTES > limits.replyBytesMax) {
    throw notAbove(limits, 'nodeBytesMax', 'replyBytesMax', ` less ${REPLY_OVERHEAD_BYTES}`);
  }
  // One answer never costs the connection.
  if (limits.replyBytesMax >= limits.outputBytesMax && limits.outputBytesMax !== Number.POSITIVE_INFINITY) {
    throw notAbove(limits, 'replyBytesMax', 'outputBytesMax', ' less 1');
  }
  return limits;
}

function notAbove(
  limits: ServerLimits,
  lower: keyof ServerLimits,
  upper: keyof ServerLimits,
  less = '',
): RangeError {
  return new RangeError(
    `limit ${lower} is ${limits[lower]}; it is at most ${upper}${less}, which is ${limits[upper]}`,
  );
}
