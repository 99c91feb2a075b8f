import { describe, expect, test } from 'vitest';
import { type Follower, remainingOf } from './neighbours.ts';
import { Succession } from './succession.ts';

/** Places one behind the other, as others see them. */
class Line {
  readonly successions: Succession[] = [];
  readonly followers: Follower[] = [];

  constructor(length: number) {
    for (let index = 0; index < length; index++) {
      const succession = new Succession();
      this.successions.push(succession);
      this.followers.push({
        name: `/${index}`,
        departed: () => {},
        evict: () => {},
        heirs: () => succession.heirs,
        aheadSettled: () => succession.aheadSettled(),
      });
    }
  }

  /** One lets go, and tells the next. */
  letGo(index: number): void {
    const next = this.followers[index + 1];
    if (next) this.successions[index + 1]!.begin();
    this.successions[index]!.passTo(next ? [next] : []);
  }

  /** Who holds, as far as one that has let go must know. */
  holders(index: number): string[] {
    return remainingOf([this.followers[index + 1]!]).map(({ name }) => name);
  }

  /** How many still lead to another. */
  get linkCount(): number {
    return this.successions.filter(({ heirs }) => heirs && heirs.length > 0).length;
  }
}

describe('whom a place has told', () => {
  test('is known to those ahead until they have left', () => {
    const line = new Line(4);
    line.letGo(0);
    line.letGo(1);
    line.letGo(2);
    expect(line.holders(0)).toEqual(['/3']);
    line.successions[1]!.settle(); // Before the one ahead of it: that one may still ask.
    line.successions[2]!.settle();
    expect(line.holders(0)).toEqual(['/3']);
    expect(line.linkCount).toBe(3);
    line.successions[0]!.settle();
    expect(line.linkCount).toBe(0);
  });

  test('is known to all of several ahead', () => {
    const line = new Line(2);
    const [holder, next] = line.successions;
    holder!.begin();
    holder!.begin();
    holder!.passTo([line.followers[1]!]);
    next!.begin();
    holder!.settle();
    holder!.aheadSettled();
    expect(holder!.heirs).toHaveLength(1);
    expect(holder!.aheadSettled()).toEqual([line.followers[1]]);
    expect(holder!.heirs).toHaveLength(0);
  });

  test('is not forgotten before it has left itself', () => {
    const line = new Line(3);
    line.letGo(0);
    line.successions[0]!.settle();
    line.letGo(1);
    expect(line.linkCount).toBe(1);
    line.successions[1]!.settle();
    expect(line.linkCount).toBe(0);
  });

  test('is forgotten along a chain of any length', () => {
    const line = new Line(50_000);
    for (let index = 0; index < 50_000; index++) line.letGo(index);
    for (let index = 49_999; index > 0; index--) line.successions[index]!.settle();
    expect(line.linkCount).toBe(49_999);
    line.successions[0]!.settle();
    expect(line.linkCount).toBe(0);
  });
});
