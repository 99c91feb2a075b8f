import type { Cancel, Clock } from '../base/clock.ts';
import type { ServerCore } from './server-core.ts';

/** Calls the core when time has passed that matters to it. */
export class Ticker {
  readonly #core: ServerCore;
  readonly #clock: Clock;
  #alarm: { readonly atMs: number; readonly cancel: Cancel } | undefined;
  #turnEnds = false;
  #stopped = false;
  #paused = false;

  constructor(core: ServerCore, clock: Clock) {
    this.#core = core;
    this.#clock = clock;
  }

  /** Most steps only move the next deadline further away; the alarm is then left to go off early and look. */
  arm(): void {
    if (this.#stopped || this.#paused) return;
    if (this.#core.turnIsLong) this.#tickAfterInput();
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

  /** Behind the input of everybody else who has some. */
  #tickAfterInput(): void {
    if (this.#turnEnds) return;
    this.#turnEnds = true;
    this.#clock.afterInput(() => {
      this.#turnEnds = false;
      if (this.#stopped || this.#paused) return;
      this.#core.tick();
      this.arm();
    });
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
