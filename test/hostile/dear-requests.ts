import type { Random } from '../../src/base/random.ts';
import { addWatchModes } from '../../src/protocol/constants.ts';
import type { operations } from '../../src/protocol/operations.ts';
import { node, requestFrame } from '../../src/server/memory-client.test-data.ts';
import { deepPath, GUARDED_COUNT, WATCHED_COUNT, watchedPath } from './dear-tree.ts';
import { below, pick } from './fuzzed-frames.ts';

type Name = keyof typeof operations;
/** Requests of one kind, to be sent one behind the other. */
type Dear = (random: Random) => readonly (readonly [name: Name, record?: unknown])[];

const OPS_MAX = 1_000;
const OWN_ACL = [{ perms: 31, id: { scheme: 'auth', id: '' } }];
const times = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index));
const guarded = (index: number) => `/guarded/${index % GUARDED_COUNT}`;
let made = 0;
/** A path that no request has made before. */
const fresh = () => `/home/${made++}`;
const ephemerals = (count: number) => times(count, () => ({ op: 'create', request: node(fresh(), null, 1) }));
/** Too long to be allowed, and to be looked at at once. */
const endlessAcl = times(50_000, (index) => ({ perms: 1, id: { scheme: 'ip', id: `${index}` } }));

/** The dearest requests there are, by what makes them so. */
export const dearRequests: Readonly<Record<string, Dear>> = {
  'a million nodes to count': () => times(200, () => ['getAllChildrenNumber', { path: '/' }] as const),
  'a hundred thousand names to list': () => [['getChildren2', { path: '/names', watch: true }]],
  'the largest multi: creates, each for as many as one can be': () => [
    ...identities(300),
    ['multi', times(OPS_MAX, () => ({ op: 'create', request: { ...node(fresh(), null, 1), acl: OWN_ACL } }))],
  ],
  'the largest multi: checks of long access lists': () => [
    ...identities(50),
    ['multi', times(OPS_MAX, (index) => ({ op: 'check', request: { path: guarded(index), version: -1 } }))],
  ],
  'the largest multi: writes that many watch': () => [
    ['addWatch', { path: '/watched', mode: addWatchModes['persistent-recursive'] }],
    [
      'multi',
      times(OPS_MAX, (index) => ({
        op: 'setData',
        request: { path: watchedPath(index % WATCHED_COUNT), data: null, version: -1 },
      })),
    ],
  ],
  'the largest multi: more operations than there may be': () => [
    ['multi', times(40_000, () => ({ op: 'check', request: { path: '/', version: -1 } }))],
  ],
  'the largest multiRead: names': () => [
    ['multiRead', times(OPS_MAX, (index) => ({ op: 'getChildren', request: { path: `/many/${index}` } }))],
  ],
  'the largest multiRead: long access lists': () => [
    ...identities(50),
    ['multiRead', times(OPS_MAX, (index) => ({ op: 'getData', request: { path: guarded(index) } }))],
  ],
  'access lists': () => [
    ['create', { ...node(fresh()), acl: endlessAcl }],
    ...times(50, (index) => ['getAcl', { path: guarded(index) }] as const),
    ...times(50, (index) => ['setAcl', { path: guarded(index), acl: OWN_ACL, version: 99 }] as const),
  ],
  'watches by the thousand': (random) => [
    ['setWatches', watchLists(times(60_000, (index) => `/w/${index}-${below(random, 1_000)}`))],
  ],
  'watches that have gone off meanwhile': () => [
    ['setWatches', watchLists(times(20_000, (index) => `/w/${index}`))],
    [
      'setWatches',
      {
        relativeZxid: 0n,
        dataWatches: times(20_000, (index) => `/w/${index}`),
        existWatches: [],
        childWatches: [],
      },
    ],
  ],
  'nodes that end with their session': () => [
    ...times(5, () => ['multi', ephemerals(OPS_MAX)] as const),
    ['getEphemerals', { prefixPath: '/home' }],
    ['closeSession'],
  ],
  'a node far down': () => [
    ['addWatch', { path: '/deep', mode: addWatchModes['persistent-recursive'] }],
    ...times(20, () => ['setData', { path: deepPath, data: null, version: -1 }] as const),
  ],
  'writes by the thousand': () =>
    times(1_500, () => ['create', { ...node(fresh(), null, 1), acl: OWN_ACL }] as const),
};

function watchLists(existWatches: readonly string[]) {
  return { relativeZxid: 0n, dataWatches: [], existWatches, childWatches: [] };
}

function identities(count: number) {
  return times(
    count,
    (index) => ['auth', { type: 0, scheme: 'digest', auth: Buffer.from(`${index}:${index}`) }] as const,
  );
}

/** Requests of a kind as bytes, numbered from an xid on. */
export function encoded(dear: Dear, random: Random, firstXid: number): { bytes: Buffer; lastXid: number } {
  const frames = dear(random).map(([name, record], index) => requestFrame(firstXid + index, name, record));
  return { bytes: Buffer.concat(frames), lastXid: firstXid + frames.length - 1 };
}

export function someDear(random: Random): Dear {
  return dearRequests[pick(random, Object.keys(dearRequests))]!;
}
