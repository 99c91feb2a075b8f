import type { MutexOptions } from '../../src/locks/mutex-options.ts';
import type { LockRecipe } from '../checker/history.ts';
import type { Heading } from '../environment/simulated-network.ts';

/**
 * A run of the simulation, spelled out: who does what, and what goes wrong when. Made from a seed, or read from a file,
 * or cut down from another. All that is left to chance in a run (delays, cuts of chunks, torn sectors) comes from `seed`.
 */
export interface Scenario {
  readonly seed: number;
  readonly workload: string;
  readonly locks: readonly PlannedLock[];
  readonly clients: readonly PlannedClient[];
  readonly faults: readonly Fault[];
  /** A chunk takes up to this long on the network, and a sync of the disk. */
  readonly delayMsMax: number;
  readonly syncMsMax: number;
  readonly splitChance: number;
  /** A log that has grown to this is followed by a snapshot. */
  readonly logBytesMax: number;
  /** How often empty folders are removed. */
  readonly reapMs: number;
  /** There is a folder beside the locks that no client may read. */
  readonly closedFolder?: boolean;
  /** Servers in front of the one that decides: they answer pings by themselves, and can be cut off from it. */
  readonly followerCount: number;
}

export interface PlannedLock {
  readonly name: string;
  readonly recipe: LockRecipe;
  readonly permits?: number;
  /** How tasks of one client share a mutex. */
  readonly sharing?: MutexOptions;
  /** The number that its first contender gets, where it is not 0: near the end they get stuck. */
  readonly firstSequence?: number;
}

export interface PlannedClient {
  readonly name: string;
  /** The process that it is a connection of, where that has several: they share its clock, stalls and end. */
  readonly process?: string;
  readonly clockRate: number;
  readonly sessionTimeoutMs: number;
  /** Nobody else may read its entries: what happens to them is told to no other. */
  readonly secret?: boolean;
  /** Which servers it knows: 0 decides, the others follow. */
  readonly servers: readonly number[];
  /** Each goes through its steps one after the other, all beside each other. */
  readonly tasks: readonly (readonly Step[])[];
}

/**
 * When a wait is called off: so many promise reactions after so many things have happened in the world, in the midst of
 * what the last of them sets off; or after the session's loss, if that comes first.
 */
export interface Abort {
  readonly steps: number;
  readonly reactions: number;
  readonly onLoss?: boolean;
}

/** One thing that a task does, `afterMs` after the one before. */
export type Step = LockStep | LookStep | RevokeStep | ObserveStep | CloseStep;

export interface LockStep {
  readonly kind: 'lock';
  readonly afterMs: number;
  /** Several for a multi-lock. */
  readonly locks: readonly string[];
  readonly how: 'acquire' | 'try' | 'attempt' | 'use';
  readonly mode: 'exclusive' | 'read' | 'write' | 'lease' | 'leader';
  readonly weight?: number;
  readonly timeoutMs?: number;
  readonly abort?: Abort;
  readonly holdMs: number;
  /** What is done while it is held. */
  readonly act:
    | 'nothing'
    | 'guard'
    | 'guard-on-leaving'
    | 'fence'
    | 'late-fence'
    | 're-enter'
    | 'downgrade'
    | 'nested-use';
  /** Reads what the lock protects, and writes it if others are kept out: plainly, through the holder's own connection. */
  readonly counts?: boolean;
  /** How it is let go of; `late` after it was looked at once more when it must be over. */
  readonly release: 'once' | 'twice' | 'dispose' | 'not-awaited';
  /** Asks for the lease's signal when it is granted; otherwise not before the end. */
  readonly listens: boolean;
}

export interface LookStep {
  readonly kind: 'look';
  readonly afterMs: number;
  readonly lock: string;
}

export interface RevokeStep {
  readonly kind: 'revoke';
  readonly afterMs: number;
  readonly lock: string;
}

export interface ObserveStep {
  readonly kind: 'observe';
  readonly afterMs: number;
  readonly lock: string;
  readonly forMs: number;
}

/** The client is closed, whatever it is doing, and another is connected in its place. */
export interface CloseStep {
  readonly kind: 'close';
  readonly afterMs: number;
  /** Not at once, but so much later. */
  readonly when?: Pick<Abort, 'steps' | 'reactions'>;
}

/** Something that goes wrong at a time of the world's clock. */
export type Fault = {
  readonly atMs: number;
} & ( // `late`: what the client has sent still arrives, when it has been told that the connection is over.
  | { readonly kind: 'reset'; readonly client: string; readonly late?: boolean }
  | { readonly kind: 'cut'; readonly client: string; readonly heading: Heading; readonly bytes: number }
  | {
      readonly kind: 'partition';
      readonly client: string;
      readonly heading: Heading | 'both';
      readonly forMs: number;
    }
  | { readonly kind: 'refuse'; readonly client: string; readonly forMs: number; readonly late?: boolean }
  | { readonly kind: 'delay'; readonly client: string; readonly delayMsMax: number; readonly forMs: number }
  | {
      readonly kind: 'stall';
      readonly client: string;
      readonly forMs: number;
      readonly first: 'alarms' | 'inputs';
    }
  | { readonly kind: 'kill'; readonly client: string; readonly silently: boolean }
  | { readonly kind: 'expire'; readonly client: string }
  | {
      readonly kind: 'remove';
      readonly lock: string;
      readonly which: 'first' | 'second' | 'last';
      /** Not before the lock is handed over the next time: what both have to tell arrives together. */
      readonly atHandOver?: boolean;
    }
  | {
      readonly kind: 'remove-folder';
      readonly lock: string;
      /** Made anew at once, as by someone who joins in that moment and gives up. */
      readonly anew?: boolean;
    }
  | { readonly kind: 'crash'; readonly forMs: number }
  | { readonly kind: 'stall-server'; readonly forMs: number }
  | { readonly kind: 'disk-full'; readonly forMs: number }
  | { readonly kind: 'slow-disk'; readonly syncMsMax: number; readonly forMs: number }
  | { readonly kind: 'raise-tokens'; readonly by: number }
  | { readonly kind: 'isolate'; readonly follower: number; readonly forMs: number }
  /** Servers grant less from now on; this client resumes its session, and hears nothing of it for a while. */
  | {
      readonly kind: 'limit';
      readonly client: string;
      readonly sessionTimeoutMsMax: number;
      readonly unheardMs: number;
      readonly forMs: number;
    }
  /** Somebody who knows no password answers this client, in place of all servers. */
  | { readonly kind: 'impostor'; readonly client: string; readonly timeoutMs: number; readonly forMs: number }
  /** A server of an older backup answers this client; `looks`: at what clients have seen. */
  | { readonly kind: 'restore'; readonly client: string; readonly looks: boolean; readonly forMs: number }
  | { readonly kind: 'lag'; readonly follower: number; readonly lagMs: number; readonly forMs: number }
);

export type FaultKind = Fault['kind'];

/** The least that the servers of a world grant; where their limits change, clients are told so. */
export const SESSION_TIMEOUT_MS_MIN = 1_000;

/** How long things go wrong; then all is healed. */
export const UNSAFE_MS = 12_000;
