import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FreshMap } from './fresh-map.ts';

test('is a map, however often it goes on in another one', () => {
  const action = fc.record({
    kind: fc.constantFrom('set', 'set', 'delete'),
    key: fc.nat(40),
    value: fc.nat(),
  });
  fc.assert(
    fc.property(fc.array(action, { minLength: 50, maxLength: 400 }), (actions) => {
      const map = new FreshMap<number, number>();
      const model = new Map<number, number>();
      for (const { kind, key, value } of actions) {
        if (kind === 'delete') expect(map.delete(key)).toBe(model.delete(key));
        else {
          map.set(key, value);
          model.set(key, value);
        }
        expect(map.size).toBe(model.size);
      }
      for (let key = 0; key <= 40; key++) {
        expect(map.get(key)).toBe(model.get(key));
        expect(map.has(key)).toBe(model.has(key));
      }
    }),
  );
});

test('works for more keys than are worth copying', () => {
  const map = new FreshMap<number, number>();
  for (let key = 0; key < 20_000; key++) map.set(key, -key);
  expect(map.size).toBe(20_000);
  expect(map.get(12_345)).toBe(-12_345);
});
