import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Link, LinkedList } from './linked-list.ts';

test('keeps the order of arrival, whatever is added and removed', () => {
  const action = fc.record({ kind: fc.constantFrom('add', 'remove'), index: fc.nat(9) });
  fc.assert(
    fc.property(fc.array(action, { maxLength: 60 }), (actions) => {
      const list = new LinkedList<number>();
      const links = new Map<number, Link<number>>();
      const model = new Set<number>();
      for (const { kind, index } of actions) {
        if (kind === 'remove') expect(links.get(index)?.remove() ?? false).toBe(model.delete(index));
        else if (!model.has(index)) {
          links.set(index, list.add(index));
          model.add(index);
        }
        expect(list.first?.item).toBe([...model][0]);
      }
      expect(list.drain()).toEqual([...model]);
      expect(list.first).toBeUndefined();
      for (const link of links.values()) expect(link.remove()).toBe(false);
    }),
  );
});
