import type {
  Asked,
  ClientEnded,
  GaveUp,
  Granted,
  History,
  HistoryEvent,
  HoldMode,
  LockDeclared,
  LockRecipe,
  Looked,
  Lost,
  Queued,
  RegisterEvent,
  Released,
  ReleaseStarted,
  Remains,
  RemovedByHand,
  Stalled,
  Wrote,
} from './history.ts';

/** As what a lock can be wanted. */
const MODES: Readonly<Record<LockRecipe, readonly HoldMode[]>> = {
  mutex: ['exclusive'],
  simple: ['exclusive'],
  election: ['leader'],
  'read-write': ['read', 'write'],
  semaphore: ['lease'],
};

/** A history that no run can have recorded: the recorder is wrong, so nothing can be said of the locks. */
export class MalformedHistoryError extends Error {
  override readonly name = 'MalformedHistoryError';
}

/** All that is known of one attempt. */
export interface Attempt {
  readonly asked: Asked;
  /** The attempt whose lease this one shares; itself if it stands alone. */
  readonly root: Attempt;
  readonly client: Client;
  readonly queued: Queued[];
  readonly looks: Looked[];
  granted: Granted | undefined;
  lost: Lost | undefined;
  releaseStarted: ReleaseStarted | undefined;
  released: Released | undefined;
  gaveUp: GaveUp | undefined;
}

/** An attempt that got its lease. */
export type GrantedAttempt = Attempt & { readonly granted: Granted };

/** All that is known of one client. */
export interface Client {
  readonly name: string;
  /** In the order of time. */
  readonly stalls: Stalled[];
  ended: ClientEnded | undefined;
}

/** All that is known of one lock. */
export interface LockFacts {
  /** In the order of time; the first says the recipe. */
  readonly declared: [LockDeclared, ...LockDeclared[]];
  /** In the order of their grants. Those that share another's lease are among them. */
  readonly grants: GrantedAttempt[];
  /** Attempts by the transactions that made their nodes. */
  readonly byCzxid: Map<bigint, Attempt>;
  readonly removed: Map<bigint, RemovedByHand>;
}

/** A history, put together. */
export interface RunFacts {
  /** In the order of time. */
  readonly events: readonly HistoryEvent[];
  readonly attempts: ReadonlyMap<string, Attempt>;
  readonly locks: ReadonlyMap<string, LockFacts>;
  readonly clients: ReadonlyMap<string, Client>;
  readonly writes: readonly Wrote[];
  /** In the order of time. */
  readonly registerEvents: readonly RegisterEvent[];
  readonly remains: readonly Remains[];
  /** When everything was well again; undefined if the history says nothing of it. */
  readonly healedAtMs: number | undefined;
}

/** Puts a history together. @throws MalformedHistoryError for one that no run can have recorded. */
export function gatherFacts(history: History): RunFacts {
  const gathering = new Gathering();
  // Stable: what was recorded at one moment keeps its order.
  const events = [...history].sort((a, b) => a.atMs - b.atMs);
  for (const event of events) gathering.take(event);
  return gathering.finish(events);
}

/** When the client ran again, if it has said that it did not run at this moment; otherwise this moment. */
export function ranAgainAtMs(client: Client, atMs: number): number {
  const stall = firstStallEndingAfter(client, atMs);
  return stall && stall.fromMs <= atMs ? stall.atMs : atMs;
}

/** Whether the client did not run for some of this time. */
export function stalledWithin(client: Client, fromMs: number, toMs: number): boolean {
  const stall = firstStallEndingAfter(client, fromMs);
  return stall !== undefined && stall.fromMs < toMs;
}

/** A client's stalls do not overlap. */
function firstStallEndingAfter({ stalls }: Client, atMs: number): Stalled | undefined {
  let low = 0;
  let high = stalls.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (stalls[middle]!.atMs <= atMs) low = middle + 1;
    else high = middle;
  }
  return stalls[low];
}

/** When nothing more is held by it: let go of, told, dead, or taken away by hand; Infinity if none of these. */
export function endedAtMs(attempt: GrantedAttempt, lock: LockFacts): number {
  const removed = lock.removed.get(attempt.granted.token);
  return Math.min(
    attempt.releaseStarted?.atMs ?? Number.POSITIVE_INFINITY,
    attempt.lost?.atMs ?? Number.POSITIVE_INFINITY,
    attempt.client.ended?.atMs ?? Number.POSITIVE_INFINITY,
    removed?.atMs ?? Number.POSITIVE_INFINITY,
  );
}

/** Until when exclusivity was promised, as far as the holder is known to have looked. A look that finds it over promises nothing. */
export function leaseEndsAtMs({ granted, looks }: GrantedAttempt): number {
  return looks.reduce(
    (latest, look) => (look.leaseEndsAtMs > look.atMs ? Math.max(latest, look.leaseEndsAtMs) : latest),
    granted.leaseEndsAtMs,
  );
}

class Gathering {
  readonly #attempts = new Map<string, Attempt>();
  readonly #locks = new Map<string, LockFacts>();
  readonly #clients = new Map<string, Client>();
  readonly #writes: Wrote[] = [];
  readonly #registerEvents: RegisterEvent[] = [];
  readonly #remains: Remains[] = [];
  #healedAtMs: number | undefined;

  take(event: HistoryEvent): void {
    if (!Number.isFinite(event.atMs)) throw malformed(`${event.kind} at ${event.atMs}`);
    switch (event.kind) {
      case 'lock':
        return this.#declare(event);
      case 'asked':
        return this.#ask(event);
      case 'queued': {
        const attempt = this.#attempt(event);
        attempt.queued.push(event);
        this.#lock(event.lock).byCzxid.set(event.czxid, attempt);
        return;
      }
      case 'granted':
        return this.#grant(event);
      case 'looked':
        this.#held(event).looks.push(event);
        return;
      case 'lost':
        return once(this.#held(event), 'lost', event);
      case 'release-started':
        return once(this.#held(event), 'releaseStarted', event);
      case 'released': {
        const attempt = this.#held(event);
        if (!attempt.releaseStarted) throw malformed(`${event.attempt} is released without having begun to`);
        return once(attempt, 'released', event);
      }
      case 'gave-up': {
        const attempt = this.#attempt(event);
        if (attempt.granted) throw malformed(`${event.attempt} gave up after its grant`);
        return once(attempt, 'gaveUp', event);
      }
      case 'revoked':
        this.#held(event);
        return;
      case 'wrote':
        this.#writes.push(event);
        return;
      case 'register-read':
      case 'register-write-began':
      case 'register-write-ended':
        if (!this.#held(event).asked.locks.includes(event.lock))
          throw malformed(`${event.attempt} uses the register of ${event.lock}, which it does not hold`);
        this.#registerEvents.push(event);
        return;
      case 'stalled':
        this.#client(event.client).stalls.push(event);
        return;
      case 'ended':
        this.#client(event.client).ended ??= event;
        return;
      case 'removed-by-hand':
        this.#removed(event);
        return;
      case 'healed':
        this.#healedAtMs = event.atMs;
        return;
      case 'remains':
        this.#remains.push(event);
        return;
      case 'fault-began':
      case 'fault-ended':
        return;
      default:
        throw malformed(`${JSON.stringify((event as { kind: unknown }).kind)} is no kind of event`);
    }
  }

  finish(events: readonly HistoryEvent[]): RunFacts {
    return {
      events,
      attempts: this.#attempts,
      locks: this.#locks,
      clients: this.#clients,
      writes: this.#writes,
      registerEvents: this.#registerEvents,
      remains: this.#remains,
      healedAtMs: this.#healedAtMs,
    };
  }

  #declare(event: LockDeclared): void {
    const known = this.#locks.get(event.lock);
    if (event.recipe === 'semaphore' && !(event.permits! >= 1)) {
      throw malformed(`semaphore ${event.lock} has ${event.permits} permits`);
    }
    if (known && known.declared[0].recipe !== event.recipe) {
      throw malformed(`lock ${event.lock} is a ${known.declared[0].recipe} and a ${event.recipe}`);
    }
    if (known) known.declared.push(event);
    else
      this.#locks.set(event.lock, { declared: [event], grants: [], byCzxid: new Map(), removed: new Map() });
  }

  #ask(event: Asked): void {
    if (this.#attempts.has(event.attempt)) throw malformed(`${event.attempt} is asked twice`);
    if (event.locks.length === 0) throw malformed(`${event.attempt} asks for no lock`);
    for (const lock of event.locks) {
      const { recipe } = this.#lock(lock).declared[0];
      if (!MODES[recipe].includes(event.mode))
        throw malformed(`${event.attempt} wants a ${recipe} as ${event.mode}`);
    }
    const outer = event.within === undefined ? undefined : this.#attempts.get(event.within);
    if (event.within !== undefined && !outer?.granted) {
      throw malformed(`${event.attempt} is within ${event.within}, which is not granted`);
    }
    const attempt: { -readonly [K in keyof Attempt]: Attempt[K] } = {
      asked: event,
      root: undefined as never,
      client: this.#client(event.client),
      queued: [],
      looks: [],
      granted: undefined,
      lost: undefined,
      releaseStarted: undefined,
      released: undefined,
      gaveUp: undefined,
    };
    attempt.root = outer?.root ?? attempt;
    this.#attempts.set(event.attempt, attempt);
  }

  #grant(event: Granted): void {
    const attempt = this.#attempt(event);
    if (attempt.gaveUp) throw malformed(`${event.attempt} is granted after it gave up`);
    once(attempt, 'granted', event);
    for (const name of attempt.asked.locks) {
      const lock = this.#lock(name);
      lock.grants.push(attempt as GrantedAttempt);
      if (attempt.root === attempt) lock.byCzxid.set(event.token, attempt);
    }
  }

  #attempt(event: { readonly kind: string; readonly attempt: string }): Attempt {
    const attempt = this.#attempts.get(event.attempt);
    if (!attempt) throw malformed(`${event.kind} of ${event.attempt}, which nobody asked for`);
    return attempt;
  }

  #held(event: { readonly kind: string; readonly attempt: string }): Attempt {
    const attempt = this.#attempt(event);
    if (!attempt.granted) throw malformed(`${event.kind} of ${event.attempt}, which is not granted`);
    return attempt;
  }

  /** What is removed twice, such as a name that others take again, is gone since the first time. */
  #removed(event: RemovedByHand): void {
    const { removed } = this.#lock(event.lock);
    if (!removed.has(event.token)) removed.set(event.token, event);
  }

  #lock(name: string): LockFacts {
    const lock = this.#locks.get(name);
    if (!lock) throw malformed(`nothing was said of lock ${name}`);
    return lock;
  }

  #client(name: string): Client {
    let client = this.#clients.get(name);
    if (!client) {
      client = { name, stalls: [], ended: undefined };
      this.#clients.set(name, client);
    }
    return client;
  }
}

function once<K extends 'granted' | 'lost' | 'releaseStarted' | 'released' | 'gaveUp'>(
  attempt: Attempt,
  field: K,
  event: NonNullable<Attempt[K]>,
): void {
  if (attempt[field]) throw malformed(`${event.kind} of ${event.attempt} is there twice`);
  attempt[field] = event;
}

function malformed(message: string): MalformedHistoryError {
  return new MalformedHistoryError(`the history cannot be: ${message}`);
}
