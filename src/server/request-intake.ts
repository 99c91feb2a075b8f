import type { Obstacle, ServerConnection } from './server-connection.ts';
import type { ServerLimits } from './server-limits.ts';

/** How long one client may have the server to itself before the others get a turn. */
const TURN_MS = 5;
/** Once all of them together have had it for this long in one turn of the event loop… */
const CROWDED_MS = 4 * TURN_MS;
/** … each may have no more than this, so that many busy clients are no worse than a few. */
const CROWDED_TURN_MS = 0.5;
/** A turn of the event loop in which less is done need not be told from the next one. */
const LONG_TURN_MS = TURN_MS / 2;
const NEVER_MS = Number.POSITIVE_INFINITY;

type IntakeLimits = Pick<
  ServerLimits,
  'outstandingMax' | 'outstandingPerConnectionMax' | 'outputBytesMax' | 'replyBytesMax'
>;

/** Whom the intake serves. */
export interface IntakeOwner {
  readonly limits: IntakeLimits;
  nowMs(): number;
  /** Handles one frame completely. */
  handle(connection: ServerConnection, frame: Buffer): void;
  drop(connection: ServerConnection, reason: string): void;
}

/**
 * When a request is handled: at once, unless its client has too much under way. Then it waits, in order, and nothing
 * more is read from that client; TCP does the rest. Nothing is refused and nothing is lost.
 *
 *   socket ─→ frames ─→ waiting ─→ handled ─→ held for the disk ─→ socket
 *         ↑ paused while there are any    ↑ outstanding: what is bounded
 */
export class RequestIntake {
  readonly #owner: IntakeOwner;
  /** Those with requests that wait, the one that waits longest first. */
  readonly #stalled = new Set<ServerConnection>();
  /** Requests of all connections that are handled and wait for the disk. */
  outstandingCount = 0;
  #wakeAtMs = NEVER_MS;
  #turnNumber = 0;
  /** How long this turn of the event loop has been used for requests. */
  #turnMs = 0;

  constructor(owner: IntakeOwner) {
    this.#owner = owner;
  }

  /** When `resume` must be called at the latest. */
  get wakeAtMs(): number {
    return this.#wakeAtMs;
  }

  /** Whether `newTurn` should be called once all input that is there has been handed out. */
  get turnIsLong(): boolean {
    return this.#turnMs >= LONG_TURN_MS;
  }

  /** Everyone has been heard: whoever had to let the others have their turn may go on. */
  newTurn(): void {
    this.#turnNumber++;
    this.#turnMs = 0;
    if (this.#wakeAtMs <= this.#owner.nowMs()) this.resume();
  }

  /**
   * Handles what waits on a connection, as far as that may be done now. A socket with much to read is read many times
   * in one turn of the event loop: what counts is all of that together.
   */
  work(connection: ServerConnection): void {
    const startedAtMs = this.#owner.nowMs();
    const { turn } = connection;
    if (turn.number !== this.#turnNumber) {
      turn.number = this.#turnNumber;
      turn.usedMs = 0;
    }
    this.#work(connection, startedAtMs - turn.usedMs);
    const tookMs = this.#owner.nowMs() - startedAtMs;
    turn.usedMs += tookMs;
    this.#turnMs += tookMs;
  }

  #work(connection: ServerConnection, turnStartedAtMs: number): void {
    const turnMsMax = this.#turnMs < CROWDED_MS ? TURN_MS : CROWDED_TURN_MS;
    let handledAny = connection.turn.usedMs > 0;
    for (; !connection.over; handledAny = true) {
      const frame = connection.waiting.first();
      if (frame === undefined) break;
      const nowMs = this.#owner.nowMs();
      if (handledAny && nowMs - turnStartedAtMs >= turnMsMax) return this.#stall(connection, 'turn', nowMs);
      if (this.#mustWaitForDisk(connection)) return this.#stall(connection, 'disk', NEVER_MS);
      if (this.#mustWaitForReader(connection)) return this.#stall(connection, 'output', NEVER_MS);
      const turn = connection.rate?.take(nowMs);
      if (turn && !turn.taken) return this.#stall(connection, 'rate', turn.atMs);
      connection.waiting.shift();
      this.#owner.handle(connection, frame);
    }
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

  /** Handles everything that waits, limits or not: the client is gone and can send no more. */
  finish(connection: ServerConnection): void {
    while (!connection.over) {
      const frame = connection.waiting.shift();
      if (frame === undefined) break;
      this.#owner.handle(connection, frame);
    }
    this.forget(connection);
  }

  /** Something has changed for everyone who waits: goes on with each, the longest waiting first. */
  resume(): void {
    const startedAtMs = this.#owner.nowMs();
    this.#wakeAtMs = NEVER_MS;
    for (const connection of [...this.#stalled]) {
      const nowMs = this.#owner.nowMs();
      if (nowMs - startedAtMs >= TURN_MS) {
        this.#wakeAtMs = nowMs;
        return;
      }
      this.work(connection);
    }
  }

  forget(connection: ServerConnection): void {
    connection.stalledBy = undefined;
    this.#stalled.delete(connection);
  }

  /** As ZooKeeper: when there is too much in all, those who have nothing under way are still heard. */
  #mustWaitForDisk({ outstandingCount }: ServerConnection): boolean {
    const { outstandingMax, outstandingPerConnectionMax } = this.#owner.limits;
    if (outstandingCount >= outstandingPerConnectionMax) return true;
    return outstandingCount > 0 && this.outstandingCount >= outstandingMax;
  }

  /** One answer must always fit: only what nobody asked for at this moment, events, can cost the connection. */
  #mustWaitForReader(connection: ServerConnection): boolean {
    const { outputBytesMax, replyBytesMax } = this.#owner.limits;
    if (connection.outputBytes + replyBytesMax <= outputBytesMax) return false;
    connection.flush();
    return connection.outputBytes + replyBytesMax > outputBytesMax;
  }

  #stall(connection: ServerConnection, obstacle: Obstacle, untilMs: number): void {
    connection.stalledBy = obstacle;
    this.#stalled.delete(connection); // To the end of the line.
    this.#stalled.add(connection);
    connection.pause();
    this.#wakeAtMs = Math.min(this.#wakeAtMs, untilMs);
  }
}
