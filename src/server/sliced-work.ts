/**
 * Work that may be long, done in slices: each step up to the next `yield` takes a small part of a millisecond, and
 * between two steps others may have their turn. Ended early by `return()`, when nobody waits for it any more.
 */
export type SlicedWork = Generator<undefined, void, undefined>;

/** As `SlicedWork`, with something that comes of it. */
export type SlicedResult<T> = Generator<undefined, T, undefined>;

/** How many small things make a step. */
export const ITEMS_PER_STEP = 128;

/** How many operations of a multi or multiRead make one. */
export const OPS_AT_ONCE = 16;
