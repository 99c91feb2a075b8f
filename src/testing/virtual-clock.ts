import type { Cancel, Clock } from '../base/clock.ts';

interface Alarm {
  readonly atMs: number;
  readonly order: number;
  readonly run: () => void;
}

/**
 * A clock that stands still until it is told to go on. Alarms go off in the order of their times, those of one
 * time in the order they were set; promise reactions are let run between any two.
 */
export class VirtualClock implements Clock {
  #nowMs = 0;
  #order = 0;
  readonly #alarms = new Set<Alarm>();

  nowMs(): number {
    return this.#nowMs;
  }

  /** As if the clock had been made at the beginning of 2026. */
  wallMs(): number {
    return Date.UTC(2026, 0, 1) + Math.floor(this.#nowMs);
  }

  at(atMs: number, run: () => void): Cancel {
    const alarm: Alarm = { atMs: Math.max(atMs, this.#nowMs), order: this.#order++, run };
    this.#alarms.add(alarm);
    return () => void this.#alarms.delete(alarm);
  }

  endOfTick(run: () => void): void {
    this.at(this.#nowMs, run);
  }

  afterTick(run: () => void): void {
    this.endOfTick(() => this.endOfTick(run));
  }

  afterInput(run: () => void): void {
    this.at(this.#nowMs, run);
  }

  /** How many alarms are set: 0 once everything that uses this clock has been closed. */
  get alarmCount(): number {
    return this.#alarms.size;
  }

  /** Goes on by `durationMs`, setting off whatever falls due. */
  advance(durationMs: number): Promise<void> {
    return this.advanceTo(this.#nowMs + durationMs);
  }

  async advanceTo(atMs: number): Promise<void> {
    for (;;) {
      await settled();
      const next = this.#next();
      if (!next || next.atMs > atMs) break;
      this.#alarms.delete(next);
      this.#nowMs = next.atMs;
      next.run();
    }
    this.#nowMs = atMs;
  }

  #next(): Alarm | undefined {
    let next: Alarm | undefined;
    for (const alarm of this.#alarms) {
      if (!next || alarm.atMs < next.atMs || (alarm.atMs === next.atMs && alarm.order < next.order))
        next = alarm;
    }
    return next;
  }
}

/** Resolves when every promise reaction that is due has run. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
