import { describe, expect, test } from 'vitest';
import { type NodeEventType, REQUEST_BYTES_MAX, type WatchType } from '../protocol/constants.ts';
import { JuteWriter } from '../protocol/jute-writer.ts';
import { operations } from '../protocol/operations.ts';
import { RequestHeader } from '../protocol/records.ts';
import { type Watcher, type WatchIntent, type WatchPaths, WatchRegistry } from './watch-registry.ts';

type Kind = WatchIntent['kind'];

/** A watcher that is told apart by its name. */
const watcher = (name: string): Watcher => Object.defineProperty(() => {}, 'name', { value: name });
const names = (watchers: Iterable<Watcher>) => [...watchers].map((each) => each.name).sort();
const pairs = (found: [string, Watcher][]) => found.map(([path, each]) => `${path} ${each.name}`).sort();

function registry(...entries: [kind: Kind, path: string, name: string | Watcher, nodePresent?: boolean][]) {
  const watches = new WatchRegistry();
  for (const [kind, path, name, nodePresent = true] of entries) {
    watches.add({ kind, path, watcher: typeof name === 'string' ? watcher(name) : name }, nodePresent);
  }
  return watches;
}

/** One watcher of every kind on /p, named after its kind; `exists` found nothing, `found` found a node. */
const everyKind = () =>
  registry(
    ['data', '/p', 'data'],
    ['exists', '/p', 'exists', false],
    ['exists', '/p', 'found', true],
    ['children', '/p', 'children'],
    ['persistent', '/p', 'persistent'],
    ['persistent-recursive', '/p', 'recursive'],
  );

const eventTypes: NodeEventType[] = [
  'node-created',
  'node-deleted',
  'node-data-changed',
  'node-children-changed',
];

describe('an event', () => {
  const nodeEvent = ['data', 'exists', 'found', 'persistent', 'recursive'];

  test.each<[NodeEventType, told: string[], kept: string[]]>([
    ['node-created', nodeEvent, ['children', 'persistent', 'recursive']],
    ['node-data-changed', nodeEvent, ['children', 'persistent', 'recursive']],
    ['node-deleted', [...nodeEvent, 'children'], ['persistent', 'recursive']],
    [
      'node-children-changed',
      ['children', 'persistent'],
      ['data', 'exists', 'found', 'persistent', 'recursive'],
    ],
  ])('%s tells %j and leaves %j', (type, told, kept) => {
    const watches = everyKind();
    expect(names(watches.fire(type, '/p'))).toEqual(told.toSorted());
    expect(pairs(watches.drain())).toEqual(kept.map((name) => `/p ${name}`).sort());
  });

  test.each(eventTypes)('%s tells a watcher once, however many of its watches it concerns', (type) => {
    const one = watcher('one');
    const watches = registry(
      ['data', '/p', one],
      ['exists', '/p', one, false],
      ['children', '/p', one],
      ['persistent', '/p', one],
      ['persistent-recursive', '/p', one],
      ['persistent-recursive', '/', one],
    );
    expect([...watches.fire(type, '/p')]).toEqual([one]);
  });

  test.each(eventTypes)('%s tells every watcher of a path, and none of another', (type) => {
    const watches = registry(
      ...['a', 'b', 'c'].map(watcher).flatMap((each): [Kind, string, Watcher][] => [
        ['data', '/p', each],
        ['children', '/p', each],
      ]),
      ['data', '/p/q', 'below'],
      ['children', '/p/q', 'below'],
      ['persistent', '/', 'above'],
      ['data', '/pp', 'beside'],
      ['children', '/pp', 'beside'],
    );
    expect(names(watches.fire(type, '/p'))).toEqual(['a', 'b', 'c']);
  });

  test('uses a one-shot watch up', () => {
    const watches = registry(['data', '/p', 'data'], ['children', '/p', 'children']);
    expect(watches.fire('node-deleted', '/p').size).toBe(2);
    expect(watches.fire('node-created', '/p').size).toBe(0);
    expect(watches.pathCount).toBe(0);
  });

  test('leaves a persistent watch for the next one', () => {
    const watches = registry(['persistent', '/p', 'one'], ['persistent-recursive', '/p', 'other']);
    for (const type of ['node-deleted', 'node-created', 'node-data-changed'] as const) {
      expect(names(watches.fire(type, '/p'))).toEqual(['one', 'other']);
    }
  });

  test('that nobody watches tells nobody', () => {
    expect(new WatchRegistry().fire('node-created', '/p').size).toBe(0);
  });
});

describe('a recursive watch', () => {
  const recursive = () =>
    registry(
      ['persistent-recursive', '/', 'root'],
      ['persistent-recursive', '/a', 'a'],
      ['persistent-recursive', '/a/b', 'ab'],
      ['persistent-recursive', '/a/bc', 'abc'],
      ['persistent-recursive', '/b', 'b'],
    );

  test.each([
    ['/', ['root']],
    ['/a', ['a', 'root']],
    ['/a/b', ['a', 'ab', 'root']],
    ['/a/b/c/d/e', ['a', 'ab', 'root']],
    ['/a/bcd', ['a', 'root']],
    ['/ab', ['root']],
    ['/b/a', ['b', 'root']],
    ['/c', ['root']],
  ])('hears of %s if it is on it or above it: %j', (path, told) => {
    for (const type of ['node-created', 'node-deleted', 'node-data-changed'] as const) {
      expect(names(recursive().fire(type, path))).toEqual(told);
    }
  });

  test('never hears that children changed', () => {
    for (const path of ['/', '/a', '/a/b', '/a/b/c']) {
      expect(recursive().fire('node-children-changed', path).size).toBe(0);
    }
  });

  test.each(['', 'no-slash', '//', '/a//b', '/a/'])(
    'is found for the path %j, which no server sends',
    (path) => {
      expect(names(recursive().fire('node-created', path))).toContain('root');
    },
  );

  test('hears of a path of ten thousand levels', () => {
    const deep = '/a'.repeat(10_000);
    expect(names(recursive().fire('node-created', deep))).toEqual(['a', 'root']);
  });
});

describe('a registered watch', () => {
  test('of an exists that found the node is restored as data, of one that did not as exists', () => {
    const [batch] = registry(['exists', '/there', 'a', true], ['exists', '/absent', 'b', false]).batches();
    expect(batch).toMatchObject({ dataWatches: ['/there'], existWatches: ['/absent'] });
  });

  test('is counted by path and kind, not by watcher', () => {
    const watches = registry(
      ['data', '/p', 'a'],
      ['data', '/p', 'b'],
      ['children', '/p', 'a'],
      ['data', '/q', 'a'],
    );
    expect(watches.pathCount).toBe(3);
  });

  test('that is forgotten goes at the server too, unless another of its kind, or a lasting one, needs it', () => {
    const watches = registry(
      ['data', '/data', 'a'],
      ['exists', '/absent', 'a', false],
      ['children', '/children', 'a'],
      ['persistent', '/lasting', 'a'],
    );
    const removable = (path: string) =>
      (['data', 'exists', 'children', 'persistent'] as const).map((kind) => watches.removable(kind, path));
    expect(removable('/none')).toEqual(['data', 'data', 'children', 'any']);
    expect(removable('/data')).toEqual([undefined, undefined, 'children', undefined]);
    expect(removable('/absent')).toEqual([undefined, undefined, 'children', undefined]);
    expect(removable('/children')).toEqual(['data', 'data', undefined, undefined]);
    expect(removable('/lasting')).toEqual([undefined, undefined, undefined, undefined]);
  });

  test('by the same watcher again is one watch', () => {
    const one = watcher('one');
    const other = watcher('other');
    const watches = registry(
      ['data', '/p', one],
      ['data', '/p', one],
      ['data', '/p', other],
      ['data', '/p', one],
    );
    expect(pairs(watches.drain())).toEqual(['/p one', '/p other']);
  });
});

describe('forgetting', () => {
  const kinds: Kind[] = ['data', 'exists', 'children', 'persistent', 'persistent-recursive'];

  test.each(kinds)('takes out one watcher of kind %s and leaves the others', (kind) => {
    const one = watcher('one');
    const watches = registry(
      [kind, '/p', one, false],
      [kind, '/p', 'other', false],
      [kind, '/q', one, false],
    );
    expect(watches.forget(kind, '/p', one)).toBe(true);
    expect(watches.forget(kind, '/p', one)).toBe(false);
    expect(pairs(watches.drain())).toEqual(['/p other', '/q one']);
  });

  test.each(kinds)('the last watcher of kind %s leaves nothing behind', (kind) => {
    const [one, other] = [watcher('one'), watcher('other')];
    const watches = registry([kind, '/p', one, false], [kind, '/p', other, false], [kind, '/q', one, false]);
    for (const [path, each] of [
      ['/p', one],
      ['/p', other],
      ['/q', one],
    ] as const) {
      expect(watches.forget(kind, path, each)).toBe(true);
    }
    expect(watches.pathCount).toBe(0);
    expect([...watches.batches()]).toEqual([]);
  });

  test.each([true, false])(
    'an exists finds it wherever it was registered (node present: %s)',
    (nodePresent) => {
      const one = watcher('one');
      const watches = registry(['exists', '/p', one, nodePresent]);
      expect(watches.forget('exists', '/p', one)).toBe(true);
      expect(watches.pathCount).toBe(0);
    },
  );

  test('is of no avail for another kind, another path or another watcher', () => {
    const one = watcher('one');
    const watches = registry(['persistent', '/p', one]);
    expect(watches.forget('data', '/p', one)).toBe(false);
    expect(watches.forget('persistent', '/q', one)).toBe(false);
    expect(watches.forget('persistent', '/p', watcher('other'))).toBe(false);
    expect(watches.pathCount).toBe(1);
  });

  test('is of no avail after the watch was used up', () => {
    const one = watcher('one');
    const watches = registry(['data', '/p', one]);
    watches.fire('node-data-changed', '/p');
    expect(watches.forget('data', '/p', one)).toBe(false);
  });
});

describe('removeWatches', () => {
  test.each<[WatchType, string[]]>([
    ['children', ['children']],
    ['data', ['data', 'exists', 'found']],
    ['persistent', ['persistent']],
    ['persistent-recursive', ['recursive']],
    ['any', ['children', 'data', 'exists', 'found', 'persistent', 'recursive']],
  ])('of type %s takes out %j', (type, removed) => {
    const watches = everyKind();
    watches.add({ kind: 'data', path: '/q', watcher: watcher('elsewhere') }, true);
    const all = ['children', 'data', 'exists', 'found', 'persistent', 'recursive'];
    expect(names(watches.removeAll('/p', type))).toEqual(removed);
    const left = all.filter((name) => !removed.includes(name)).map((name) => `/p ${name}`);
    expect(pairs(watches.drain())).toEqual([...left, '/q elsewhere'].sort());
  });

  test('finds nothing where nothing is', () => {
    expect(everyKind().removeAll('/q', 'any').size).toBe(0);
  });
});

describe('the end of a session', () => {
  test('gives every watcher with its path, once per kind, and empties the registry', () => {
    const one = watcher('one');
    const watches = registry(
      ['data', '/p', one],
      ['data', '/p', 'other'],
      ['children', '/p', one],
      ['persistent', '/q', one],
    );
    expect(pairs(watches.drain())).toEqual(['/p one', '/p one', '/p other', '/q one']);
    expect(watches.pathCount).toBe(0);
    expect(watches.drain()).toEqual([]);
  });
});

describe('persistent watchers', () => {
  test('are found with their paths, and stay', () => {
    const watches = everyKind();
    watches.add({ kind: 'persistent', path: '/q', watcher: watcher('second') }, true);
    watches.add({ kind: 'persistent', path: '/q', watcher: watcher('third') }, true);
    const expected = ['/p persistent', '/p recursive', '/q second', '/q third'];
    expect(pairs(watches.persistentWatchers())).toEqual(expected);
    expect(pairs(watches.persistentWatchers())).toEqual(expected);
  });
});

describe('what is set again after a reconnect', () => {
  const lists = [
    'dataWatches',
    'existWatches',
    'childWatches',
    'persistentWatches',
    'persistentRecursiveWatches',
  ] as const;
  const listOf = {
    data: 'dataWatches',
    exists: 'existWatches',
    children: 'childWatches',
    persistent: 'persistentWatches',
    'persistent-recursive': 'persistentRecursiveWatches',
  } as const;

  /** The frame that a batch becomes, header included. */
  function frameBytes(batch: WatchPaths): number {
    const out = new JuteWriter();
    RequestHeader.write(out, { xid: 1, type: operations.setWatches2.opcode });
    operations.setWatches2.request.write(out, { relativeZxid: 1n, ...batch });
    return out.byteLength;
  }

  test('is never longer than a server accepts, also with one path that nearly is', () => {
    const watches = new WatchRegistry();
    const add = (path: string) => watches.add({ kind: 'data', path, watcher: watcher('any') }, true);
    for (let index = 0; index < 1_200; index++) add(`/${'x'.repeat(99)}${index}`);
    add(`/${'y'.repeat(1_000_000)}`);
    for (const batch of watches.batches()) expect(frameBytes(batch)).toBeLessThanOrEqual(REQUEST_BYTES_MAX);
  });

  test('is nothing if nothing is watched', () => {
    expect([...new WatchRegistry().batches()]).toEqual([]);
  });

  test('is one batch with every kind in its list, if it is little', () => {
    expect([...everyKind().batches()]).toEqual([
      {
        dataWatches: ['/p'],
        existWatches: ['/p'],
        childWatches: ['/p'],
        persistentWatches: ['/p'],
        persistentRecursiveWatches: ['/p'],
      },
    ]);
  });

  test.each([
    ['short paths', 15_000, (index: number) => `/locks/${index}`],
    ['long paths', 300, (index: number) => `/${'x'.repeat(5_000)}/${index}`],
    ['paths of three-byte characters', 4_000, (index: number) => `/${'鍵'.repeat(60)}/${index}`],
    ['paths as long as a batch', 5, (index: number) => `/${'x'.repeat(128 * 1024)}/${index}`],
  ])('is complete, in batches that a server accepts: %s', (_, pathCount, pathOf) => {
    const watches = new WatchRegistry();
    const expected: Record<(typeof lists)[number], string[]> = {
      dataWatches: [],
      existWatches: [],
      childWatches: [],
      persistentWatches: [],
      persistentRecursiveWatches: [],
    };
    const kinds = Object.keys(listOf) as Kind[];
    for (let index = 0; index < pathCount; index++) {
      const kind = kinds[index % kinds.length]!;
      const path = pathOf(index);
      watches.add({ kind, path, watcher: watcher('any') }, false);
      expected[listOf[kind]].push(path);
    }
    const batches = [...watches.batches()];
    expect(batches.length).toBeGreaterThan(1);
    for (const batch of batches) expect(frameBytes(batch)).toBeLessThanOrEqual(REQUEST_BYTES_MAX);
    for (const list of lists) {
      const found = batches.flatMap((batch) => batch[list]);
      expect(found.length).toBe(expected[list].length);
      expect(found.sort().join('\n') === expected[list].sort().join('\n')).toBe(true);
    }
    expect(watches.pathCount).toBe(pathCount);
  });

  test('has no empty batch, also if the last path fills one', () => {
    const watches = new WatchRegistry();
    for (const name of ['a', 'b']) {
      watches.add({ kind: 'data', path: `/${name.repeat(128 * 1024)}`, watcher: watcher(name) }, true);
    }
    const batches = [...watches.batches()];
    expect(batches.map((batch) => batch.dataWatches.length)).toEqual([1, 1]);
  });

  test('does not include what was used up, removed or forgotten', () => {
    const one = watcher('one');
    const watches = registry(
      ['data', '/fired', one],
      ['children', '/removed', one],
      ['persistent', '/forgotten', one],
    );
    watches.fire('node-data-changed', '/fired');
    watches.removeAll('/removed', 'children');
    watches.forget('persistent', '/forgotten', one);
    expect([...watches.batches()]).toEqual([]);
  });
});
