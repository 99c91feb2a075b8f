// Who is measured, on which server, and who sits out which scenario and why.

import type { LockKind } from './orders.ts';
import type { Scenario } from './scenarios.ts';

export type ServerKind = 'zookeeper' | 'embedded' | 'redis' | 'etcd';
export type Program =
  | 'holdfast'
  | 'bare-socket'
  | 'node-zookeeper-client'
  | 'redlock'
  | 'etcd3'
  | 'curator'
  | 'kazoo';

export interface Contestant {
  readonly id: string;
  readonly title: string;
  readonly server: ServerKind;
  readonly program: Program;
  /** What it takes where a mutex is asked for. */
  readonly mutex: LockKind;
  /** What its program is started with besides the servers. */
  readonly flags?: readonly string[];
  /** No lock that anyone could use, but what there is to reach: in the scenario's own table only. */
  readonly isBound?: true;
  /** Why it does not take part in this one; undefined if it does, and nothing if nobody would ask. */
  absence(scenario: Scenario): string | undefined;
}

type Rule = Contestant['absence'];

const NOBODY_ASKS = '';

const NO_READ_WRITE = 'has neither a read-write lock nor a semaphore';
/** `Lock._get_predecessor`, kazoo 2.8: the last writer of the list, wherever a reader itself stands in it. */
const KAZOO_READ_WRITE =
  'stands still there, since a reader also waits for a writer that came later, and that one for the reader';
const ASKS_AGAIN = 'nobody waits in a line there: who finds the lock taken asks again after a pause';

const isEnsemble = (scenario: Scenario) => scenario.kind === 'rate' && scenario.place === 'ensemble';
const isOther = (scenario: Scenario) =>
  scenario.kind === 'rate' && (scenario.lock === 'read-write' || scenario.lock === 'semaphore');
const standsAlone: Rule = (scenario) => (isEnsemble(scenario) ? 'is one server' : undefined);
const soloOnly: Rule = (scenario) => (scenario.id === 'solo' ? undefined : NOBODY_ASKS);
const herdOnly: Rule = (scenario) => (scenario.id === 'herd' ? undefined : NOBODY_ASKS);

/** Where one process asks for the same lock again and again. */
const cachedOnly: Rule = (scenario) => (scenario.id.startsWith('cached-') ? undefined : NOBODY_ASKS);
const crowdsOnly: Rule = (scenario) =>
  ['contended', 'crowd-200', 'crowd-1000'].includes(scenario.id) ? undefined : NOBODY_ASKS;
/** Lease caching is measured beside what also answers without a queue. */
const notCached =
  (rule: Rule): Rule =>
  (scenario) =>
    scenario.id.startsWith('cached-') ? NOBODY_ASKS : rule(scenario);

/** Other than ZooKeeper's: no line of waiters to count, no other kinds of locks, one server here. */
const foreign: Rule = (scenario) => {
  if (scenario.kind === 'growth') return ASKS_AGAIN;
  if (isOther(scenario)) return NO_READ_WRITE;
  return isEnsemble(scenario) ? 'does not use ZooKeeper' : undefined;
};

/** The herd is about two locks of Holdfast. */
const notInHerd =
  (rule: Rule): Rule =>
  (scenario) =>
    scenario.id === 'herd' ? NOBODY_ASKS : rule(scenario);

const all: Rule = () => undefined;

/** kazoo parses a list of n names in Python for each of n waiters: with 5000 it is not done within minutes. */
export const WAITERS_MAX: Readonly<Partial<Record<Program, number>>> = { kazoo: 1_000 };

export const CONTESTANTS: readonly Contestant[] = [
  {
    id: 'holdfast',
    title: 'Holdfast',
    server: 'zookeeper',
    program: 'holdfast',
    mutex: 'mutex',
    absence: notCached(all),
  },
  {
    id: 'holdfast-embedded',
    title: 'Holdfast, embedded server',
    server: 'embedded',
    program: 'holdfast',
    mutex: 'mutex',
    absence: notInHerd(notCached(standsAlone)),
  },
  {
    id: 'holdfast-polling',
    title: 'Holdfast, busy polling',
    server: 'zookeeper',
    program: 'holdfast',
    flags: ['--busy-poll'],
    mutex: 'mutex',
    absence: soloOnly,
  },
  {
    id: 'holdfast-simple',
    title: 'Holdfast, `SimpleLock`',
    server: 'zookeeper',
    program: 'holdfast',
    mutex: 'simple',
    absence: herdOnly,
  },
  {
    id: 'holdfast-cached',
    title: 'Holdfast, lease caching',
    server: 'zookeeper',
    program: 'holdfast',
    mutex: 'cached',
    absence: cachedOnly,
  },
  {
    id: 'holdfast-handed-on',
    title: 'Holdfast, local hand-off',
    server: 'zookeeper',
    program: 'holdfast',
    mutex: 'handed-on',
    absence: crowdsOnly,
  },
  {
    id: 'curator',
    title: 'Curator 5.4',
    server: 'zookeeper',
    program: 'curator',
    mutex: 'mutex',
    absence: notInHerd(notCached(all)),
  },
  {
    id: 'kazoo',
    title: 'kazoo 2.8',
    server: 'zookeeper',
    program: 'kazoo',
    mutex: 'mutex',
    absence: notInHerd(
      notCached((scenario) =>
        scenario.kind === 'rate' && scenario.lock === 'read-write' ? KAZOO_READ_WRITE : undefined,
      ),
    ),
  },
  {
    id: 'node-zookeeper-client',
    title: '`node-zookeeper-client`, textbook recipe',
    server: 'zookeeper',
    program: 'node-zookeeper-client',
    mutex: 'mutex',
    absence: notInHerd(
      notCached((scenario) => (isOther(scenario) ? 'has no locks: only the mutex was written' : undefined)),
    ),
  },
  {
    id: 'bare-socket',
    title: 'a bare socket, same requests',
    server: 'zookeeper',
    program: 'bare-socket',
    mutex: 'mutex',
    isBound: true,
    absence: soloOnly,
  },
  {
    id: 'redlock',
    title: '`redlock` on Redis',
    server: 'redis',
    program: 'redlock',
    mutex: 'mutex',
    absence: notInHerd(foreign),
  },
  {
    id: 'etcd3',
    title: '`etcd3` on etcd',
    server: 'etcd',
    program: 'etcd3',
    mutex: 'mutex',
    absence: notInHerd(notCached(foreign)),
  },
];
