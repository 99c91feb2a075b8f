import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
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
    const fifo = filled('a', 'b', 'a', 'c');
    expect(fifo.remove('a')).toBe(true);
    expect(fifo.remove('c')).toBe(true);
    expect(fifo.remove('nobody')).toBe(false);
    expect(fifo.drain()).toEqual(['b', 'a']);
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

  test('does what an array does, whatever is done to it', () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('push' as const), item: fc.nat(9) }),
      fc.record({ kind: fc.constant('shift' as const), count: fc.nat(1_500) }),
      fc.record({ kind: fc.constant('fill' as const), count: fc.nat(1_500) }),
      fc.record({ kind: fc.constant('remove' as const), item: fc.nat(9) }),
      fc.record({ kind: fc.constant('prepend' as const), items: fc.array(fc.nat(9), { maxLength: 3 }) }),
      fc.record({ kind: fc.constant('drain' as const) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const fifo = new Fifo<number>();
        let model: number[] = [];
        for (const each of steps) {
          if (each.kind === 'push') {
            fifo.push(each.item);
            model.push(each.item);
          } else if (each.kind === 'fill') {
            for (let item = 0; item < each.count; item++) fifo.push(item);
            model.push(...Array.from({ length: each.count }, (_, item) => item));
          } else if (each.kind === 'shift') {
            const taken = Array.from({ length: Math.min(each.count, model.length) }, () => fifo.shift());
            expect(taken).toEqual(model.splice(0, each.count));
          } else if (each.kind === 'remove') {
            const index = model.indexOf(each.item);
            if (index >= 0) model.splice(index, 1);
            expect(fifo.remove(each.item)).toBe(index >= 0);
          } else if (each.kind === 'prepend') {
            fifo.prepend(each.items);
            model.unshift(...each.items);
          } else {
            expect(fifo.drain()).toEqual(model);
            model = [];
          }
          expect(fifo.length).toBe(model.length);
          expect(fifo.first()).toBe(model[0]);
        }
        expect(fifo.drain()).toEqual(model);
      }),
      { numRuns: 40 },
    );
  });
});
