import { setMaxListeners } from 'node:events';
import type { Clock } from '../base/clock.ts';
import { runSafely } from '../base/emitter.ts';
import { type Link, LinkedList } from '../base/linked-list.ts';
import type { SessionInput } from '../session/session-io.ts';
import type { SessionMachine } from '../session/session-machine.ts';
import type { SessionRequest } from '../session/session-request.ts';
import type { SessionState } from '../session/session-state.ts';
import { abortSafely, type SessionDriver } from './session-driver.ts';

const HOLD_BEGAN: SessionInput = { kind: 'hold-began' };
const HOLD_ENDED: SessionInput = { kind: 'hold-ended' };

/**
 * One session, from its grant to its loss. Work that must not outlive it is bound to it: by passing it as the
 * `session` option of a request, by its `lost` signal, or by a `Hold`.
 */
export class Session {
  readonly #machine: SessionMachine;
  readonly #driver: SessionDriver;
  readonly #clock: Clock;
  readonly #onListenerError: (error: unknown) => void;
  readonly #lost = new AbortController();
  readonly #holds = new LinkedList<Hold>();
  /** How many connections it has had: what was learnt of a server is true of one of them. @internal */
  connectionCount = 0;
  /** The last write, in the order of sending, whose caller gave it up, and the connection it was sent on. */
  #givenUp: { readonly request: SessionRequest; readonly connection: number } | undefined;

  /** @internal */
  constructor(driver: SessionDriver, clock: Clock, onListenerError: (error: unknown) => void) {
    this.#driver = driver;
    this.#machine = driver.machine;
    this.#clock = clock;
    this.#onListenerError = onListenerError;
    setMaxListeners(0, this.#lost.signal); // Everything that waits in this session listens to it.
  }

  /** The server's number for it; 0n until it is granted. */
  get id(): bigint {
    return this.#machine.id;
  }
  /** The negotiated timeout once connected, the one asked for before. */
  get timeoutMs(): number {
    return this.#machine.timeoutMs;
  }
  get state(): SessionState['kind'] {
    return this.#machine.state.kind;
  }
  /** True while served by a server that is cut off from its quorum: reads only, and nothing may be granted. */
  get readOnly(): boolean {
    return this.#machine.state.kind === 'connected' && this.#machine.state.readOnly;
  }
  /** The newest transaction this session has seen the effect of. */
  get lastZxid(): bigint {
    return this.#machine.lastZxid;
  }
  /** Fires when the session is over, known or assumed, with the error that says which. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /**
   * Says that something is held under this session until `release()`. While any hold lasts, the heartbeat is
   * one that the leader confirms, and the hold's signal fires when exclusivity can no longer be promised.
   */
  hold(): Hold {
    const hold = new Hold(this.#clock, this.#machine, { among: this.#holds, onRelease: this.#onRelease });
    this.#driver.input(HOLD_BEGAN);
    return hold;
  }

  readonly #onRelease = () => this.#driver.input(HOLD_ENDED);

  /**
   * Goes on with another server, because of what this one has shown. Requests under way end as with any lost connection.
   * @internal
   */
  leaveServer(error: Error): void {
    this.#driver.input({ kind: 'server-mistrusted', error });
  }

  /**
   * Sends what was asked for so far. All of it would leave at the end of the tick, in one write with what is yet to come;
   * where that is much, the server can begin with the first part meanwhile.
   * @internal
   */
  flush(): void {
    this.#driver.flush();
  }

  /** The caller of a write that has been sent waits for its answer no more. @internal */
  gaveUp(request: SessionRequest): void {
    const last = this.isWriteLeftOpen ? this.#givenUp!.request : undefined;
    if (last && ((request.xid - last.xid) | 0) < 0) return;
    this.#givenUp = { request, connection: this.connectionCount };
  }

  /** Whether a write that was given up may still be on its way on this connection. Answers come in order. @internal */
  get isWriteLeftOpen(): boolean {
    return this.#givenUp?.request.stage === 'sent' && this.#givenUp.connection === this.connectionCount;
  }

  /** @internal */
  endHolds(error: Error): void {
    for (const hold of this.#holds.drain()) hold.end(error, this.#onListenerError);
  }

  /** @internal */
  end(error: Error): void {
    abortSafely(this.#lost, error, this.#onListenerError);
  }
}

/** Something that is held under a session, for as long as `signal` has not fired and `remainingMs()` is not 0. */
export class Hold {
  readonly #clock: Clock;
  readonly #machine: SessionMachine;
  readonly #onRelease: () => void;
  readonly #link: Link<Hold>;
  /** Made when it is asked for: a lock that is held for a moment has no use for it. */
  #controller: AbortController | undefined;
  #listener: ((error: Error) => void) | undefined;
  #ended = false;
  #endedBy: Error | undefined;

  /** @internal */
  constructor(
    clock: Clock,
    machine: SessionMachine,
    { among, onRelease }: { readonly among: LinkedList<Hold>; readonly onRelease: () => void },
  ) {
    this.#clock = clock;
    this.#machine = machine;
    this.#onRelease = onRelease;
    this.#link = among.add(this);
  }

  /** Fires, with a typed reason, no later than the lease ends by this process's own clock. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#endedBy && !this.#controller.signal.aborted) this.#controller.abort(this.#endedBy);
    return this.#controller.signal;
  }

  /** Calls `listener` when the signal would fire; only the last one given is called, and none after `release`. */
  onEnded(listener: (error: Error) => void): void {
    this.#listener = listener;
  }

  /** From the clock, not from a flag: right even in the first line after a long stall of the event loop. */
  remainingMs(): number {
    if (this.#ended) return 0;
    return Math.max(0, this.#machine.leaseEndMs - this.#clock.nowMs());
  }

  release(): void {
    this.#ended = true;
    this.#listener = undefined;
    if (this.#link.remove()) this.#onRelease();
  }

  /** @internal */
  end(error: Error, onListenerError: (error: unknown) => void): void {
    this.#ended = true;
    this.#endedBy = error;
    if (this.#controller) abortSafely(this.#controller, error, onListenerError);
    if (this.#listener) runSafely(this.#listener, error, onListenerError);
  }
}
