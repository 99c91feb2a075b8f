import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Cancel, systemClock } from '../../base/clock.ts';
import { machineNowMs } from '../../base/machine-clock.ts';

/** What a run that holds a lock tells those that run under its hold: one line of JSON each time that it changes. */
export interface HoldState {
  /** On the machine's clock: no command may run under the hold then. */
  readonly leaseEndMs: number;
  readonly sessionTimeoutMs: number;
}

/** How long a run that was told to end has for it. */
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
    for (const guest of this.#guests) guest.write(this.#line());
  }

  /** No one comes in any more; those inside are told to end at once, and not waited for longer than they need. */
  expel(): void {
    this.#closed = true;
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
  /** Calls for each change, and `undefined` when the hold is over: the command must end at once. */
  onChange(listener: (state: HoldState | undefined) => void): void;
  /** The command has ended: the hold may be released. */
  leave(): void;
}

/** Asks to be let in under an ancestor's hold; undefined if it does not answer: it holds no longer, or is elsewhere. */
export async function enterDoor(path: string): Promise<Guest | undefined> {
  const socket = connect({ path, allowHalfOpen: true });
  let pending = '';
  let state: HoldState | undefined;
  let over = false;
  let tell: (state: HoldState | undefined) => void = () => {};
  socket.setEncoding('utf8');
  const first = await new Promise<HoldState | undefined>((resolve) => {
    const cancel = systemClock.at(systemClock.nowMs() + ANSWER_MS_MAX, () => socket.destroy());
    const ended = () => {
      cancel();
      over = true;
      resolve(state);
      tell(undefined);
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
      resolve(state);
      tell(state);
    });
  });
  if (!first) {
    socket.destroy();
    return undefined;
  }
  return {
    state: first,
    onChange: (listener) => {
      tell = listener;
      if (over) listener(undefined);
      else if (state) listener(state);
    },
    leave: () => void socket.destroy(),
  };
}

function stateFrom(line: string): HoldState | undefined {
  try {
    const { leaseEndMs, sessionTimeoutMs } = JSON.parse(line) as Record<string, unknown>;
    const numbers = [leaseEndMs, sessionTimeoutMs].every((each) => Number.isFinite(each));
    return numbers
      ? { leaseEndMs: Number(leaseEndMs), sessionTimeoutMs: Number(sessionTimeoutMs) }
      : undefined;
  } catch {
    return undefined;
  }
}
