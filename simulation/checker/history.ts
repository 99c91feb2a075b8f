/**
 * What a run of locks did, as a list of events on one clock: what the simulation and the nemesis record, and what the
 * checker reads. An *attempt* is one call of `acquire`, `tryAcquire` or `campaign`, from `asked` to its end:
 *
 *   asked ── queued* ── granted ── looked* ── release-started ── released
 *      \                     \                    /
 *       gave-up               lost ──────────────
 *
 * Times are milliseconds on a clock that all clients share: the virtual one, or CLOCK_MONOTONIC of one machine. A client
 * whose own clock runs at another rate is recorded in the shared clock's time. When an event is recorded matters: what
 * begins a hold after the call that began it has returned, what ends one before the call that ends it is made, so that
 * recording late can hide an overlap of moments but never invent one.
 */

/** How a lock is shared. */
export type LockRecipe = 'mutex' | 'read-write' | 'semaphore' | 'election' | 'simple';

/** As what an attempt wants a lock. */
export type HoldMode = 'exclusive' | 'read' | 'write' | 'lease' | 'leader';

/** A lock, and from when it has so many permits. Said once for each lock before anyone asks for it. */
export interface LockDeclared {
  readonly kind: 'lock';
  readonly atMs: number;
  readonly lock: string;
  readonly recipe: LockRecipe;
  /** Of a semaphore. Said again, it changes the number: new grants obey it, holders stay. */
  readonly permits?: number;
}

/** An attempt begins: recorded before the call. */
export interface Asked {
  readonly kind: 'asked';
  readonly atMs: number;
  /** Unique in the history. */
  readonly attempt: string;
  /** One process, or one simulated client: what can stall, die or close. A restarted one is another. */
  readonly client: string;
  /** Several for a multi-lock, one otherwise. */
  readonly locks: readonly string[];
  readonly mode: HoldMode;
  /** Permits of a semaphore; 1 if left out. */
  readonly weight?: number;
  /** After this nothing may be granted. */
  readonly deadlineAtMs?: number;
  /** The attempt whose lease it re-enters or is downgraded from: the same token, and no conflict with it. */
  readonly within?: string;
}

/** The attempt's node is in a queue. Again after a lost session; left out where the recorder cannot see it. */
export interface Queued {
  readonly kind: 'queued';
  readonly atMs: number;
  readonly attempt: string;
  readonly lock: string;
  readonly session: string;
  readonly czxid: bigint;
}

/** The lease was handed out: recorded after the call returned. */
export interface Granted {
  readonly kind: 'granted';
  readonly atMs: number;
  readonly attempt: string;
  readonly token: bigint;
  /** Which of the holds of one token, where tasks of a client share a node; 0 if left out. */
  readonly section?: number;
  /** The session that holds it; left out where the recorder cannot see it. */
  readonly session?: string;
  /** `atMs` and `remainingMs()`: until then exclusivity is promised, whatever happens. */
  readonly leaseEndsAtMs: number;
}

/** The holder looked at its lease again, which heartbeats prolong: `atMs` and `remainingMs()`. */
export interface Looked {
  readonly kind: 'looked';
  readonly atMs: number;
  readonly attempt: string;
  readonly leaseEndsAtMs: number;
}

/** The holder was told that the lock is lost: recorded by the listener of the lease's signal. */
export interface Lost {
  readonly kind: 'lost';
  readonly atMs: number;
  readonly attempt: string;
  readonly reason?: string;
}

/** The holder was asked to let go; it holds on until it does. */
export interface Revoked {
  readonly kind: 'revoked';
  readonly atMs: number;
  readonly attempt: string;
}

/** The holder lets go: recorded before the call. */
export interface ReleaseStarted {
  readonly kind: 'release-started';
  readonly atMs: number;
  readonly attempt: string;
}

/** The call to let go has returned: its node is gone, or its session is over. */
export interface Released {
  readonly kind: 'released';
  readonly atMs: number;
  readonly attempt: string;
}

/** The attempt ended without a lease. */
export interface GaveUp {
  readonly kind: 'gave-up';
  readonly atMs: number;
  readonly attempt: string;
  /** `lost` is the lease that it was to be entered within. */
  readonly reason: 'busy' | 'timeout' | 'aborted' | 'unreachable' | 'evicted' | 'lost' | 'error';
  readonly detail?: string;
}

/** A resource's own log: what became of a write that came with a token. */
export interface Wrote {
  readonly kind: 'wrote';
  readonly atMs: number;
  /** What the writes go to, with one highest token. */
  readonly resource: string;
  /** Compared with the highest writer's only, if it is a reader's. */
  readonly mode: 'read' | 'write';
  readonly token: bigint;
  readonly outcome: 'applied' | 'refused';
  /** False for one that applies everything: the control that shows what fencing is for. */
  readonly fenced: boolean;
}

/**
 * A holder has read the register that its lock protects, plainly, through its own connection, and still holds. Recorded
 * behind the answer. A register is one value for each lock, and is written by nobody but holders.
 */
export interface RegisterRead {
  readonly kind: 'register-read';
  readonly atMs: number;
  readonly attempt: string;
  readonly lock: string;
  /** What is in it; empty before anyone has written. */
  readonly value: string;
}

/** A holder that keeps all others out begins to write to the register: recorded before the call. */
export interface RegisterWriteBegan {
  readonly kind: 'register-write-began';
  readonly atMs: number;
  readonly attempt: string;
  readonly lock: string;
  /** Unique in the history. */
  readonly value: string;
}

/** What came of that: recorded behind the answer, and left out where there was none. */
export interface RegisterWriteEnded {
  readonly kind: 'register-write-ended';
  readonly atMs: number;
  readonly attempt: string;
  readonly lock: string;
  readonly value: string;
  /** `unknown` is a write that may have happened before the next holder was granted, or never. */
  readonly outcome: 'applied' | 'not-applied' | 'unknown';
}

/** What holders do to what their lock protects. */
export type RegisterEvent = RegisterRead | RegisterWriteBegan | RegisterWriteEnded;

/** The client did not run: stopped, or its event loop blocked. Recorded when it runs again. */
export interface Stalled {
  readonly kind: 'stalled';
  /** Since when, and until when: `atMs`. */
  readonly fromMs: number;
  readonly atMs: number;
  readonly client: string;
}

/** The client is no more: killed (recorded before the signal is sent) or closed (before the call). */
export interface ClientEnded {
  readonly kind: 'ended';
  readonly atMs: number;
  readonly client: string;
  readonly how: 'killed' | 'closed';
}

/** Somebody takes a contender's node away by hand: recorded before it is done. Nothing is promised to its holder then. */
export interface RemovedByHand {
  readonly kind: 'removed-by-hand';
  readonly atMs: number;
  readonly lock: string;
  readonly token: bigint;
}

/** Something is made to go wrong. */
export interface FaultBegan {
  readonly kind: 'fault-began';
  readonly atMs: number;
  /** Unique in the history. */
  readonly fault: string;
  /** The class: `kill-worker`, `isolate-follower`. */
  readonly what: string;
  /** Whom it strikes. */
  readonly target: string;
}

/** It is well again. Left out for what is over in a moment. */
export interface FaultEnded {
  readonly kind: 'fault-ended';
  readonly atMs: number;
  readonly fault: string;
}

/** From here on nothing is wrong: everybody must get on. */
export interface Healed {
  readonly kind: 'healed';
  readonly atMs: number;
}

/** What is in the store when nobody asks for anything more. */
export interface Remains {
  readonly kind: 'remains';
  readonly atMs: number;
  readonly nodes: readonly RemainingNode[];
  /** Batons, watches, timers: whatever else should be gone. */
  readonly others?: readonly string[];
}

/** A contender's node that is still there. */
export interface RemainingNode {
  readonly lock: string;
  readonly path: string;
  readonly czxid: bigint;
}

/** One thing that happened. */
export type HistoryEvent =
  | LockDeclared
  | Asked
  | Queued
  | Granted
  | Looked
  | Lost
  | Revoked
  | ReleaseStarted
  | Released
  | GaveUp
  | Wrote
  | RegisterEvent
  | Stalled
  | ClientEnded
  | RemovedByHand
  | FaultBegan
  | FaultEnded
  | Healed
  | Remains;

/** What happened, in any order of recording: the checker sorts by time. */
export type History = readonly HistoryEvent[];

/** Fields that are 64-bit numbers: decimal digits in JSON. */
const BIGINT_FIELDS: ReadonlySet<string> = new Set(['token', 'czxid']);

/** One line of JSON, without the end of the line. */
export function encodeEvent(event: HistoryEvent): string {
  return JSON.stringify(event, (_name, value: unknown) =>
    typeof value === 'bigint' ? value.toString() : value,
  );
}

/**
 * The events of a file of JSON lines. A last line without its end is that of a recorder that was killed while it wrote,
 * and is left out.
 *
 * @throws SyntaxError for a line that is no event, with its number.
 */
export function decodeHistory(text: string): HistoryEvent[] {
  const lines = text.split('\n');
  lines.pop();
  return lines.map((line, index) => {
    try {
      return JSON.parse(line, (name, value: unknown) =>
        BIGINT_FIELDS.has(name) ? BigInt(value as string) : value,
      ) as HistoryEvent;
    } catch (error) {
      throw new SyntaxError(`line ${index + 1} of the history is no event: ${line.slice(0, 200)}`, {
        cause: error,
      });
    }
  });
}
