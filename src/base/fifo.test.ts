import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { Fifo } from './fifo.ts';

function filled<T>(...items: T[]): Fifo<T> {
  const fifo = new Fifo<T>();
  for (const item of items) fifo.push(item);
  return fifo;
}

describe('a queue', () => {
  test('gives back what it got, in that order, then nothing', () => {
    const fifo = filled('a', 'b', 'c');
    expect([fifo.shift(), fifo.shift(), fifo.shift(), fifo.shift()]).toEqual(['a', 'b', 'c', undefined]);
    expect(fifo.length).toBe(0);
  });

  test('shows its first item without taking it', () => {
    const fifo = filled('a', 'b');
    expect(fifo.first()).toBe('a');
    expect(fifo.length).toBe(2);
    fifo.shift();
    expect(fifo.first()).toBe('b');
    fifo.shift();
    expect(fifo.first()).toBeUndefined();
  });

  test('can be used again after it ran empty', () => {
    const fifo = filled('a');
    fifo.shift();
    fifo.push('b');
    expect(fifo.length).toBe(1);
    expect(fifo.shift()).toBe('b');
  });

  test('is drained in order, without what was taken before', () => {
    const fifo = filled('a', 'b', 'c');
    fifo.shift();
    expect(fifo.drain()).toEqual(['b', 'c']);
    expect(fifo.length).toBe(0);
    expect(fifo.drain()).toEqual([]);
  });

  test('puts prepended items first, in their order', () => {
    const fifo = filled('x', 'c', 'd');
    fifo.shift();
    fifo.prepend(['a', 'b']);
    expect(fifo.drain()).toEqual(['a', 'b', 'c', 'd']);
  });

  test('removes one item wherever it is, and only that', () => {
    const fifo = filled('a', 'b', 'c', 'd');
    expect(fifo.remove('a')).toBe(true);
    expect(fifo.remove('c')).toBe(true);
    expect(fifo.remove('c')).toBe(false);
    expect(fifo.remove('nothing that is in it')).toBe(false);
    fifo.push('c');
    expect(fifo.remove('d')).toBe(true);
    expect(fifo.drain()).toEqual(['b', 'c']);
  });

  test('does not find an item that was taken', () => {
    const fifo = filled('a', 'b');
    fifo.shift();
    expect(fifo.remove('a')).toBe(false);
    expect(fifo.length).toBe(1);
  });

  test('lets go of an item when it gives it out', async () => {
    setFlagsFromString('--expose-gc');
    const collectGarbage: () => void = runInNewContext('gc');
    const fifo = new Fifo<object>();
    const given = [0, 1].map(() => {
      const item = {};
      fifo.push(item);
      return new WeakRef(item);
    });
    fifo.shift();
    // A WeakRef keeps its target until the turn of the event loop is over.
    await new Promise((resolve) => setImmediate(resolve));
    collectGarbage();
    expect(given.map((item) => item.deref())).toEqual([undefined, fifo.first()]);
    expect(fifo.length).toBe(1);
  });

  test('keeps order and count over tens of thousands of items', () => {
    const fifo = new Fifo<number>();
    let pushed = 0;
    let expected = 0;
    // Three in, two out: the head passes the place where the queue moves its items many times.
    while (pushed < 30_000) {
      for (let count = 0; count < 3; count++) fifo.push(pushed++);
      for (let count = 0; count < 2; count++) if (fifo.shift() !== expected++) expect.unreachable();
      if (fifo.length !== pushed - expected) expect.unreachable();
    }
    while (fifo.length > 0) if (fifo.shift() !== expected++) expect.unreachable();
    expect(expected).toBe(pushed);
  });

  // Wall time says little on a busy machine: what counts is how many items the methods of arrays go through.
  test('removes in constant time, on average, in any order', () => {
    const itemsLookedAt = (length: number): number => {
      const fifo = new Fifo<number>();
      for (let item = 0; item < length; item++) fifo.push(item);
      let count = 0;
      const counted = ['indexOf', 'splice', 'filter', 'slice'] as const;
      const spies = counted.map((method) => {
        const original = Array.prototype[method] as (...args: unknown[]) => never;
        return vi.spyOn(Array.prototype, method).mockImplementation(function (
          this: unknown[],
          ...args: unknown[]
        ) {
          count += this.length;
          return original.apply(this, args);
        });
      });
      // Far apart, so that neither end is near.
      for (let step = 0; step < length; step++) fifo.remove((step * 7_919) % length);
      for (const spy of spies) spy.mockRestore();
      expect(fifo.length).toBe(0);
      return count;
    };
    expect(itemsLookedAt(80_000) / itemsLookedAt(10_000)).toBeLessThan(10); // 64 times as many if it were quadratic.
  });

  test('does what an array does, whatever is done to it', () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('fill' as const), count: fc.nat(1_500) }),
      fc.record({ kind: fc.constant('shift' as const), count: fc.nat(1_500) }),
      fc.record({ kind: fc.constant('remove' as const), from: fc.nat(), count: fc.nat(1_500) }),
      fc.record({ kind: fc.constant('prepend' as const), count: fc.nat(3) }),
      fc.record({ kind: fc.constant('drain' as const) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const fifo = new Fifo<number>();
        let model: number[] = [];
        let next = 0;
        const several = (count: number) => Array.from({ length: count }, () => next++);
        for (const each of steps) {
          if (each.kind === 'fill') {
            const items = several(each.count);
            for (const item of items) fifo.push(item);
            model.push(...items);
          } else if (each.kind === 'shift') {
            const taken = Array.from({ length: Math.min(each.count, model.length) }, () => fifo.shift());
            expect(taken).toEqual(model.splice(0, each.count));
          } else if (each.kind === 'remove') {
            const removed = model.splice(each.from % (model.length + 1), each.count);
            for (const item of removed) expect(fifo.remove(item)).toBe(true);
            for (const item of removed.slice(0, 2)) expect(fifo.remove(item)).toBe(false);
          } else if (each.kind === 'prepend') {
            const items = several(each.count);
            fifo.prepend(items);
            model.unshift(...items);
          } else {
            expect(fifo.drain()).toEqual(model);
            model = [];
          }
          expect(fifo.length).toBe(model.length);
          expect(fifo.first()).toBe(model[0]);
        }
        expect(fifo.drain()).toEqual(model);
      }),
      { numRuns: 60 },
    );
  });
});
