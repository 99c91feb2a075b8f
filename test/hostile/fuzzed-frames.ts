import type { Random } from '../../src/base/random.ts';
import { capturedFrames } from '../../src/protocol/captured-frames.test-data.ts';
import type { operations } from '../../src/protocol/operations.ts';
import { node, OPEN_ACL, requestFrame } from '../../src/server/memory-client.test-data.ts';

const PREFIX_BYTES = 4;
const HEADER_BYTES = 8;

export const below = (random: Random, limit: number): number => random.u32() % limit;
export const pick = <T>(random: Random, items: readonly T[]): T => items[below(random, items.length)]!;

const NAMES = ['a', 'b', 'c', 'd-', 'é', 'zookeeper', 'quota', 'x'.repeat(40)];

/** A path of the small tree that all fuzzed clients share, so that they get in each other's way. */
function somePath(random: Random): string {
  const depth = 1 + below(random, 3);
  return Array.from({ length: depth }, () => `/${pick(random, NAMES)}`).join('');
}

const text = (value: string) => Buffer.from(value, 'utf8');
const flagsOf = (random: Random) => below(random, 4);

type Maker = (random: Random) => Buffer;
const made = (name: keyof typeof operations, record: (random: Random) => unknown): Maker => {
  return (random) => requestFrame(0, name, record(random));
};
const watched = (random: Random) => ({ path: somePath(random), watch: below(random, 4) === 0 });
const paths = (random: Random) => Array.from({ length: below(random, 4) }, () => somePath(random));
const someAcl = (random: Random) =>
  pick(random, [
    OPEN_ACL,
    OPEN_ACL,
    [{ perms: below(random, 32), id: { scheme: 'digest', id: 'ann:hash' } }, ...OPEN_ACL],
    [{ perms: 31, id: { scheme: 'auth', id: '' } }],
    [{ perms: 31, id: { scheme: 'ip', id: '127.0.0.0/8' } }],
    [],
    null,
  ]);
const creation = (random: Random) => ({
  ...node(
    somePath(random),
    pick(random, [null, text(''), text('data'), Buffer.alloc(300, 1)]),
    flagsOf(random),
  ),
  acl: someAcl(random),
});
const timed = (random: Random) => ({ ...creation(random), flags: 5 + below(random, 2), ttl: 5_000n });
const versioned = (random: Random) => ({ path: somePath(random), version: below(random, 3) - 1 });
const multiOps = (random: Random) =>
  Array.from({ length: below(random, 6) }, () =>
    pick(random, [
      () => ({ op: 'create', request: creation(random) }),
      () => ({ op: 'create2', request: creation(random) }),
      () => ({ op: 'createContainer', request: { ...creation(random), flags: 4 } }),
      () => ({ op: 'createTtl', request: timed(random) }),
      () => ({ op: 'delete', request: versioned(random) }),
      () => ({ op: 'setData', request: { ...versioned(random), data: text('multi') } }),
      () => ({ op: 'check', request: versioned(random) }),
    ])(),
  );

/** A good request of every kind there is. */
const makers: readonly Maker[] = [
  made('create', creation),
  made('create', creation),
  made('create2', creation),
  made('createContainer', (random) => ({ ...creation(random), flags: 4 })),
  made('createTtl', timed),
  made('delete', versioned),
  made('setData', (random) => ({ ...versioned(random), data: text('written') })),
  made('exists', watched),
  made('getData', watched),
  made('getAcl', (random) => ({ path: somePath(random) })),
  made('setAcl', (random) => ({ ...versioned(random), acl: someAcl(random) })),
  made('getChildren', watched),
  made('getChildren2', watched),
  made('sync', (random) => ({ path: somePath(random) })),
  made('ping', () => undefined),
  made('multi', multiOps),
  made('multi', multiOps),
  made('multiRead', (random) =>
    Array.from({ length: below(random, 5) }, () => ({
      op: pick(random, ['getData', 'getChildren']),
      request: watched(random),
    })),
  ),
  made('reconfig', () => ({ joiningServers: 'x', leavingServers: null, newMembers: null, curConfigId: -1n })),
  made('checkWatches', (random) => ({ path: somePath(random), type: 1 + below(random, 5) })),
  made('removeWatches', (random) => ({ path: somePath(random), type: 1 + below(random, 5) })),
  made('auth', (random) => ({ type: 0, scheme: 'digest', auth: text(`user${below(random, 9)}:pw`) })),
  made('setWatches', (random) => ({
    relativeZxid: BigInt(below(random, 1_000)),
    dataWatches: paths(random),
    existWatches: paths(random),
    childWatches: paths(random),
  })),
  made('setWatches2', (random) => ({
    relativeZxid: BigInt(below(random, 1_000)),
    dataWatches: paths(random),
    existWatches: paths(random),
    childWatches: paths(random),
    persistentWatches: paths(random),
    persistentRecursiveWatches: paths(random),
  })),
  made('sasl', () => ({ token: text('token') })),
  made('getEphemerals', (random) => ({ prefixPath: somePath(random) })),
  made('getAllChildrenNumber', (random) => ({ path: somePath(random) })),
  made('addWatch', (random) => ({ path: somePath(random), mode: below(random, 2) })),
  made('whoAmI', () => undefined),
  made('closeSession', () => undefined),
];

/** Requests as a packet capture of real clients shows them. */
const captured: readonly Buffer[] = capturedFrames
  .filter(({ from, name }) => from === 'client' && !/connect|handshake|session/i.test(name))
  .map(({ bytes }) => bytes);

type Mutation = (body: Buffer, random: Random) => Buffer;
const mutations: readonly Mutation[] = [
  function flipBits(body, random) {
    for (let count = 1 + below(random, 4); count > 0; count--) {
      const at = below(random, body.byteLength);
      body[at] = body[at]! ^ (1 << below(random, 8));
    }
    return body;
  },
  function lieAboutLength(body, random) {
    if (body.byteLength < 4) return body;
    // Fields lie where the ones before them end: mostly on a boundary, so try several places for a small number.
    let at = below(random, body.byteLength - 3);
    for (let tries = 0; tries < 8 && Math.abs(body.readInt32BE(at)) > body.byteLength; tries++)
      at = below(random, body.byteLength - 3);
    const length = body.readInt32BE(at);
    const lies = [0, -1, 1, length - 1, length + 1, 0x7fffffff, 1e9, 2 ** 20 - 1, -2, -(2 ** 31)];
    body.writeInt32BE(pick(random, lies) | 0, at);
    return body;
  },
  function cutShort(body, random) {
    return body.subarray(0, below(random, body.byteLength + 1));
  },
  function splice(body, random) {
    const other = pick(random, captured).subarray(PREFIX_BYTES + HEADER_BYTES);
    const from = below(random, other.byteLength + 1);
    return Buffer.concat([body.subarray(0, below(random, body.byteLength + 1)), other.subarray(from)]);
  },
  function repeatPart(body, random) {
    const start = below(random, body.byteLength);
    return Buffer.concat([body, body.subarray(start, start + below(random, 64))]);
  },
  function overwrite(body, random) {
    const at = below(random, body.byteLength);
    body.set(random.bytes(Math.min(body.byteLength - at, 1 + below(random, 12))), at);
    return body;
  },
];

/** One fuzzed frame and what the server must make of its header. */
export interface FuzzedFrame {
  readonly bytes: Buffer;
  readonly opcode: number;
  /** Whether the length in front of it is a lie, so that nobody can say where it ends. */
  readonly broken: boolean;
}

/** A request that is good, or was once, or never; its xid is the given one. */
export function fuzzedFrame(random: Random, xid: number): FuzzedFrame {
  const kind = below(random, 100);
  const original = kind < 80 ? pick(random, makers)(random) : pick(random, captured);
  let opcode = original.readInt32BE(PREFIX_BYTES + 4);
  let body: Buffer = Buffer.from(original.subarray(PREFIX_BYTES + HEADER_BYTES));
  if (kind >= 95) body = Buffer.from(random.bytes(below(random, 64)));
  // Half are left as they are: without nodes, watches and sessions there is nothing to confuse.
  for (let count = pick(random, [0, 0, 0, 1, 1, 3]); count > 0; count--)
    if (body.byteLength > 0) body = pick(random, mutations)(body, random);
  if (below(random, 50) === 0)
    opcode = pick(random, [opcode ^ (1 << below(random, 32)), 13, 20, -10, below(random, 120)]);
  const bytes = Buffer.alloc(PREFIX_BYTES + HEADER_BYTES + body.byteLength);
  bytes.writeInt32BE(bytes.byteLength - PREFIX_BYTES, 0);
  bytes.writeInt32BE(xid, PREFIX_BYTES);
  bytes.writeInt32BE(opcode, PREFIX_BYTES + 4);
  bytes.set(body, PREFIX_BYTES + HEADER_BYTES);
  const broken = below(random, 200) === 0;
  if (broken) bytes.writeInt32BE(pick(random, [0, -1, 1, bytes.byteLength, 0x7fffffff, 1e9, 2 ** 20]), 0);
  return { bytes, opcode, broken };
}
