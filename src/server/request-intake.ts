import type { EventTeller } from './event-teller.ts';
import type { Obstacle, ServerConnection } from './server-connection.ts';
import type { ServerState } from './server-state.ts';
import type { SlicedWork } from './sliced-work.ts';

/** How long requests may take of one turn of the event loop when they come in, all clients together… */
const INPUT_MS = 1.5;
/** … and how long, behind all input, those may take that had to wait. */
const WAITING_MS = 1.5;
/** How long one client may have the server to itself before the others get a turn. */
const SLICE_MS = 1;
/** A client that has used this much lately waits for those that have not, whenever there is much to do. */
const LIGHT_MS = 1;
/** A step takes no longer than this, or nearly so. */
const STEP_MS = 0.5;
/** What each client may use without that being held against it: this part of all time. */
const FREE_SHARE = 0.05;
/** Those that have used much have a slice at least in one turn of so many, however many others there are. */
const HEAVY_TURNS = 4;
/** With less than this used of a turn, there is not much to do. */
const BUSY_MS = 0.5;
/** A turn of the event loop in which less is done need not be told from the next one. */
const LONG_TURN_MS = 0.5;
/** How much is read in one turn, of all clients together; one more chunk of each may be on its way. */
const READ_BYTES = 1024 * 1024;
/** What clients that have left may have asked before, of all together; then the oldest of it is forgotten. */
const DEPARTED_BYTES_MAX = 16 * 1024 * 1024;
const NEVER_MS = Number.POSITIVE_INFINITY;

/** Whom the intake serves. */
export interface IntakeOwner {
  /** Handles one frame: completely, or as far as the work that is returned, which is done before the next frame. */
  handle(connection: ServerConnection, frame: Buffer): SlicedWork | undefined;
  drop(connection: ServerConnection, reason: string): void;
  /** A client that has left has had all done that it asked. */
  departed(connection: ServerConnection): void;
}

/**
 * When a request is handled: at once, unless its client has too much under way. Then it waits, in order, and nothing
 * more is read from that client; TCP does the rest. Nothing is refused and nothing is lost.
 *
 *   socket ─→ frames ─→ waiting ─→ handled ─→ held for the disk ─→ socket
 *         ↑ paused while there are any    ↑ outstanding: what is bounded
 *
 * No turn of the event loop is longer than a few milliseconds, whatever is asked, by how many, and whether they are
 * still there. What does not fit waits for the next turn: those that have used little lately come first, then the
 * others, one slice each.
 */
export class RequestIntake {
  readonly #state: ServerState;
  /** While it is busy, no request is handled: each comes behind the events of what was done before. */
  readonly #teller: EventTeller;
  readonly #owner: IntakeOwner;
  /** Those that wait for a turn, each in order: the ones that have used little lately, and the others. */
  readonly #light = new Set<ServerConnection>();
  readonly #heavy = new Set<ServerConnection>();
  /** Those that wait for something else, the one that waits longest first. */
  readonly #stalled = new Set<ServerConnection>();
  /** Clients that have left, with what they asked before, the one that left first first. */
  readonly #departed = new Set<ServerConnection>();
  #departedBytes = 0;
  /** When `newTurn` must be called at the latest. */
  wakeAtMs = NEVER_MS;
  #turnNumber = 0;
  /** How long this turn of the event loop has been used for requests. */
  #turnMs = 0;
  /** Steps of the connection that is worked for. */
  #stepCount = 0;
  /** How much has been read in it. */
  #turnBytes = 0;

  constructor(state: ServerState, teller: EventTeller, owner: IntakeOwner) {
    this.#state = state;
    this.#teller = teller;
    this.#owner = owner;
  }

  /** Whether `newTurn` should be called once all input that is there has been handed out. */
  get turnIsLong(): boolean {
    if (this.#light.size > 0 || this.#heavy.size > 0) return true;
    return this.#turnMs >= LONG_TURN_MS || this.#turnBytes >= READ_BYTES / 2;
  }

  /**
   * All input has been handed out: goes on with those that had to wait for that. A step can be longer than the time that
   * was left: what one turn took too much of, or used for something else, it has less of for the rest, and so two long
   * steps are not in one turn.
   */
  newTurn(usedMs = 0): void {
    const startedAtMs = this.#state.clock.nowMs();
    const endMs = startedAtMs + WAITING_MS - Math.max(0, this.#turnMs - INPUT_MS) - usedMs;
    this.#beginTurn(0);
    if (this.wakeAtMs <= startedAtMs) this.resume();
    const servedAny = this.#serve(this.#light, endMs, true);
    this.#serve(this.#heavy, endMs, !servedAny || this.#turnNumber % HEAVY_TURNS === 0);
    this.#beginTurn(Math.max(0, this.#state.clock.nowMs() - Math.max(startedAtMs, endMs)));
  }

  #beginTurn(usedMs: number): void {
    this.#turnNumber++;
    this.#turnMs = usedMs;
    this.#turnBytes = 0;
  }

  /** Each of these gets a slice, in order, while there is time; the first one in any case, if it must. */
  #serve(line: Set<ServerConnection>, endMs: number, must: boolean): boolean {
    let servedAny = false;
    for (const connection of [...line]) {
      const leftMs = endMs - this.#state.clock.nowMs();
      if (this.#teller.busy || (leftMs <= 0 && (servedAny || !must))) break;
      this.#work(connection, Math.min(SLICE_MS, Math.max(0, leftMs)));
      servedAny = true;
    }
    return servedAny;
  }

  /** So many bytes have come in. Handles what waits on the connection, as far as that may be done now. */
  received(connection: ServerConnection, byteCount: number): void {
    this.#turnBytes += byteCount;
    if (this.#turnBytes <= READ_BYTES || connection.stalledBy !== undefined) return this.work(connection);
    this.#stall(connection, 'turn', NEVER_MS);
    this.#heavy.add(connection);
  }

  /** Handles what waits on a connection, as far as that may be done now. */
  work(connection: ServerConnection): void {
    if (connection.stalledBy === 'turn') return; // It has its place in a line.
    const light = this.#lately(connection, this.#state.clock.nowMs()) < LIGHT_MS;
    if (!light && this.#turnMs >= BUSY_MS && connection.waiting.length > 0) {
      this.#stall(connection, 'turn', NEVER_MS);
      this.#heavy.add(connection);
      return;
    }
    // A step of one request is done at any time, which is enough for those that ask for little.
    this.#work(connection, this.#turnMs < INPUT_MS ? SLICE_MS : 0);
  }

  /** A socket with much to read is read many times in one turn of the event loop: all of that together counts. */
  #work(connection: ServerConnection, sliceMs: number): void {
    const startedAtMs = this.#state.clock.nowMs();
    const { turn } = connection;
    if (turn.number !== this.#turnNumber) {
      turn.number = this.#turnNumber;
      turn.usedMs = 0;
    }
    this.#leaveLines(connection);
    this.#stepCount = 0;
    this.#handle(connection, startedAtMs + sliceMs - turn.usedMs, turn.usedMs > 0);
    const nowMs = this.#state.clock.nowMs();
    const tookMs = nowMs - startedAtMs;
    turn.usedMs += tookMs;
    this.#turnMs += tookMs;
    const { load } = connection;
    // What was not this process's to use, on a machine that has other work, is not held against a client.
    const chargedMs = Math.min(tookMs, this.#stepCount * STEP_MS);
    load.usedMs = this.#lately(connection, startedAtMs) + chargedMs;
    load.atMs = nowMs;
    if (connection.stalledBy === 'turn') (load.usedMs < LIGHT_MS ? this.#light : this.#heavy).add(connection);
  }

  /** What it has used, less what it may use without that being held against it. */
  #lately({ load }: ServerConnection, nowMs: number): number {
    return Math.max(0, load.usedMs - FREE_SHARE * (nowMs - load.atMs));
  }

  #handle(connection: ServerConnection, endMs: number, handledBefore: boolean): void {
    let handledAny = handledBefore;
    for (; !connection.over; handledAny = true) {
      if (connection.work === undefined && connection.waiting.length === 0) break;
      const nowMs = this.#state.clock.nowMs();
      const turnIsOver = this.#teller.busy || (handledAny && nowMs >= endMs);
      if (turnIsOver) return this.#stall(connection, 'turn', NEVER_MS);
      if (connection.work !== undefined) {
        // What is no answer to a request has room for no more than is taken.
        if (connection.asksWord && this.#mustWaitForReader(connection))
          return this.#stall(connection, 'output', NEVER_MS);
        this.#goOn(connection, endMs);
        continue;
      }
      if (!connection.departed) {
        if (this.#mustWaitForDisk(connection)) return this.#stall(connection, 'disk', NEVER_MS);
        if (this.#mustWaitForReader(connection)) return this.#stall(connection, 'output', NEVER_MS);
        const turn = connection.rate?.take(nowMs);
        if (turn && !turn.taken) return this.#stall(connection, 'rate', turn.atMs);
      }
      this.#stepCount++;
      connection.work = this.#owner.handle(connection, connection.waiting.shift()!);
      if (connection.over) this.#abandonWork(connection);
    }
    if (connection.departed) return this.#forgetDeparted(connection);
    this.forget(connection);
    if (connection.over) return;
    const { fault } = connection.frames;
    // Only now: what came before the bytes that are not the protocol has been answered.
    if (fault) {
      connection.flush();
      return this.#owner.drop(connection, fault.message);
    }
    connection.resume();
  }

  /** Goes on with the request that is under way, until it is done or the time is. */
  #goOn(connection: ServerConnection, endMs: number): void {
    const work = connection.work!;
    connection.work = undefined; // While it runs, it cannot be ended by what it sets off.
    do {
      this.#stepCount++;
      if (work.next().done) return;
      if (connection.over) return void work.return();
    } while (!this.#teller.busy && this.#state.clock.nowMs() < endMs);
    connection.work = work;
  }

  /**
   * The client is gone and can send no more. What it asked before is done, in order and in the same slices as if it were
   * still there; then its owner hears of it.
   */
  depart(connection: ServerConnection): void {
    connection.departed = true;
    this.#departed.add(connection);
    this.#departedBytes += connection.measureWaiting();
    for (const oldest of this.#departed) {
      if (this.#departedBytes <= DEPARTED_BYTES_MAX || oldest === connection) break;
      this.#forgetDeparted(oldest);
    }
    this.#leaveLines(connection);
    this.work(connection);
  }

  /** Whatever it asked and has not been begun is not done. */
  #forgetDeparted(connection: ServerConnection): void {
    this.forget(connection);
    this.#owner.departed(connection);
  }

  /** Something has changed for everyone who waits for something else than a turn: goes on, the longest waiting first. */
  resume(): void {
    this.wakeAtMs = NEVER_MS;
    const startedAtMs = this.#state.clock.nowMs();
    for (const connection of [...this.#stalled]) {
      const nowMs = this.#state.clock.nowMs();
      if (nowMs - startedAtMs >= WAITING_MS || this.#turnMs >= INPUT_MS + WAITING_MS) {
        this.wakeAtMs = nowMs;
        return;
      }
      this.#work(connection, SLICE_MS);
    }
  }

  forget(connection: ServerConnection): void {
    this.#leaveLines(connection);
    this.#abandonWork(connection);
    if (!connection.departed) return;
    if (this.#departed.delete(connection)) this.#departedBytes -= connection.waitingBytes;
  }

  #abandonWork(connection: ServerConnection): void {
    const { work } = connection;
    if (!work) return;
    connection.work = undefined;
    work.return();
  }

  #leaveLines(connection: ServerConnection): void {
    if (connection.stalledBy === undefined) return;
    connection.stalledBy = undefined;
    this.#light.delete(connection);
    this.#heavy.delete(connection);
    this.#stalled.delete(connection);
  }

  /** As ZooKeeper: when there is too much in all, those who have nothing under way are still heard. */
  #mustWaitForDisk({ outstandingCount }: ServerConnection): boolean {
    const { outstandingMax, outstandingPerConnectionMax } = this.#state.limits;
    if (outstandingCount >= outstandingPerConnectionMax) return true;
    return outstandingCount > 0 && this.#state.statistics.outstandingCount >= outstandingMax;
  }

  /** One answer must always fit: only what nobody asked for at this moment, events, can cost the connection. */
  #mustWaitForReader(connection: ServerConnection): boolean {
    const { outputBytesMax, replyBytesMax } = this.#state.limits;
    if (connection.outputBytes + replyBytesMax <= outputBytesMax) return false;
    connection.flush();
    return connection.outputBytes + replyBytesMax > outputBytesMax;
  }

  /** To the end of the line; which one is that of those who wait for a turn, is known once this one is over. */
  #stall(connection: ServerConnection, obstacle: Obstacle, untilMs: number): void {
    this.#leaveLines(connection);
    connection.stalledBy = obstacle;
    if (obstacle !== 'turn') this.#stalled.add(connection);
    connection.pause();
    this.wakeAtMs = Math.min(this.wakeAtMs, untilMs);
  }
}
