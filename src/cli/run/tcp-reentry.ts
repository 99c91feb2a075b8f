import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Cancel, systemClock } from '../../base/clock.ts';
import { machineNowMs } from '../../base/machine-clock.ts';

/** What a run that holds a lock tells those that run under its hold: one line of JSON each time that it changes. */
export interface HoldState {
  /** On the machine's clock: no command may run under the hold then. 0 where it is over already. */
  readonly leaseEndMs: number;
  readonly sessionTimeoutMs: number;
  /** On the machine's clock: the hold is being ended, and what runs under it has the time until then to end itself. */
  readonly endByMs?: number | undefined;
}

/** How long a run that must end at once is waited for. */
const EXPELLED_MS_MAX = 5_000;
const ANSWER_MS_MAX = 2_000;
const LINE_CHARACTERS_MAX = 1_000;

/**
 * Where a run lets others in under its hold: a socket in a folder that only this user can open. The hold is released
 * only when all who came in have gone, as a re-entered lock is with its last release.
 */
export class ReentryDoor {
  readonly folder: string;
  readonly #server: Server;
  readonly #guests = new Set<Socket>();
  #state: HoldState;
  #closed = false;
  #expelled = false;
  #onEmpty: () => void = () => {};
  #cancelWait: Cancel = () => {};

  /** Undefined where no socket can be made: then no run can come in, and that is said to it. */
  static async open(state: HoldState): Promise<ReentryDoor | undefined> {
    let folder: string | undefined;
    try {
      folder = mkdtempSync(join(tmpdir(), 'holdfast-run-')); // 0700
      const door = new ReentryDoor(folder, state);
      await new Promise<void>((resolve, reject) => {
        door.#server.once('error', reject);
        door.#server.listen(door.path, resolve);
      });
      door.#server.on('error', () => {});
      door.#server.unref();
      return door;
    } catch {
      if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
      return undefined;
    }
  }

  private constructor(folder: string, state: HoldState) {
    this.folder = folder;
    this.#state = state;
    this.#server = createServer({ allowHalfOpen: true }, (socket) => this.#enter(socket));
  }

  get path(): string {
    return join(this.folder, 'door');
  }

  tell(change: Partial<HoldState>): void {
    this.#state = { ...this.#state, ...change };
    if (this.#expelled) return;
    for (const guest of this.#guests) guest.write(this.#line());
  }

  /** No one comes in any more; those inside are asked to end within that time, and expelled when it is up. */
  endWithin(forMs: number): void {
    this.#closed = true;
    const endByMs = machineNowMs() + forMs;
    if (endByMs >= (this.#state.endByMs ?? Number.POSITIVE_INFINITY)) return; // Nothing later gives them more time.
    this.tell({ endByMs });
    if (this.#expelled) return;
    this.#cancelWait();
    this.#cancelWait = systemClock.at(systemClock.nowMs() + forMs, () => this.expel());
  }

  /** No one comes in any more; those inside must end at once, and are not waited for longer than they need. */
  expel(): void {
    this.#closed = true;
    if (this.#expelled) return;
    this.tell({ leaseEndMs: 0 });
    this.#expelled = true;
    for (const guest of this.#guests) guest.end();
    this.#cancelWait();
    this.#cancelWait = systemClock.at(systemClock.nowMs() + EXPELLED_MS_MAX, () => {
      for (const guest of this.#guests) guest.destroy();
    });
  }

  /** No one comes in any more. Resolves when nobody is inside. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#guests.size > 0) await new Promise<void>((resolve) => (this.#onEmpty = resolve));
    this.#cancelWait();
    this.#server.close();
    rmSync(this.folder, { recursive: true, force: true });
  }

  #enter(socket: Socket): void {
    socket.on('error', () => {});
    if (this.#closed || this.#state.leaseEndMs <= machineNowMs()) return void socket.destroy();
    this.#guests.add(socket);
    socket.on('close', () => {
      this.#guests.delete(socket);
      if (this.#guests.size === 0) this.#onEmpty();
    });
    socket.on('end', () => socket.end()); // It has gone.
    socket.resume();
    socket.write(this.#line());
  }

  #line(): string {
    return `${JSON.stringify(this.#state)}\n`;
  }
}

/** What a run that was let in is told from then on. */
export interface Guest {
  /** As it was on entering. */
  readonly state: HoldState;
  /**
   * Calls for each change, and `undefined` when the hold is over: the command must end at once. Where the run above was
   * killed, its lease goes on to its end, renewed by nothing: the command has until then to end itself.
   */
  onChange(listener: (state: HoldState | undefined) => void): void;
  /** The command has ended: the hold may be released. */
  leave(): void;
}

/**
 * Asks to be let in under an ancestor's hold; undefined if it does not answer: it holds no longer, or is elsewhere.
 *
 * @throws the signal's reason.
 */
export async function enterDoor(path: string, signal: AbortSignal): Promise<Guest | undefined> {
  const socket = connect({ path, allowHalfOpen: true });
  let pending = '';
  let state: HoldState | undefined;
  let over = false;
  let tell: (state: HoldState | undefined) => void = () => {};
  socket.setEncoding('utf8');
  const first = await new Promise<HoldState | undefined>((resolve) => {
    const giveUp = () => void socket.destroy();
    const cancelTimer = systemClock.at(systemClock.nowMs() + ANSWER_MS_MAX, giveUp);
    signal.addEventListener('abort', giveUp, { once: true });
    if (signal.aborted) giveUp();
    const cancel = () => {
      cancelTimer();
      signal.removeEventListener('abort', giveUp);
    };
    const ended = () => {
      cancel();
      if (state) state = { ...state, endByMs: Math.min(state.endByMs ?? state.leaseEndMs, state.leaseEndMs) };
      resolve(state);
      if (!over) tell(state);
    };
    socket.on('error', () => {});
    socket.on('end', ended);
    socket.on('close', ended);
    socket.on('data', (text: string) => {
      const lines = (pending + text).split('\n');
      pending = lines.pop()!;
      const latest = lines.length > 0 ? stateFrom(lines.at(-1)!) : state;
      if (pending.length > LINE_CHARACTERS_MAX || (lines.length > 0 && !latest)) return void socket.destroy();
      if (!latest) return;
      cancel();
      state = latest;
      over = state.leaseEndMs <= 0;
      resolve(state);
      tell(over ? undefined : state);
    });
  });
  if (signal.aborted || !first) {
    socket.destroy();
    signal.throwIfAborted();
    return undefined;
  }
  return {
    state: first,
    onChange: (listener) => {
      tell = listener;
      if (over) listener(undefined);
      else if (state) listener(state);
    },
    leave: () => {
      tell = () => {};
      socket.destroy();
    },
  };
}

function stateFrom(line: string): HoldState | undefined {
  try {
    const { leaseEndMs, sessionTimeoutMs, endByMs } = JSON.parse(line) as Record<string, unknown>;
    if (![leaseEndMs, sessionTimeoutMs, endByMs ?? 0].every((each) => Number.isFinite(each)))
      return undefined;
    return {
      leaseEndMs: Number(leaseEndMs),
      sessionTimeoutMs: Number(sessionTimeoutMs),
      ...(endByMs !== undefined && { endByMs: Number(endByMs) }),
    };
  } catch {
    return undefined;
  }
}
