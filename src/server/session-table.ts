import type { Random } from '../base/random.ts';

export interface ServerSession<C> {
  readonly id: bigint;
  readonly password: Buffer;
  timeoutMs: number;
  /** The connection that serves it now, if any. */
  connection: C | undefined;
  /** When it is due, rounded up to a tick. */
  expiresAtMs: number;
  /** Granted while nothing could be kept: it may read, and nobody will know of it after a restart. */
  unkept?: true;
  /** Closed or expired: what still comes in of it is not heard. */
  over: boolean;
}

const PASSWORD_BYTES = 16;
const LOW_BITS = 16n;

/**
 * The sessions and when they are due. Deadlines are rounded up to the next tick after the timeout, so a session is
 * never expired early, and all that are due in one tick are found in one bucket.
 */
export class SessionTable<C> {
  readonly #sessions = new Map<bigint, ServerSession<C>>();
  readonly #buckets = new Map<number, Set<ServerSession<C>>>();
  readonly #random: Random;
  readonly #tickMs: number;
  #nextId: bigint;

  /** `wallMs` only makes ids of another start of the server other ids. */
  constructor(options: { readonly random: Random; readonly tickMs: number; readonly wallMs: number }) {
    this.#random = options.random;
    this.#tickMs = options.tickMs;
    // As ZooKeeper's: a server number of 1 in the top byte, 40 bits of time, then a counter. Never 0, never 0xff….
    this.#nextId = (1n << 56n) | ((BigInt(Math.floor(options.wallMs)) & 0xffffffffffn) << LOW_BITS);
  }

  get count(): number {
    return this.#sessions.size;
  }

  get(id: bigint): ServerSession<C> | undefined {
    return this.#sessions.get(id);
  }

  all(): IterableIterator<ServerSession<C>> {
    return this.#sessions.values();
  }

  create(timeoutMs: number, nowMs: number): ServerSession<C> {
    while (this.#sessions.has(this.#nextId)) this.#nextId++;
    const password = Buffer.from(this.#random.bytes(PASSWORD_BYTES));
    return this.restore({ id: this.#nextId++, password, timeoutMs }, nowMs);
  }

  /** A session that was granted before, with a full timeout from now. */
  restore(
    { id, password, timeoutMs }: { id: bigint; password: Buffer; timeoutMs: number },
    nowMs: number,
  ): ServerSession<C> {
    const session: ServerSession<C> = {
      id,
      password,
      timeoutMs,
      connection: undefined,
      expiresAtMs: 0,
      over: false,
    };
    this.#sessions.set(id, session);
    this.touch(session, nowMs);
    return session;
  }

  /** The countdown starts again. */
  touch(session: ServerSession<C>, nowMs: number): void {
    this.#due(session, nowMs + session.timeoutMs);
  }

  /** It is due, but cannot be ended now: to be looked at again a tick later. */
  postpone(session: ServerSession<C>, nowMs: number): void {
    this.#due(session, nowMs);
  }

  #due(session: ServerSession<C>, afterMs: number): void {
    const expiresAtMs = (Math.floor(afterMs / this.#tickMs) + 1) * this.#tickMs;
    if (expiresAtMs === session.expiresAtMs) return;
    this.#leaveBucket(session);
    session.expiresAtMs = expiresAtMs;
    const bucket = this.#buckets.get(expiresAtMs) ?? new Set();
    this.#buckets.set(expiresAtMs, bucket.add(session));
  }

  remove(id: bigint): void {
    const session = this.#sessions.get(id);
    if (!session) return;
    session.over = true;
    this.#leaveBucket(session);
    this.#sessions.delete(id);
  }

  /** The first sessions that are due, oldest first, as many as this at most. */
  due(nowMs: number, countMax = Number.POSITIVE_INFINITY): ServerSession<C>[] {
    const times = [...this.#buckets.keys()].filter((atMs) => atMs <= nowMs).sort((a, b) => a - b);
    const due: ServerSession<C>[] = [];
    for (const atMs of times) {
      for (const session of this.#buckets.get(atMs)!) {
        if (due.length >= countMax) return due;
        due.push(session);
      }
    }
    return due;
  }

  /** When the next session is due, if nothing is heard of it. */
  get nextDueAtMs(): number | undefined {
    let next: number | undefined;
    for (const atMs of this.#buckets.keys()) if (next === undefined || atMs < next) next = atMs;
    return next;
  }

  buckets(): [atMs: number, sessions: ReadonlySet<ServerSession<C>>][] {
    return [...this.#buckets].sort(([a], [b]) => a - b);
  }

  #leaveBucket(session: ServerSession<C>): void {
    const bucket = this.#buckets.get(session.expiresAtMs);
    if (bucket?.delete(session) && bucket.size === 0) this.#buckets.delete(session.expiresAtMs);
  }
}
