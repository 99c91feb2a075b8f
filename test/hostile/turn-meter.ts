import { openSync, readSync } from 'node:fs';
import { type EventLoopUtilization, PerformanceObserver, performance } from 'node:perf_hooks';

/** What the turns of an event loop have cost since the meter was asked last. */
export interface TurnReport {
  readonly turnCount: number;
  /** The dearest turn: processor time of the loop's thread, without what the collector took of it. */
  readonly maxMs: number;
  /** The processor time of the server between a request of the program that behaves and its answer. */
  readonly waits?: { readonly p50Ms: number; readonly maxMs: number };
  /** The longest single pause of the collector. */
  readonly collectorMaxMs: number;
  /** The dearest turns, dearest first. */
  readonly dearest: readonly number[];
}

interface Turn {
  readonly startMs: number;
  readonly endMs: number;
  readonly costMs: number;
}

/** Turns below this are counted and forgotten. */
const NOTED_MS = 2;
/** What the kernel says of a thread that runs may be this old: a tick of a kernel with 250 of them a second. */
const SCHEDULER_TICK_MS = 4;
const DEAREST_MAX = 5;

/**
 * Measures what each turn of this process's event loop costs, from one round of immediates to the next.
 *
 * There is no clock in Node 20 for the processor time of one thread. Three things are known that are no less than it:
 * the time the loop was not idle, the processor time of all threads of the process, and what the kernel last noted of
 * this one, plus a tick. The least of them is taken, so that neither a machine with other work nor the collector's own
 * threads make a turn dear that is not.
 */
export class TurnMeter {
  readonly #schedule = openSync(`/proc/self/task/${process.pid}/schedstat`, 'r');
  readonly #text = Buffer.alloc(64);
  #turns: Turn[] = [];
  #pauses: { readonly startMs: number; readonly endMs: number }[] = [];
  #turnCount = 0;
  #last: { readonly utilization: EventLoopUtilization; readonly allMs: number; readonly noted: number };
  #lastAtMs = performance.now();
  readonly #observer: PerformanceObserver;

  constructor() {
    this.#observer = new PerformanceObserver((list) => this.#note(list.getEntries()));
    this.#observer.observe({ entryTypes: ['gc'] });
    this.#last = this.#read();
    this.#wait();
  }

  /** What has been measured since this was asked last. */
  async report(): Promise<TurnReport> {
    // Pauses of the collector are told a while after they were.
    await new Promise((resolve) => setTimeout(resolve, 50));
    this.#note(this.#observer.takeRecords());
    const costs = this.#turns.map((turn) => turn.costMs - this.#pausedMs(turn)).sort((a, b) => b - a);
    const report = {
      turnCount: this.#turnCount,
      maxMs: Math.max(0, costs[0] ?? 0),
      collectorMaxMs: Math.max(0, ...this.#pauses.map(({ startMs, endMs }) => endMs - startMs)),
      dearest: costs.slice(0, DEAREST_MAX),
    };
    this.#turns = [];
    this.#pauses = [];
    this.#turnCount = 0;
    return report;
  }

  #note(entries: readonly { readonly startTime: number; readonly duration: number }[]): void {
    for (const { startTime, duration } of entries)
      this.#pauses.push({ startMs: startTime, endMs: startTime + duration });
  }

  #pausedMs({ startMs, endMs }: Turn): number {
    return this.#pauses.reduce(
      (sum, pause) => sum + Math.max(0, Math.min(endMs, pause.endMs) - Math.max(startMs, pause.startMs)),
      0,
    );
  }

  /** An immediate that does not keep the loop alive does not keep it from waiting either: one for each turn. */
  #wait(): void {
    setImmediate(() => this.#turn()).unref();
  }

  #turn(): void {
    const now = this.#read();
    const { active } = performance.eventLoopUtilization(now.utilization, this.#last.utilization);
    const costMs = Math.min(
      active,
      now.allMs - this.#last.allMs,
      now.noted - this.#last.noted + SCHEDULER_TICK_MS,
    );
    const endMs = performance.now();
    if (costMs >= NOTED_MS) this.#turns.push({ startMs: this.#lastAtMs, endMs, costMs });
    this.#turnCount++;
    this.#last = now;
    this.#lastAtMs = endMs;
    this.#wait();
  }

  #read() {
    const bytes = readSync(this.#schedule, this.#text, 0, this.#text.byteLength, 0);
    const [nanoseconds] = this.#text.toString('latin1', 0, bytes).split(' ');
    return {
      utilization: performance.eventLoopUtilization(),
      allMs: processorMs(),
      noted: Number(nanoseconds) / 1e6,
    };
  }
}

/** The processor time that this process has used, with all its threads. */
export function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
