import type { Cancel, Clock } from '../../src/base/clock.ts';
import type { Scheduler } from './scheduler.ts';

/** The beginning of 2026, when every world begins. */
const BEGINNING_MS = Date.UTC(2026, 0, 1);
/** Times are sums and quotients of fractions: an alarm must not go off a rounding error early. */
const ROUNDING_MS = 1e-6;

export interface SimulatedProcessOptions {
  /** How fast its clock runs; 1 as fast as the world's. */
  readonly clockRate?: number;
}

/**
 * One process of a simulated world: its clock, which may run at another rate than the world's, and its event loop,
 * which may stall. While it stalls nothing of it runs, what comes in waits, and time goes on.
 */
export class SimulatedProcess implements Clock {
  readonly #scheduler: Scheduler;
  readonly #rate: number;
  #state: 'running' | 'stalled' | 'dead' = 'running';
  #inputs: (() => void)[] = [];
  #alarms: (() => void)[] = [];
  #alarmCount = 0;

  constructor(scheduler: Scheduler, { clockRate = 1 }: SimulatedProcessOptions = {}) {
    this.#scheduler = scheduler;
    this.#rate = clockRate;
  }

  get state(): 'running' | 'stalled' | 'dead' {
    return this.#state;
  }

  /** How many alarms are set. */
  get alarmCount(): number {
    return this.#alarmCount;
  }

  nowMs(): number {
    return this.#scheduler.nowMs * this.#rate;
  }

  /** A span of this process's clock as the world sees it. */
  worldSpanMs(spanMs: number): number {
    return spanMs / this.#rate;
  }

  wallMs(): number {
    return BEGINNING_MS + Math.floor(this.nowMs());
  }

  at(atMs: number, run: () => void): Cancel {
    const worldMs = this.#rate === 1 ? atMs : atMs / this.#rate + ROUNDING_MS;
    let over = false;
    const end = () => {
      if (over) return false;
      over = true;
      this.#alarmCount--;
      return true;
    };
    const goOff = () => {
      if (over || this.#state === 'dead') return;
      if (this.#state === 'stalled') this.#alarms.push(goOff);
      else if (end()) run();
    };
    this.#alarmCount++;
    const cancel = this.#scheduler.at(worldMs, goOff);
    return () => {
      if (end()) cancel();
    };
  }

  endOfTick(run: () => void): void {
    this.#scheduler.endOfTick(run);
  }

  afterTick(run: () => void): void {
    this.#scheduler.afterTick(run);
  }

  afterInput(run: () => void): void {
    this.#scheduler.at(this.#scheduler.nowMs, () => this.input(run));
  }

  /** Something comes in from outside: heard now, or when the stall is over, or never. */
  input(run: () => void): void {
    if (this.#state === 'running') run();
    else if (this.#state === 'stalled') this.#inputs.push(run);
  }

  stall(): void {
    if (this.#state === 'running') this.#state = 'stalled';
  }

  /** Goes on with all that has come up meanwhile: timers first, as when one callback took long, or what came in first. */
  resume(first: 'alarms' | 'inputs'): void {
    if (this.#state !== 'stalled') return;
    this.#state = 'running';
    const alarms = this.#alarms;
    const inputs = this.#inputs.map((run) => () => this.input(run));
    this.#alarms = [];
    this.#inputs = [];
    const due = first === 'alarms' ? [...alarms, ...inputs] : [...inputs, ...alarms];
    for (const run of due) this.#scheduler.at(this.#scheduler.nowMs, run);
  }

  /** Nothing of it runs any more. */
  die(): void {
    this.#state = 'dead';
    this.#inputs = [];
    this.#alarms = [];
  }
}
