/** What the bench asks of a peer, and what it is answered. An order is a line of `word=value`: any language reads it. */
export type Order =
  /** So many tasks take and let go for so long. */
  | {
      readonly order: 'cycles';
      readonly lock: LockKind;
      readonly name: string;
      readonly tasks: number;
      readonly locks: number;
      readonly sessions: number;
      readonly sliceMs: number;
    }
  /** Two sessions hand one lock to and fro; the times are from letting go to holding. */
  | {
      readonly order: 'hand-overs';
      readonly name: string;
      readonly sessions: 2;
      readonly samples: number;
      /** How long it takes at most to get in line. */
      readonly settleMs: number;
    }
  /** One holds and many wait: answered with `queued`. On `go` it goes through the first hands; on `close` all end. */
  | {
      readonly order: 'queue';
      readonly name: string;
      readonly sessions: number;
      readonly waiters: number;
      readonly handOvers: number;
    };

/** `five-locks` is five mutexes at once; of `read-write`, one cycle in ten writes; `semaphore` has four permits. */
export type LockKind =
  | 'mutex'
  | 'read-write'
  | 'semaphore'
  | 'five-locks'
  | 'simple'
  | 'cached'
  | 'handed-on';

export const SEMAPHORE_PERMITS = 4;
export const FIVE = 5;

export interface Measured {
  readonly cycles: number;
  readonly elapsedMs: number;
  /** Of each acquire, in microseconds; of very many, a fair share. */
  readonly acquireUs: readonly number[];
}

export type Answer = Measured | { readonly queued: number };

export function lineOf(order: Order): string {
  return Object.entries(order)
    .map(([word, value]) => `${word}=${value}`)
    .join(' ');
}
