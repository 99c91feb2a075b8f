import type { Cancel, Clock } from '../base/clock.ts';
import type { ServerCore } from './server-core.ts';

/** Calls the core when time has passed that matters to it. */
export class Ticker {
  readonly #core: ServerCore;
  readonly #clock: Clock;
  #alarm: { readonly atMs: number; readonly cancel: Cancel } | undefined;
  #stopped = false;
  #paused = false;

  constructor(core: ServerCore, clock: Clock) {
    this.#core = core;
    this.#clock = clock;
  }

  /** Most steps only move the next deadline further away; the alarm is then left to go off early and look. */
  arm(): void {
    if (this.#stopped || this.#paused) return;
    const atMs = this.#core.wakeAtMs;
    if (this.#alarm && this.#alarm.atMs <= atMs) return;
    this.#alarm?.cancel();
    const cancel = this.#clock.at(atMs, () => {
      this.#alarm = undefined;
      this.#core.tick();
      this.arm();
    });
    this.#alarm = { atMs, cancel };
  }

  /** Time passes and nobody looks. */
  pause(): void {
    this.#paused = true;
    this.#alarm?.cancel();
    this.#alarm = undefined;
  }

  /** Looks at once: whatever fell due meanwhile happens now. */
  resume(): void {
    if (this.#stopped || !this.#paused) return;
    this.#paused = false;
    this.#core.tick();
    this.arm();
  }

  stop(): void {
    this.#stopped = true;
    this.#alarm?.cancel();
  }
}
