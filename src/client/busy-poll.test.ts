import { describe, expect, test } from 'vitest';
import { type Clock, systemClock } from '../base/clock.ts';
import { BusyPoll } from './busy-poll.ts';

/** Turns of an event loop, one at a time, a tenth of a millisecond each. */
class Turns {
  #nowMs = 0;
  #waiting: (() => void)[] = [];
  readonly clock: Clock = {
    ...systemClock,
    nowMs: () => this.#nowMs,
    afterInput: (run) => void this.#waiting.push(run),
  };

  /** How many turns are taken without waiting for anything, of at most so many. */
  untilIdle(countMax: number): number {
    let count = 0;
    while (this.#waiting.length > 0 && count < countMax) {
      count++;
      this.#nowMs += 0.1;
      for (const run of this.#waiting.splice(0)) run();
    }
    return count;
  }
}

describe('a client that polls', () => {
  test('lets the loop sleep once everything is answered', () => {
    const turns = new Turns();
    let isDue = true;
    const poll = new BusyPoll(turns.clock, 1, () => isDue);
    poll.sent();
    expect(turns.untilIdle(5)).toBe(5);
    isDue = false;
    expect(turns.untilIdle(100)).toBe(1);
    poll.sent();
    expect(turns.untilIdle(100)).toBe(1);
  });

  test('does so for no longer than it was told, from the last that was sent', () => {
    const turns = new Turns();
    const poll = new BusyPoll(turns.clock, 1, () => true);
    poll.sent();
    expect(turns.untilIdle(6)).toBe(6);
    poll.sent();
    expect(turns.untilIdle(100)).toBe(10);
    expect(turns.untilIdle(100)).toBe(0);
  });

  test('takes no turn if it is not to', () => {
    const turns = new Turns();
    new BusyPoll(turns.clock, 0, () => true).sent();
    expect(turns.untilIdle(100)).toBe(0);
  });
});
