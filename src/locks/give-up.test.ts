import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import { GiveUpOrLoss } from './give-up.ts';

/** Something that can be lost. */
class Base {
  readonly listeners = new Set<(error: Error) => void>();
  readonly onLost = (listener: (error: Error) => void) => {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  };

  lose(error: Error): void {
    for (const listener of [...this.listeners]) listener(error);
  }
}

describe('a wait that stands on something', () => {
  test('ends when that is lost', () => {
    const base = new Base();
    const { signal } = new GiveUpOrLoss(new AbortController().signal, base.onLost);
    expect(signal.aborted).toBe(false);
    const lost = new Error('lost');
    base.lose(lost);
    expect(signal.reason).toBe(lost);
  });

  test('ends when it is given up, before or later', () => {
    const base = new Base();
    const given = new AbortController();
    const { signal } = new GiveUpOrLoss(given.signal, base.onLost);
    const reason = new Error('given up');
    given.abort(reason);
    expect(signal.reason).toBe(reason);
    expect(new GiveUpOrLoss(given.signal, base.onLost).signal.reason).toBe(reason);
  });

  test('leaves no listener behind', () => {
    const base = new Base();
    const given = new AbortController();
    const orLoss = new GiveUpOrLoss(given.signal, base.onLost);
    orLoss.end();
    expect(base.listeners.size).toBe(0);
    expect(getEventListeners(given.signal, 'abort')).toHaveLength(0);
    new GiveUpOrLoss(undefined, base.onLost).end();
  });
});
