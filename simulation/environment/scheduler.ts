import type { Cancel } from '../../src/base/clock.ts';

interface Occurrence {
  readonly atMs: number;
  readonly order: number;
  /** Undefined once it was taken back. */
  run: (() => void) | undefined;
}

/** What Node does between any two callbacks: next ticks, promise reactions, and rejections that nobody handles. */
const drain = (process as unknown as { _tickCallback(): void })._tickCallback;

/**
 * Everything that happens in a simulated world, one thing after the other in the order of their times, those of one
 * time in the order they were asked for. Between any two all promise reactions run, as in Node; so `step` must be
 * called from a macrotask, where none is running.
 */
export class Scheduler {
  readonly #heap: Occurrence[] = [];
  readonly #endOfTick: (() => void)[] = [];
  readonly #onFailure: (error: unknown) => void;
  #nowMs = 0;
  #order = 0;
  #stepCount = 0;

  /** `onFailure` is told what an occurrence threw: it would have ended the process. */
  constructor(onFailure: (error: unknown) => void) {
    this.#onFailure = onFailure;
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  /** How many things have happened. */
  get stepCount(): number {
    return this.#stepCount;
  }

  at(atMs: number, run: () => void): Cancel {
    const occurrence: Occurrence = { atMs: Math.max(atMs, this.#nowMs), order: this.#order++, run };
    this.#push(occurrence);
    return () => {
      occurrence.run = undefined;
    };
  }

  /** Runs when the occurrence of now, and every promise reaction it set off, has finished. */
  endOfTick(run: () => void): void {
    this.#endOfTick.push(run);
  }

  /** Runs behind all who wait for that. */
  afterTick(run: () => void): void {
    this.endOfTick(() => this.endOfTick(run));
  }

  /**
   * Lets the next thing happen; false if there is none, or none until `untilMs`. What is done `beside` it is begun
   * before any promise reaction to it runs, so that the reactions to both take turns.
   */
  step(untilMs = Number.POSITIVE_INFINITY, beside: readonly (() => void)[] = []): boolean {
    let next = this.#heap[0];
    while (next && !next.run) {
      this.#pop();
      next = this.#heap[0];
    }
    if (!next || next.atMs > untilMs) return false;
    this.#pop();
    this.#nowMs = next.atMs;
    this.#stepCount++;
    const { run } = next;
    next.run = undefined;
    this.#run(run!);
    for (const each of beside) this.#run(each);
    this.settle();
    return true;
  }

  /** Lets everything finish that has been set off already. */
  settle(): void {
    drain();
    for (let tick = this.#endOfTick.shift(); tick; tick = this.#endOfTick.shift()) {
      this.#run(tick);
      drain();
    }
  }

  #run(run: () => void): void {
    try {
      run();
    } catch (error) {
      this.#onFailure(error);
    }
  }

  #push(occurrence: Occurrence): void {
    const heap = this.#heap;
    let index = heap.length;
    heap.push(occurrence);
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!isBefore(occurrence, heap[parent]!)) break;
      heap[index] = heap[parent]!;
      index = parent;
    }
    heap[index] = occurrence;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop()!;
    if (heap.length === 0) return;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++;
      if (!isBefore(heap[child]!, last)) break;
      heap[index] = heap[child]!;
      index = child;
    }
    heap[index] = last;
  }
}

function isBefore(a: Occurrence, b: Occurrence): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}
