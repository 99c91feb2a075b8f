import type { Cancel, Clock } from '../base/clock.ts';
import { runSafely } from '../base/emitter.ts';
import type { Log } from '../base/log.ts';
import type { AuthInfo, ServerAddress, SessionEffect, SessionInput } from '../session/session-io.ts';
import type { SessionMachine } from '../session/session-machine.ts';
import type { SessionState } from '../session/session-state.ts';
import { BusyPoll } from './busy-poll.ts';
import type { PendingRequest } from './pending-request.ts';
import type { Link, Transport } from './transport.ts';

const FLUSH: SessionInput = { kind: 'flush' };

/** What a driver reports to the client that owns it. */
export interface DriverEvents {
  stateChanged(state: SessionState, error: Error | undefined): void;
  authAccepted(auth: AuthInfo): void;
  leasesEnded(error: Error): void;
  seekReadWriteServer(): void;
  askForMultiRead(server: ServerAddress, connection: number): void;
  attemptFailed(attempt: {
    readonly server: ServerAddress;
    readonly error: Error;
    readonly opened: boolean;
  }): void;
}

/**
 * Gives one session machine its socket, its timer and its callers: carries inputs in and effects out, and
 * decides nothing.
 */
export class SessionDriver {
  readonly machine: SessionMachine;
  readonly #transport: Transport;
  readonly #clock: Clock;
  readonly #events: DriverEvents;
  readonly #log: Log;
  readonly #busyPoll: BusyPoll;
  #link: Link | undefined;
  #timer: { readonly atMs: number; readonly cancel: Cancel } | undefined;
  #flushScheduled = false;
  /** How many requests were answered, with a refusal too. */
  answerCount = 0;

  constructor(
    machine: SessionMachine,
    options: {
      readonly transport: Transport;
      readonly clock: Clock;
      readonly events: DriverEvents;
      readonly log: Log;
      readonly busyPollMs: number;
    },
  ) {
    this.machine = machine;
    this.#transport = options.transport;
    this.#clock = options.clock;
    this.#events = options.events;
    this.#log = options.log;
    this.#busyPoll = new BusyPoll(options.clock, options.busyPollMs, () => machine.pendingCount > 0);
  }

  /** Takes a request on. Throws `RangeError`, and takes nothing on, if it is longer than a server accepts. */
  submit(request: PendingRequest): void {
    this.#perform(this.machine.handle({ kind: 'request-made', request }, this.#clock.nowMs()));
    this.#scheduleFlush();
  }

  input(input: SessionInput): void {
    this.#perform(this.machine.handle(input, this.#clock.nowMs()));
    this.#scheduleFlush();
    this.#armTimer();
  }

  /** All that is asked for in one tick leaves in one write. */
  #scheduleFlush(): void {
    if (this.#flushScheduled || !this.machine.hasOutput) return;
    this.#flushScheduled = true;
    // Behind those who wait for the end of the tick: what they ask for leaves too.
    this.#clock.afterTick(this.#flush);
  }

  /** Sends what was asked for so far, before the end of the tick. */
  flush(): void {
    if (this.machine.hasOutput) this.#perform(this.machine.handle(FLUSH, this.#clock.nowMs()));
  }

  readonly #flush = () => {
    this.#flushScheduled = false;
    this.flush();
  };

  /** Most inputs only move the next deadline further away; the timer is then left to fire early and look. */
  #armTimer(): void {
    const atMs = this.machine.wakeAtMs;
    if (atMs === undefined) {
      this.#timer?.cancel();
      this.#timer = undefined;
    } else if (!this.#timer || atMs < this.#timer.atMs) {
      this.#timer?.cancel();
      const cancel = this.#clock.at(atMs, () => {
        this.#timer = undefined;
        this.input({ kind: 'time-passed' });
      });
      this.#timer = { atMs, cancel };
    }
  }

  #perform(effects: readonly SessionEffect[]): void {
    for (const effect of effects) {
      switch (effect.kind) {
        case 'request-answered':
          this.answerCount++;
          (effect.request as PendingRequest).answered(effect.reply, effect.zxid);
          break;
        case 'request-refused':
          this.answerCount++;
          (effect.request as PendingRequest).refused(effect.serverCode);
          break;
        case 'request-failed':
          (effect.request as PendingRequest).failed(effect.error);
          break;
        case 'watcher-told':
          effect.watcher(effect.event);
          break;
        case 'send':
          this.#link?.write(effect.bytes);
          this.#busyPoll.sent();
          break;
        case 'dial':
          this.#dial(effect.server);
          break;
        case 'hang-up':
          this.#link?.destroy();
          this.#link = undefined;
          break;
        case 'state-changed':
          this.#log(effect.state.kind === 'lost' ? 'warn' : 'info', `session ${effect.state.kind}`, {
            session: this.machine.id,
            server: this.machine.server,
            error: effect.error,
          });
          this.#events.stateChanged(effect.state, effect.error);
          break;
        case 'auth-accepted':
          this.#events.authAccepted(effect.auth);
          break;
        case 'leases-ended':
          this.#events.leasesEnded(effect.error);
          break;
        case 'seek-read-write-server':
          this.#events.seekReadWriteServer();
          break;
        case 'ask-for-multi-read':
          // Behind one name may be servers of several versions: the one to be asked is the one at the other end.
          this.#events.askForMultiRead({ ...effect.server, address: this.#link?.address }, effect.connection);
          break;
        case 'attempt-failed':
          this.#log('info', 'connection attempt failed', { server: effect.server, error: effect.error });
          this.#events.attemptFailed(effect);
          break;
      }
    }
  }

  #dial(server: ServerAddress): void {
    const link: Link = this.#transport.dial(server, {
      opened: () => this.#fromLink(link, { kind: 'link-opened' }),
      received: (chunk) => this.#fromLink(link, { kind: 'bytes-received', chunk }),
      closed: (error) => this.#fromLink(link, { kind: 'link-closed', ...(error && { error }) }),
    });
    this.#link = link;
  }

  /** A connection that was given up may still call; only the current one is heard. */
  #fromLink(link: Link, input: SessionInput): void {
    if (link === this.#link) this.input(input);
  }
}

/** Fires an abort signal outside the code that found the reason: its listeners are the user's. */
export function abortSafely(
  controller: AbortController,
  reason: unknown,
  onError: (error: unknown) => void,
): void {
  runSafely(() => controller.abort(reason), undefined, onError);
}
