import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { NodeEventType } from '../protocol/constants.ts';
import { WatchTable, watchKinds } from './watch-table.ts';

type Arm = (table: WatchTable<string>, path: string, watcher: string) => void;
const data: Arm = (table, path, watcher) => table.watchData(path, watcher);
const children: Arm = (table, path, watcher) => table.watchChildren(path, watcher);
const persistent: Arm = (table, path, watcher) => table.watchPersistently(path, watcher);
const recursive: Arm = (table, path, watcher) => table.watchRecursively(path, watcher);

function fired(table: WatchTable<string>, type: NodeEventType, path: string): string[] {
  return [...(table.fire({ type, path }) ?? [])];
}

describe('a watch on /a', () => {
  const events: [NodeEventType, string][] = [
    ['node-created', '/a'],
    ['node-data-changed', '/a'],
    ['node-children-changed', '/a'],
    ['node-deleted', '/a'],
    ['node-created', '/a/b'],
    ['node-data-changed', '/a/b/c'],
    ['node-children-changed', '/a/b'],
    ['node-deleted', '/a/b'],
    ['node-created', '/ab'],
    ['node-children-changed', '/'],
  ];
  test.each<[string, Arm, string[]]>([
    ['of its data', data, ['node-created /a', 'node-data-changed /a', 'node-deleted /a']],
    ['of its children', children, ['node-children-changed /a', 'node-deleted /a']],
    [
      'that is persistent',
      persistent,
      ['node-created /a', 'node-data-changed /a', 'node-children-changed /a', 'node-deleted /a'],
    ],
    [
      'that is recursive',
      recursive,
      [
        'node-created /a',
        'node-data-changed /a',
        'node-deleted /a',
        'node-created /a/b',
        'node-data-changed /a/b/c',
        'node-deleted /a/b',
      ],
    ],
  ])('%s hears what it should', (_kind, arm, expected) => {
    const heard = events.filter(([type, path]) => {
      const table = new WatchTable<string>();
      arm(table, '/a', 'me');
      return fired(table, type, path).length > 0;
    });
    expect(heard.map((event) => event.join(' '))).toEqual(expected);
  });

  test.each<[string, Arm, boolean]>([
    ['data', data, false],
    ['children', children, false],
    ['persistent', persistent, true],
    ['recursive', recursive, true],
  ])('of kind %s hears a deletion, and stays: %s', (_kind, arm, stays) => {
    const table = new WatchTable<string>();
    arm(table, '/a', 'me');
    expect(fired(table, 'node-deleted', '/a')).toEqual(['me']);
    expect(fired(table, 'node-deleted', '/a')).toEqual(stays ? ['me'] : []);
  });
});

describe('a watcher', () => {
  test('is told once of a deletion that concerns all its watches, and keeps only the persistent ones', () => {
    const table = new WatchTable<string>();
    for (const arm of [data, children, persistent, recursive]) arm(table, '/a', 'me');
    expect(fired(table, 'node-deleted', '/a')).toEqual(['me']);
    expect(table.has('/a', 'me', watchKinds.data)).toBe(false);
    expect(table.has('/a', 'me', watchKinds.children)).toBe(false);
    expect(table.has('/a', 'me', watchKinds.persistent)).toBe(true);
    expect(table.has('/a', 'me', watchKinds.recursive)).toBe(true);
  });

  test('of everything hears of everything', () => {
    const table = new WatchTable<string>();
    recursive(table, '/', 'me');
    expect(fired(table, 'node-created', '/a/b/c')).toEqual(['me']);
    expect(fired(table, 'node-data-changed', '/')).toEqual(['me']);
  });

  test('keeps its persistent watch when a one-shot watch on the same path fires', () => {
    const table = new WatchTable<string>();
    persistent(table, '/a', 'me');
    data(table, '/a', 'me');
    for (let times = 0; times < 3; times++) expect(fired(table, 'node-data-changed', '/a')).toEqual(['me']);
  });
});

describe('removing', () => {
  test.each([
    ['children', { children: false, data: true, persistent: true, recursive: true }],
    ['data', { children: true, data: false, persistent: true, recursive: true }],
    ['persistent', { children: true, data: true, persistent: false, recursive: true }],
    ['recursive', { children: true, data: true, persistent: true, recursive: false }],
    ['any', { children: false, data: false, persistent: false, recursive: false }],
  ] as const)('%s leaves the other kinds, and the other watchers', (kind, left) => {
    const table = new WatchTable<string>();
    for (const watcher of ['me', 'you']) {
      for (const arm of [data, children, persistent, recursive]) arm(table, '/a', watcher);
    }
    table.remove('/a', 'me', watchKinds[kind]);
    for (const [each, expected] of Object.entries(left)) {
      expect(table.has('/a', 'me', watchKinds[each as keyof typeof left]), each).toBe(expected);
      expect(table.has('/a', 'you', watchKinds[each as keyof typeof left]), each).toBe(true);
    }
  });

  test('knows whose watch it is, and which kinds there are', () => {
    const table = new WatchTable<string>();
    data(table, '/a', 'you');
    expect(table.has('/a', 'me', watchKinds.any)).toBe(false);
    expect(table.has('/a', 'me', 0)).toBeUndefined();
    expect(table.has('/a', 'me', 6)).toBeUndefined();
  });
});

describe('nothing is left', () => {
  test('of one-shot watches that fired, by whichever path', () => {
    const table = new WatchTable<string>();
    for (let index = 0; index < 100; index++) {
      data(table, `/a${index}`, 'me');
      children(table, `/a${index}`, 'me');
      fired(table, index % 2 === 0 ? 'node-deleted' : 'node-data-changed', `/a${index}`);
      fired(table, 'node-children-changed', `/a${index}`);
    }
    expect([table.count, table.countOf('me'), [...table.dataWatches()].length]).toEqual([0, 0, 0]);
  });

  test('of a watcher that is gone', () => {
    const table = new WatchTable<string>();
    for (const arm of [data, children, persistent, recursive]) {
      for (const path of ['/a', '/a/b', '/']) for (const watcher of ['me', 'you']) arm(table, path, watcher);
    }
    table.forget('me');
    expect(table.countOf('me')).toBe(0);
    expect(fired(table, 'node-deleted', '/a/b')).toEqual(['you']);
    table.forget('you');
    expect([table.count, fired(table, 'node-created', '/a/b')]).toEqual([0, []]);
  });
});

describe('several watchers', () => {
  test('have what each would have in a table of its own', () => {
    const watchers = ['me', 'you', 'they'];
    const path = fc.constantFrom('/', '/a', '/a/b');
    const watcher = fc.constantFrom(...watchers);
    const type = fc.constantFrom<NodeEventType[]>(
      'node-created',
      'node-data-changed',
      'node-children-changed',
      'node-deleted',
    );
    const step = fc.oneof(
      fc.record({ arm: fc.constantFrom(data, children, persistent, recursive), path, watcher }),
      fc.record({ fire: type, path }),
      fc.record({ remove: fc.constantFrom(...Object.values(watchKinds)), path, watcher }),
      fc.record({ forget: watcher }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const shared = new WatchTable<string>();
        const own = new Map(watchers.map((each) => [each, new WatchTable<string>()]));
        const both = (name: string) => [shared, own.get(name)!];
        for (const step of steps) {
          if ('arm' in step) for (const table of both(step.watcher)) step.arm(table, step.path, step.watcher);
          else if ('remove' in step)
            for (const table of both(step.watcher)) table.remove(step.path, step.watcher, step.remove);
          else if ('forget' in step) for (const table of both(step.forget)) table.forget(step.forget);
          else {
            const told = [...own.values()].flatMap((table) => fired(table, step.fire, step.path));
            expect(fired(shared, step.fire, step.path).sort()).toEqual(told.sort());
          }
          const counts = [...own.values()].map((table) => table.count);
          expect(shared.count).toBe(counts.reduce((sum, count) => sum + count));
        }
        for (const [name, table] of own) {
          expect(shared.countOf(name)).toBe(table.countOf(name));
          for (const kind of Object.values(watchKinds))
            for (const at of ['/', '/a', '/a/b'])
              expect(shared.has(at, name, kind)).toBe(table.has(at, name, kind));
        }
        const pathsOf = (table: WatchTable<string>) =>
          [...table.dataWatches()].flatMap(([at, by]) => [...by].map((each) => `${at} ${each}`));
        expect(pathsOf(shared).sort()).toEqual([...own.values()].flatMap(pathsOf).sort());
      }),
    );
  });
});
