import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { MalformedHistoryError } from './attempts.ts';
import { checkHistory } from './checker.ts';
import { goodHistory, type PlannedAttempt } from './good-history.test-data.ts';
import type { Asked, HistoryEvent, HoldMode, LockRecipe, RegisterWriteEnded, Wrote } from './history.ts';
import { type Property, tellViolation } from './violation.ts';

const MODE: Readonly<Record<LockRecipe, HoldMode>> = {
  mutex: 'exclusive',
  simple: 'exclusive',
  election: 'leader',
  'read-write': 'write',
  semaphore: 'lease',
};

interface Life extends Partial<Omit<Asked, 'kind' | 'attempt'>> {
  /** Asked and granted at these times, with this token and this lease. */
  readonly asked?: number;
  readonly granted?: number;
  readonly token?: number;
  readonly session?: string;
  readonly leaseEnds?: number;
  readonly lost?: number;
  readonly releaseStarted?: number;
  readonly released?: number;
  readonly gaveUp?: number;
}

/** The events of one attempt on lock x. What is left out did not happen. */
function life(attempt: string, recipe: LockRecipe, story: Life): HistoryEvent[] {
  const { asked = 0, granted, token = 1, leaseEnds = 1_000, releaseStarted, released, ...rest } = story;
  const { lost, gaveUp, session, ...options } = rest;
  const events: HistoryEvent[] = [
    { kind: 'asked', atMs: asked, attempt, client: attempt, locks: ['x'], mode: MODE[recipe], ...options },
  ];
  if (granted !== undefined) {
    const lease = { token: BigInt(token), leaseEndsAtMs: leaseEnds, ...(session && { session }) };
    events.push({ kind: 'granted', atMs: granted, attempt, ...lease });
  }
  if (lost !== undefined) events.push({ kind: 'lost', atMs: lost, attempt });
  if (releaseStarted !== undefined) events.push({ kind: 'release-started', atMs: releaseStarted, attempt });
  const releasedAtMs = released ?? releaseStarted;
  if (releasedAtMs !== undefined && released !== Number.POSITIVE_INFINITY) {
    events.push({ kind: 'released', atMs: releasedAtMs, attempt });
  }
  if (gaveUp !== undefined) events.push({ kind: 'gave-up', atMs: gaveUp, attempt, reason: 'timeout' });
  return events;
}

const lock = (recipe: LockRecipe, permits = 3): HistoryEvent => ({
  kind: 'lock',
  atMs: -1,
  lock: 'x',
  recipe,
  permits,
});
const healed: HistoryEvent = { kind: 'healed', atMs: 500 };
const queued = (attempt: string, session: string, czxid: number, name = 'x'): HistoryEvent => ({
  kind: 'queued',
  atMs: 5,
  attempt,
  lock: name,
  session,
  czxid: BigInt(czxid),
});
const stalled = (client: string, fromMs: number, atMs: number): HistoryEvent => ({
  kind: 'stalled',
  fromMs,
  atMs,
  client,
});
const wrote = (token: number, outcome: Wrote['outcome'], more: Partial<Wrote> = {}): HistoryEvent => ({
  kind: 'wrote',
  atMs: token * 10,
  resource: 'r',
  mode: 'write',
  token: BigInt(token),
  outcome,
  fenced: true,
  ...more,
});
const read = (attempt: string, atMs: number, value: string): HistoryEvent => ({
  ...{ kind: 'register-read', atMs, attempt, lock: 'x', value },
});
/** Written under the name of its attempt. */
const registered = (
  attempt: string,
  atMs: number,
  outcome?: RegisterWriteEnded['outcome'],
  endedAtMs = atMs + 1,
): HistoryEvent[] => {
  const write = { attempt, lock: 'x', value: attempt };
  const began = { kind: 'register-write-began', atMs, ...write } as const;
  if (!outcome) return [began];
  return [began, { kind: 'register-write-ended', atMs: endedAtMs, ...write, outcome }];
};
/** Three who hold one after the other: from 10, from 20, from 30. */
const threeHolds: readonly HistoryEvent[] = [
  lock('mutex'),
  ...life('a', 'mutex', { granted: 10, token: 1, releaseStarted: 19 }),
  ...life('b', 'mutex', { granted: 20, token: 2, releaseStarted: 29 }),
  ...life('c', 'mutex', { granted: 30, token: 3, releaseStarted: 39 }),
];
const removedByHand = (token: number, atMs: number): HistoryEvent => ({
  ...{ kind: 'removed-by-hand', atMs, lock: 'x', token: BigInt(token) },
});
const remains = (czxid: number): HistoryEvent => ({
  kind: 'remains',
  atMs: 900,
  nodes: [{ lock: 'x', path: '/locks/x/node', czxid: BigInt(czxid) }],
});

type Story = readonly [name: string, history: readonly HistoryEvent[]];

/** Each trips its property and no other. */
const otherFaults: Readonly<Record<string, readonly [Property, ...Story[]]>> = {
  'two hold a mutex': [
    'L1',
    [
      'granted while another holds within its lease',
      [
        lock('mutex'),
        ...life('a', 'mutex', { granted: 10, token: 1, releaseStarted: 30 }),
        ...life('b', 'mutex', { granted: 29, token: 2, releaseStarted: 40 }),
      ],
    ],
    [
      'granted within the lease of one that sleeps: only its lease counts',
      [
        lock('mutex'),
        ...life('a', 'mutex', { granted: 10, token: 1, leaseEnds: 100, lost: 300 }),
        stalled('a', 11, 300),
        ...life('b', 'mutex', { granted: 99, token: 2, releaseStarted: 110 }),
      ],
    ],
    [
      'granted within a lease that was prolonged',
      [
        lock('mutex'),
        ...life('a', 'mutex', { granted: 10, token: 1, leaseEnds: 100, lost: 300 }),
        { kind: 'looked', atMs: 60, attempt: 'a', leaseEndsAtMs: 150 },
        stalled('a', 61, 300),
        ...life('b', 'mutex', { granted: 140, token: 2, releaseStarted: 170 }),
      ],
    ],
    [
      'one of the locks of a multi-lock is granted to another',
      [
        lock('mutex'),
        { kind: 'lock', atMs: -1, lock: 'y', recipe: 'mutex' },
        ...life('a', 'mutex', { locks: ['x', 'y'], granted: 10, token: 1, releaseStarted: 30 }),
        ...life('b', 'mutex', { locks: ['y'], granted: 20, token: 2, releaseStarted: 25 }),
      ],
    ],
    [
      're-entered: held until the last lease is let go of',
      [
        lock('mutex'),
        ...life('a', 'mutex', { granted: 10, token: 1, releaseStarted: 30 }),
        ...life('again', 'mutex', {
          client: 'a',
          asked: 12,
          within: 'a',
          granted: 12,
          token: 1,
          releaseStarted: 50,
        }),
        ...life('b', 'mutex', { granted: 40, token: 2, releaseStarted: 60 }),
      ],
    ],
    [
      'two hold a simple lock',
      [
        lock('simple'),
        ...life('a', 'simple', { granted: 10, token: 1, releaseStarted: 30 }),
        ...life('b', 'simple', { granted: 20, token: 2, releaseStarted: 40 }),
      ],
    ],
  ],
  'a fence fails': [
    'L1u',
    ['applies a stale write', [wrote(2, 'applied'), wrote(1, 'applied', { atMs: 30 })]],
    ['refuses the newest', [wrote(1, 'applied'), wrote(2, 'refused')]],
    ['refuses the same token again', [wrote(1, 'applied'), wrote(1, 'refused', { atMs: 11 })]],
    ['applies a stale read', [wrote(2, 'applied'), wrote(1, 'applied', { atMs: 30, mode: 'read' })]],
    ['is led astray by a reader', [wrote(2, 'applied', { mode: 'read' }), wrote(1, 'refused', { atMs: 30 })]],
    [
      'is worn down: a stale one does not lower the mark',
      [wrote(3, 'applied'), wrote(2, 'refused', { atMs: 31 }), wrote(2, 'applied', { atMs: 32 })],
    ],
  ],
  'tokens do not rise': [
    'L2',
    [
      'of one who asked after the other was granted',
      [
        lock('mutex'),
        ...life('a', 'mutex', { granted: 10, token: 5, releaseStarted: 20 }),
        ...life('b', 'mutex', { asked: 11, granted: 30, token: 4, releaseStarted: 40 }),
      ],
    ],
    [
      'but are the same',
      [
        lock('mutex'),
        ...life('a', 'mutex', { granted: 10, token: 5, releaseStarted: 20 }),
        ...life('b', 'mutex', { granted: 30, token: 5, releaseStarted: 40 }),
      ],
    ],
    [
      'of permits',
      [
        lock('semaphore'),
        ...life('a', 'semaphore', { granted: 10, token: 5, releaseStarted: 20 }),
        ...life('b', 'semaphore', { asked: 11, granted: 12, token: 4, releaseStarted: 40 }),
      ],
    ],
    [
      'of readers',
      [
        lock('read-write'),
        ...life('a', 'read-write', { mode: 'read', granted: 10, token: 5, releaseStarted: 20 }),
        ...life('b', 'read-write', { mode: 'read', asked: 11, granted: 12, token: 4, releaseStarted: 40 }),
      ],
    ],
    [
      'of a simple lock, though there is no queue',
      [
        lock('simple'),
        ...life('a', 'simple', { granted: 10, token: 5, releaseStarted: 20 }),
        ...life('b', 'simple', { granted: 30, token: 4, releaseStarted: 40 }),
      ],
    ],
  ],
  'the holder is not told in time': [
    'L3',
    [
      'at all',
      [
        lock('mutex'),
        ...life('a', 'mutex', { granted: 10, token: 1, leaseEnds: 100 }),
        ...life('b', 'mutex', { granted: 130, token: 2, releaseStarted: 140 }),
      ],
    ],
    [
      'but after the next was granted',
      [
        lock('mutex'),
        ...life('a', 'mutex', { granted: 10, token: 1, leaseEnds: 100, lost: 131 }),
        ...life('b', 'mutex', { granted: 130, token: 2, releaseStarted: 140 }),
      ],
    ],
    [
      'though it ran again before that',
      [
        lock('mutex'),
        ...life('a', 'mutex', { granted: 10, token: 1, leaseEnds: 100, lost: 131 }),
        stalled('a', 90, 120),
        ...life('b', 'mutex', { granted: 130, token: 2, releaseStarted: 140 }),
      ],
    ],
    [
      'of a permit that somebody else has now',
      [
        lock('semaphore', 2),
        ...life('a', 'semaphore', { granted: 10, token: 1, leaseEnds: 100, lost: 131 }),
        ...life('b', 'semaphore', { granted: 50, token: 2, releaseStarted: 140 }),
        ...life('c', 'semaphore', { granted: 130, token: 3, releaseStarted: 140 }),
      ],
    ],
  ],
  'a dead lease is handed out': [
    'L3b',
    [
      'whose time had run out while it waited',
      [lock('mutex'), ...life('a', 'mutex', { granted: 10, token: 1, leaseEnds: 10, releaseStarted: 11 })],
    ],
  ],
  'a lost lease comes back': [
    'L3c',
    [
      'held again',
      [
        lock('mutex'),
        ...life('a', 'mutex', { granted: 10, token: 1, leaseEnds: 100, lost: 90 }),
        { kind: 'looked', atMs: 95, attempt: 'a', leaseEndsAtMs: 99 },
      ],
    ],
  ],
  'someone is not woken up': [
    'L4',
    [
      'in time, though all was well',
      [lock('mutex'), ...life('a', 'mutex', { granted: 801, token: 1, releaseStarted: 900 }), healed],
    ],
    [
      'in time to be told that it is too late',
      [lock('mutex'), ...life('a', 'mutex', { asked: 600, gaveUp: 901 }), healed],
    ],
  ],
  'something is left behind': [
    'L5',
    ['by nobody who is known', [lock('mutex'), remains(7)]],
    [
      'by one who gave up',
      [lock('mutex'), ...life('a', 'mutex', { gaveUp: 20 }), queued('a', 's', 7), remains(7)],
    ],
    [
      'by one who was told lost',
      [lock('mutex'), ...life('a', 'mutex', { granted: 9, token: 7, lost: 20 }), remains(7)],
    ],
    [
      'by one who died',
      [
        lock('mutex'),
        ...life('a', 'mutex', { granted: 9, token: 7 }),
        { kind: 'ended', atMs: 30, client: 'a', how: 'killed' },
        remains(7),
      ],
    ],
    ['that is no node', [{ kind: 'remains', atMs: 900, nodes: [], others: ['a watch on /locks/x'] }]],
  ],
  'someone jumps the queue': [
    'L6',
    [
      'of a mutex',
      [
        lock('mutex'),
        ...life('a', 'mutex', { granted: 30, token: 1, releaseStarted: 40 }),
        ...life('b', 'mutex', { granted: 10, token: 2, releaseStarted: 20 }),
      ],
    ],
    [
      'of writers',
      [
        lock('read-write'),
        ...life('a', 'read-write', { granted: 30, token: 1, releaseStarted: 40 }),
        ...life('b', 'read-write', { granted: 10, token: 2, releaseStarted: 20 }),
      ],
    ],
    [
      'of candidates',
      [
        lock('election'),
        ...life('a', 'election', { granted: 30, token: 1, releaseStarted: 40 }),
        ...life('b', 'election', { granted: 10, token: 2, releaseStarted: 20 }),
      ],
    ],
  ],
  'readers and writers meet': [
    'L7',
    [
      'two writers',
      [
        lock('read-write'),
        ...life('a', 'read-write', { granted: 10, token: 1, releaseStarted: 30 }),
        ...life('b', 'read-write', { granted: 20, token: 2, releaseStarted: 40 }),
      ],
    ],
    [
      'a reader beside a writer',
      [
        lock('read-write'),
        ...life('a', 'read-write', { granted: 10, token: 1, releaseStarted: 30 }),
        ...life('b', 'read-write', { mode: 'read', granted: 20, token: 2, releaseStarted: 40 }),
      ],
    ],
    [
      'a writer beside a reader',
      [
        lock('read-write'),
        ...life('a', 'read-write', { mode: 'read', granted: 10, token: 1, releaseStarted: 30 }),
        ...life('b', 'read-write', { granted: 20, token: 2, releaseStarted: 40 }),
      ],
    ],
    [
      'a writer beside another that went on as a reader',
      [
        lock('read-write'),
        ...life('a', 'read-write', { granted: 10, token: 1, releaseStarted: 20 }),
        ...life('r', 'read-write', {
          client: 'a',
          mode: 'read',
          asked: 15,
          within: 'a',
          granted: 16,
          token: 1,
          releaseStarted: 40,
        }),
        ...life('b', 'read-write', { granted: 30, token: 2, releaseStarted: 50 }),
      ],
    ],
    [
      'a reader overtakes a writer that waits',
      [
        lock('read-write'),
        ...life('w', 'read-write', { granted: 30, token: 1, releaseStarted: 40 }),
        ...life('r', 'read-write', { mode: 'read', granted: 10, token: 2, releaseStarted: 20 }),
      ],
    ],
    [
      'a writer overtakes a reader that waits',
      [
        lock('read-write'),
        ...life('r', 'read-write', { mode: 'read', granted: 30, token: 1, releaseStarted: 40 }),
        ...life('w', 'read-write', { granted: 10, token: 2, releaseStarted: 20 }),
      ],
    ],
  ],
  're-entry goes wrong': [
    'L8',
    [
      'with another token',
      [
        lock('mutex'),
        ...life('a', 'mutex', { granted: 10, token: 1, releaseStarted: 30 }),
        ...life('again', 'mutex', {
          client: 'a',
          asked: 12,
          within: 'a',
          granted: 12,
          token: 2,
          releaseStarted: 20,
        }),
      ],
    ],
  ],
  'more permits than there are': [
    'L9',
    [
      'by one',
      [
        lock('semaphore', 1),
        ...life('a', 'semaphore', { granted: 10, token: 1, releaseStarted: 30 }),
        ...life('b', 'semaphore', { granted: 20, token: 2, releaseStarted: 40 }),
      ],
    ],
    [
      'by weight',
      [
        lock('semaphore', 3),
        ...life('a', 'semaphore', { weight: 2, granted: 10, token: 1, releaseStarted: 30 }),
        ...life('b', 'semaphore', { weight: 2, granted: 20, token: 2, releaseStarted: 40 }),
      ],
    ],
    [
      'since they have become fewer',
      [
        lock('semaphore', 2),
        ...life('a', 'semaphore', { granted: 10, token: 1, releaseStarted: 30 }),
        { kind: 'lock', atMs: 15, lock: 'x', recipe: 'semaphore', permits: 1 },
        ...life('b', 'semaphore', { granted: 20, token: 2, releaseStarted: 40 }),
      ],
    ],
  ],
  'an election has': [
    'L10',
    [
      'two leaders',
      [
        lock('election'),
        ...life('a', 'election', { granted: 10, token: 1, releaseStarted: 30 }),
        ...life('b', 'election', { granted: 20, token: 2, releaseStarted: 40 }),
      ],
    ],
    [
      'an epoch that falls',
      [
        lock('election'),
        ...life('a', 'election', { granted: 10, token: 2, releaseStarted: 20 }),
        ...life('b', 'election', { asked: 25, granted: 30, token: 1, releaseStarted: 40 }),
      ],
    ],
  ],
  'a call has two nodes': [
    'L11',
    [
      'in one session',
      [
        lock('mutex'),
        ...life('a', 'mutex', { granted: 10, token: 2 }),
        queued('a', 's', 1),
        queued('a', 's', 2),
      ],
    ],
  ],
  'a ghost wins': [
    'L11b',
    [
      "with an older session's node",
      [
        lock('mutex'),
        ...life('a', 'mutex', { granted: 10, token: 1, session: 'new' }),
        queued('a', 'old', 1),
      ],
    ],
  ],
  'a release leaves its node': [
    'L12',
    [
      'though it was done',
      [lock('mutex'), ...life('a', 'mutex', { granted: 9, token: 7, releaseStarted: 20 }), remains(7)],
    ],
  ],
  'a multi-lock joins': [
    'L13',
    [
      'its queues one after the other',
      [
        lock('mutex'),
        { kind: 'lock', atMs: -1, lock: 'y', recipe: 'mutex' },
        ...life('a', 'mutex', { locks: ['x', 'y'], granted: 10, token: 1 }),
        queued('a', 's', 1),
        queued('a', 's', 2, 'y'),
      ],
    ],
  ],
  'a call does not end': [
    'L14',
    ['while it waits', [lock('mutex'), ...life('a', 'mutex', {}), healed]],
    [
      'while it lets go',
      [
        lock('mutex'),
        ...life('a', 'mutex', { granted: 1, releaseStarted: 20, released: Number.POSITIVE_INFINITY }),
        healed,
      ],
    ],
    [
      'at its deadline, but with a grant',
      [lock('mutex'), ...life('a', 'mutex', { deadlineAtMs: 20, granted: 21, releaseStarted: 30 })],
    ],
  ],
};

const registerFaults: readonly [Property, ...Story[]] = [
  'L15',
  [
    'is overwritten by one who has not seen it: a lost update',
    [...threeHolds, read('a', 11, ''), ...registered('a', 12, 'applied'), read('b', 21, '')],
  ],
  [
    'is seen, and then what was before it',
    [
      ...[...threeHolds, ...registered('a', 12, 'applied'), read('b', 21, 'a')],
      ...[...registered('b', 22, 'applied'), read('c', 31, 'a')],
    ],
  ],
  [
    'is seen though it was refused',
    [...threeHolds, ...registered('a', 12, 'not-applied'), read('b', 21, 'a')],
  ],
  [
    'was not answered, was not seen, and is done later',
    [...threeHolds, ...registered('a', 12, 'unknown'), read('b', 21, ''), read('c', 31, 'a')],
  ],
  [
    'was not answered, and is done behind what the next holder wrote',
    [
      ...[...threeHolds, ...registered('a', 12, 'unknown'), read('b', 21, '')],
      ...[...registered('b', 22, 'applied'), read('c', 31, 'a')],
    ],
  ],
  [
    'is seen by one reader and not by the next',
    [
      lock('read-write'),
      ...life('a', 'read-write', { granted: 10, token: 1, releaseStarted: 19 }),
      ...life('b', 'read-write', { mode: 'read', granted: 20, token: 2, releaseStarted: 29 }),
      ...life('c', 'read-write', { mode: 'read', granted: 20.5, token: 3, releaseStarted: 29 }),
      ...[...registered('a', 12, 'applied'), read('b', 21, 'a'), read('c', 22, '')],
    ],
  ],
  [
    'is done long after one was put out whose last write was over by then',
    [
      ...[...threeHolds, removedByHand(1, 13), ...registered('a', 12, 'applied', 14)],
      ...[read('b', 21, ''), ...registered('b', 22, 'applied'), read('c', 31, 'a')],
    ],
  ],
];
const bad: Readonly<Record<string, readonly [Property, ...Story[]]>> = {
  ...otherFaults,
  'what a holder wrote': registerFaults,
};

describe('the checker finds', () => {
  for (const [fault, [property, ...stories]] of Object.entries(bad)) {
    test.each(stories)(`${property}: ${fault} (%s)`, (_name, history) => {
      const { violations } = checkHistory(history, { settleMsMax: 300 });
      expect(violations.map((violation) => violation.property)).toEqual([property]);
      // In whatever order it was recorded.
      const backwards = [...history].sort((a, b) => b.atMs - a.atMs);
      expect(checkHistory(backwards, { settleMsMax: 300 }).violations).toHaveLength(1);
      expect(tellViolation(violations[0]!, history)).toContain(violations[0]!.message);
    });
  }

  test('every property, by name', () => {
    const properties = new Set(Object.values(bad).map(([property]) => property));
    expect([...properties].sort()).toEqual([
      'L1',
      'L10',
      'L11',
      'L11b',
      'L12',
      'L13',
      'L14',
      'L15',
      'L1u',
      'L2',
      'L3',
      'L3b',
      'L3c',
      'L4',
      'L5',
      'L6',
      'L7',
      'L8',
      'L9',
    ]);
  });
});

const good: readonly Story[] = [
  [
    'holders who see what those before them wrote, or tried to',
    [
      ...[...threeHolds, read('a', 11, ''), ...registered('a', 12, 'applied'), read('b', 21, 'a')],
      ...[...registered('b', 22, 'unknown'), read('c', 31, 'b')],
    ],
  ],
  [
    'a write of unknown outcome that never happened',
    [...threeHolds, ...registered('a', 12, 'applied'), ...registered('b', 22, 'unknown'), read('c', 31, 'a')],
  ],
  [
    'a write of one who was killed, which happened',
    [
      ...[...threeHolds, ...registered('b', 22), read('c', 31, 'b')],
      { kind: 'ended', atMs: 25, client: 'b', how: 'killed' },
    ],
  ],
  [
    'a write whose answer is told when others have seen it and written over it',
    [
      ...[...threeHolds, ...registered('a', 12, 'applied', 25), read('b', 21, 'a')],
      ...[...registered('b', 22, 'applied'), read('c', 31, 'b')],
    ],
  ],
  [
    'one who was put out by hand and writes beside the next holder',
    [
      lock('mutex'),
      ...life('a', 'mutex', { granted: 10, token: 1, releaseStarted: 30 }),
      ...life('b', 'mutex', { granted: 20, token: 2, releaseStarted: 29 }),
      ...life('c', 'mutex', { granted: 30, token: 3, releaseStarted: 39 }),
      removedByHand(1, 15),
      ...[read('a', 11, ''), read('b', 21, ''), ...registered('a', 22, 'applied')],
      ...[...registered('b', 22.5, 'applied', 23.5), read('c', 31, 'a')],
    ],
  ],
  [
    'a reader who reads while one who was put out by hand writes, and hears of it later',
    [
      lock('read-write'),
      ...life('a', 'read-write', { granted: 10, token: 1, releaseStarted: 19 }),
      ...life('b', 'read-write', { mode: 'read', granted: 11, token: 2, releaseStarted: 30 }),
      ...life('c', 'read-write', { mode: 'read', granted: 21, token: 3, releaseStarted: 30 }),
      ...[removedByHand(1, 10.5), ...registered('a', 12, 'applied'), read('b', 14, ''), read('c', 22, 'a')],
    ],
  ],
  [
    'one who was put out by hand, and whose write may come at any time',
    [
      ...[...threeHolds, removedByHand(1, 13), ...registered('a', 12, 'unknown'), read('b', 21, '')],
      ...[...registered('b', 22, 'applied'), read('c', 31, 'a')],
    ],
  ],
  ['nothing at all', []],
  [
    'a grant at the moment the other lets go',
    [
      lock('mutex'),
      ...life('a', 'mutex', { granted: 10, token: 1, releaseStarted: 20 }),
      ...life('b', 'mutex', { granted: 20, token: 2, releaseStarted: 30 }),
      healed,
    ],
  ],
  [
    'a loss that is told at the moment of the next grant',
    [
      lock('mutex'),
      ...life('a', 'mutex', { granted: 10, token: 1, leaseEnds: 100, lost: 130 }),
      ...life('b', 'mutex', { granted: 130, token: 2, releaseStarted: 140 }),
    ],
  ],
  [
    'a holder that slept through the end of its lease',
    [
      lock('mutex'),
      ...life('a', 'mutex', { granted: 10, token: 1, leaseEnds: 100, lost: 300 }),
      stalled('a', 50, 60),
      stalled('a', 100, 300),
      stalled('a', 400, 410),
      ...life('b', 'mutex', { granted: 130, token: 2, releaseStarted: 140 }),
    ],
  ],
  [
    'a holder that looks at its lease long after it is over',
    [
      lock('mutex'),
      ...life('a', 'mutex', { granted: 10, token: 1, leaseEnds: 100, lost: 300 }),
      stalled('a', 90, 300),
      { kind: 'looked', atMs: 310, attempt: 'a', leaseEndsAtMs: 310 },
      ...life('b', 'mutex', { granted: 130, token: 2, releaseStarted: 140 }),
    ],
  ],
  [
    'a grant that was over when its process woke up, behind a later one',
    [
      lock('mutex'),
      ...life('a', 'mutex', { granted: 300, token: 1, leaseEnds: 300, lost: 301 }),
      stalled('a', 20, 302),
      ...life('b', 'mutex', { granted: 130, token: 2, releaseStarted: 140 }),
    ],
  ],
  [
    'a grant recorded late, by one that stalled',
    [
      lock('mutex'),
      ...life('a', 'mutex', { deadlineAtMs: 20, granted: 90, releaseStarted: 95 }),
      stalled('a', 15, 89),
    ],
  ],
  [
    'a dead holder and its successor',
    [
      lock('mutex'),
      ...life('a', 'mutex', { granted: 10, token: 1, leaseEnds: 100 }),
      ...life('waits', 'mutex', { client: 'a' }),
      { kind: 'ended', atMs: 20, client: 'a', how: 'killed' },
      ...life('b', 'mutex', { granted: 30, token: 2, releaseStarted: 140 }),
      healed,
    ],
  ],
  [
    'a holder whose node was taken away by hand',
    [
      lock('mutex'),
      ...life('a', 'mutex', { granted: 10, token: 1, lost: 40 }),
      { kind: 'removed-by-hand', atMs: 20, lock: 'x', token: 1n },
      ...life('b', 'mutex', { granted: 21, token: 2, releaseStarted: 140 }),
    ],
  ],
  [
    'a holder whose node was taken away by hand, and the next one by the same name too',
    [
      lock('mutex'),
      ...life('a', 'mutex', { granted: 10, token: 1, lost: 40 }),
      { kind: 'removed-by-hand', atMs: 20, lock: 'x', token: 1n },
      ...life('b', 'mutex', { granted: 21, token: 2, lost: 60 }),
      { kind: 'removed-by-hand', atMs: 50, lock: 'x', token: 1n },
      { kind: 'removed-by-hand', atMs: 50, lock: 'x', token: 2n },
    ],
  ],
  [
    'one who lost its place, and is granted with another',
    [
      lock('mutex'),
      ...life('a', 'mutex', { granted: 30, token: 3, session: 't', releaseStarted: 40 }),
      queued('a', 's', 1),
      queued('a', 't', 3),
      ...life('b', 'mutex', { granted: 10, token: 2, releaseStarted: 20 }),
    ],
  ],
  [
    'readers side by side, in any order',
    [
      lock('read-write'),
      ...life('a', 'read-write', { mode: 'read', granted: 20, token: 1, releaseStarted: 50 }),
      ...life('b', 'read-write', { mode: 'read', granted: 10, token: 2, releaseStarted: 40 }),
    ],
  ],
  [
    'a semaphore that becomes smaller than what is held',
    [
      lock('semaphore', 2),
      ...life('a', 'semaphore', { weight: 2, granted: 10, token: 1, releaseStarted: 30 }),
      { kind: 'lock', atMs: 15, lock: 'x', recipe: 'semaphore', permits: 1 },
      ...life('b', 'semaphore', { granted: 30, token: 2, releaseStarted: 40 }),
    ],
  ],
  [
    'permits that are re-entered, and counted once',
    [
      lock('semaphore', 2),
      ...life('a', 'semaphore', { weight: 2, granted: 10, token: 1, releaseStarted: 30 }),
      ...life('again', 'semaphore', {
        client: 'a',
        asked: 12,
        within: 'a',
        weight: 2,
        granted: 12,
        token: 1,
        releaseStarted: 20,
      }),
    ],
  ],
  [
    'a stale write to what is not fenced',
    [wrote(2, 'applied', { fenced: false }), wrote(1, 'applied', { fenced: false, atMs: 30 })],
  ],
  [
    'a fence that refuses',
    [wrote(2, 'applied'), wrote(1, 'refused', { atMs: 30 }), wrote(2, 'applied', { atMs: 31 })],
  ],
  [
    'the node of one who holds, and of one who waits',
    [
      lock('mutex'),
      ...life('a', 'mutex', { granted: 9, token: 7 }),
      remains(7),
      ...life('b', 'mutex', {}),
      queued('b', 's', 8),
      remains(8),
    ],
  ],
  ['a run that was not ended', [lock('mutex'), ...life('a', 'mutex', {})]],
];

const plans: fc.Arbitrary<PlannedAttempt[]> = fc.array(
  fc.record({
    arrivesAfterMs: fc.nat(30),
    client: fc.nat(3),
    writer: fc.boolean(),
    weight: fc.integer({ min: 1, max: 3 }),
    holdMs: fc.nat(50),
    patienceMs: fc.option(fc.nat(100), { nil: undefined }),
    end: fc.constantFrom('release', 'release', 'loss', 'stall', 'kill'),
  }),
  { maxLength: 60 },
);
const recipes: readonly LockRecipe[] = ['mutex', 'read-write', 'semaphore', 'election', 'simple'];

describe('the checker accepts', () => {
  test.each(good)('%s', (_name, history) => {
    expect(checkHistory(history).violations).toEqual([]);
  });

  test.each(recipes)('every history of a perfect %s', (recipe) => {
    fc.assert(
      fc.property(plans, (planned) => {
        const history = goodHistory(recipe, planned);
        const { violations, counts } = checkHistory(history, { settleMsMax: 0 });
        expect(violations).toEqual([]);
        expect(counts.grants + counts.gaveUp).toBe(planned.length);
      }),
      { numRuns: 200 },
    );
  });

  test('what was recorded a little late, if it is told how much', () => {
    const history = [
      lock('mutex'),
      ...life('a', 'mutex', { granted: 10, token: 1, leaseEnds: 100, lost: 131 }),
      ...life('b', 'mutex', { granted: 130, token: 2, releaseStarted: 140 }),
    ];
    expect(checkHistory(history, { latenessMs: 29 }).violations).toHaveLength(1);
    expect(checkHistory(history, { latenessMs: 30 }).violations).toEqual([]);
  });

  test('begins anew for a holder that stops running before it is over', () => {
    const violationsOf = (stalledFrom: number, lost: number, granted: number) => {
      const history: HistoryEvent[] = [
        lock('mutex'),
        ...life('a', 'mutex', { granted: 10, token: 1, leaseEnds: 100, lost }),
        stalled('a', stalledFrom, 300),
        ...life('b', 'mutex', { granted, token: 2, releaseStarted: granted + 5 }),
      ];
      return checkHistory(history, { latenessMs: 30 }).violations.map(({ property }) => property);
    };
    expect(violationsOf(120, 301, 200)).toEqual([]);
    expect(violationsOf(120, 330, 325)).toEqual([]);
    expect(violationsOf(131, 301, 200)).toEqual(['L3']);
    expect(violationsOf(120, 340, 335)).toEqual(['L3']);
  });
});

describe('a good history that is spoilt', () => {
  // The overlap is made by moving one grant to before the end of the one in front of it.
  test.each(recipes)('is found out: a grant of a %s that comes too early', (recipe) => {
    let found = 0;
    fc.assert(
      fc.property(plans, fc.nat(), (planned, which) => {
        const sole = planned.map((plan) => ({ ...plan, writer: true, weight: 3, patienceMs: undefined }));
        const history = goodHistory(recipe, sole);
        const grants = history.filter((event) => event.kind === 'granted');
        if (grants.length < 2) return;
        const victim = grants[1 + (which % (grants.length - 1))]!;
        const before = grants[grants.indexOf(victim) - 1]!;
        const early = { ...victim, atMs: before.atMs + 0.5, leaseEndsAtMs: before.atMs + 60 };
        const over = history.some(
          (event) =>
            event.atMs <= early.atMs &&
            ((event.kind === 'release-started' && event.attempt === before.attempt) ||
              (event.kind === 'ended' && event.client === `alone${before.attempt.slice(1)}`)),
        );
        const asked = history.find((event) => event.kind === 'asked' && event.attempt === victim.attempt)!;
        if (over || asked.atMs > early.atMs) return;
        const spoilt = history.map((event) => (event === victim ? early : event));
        expect(checkHistory(spoilt).violations.length).toBeGreaterThan(0);
        found++;
      }),
      { numRuns: 100 },
    );
    expect(found).toBeGreaterThan(20);
  });
});

describe('the checker', () => {
  test('counts what was there, so that an empty run is not taken for a good one', () => {
    const history = [
      lock('mutex'),
      ...life('a', 'mutex', { granted: 10, token: 1, releaseStarted: 20 }),
      ...life('b', 'mutex', { granted: 24, token: 2, leaseEnds: 100, lost: 90 }),
      ...life('c', 'mutex', { gaveUp: 30 }),
      ...life('d', 'mutex', { asked: 200, granted: 201, token: 3, releaseStarted: 202 }),
      ...life('e', 'mutex', { asked: 203, granted: 210, token: 4, releaseStarted: 211 }),
      stalled('a', 1, 2),
      { kind: 'fault-began', atMs: 4, fault: 'f1', what: 'kill-worker', target: 'a' } as const,
      wrote(3, 'applied', { fenced: false }),
      wrote(1, 'applied', { fenced: false, atMs: 40 }),
      wrote(2, 'applied', { fenced: false, atMs: 41 }),
      wrote(1, 'refused', { resource: 'q', atMs: 31 }),
      wrote(3, 'applied', { resource: 'q', atMs: 5 }),
    ];
    expect(checkHistory(history).counts).toEqual({
      attempts: 5,
      grants: 4,
      grantsByLock: { x: 4 },
      gaveUp: 1,
      losses: 1,
      faults: 1,
      faultsByKind: { 'kill-worker': 1 },
      stalls: 1,
      writesApplied: 4,
      writesRefused: 1,
      staleApplied: 2,
      registerReads: 0,
      handOverMs: { count: 1, p50: 4, p99: 4, max: 4 },
    });
  });

  test.each<readonly [string, readonly HistoryEvent[]]>([
    ['a grant that nobody asked for', life('a', 'mutex', { granted: 3 }).slice(1)],
    ['a lock that was not declared', life('a', 'mutex', {})],
    ['a lease of a mutex', [lock('mutex'), ...life('a', 'semaphore', {})]],
    ['an attempt that is asked twice', [lock('mutex'), ...life('a', 'mutex', {}), ...life('a', 'mutex', {})]],
    ['a loss of what was not granted', [lock('mutex'), ...life('a', 'mutex', { lost: 3 })]],
    ['a grant after giving up', [lock('mutex'), ...life('a', 'mutex', { gaveUp: 3, granted: 4 })]],
    [
      'a use of what another lock protects',
      [
        lock('mutex'),
        ...life('a', 'mutex', { granted: 3 }),
        { ...read('a', 4, ''), lock: 'y' } as HistoryEvent,
      ],
    ],
    ['a time that is none', [{ kind: 'healed', atMs: Number.NaN }]],
    ['a semaphore without permits', [lock('semaphore', 0)]],
    ['an event of no kind', [{ kind: 'eaten', atMs: 3 } as unknown as HistoryEvent]],
  ])('refuses %s', (_name, history) => {
    expect(() => checkHistory(history)).toThrow(MalformedHistoryError);
  });

  test('refuses options that cannot be', () => {
    expect(() => checkHistory([], { latenessMs: -1 })).toThrow(RangeError);
    expect(() => checkHistory([], { settleMsMax: Number.NaN })).toThrow(RangeError);
  });

  // By looks at the events, which do not depend on the machine. A quadratic step would multiply them by 16.
  test.each(['good', 'bad'] as const)(
    'looks at the events of a %s history in proportion to their number',
    (kind) => {
      const looksAt = (attempts: number) => {
        let looks = 0;
        const counted = manyAttempts(attempts, kind).map(
          (event) =>
            new Proxy(event, {
              get: (target, field) => {
                looks++;
                return Reflect.get(target, field);
              },
            }),
        );
        const { violations } = checkHistory(counted);
        if (kind === 'good') expect(violations).toEqual([]);
        else expect(violations.length).toBeGreaterThan(attempts / 2);
        return looks;
      };
      const small = looksAt(1_000);
      const large = looksAt(4_000);
      // 4 times as many, and sorting's logarithm.
      expect(large / small).toBeLessThan(4 * 1.3);
    },
  );
});

/** A mutex, and a semaphore whose holders are many at once; the bad one has all of them overlap. */
function manyAttempts(count: number, kind: 'good' | 'bad'): HistoryEvent[] {
  const events: HistoryEvent[] = [
    lock('mutex'),
    { kind: 'lock', atMs: -1, lock: 's', recipe: 'semaphore', permits: kind === 'good' ? count : 1 },
  ];
  const lasting = kind === 'good' ? 1 : 10 * count;
  for (let index = 0; index < count; index++) {
    const granted = 10 * index;
    const times = {
      asked: 0,
      granted,
      token: index + 1,
      leaseEnds: 20 * count,
      releaseStarted: granted + lasting,
    };
    events.push(...life(`m${index}`, 'mutex', times));
    events.push(...life(`s${index}`, 'semaphore', { ...times, locks: ['s'], releaseStarted: 15 * count }));
    events.push(read(`m${index}`, granted + 0.3, kind === 'good' && index > 0 ? `m${index - 1}` : ''));
    events.push(...registered(`m${index}`, granted + 0.4, 'applied', granted + 0.5));
    if (index % 2 === 1) events.push(removedByHand(1_000_000 + index, granted));
    events.push(stalled('m1', granted + 2, granted + 3));
  }
  return events;
}
