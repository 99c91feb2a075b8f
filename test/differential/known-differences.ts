import type { MultiResult } from '../../src/protocol/multi.ts';
import type { Call } from './scenario.ts';

/** Where this server is meant to answer otherwise than Debian's ZooKeeper 3.8.0, and why. */
export interface KnownDifference {
  readonly what: string;
  readonly why: string;
  /** How the comparison allows for it. */
  readonly how: 'never generated' | 'both sides are shown alike';
}

export const knownDifferences: readonly KnownDifference[] = [
  {
    what: 'the zxid of a notification is that of the transaction, not -1',
    why: '3.9 does it, and clients older than that ignore the field',
    how: 'both sides are shown alike',
  },
  {
    what: 'inside a multi the opcode counts: create2 is answered with its stat, and the flags do not decide the kind',
    why: '3.8.2 and 3.9 do it; 3.8.0 makes a plain create of everything that has no flag of its own (ZOOKEEPER-4026)',
    how: 'both sides are shown alike', // And opcodes and flags agree in what is generated.
  },
  {
    what: 'what cannot be read, or has a null where there must be a value, is refused as a whole, first, and without a body',
    why: 'ZooKeeper runs into the null halfway, when flags have been checked or half of the watches have been set',
    how: 'both sides are shown alike', // As far as the body goes; of nulls, only what both see first is generated.
  },
  {
    what: 'exists needs READ',
    why: '3.8.4 and 3.9.2 do it; what a node looks like is as good as its data to whoever may see neither',
    how: 'never generated',
  },
  {
    what: 'setWatches reports nothing of a node that may not be read, and sets the watch',
    why: 'live events are withheld too; by `relativeZxid` the time of each write could be searched for',
    how: 'never generated',
  },
  {
    what: 'watches of different kinds on one path leave each other alone; types 1 and 2 of removeWatches mean one-shot ones',
    why: '3.9 does it; before, the newest kind replaces the others',
    how: 'never generated',
  },
  {
    what: 'checkWatches knows whose watch it is',
    why: '3.9 does it; before, any other connection that watches the path will do',
    how: 'never generated',
  },
  {
    what: 'check outside a multi, and createSession inside a session, are unknown opcodes',
    why: '3.8.5 does the first; 3.8.0 never answers a check that succeeds, and answers createSession with a handshake',
    how: 'never generated',
  },
  {
    what: 'access lists may name x509 identities, and text beyond the BMP is plain UTF-8',
    why: 'the scheme is there without being configured; Java writes surrogates one by one, which nobody else can read',
    how: 'never generated',
  },
  {
    what: 'createTtl with the flags of another kind is refused whatever the time is',
    why: 'with a negative time 3.8.0 lets it pass its checks, fails to apply it, and is dead from then on',
    how: 'never generated',
  },
  {
    what: 'a connection whose session has moved to another one is closed, always',
    why: 'ZooKeeper left it open once in some thousands of scenarios, probably since an even older one, closing late, had taken it out of the list',
    how: 'both sides are shown alike',
  },
  {
    what: 'an attempt to take up a session with a wrong password leaves the connection alone that has the session',
    why: 'ZooKeeper closes that connection before it looks at the password: anyone who guesses an id can cut its owner off',
    how: 'both sides are shown alike',
  },
];

/** A result inside a multi as both servers would show it, but for what kind create2 is answered as. */
export function multiResultShown(result: MultiResult, op: Call | undefined): MultiResult {
  if (result.kind !== 'create2' || op?.name !== 'create2') return result;
  return { kind: 'create', path: result.path };
}

/** Whether what follows an error is the list that only one of the servers sends. */
export function isBodyOfNoUse(call: Call | undefined, err: number): boolean {
  return err !== 0 && call?.ops !== undefined;
}
