/** How much of everything: a full run takes a quarter of an hour, a quick one two or three minutes. */
export interface Plan {
  readonly quick: boolean;
  /** Counted ones; a warm-up goes before them. */
  readonly rounds: number;
  readonly sliceMs: number;
  /**
   * Whether each scenario has processes of its own. Otherwise a compiler would have seen what the scenarios before it do,
   * and have made code for that: what is measured would depend on what was measured before.
   */
  readonly processesAnew: boolean;
  /** Of each process, before the first round: by then neither one of Node nor one of Java gets much faster any more. */
  readonly warmUpCycles: number;
  /** But no fewer and no more of these, for each: compilers count calls, and take their time. */
  readonly warmUpSlicesMin: number;
  readonly warmUpSlicesMax: number;
  readonly countedSliceMs: number;
  /** Who takes longer for one slice is ended. */
  readonly withinMs: number;
  /** Of a thing that takes some round trips of 20 ms. */
  readonly samples: number;
  readonly handOvers: number;
  readonly waitersMax: number;
  /** What a queue of so many is made for, each time anew: making a long one takes longer than all that is measured. */
  growthPasses(waiters: number): readonly ('count' | 'time')[];
  /** No queue is begun later than this. */
  readonly growthWithinMs: number;
  /** Says what is under way. */
  tell(what: string): void;
}

export function planOf(quick: boolean, tell: (what: string) => void): Plan {
  return quick
    ? {
        quick,
        rounds: 2,
        sliceMs: 150,
        processesAnew: false, // Starting them takes longer than all that is measured.
        warmUpCycles: 3_000,
        warmUpSlicesMin: 1,
        warmUpSlicesMax: 4,
        countedSliceMs: 100,
        withinMs: 20_000,
        samples: 8,
        handOvers: 50,
        waitersMax: 100,
        growthPasses: () => ['count', 'time'],
        growthWithinMs: 30_000,
        tell,
      }
    : {
        quick,
        rounds: 7,
        sliceMs: 400,
        processesAnew: true,
        warmUpCycles: 15_000,
        warmUpSlicesMin: 10,
        warmUpSlicesMax: 15,
        countedSliceMs: 300,
        withinMs: 30_000,
        samples: 25,
        handOvers: 100,
        waitersMax: 5_000,
        growthPasses: (waiters) => (waiters > 1_000 ? ['time', 'count'] : ['count', 'time', 'time', 'time']),
        growthWithinMs: 180_000,
        tell,
      };
}
