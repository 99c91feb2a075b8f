import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { joinPath, nameOf, parentOf, pathFault, sequentialPathFault } from './paths.ts';

/** [path, what is wrong with it, what is wrong with it as the beginning of a sequential name] */
const paths: [string, string | undefined, string | undefined][] = [
  ['/', undefined, undefined],
  ['/a', undefined, undefined],
  ['/a/b/c', undefined, undefined],
  ['/a b', undefined, undefined],
  ['/...', undefined, undefined],
  ['/.a', undefined, undefined],
  ['/a.', undefined, undefined],
  ['/a/..b', undefined, undefined],
  ['/größe/名前', undefined, undefined],
  ['/zookeeper/config', undefined, undefined],

  ['', 'it is empty', 'it does not begin with /'],
  ['a', 'it does not begin with /', 'it does not begin with /'],
  ['a/b', 'it does not begin with /', 'it does not begin with /'],
  [' /a', 'it does not begin with /', 'it does not begin with /'],
  ['\\a', 'it does not begin with /', 'it does not begin with /'],
  ['//', 'it ends with /', 'it has an empty element at 1'],
  ['//a', 'it has an empty element at 1', 'it has an empty element at 1'],
  ['/a//b', 'it has an empty element at 3', 'it has an empty element at 3'],
  ['/a//', 'it ends with /', 'it has an empty element at 3'],
  ['/./a', 'it has the relative element .', 'it has the relative element .'],
  ['/../a', 'it has the relative element ..', 'it has the relative element ..'],
  ['/a/./b', 'it has the relative element .', 'it has the relative element .'],
  ['/a/../b', 'it has the relative element ..', 'it has the relative element ..'],

  // A number is appended to these, which makes them fine.
  ['/a/', 'it ends with /', undefined],
  ['/.', 'it has the relative element .', undefined],
  ['/a/..', 'it has the relative element ..', undefined],
];

/** The edges of every forbidden range, and their neighbours. */
const forbiddenUnits = [
  0x0000, 0x0001, 0x001f, 0x007f, 0x0080, 0x009f, 0xd800, 0xdbff, 0xdc00, 0xdfff, 0xe000, 0xf8ff, 0xfff0,
  0xfffe, 0xffff,
];
const allowedUnits = [0x0020, 0x002e, 0x007e, 0x00a0, 0x00ff, 0xd7ff, 0xf900, 0xffef];

const named = (unit: number) => `U+${unit.toString(16).toUpperCase().padStart(4, '0')}`;

describe('a path', () => {
  test.each(paths)('%j: %s', (path, fault) => {
    expect(pathFault(path)).toBe(fault);
  });

  test.each(forbiddenUnits)('may not contain the code unit %i, wherever it is', (unit) => {
    const character = String.fromCharCode(unit);
    expect(pathFault(`/${character}`)).toBe(`it has the character ${named(unit)} at 1`);
    expect(pathFault(`/ab/c${character}d`)).toBe(`it has the character ${named(unit)} at 5`);
    expect(sequentialPathFault(`/a${character}`)).toBe(`it has the character ${named(unit)} at 2`);
  });

  test.each(allowedUnits)('may contain the code unit %i', (unit) => {
    expect(pathFault(`/a${String.fromCharCode(unit)}b`)).toBeUndefined();
    expect(sequentialPathFault(`/a${String.fromCharCode(unit)}`)).toBeUndefined();
  });

  test('may not contain a character beyond the BMP', () => {
    expect(pathFault('/\u{1f512}')).toBe('it has the character U+D83D at 1');
  });

  test('is judged as the rules of the server put it, whatever it is', () => {
    const unit = fc.oneof(
      fc.constantFrom('/', '.', 'a', '\u0000', '\u001f', '\u0020', '\u007f', '\u00a0', '\ud7ff', '\ud800'),
      fc.constantFrom('\uf8ff', '\uf900', '\uffef', '\uffff'),
    );
    fc.assert(
      fc.property(fc.array(unit, { maxLength: 12 }), (units) => {
        const path = units.join('');
        expect(pathFault(path) === undefined).toBe(isValidByTheRules(path));
        expect(sequentialPathFault(path) === undefined).toBe(isValidByTheRules(`${path}0000000000`));
      }),
      { numRuns: 1_000 },
    );
  });
});

/** The rules once more, as a pattern instead of a loop. */
function isValidByTheRules(path: string): boolean {
  if (path === '/') return true;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones that are forbidden.
  const unit = /^[^\u0000-\u001f\u007f-\u009f\ud800-\uf8ff\ufff0-\uffff]+$/;
  const [root, ...elements] = path.split('/');
  return (
    root === '' &&
    elements.length > 0 &&
    elements.every((element) => unit.test(element) && element !== '.' && element !== '..')
  );
}

describe('a path to be made sequential', () => {
  test.each(paths)('%j: %s; with a number appended: %s', (path, _, fault) => {
    expect(sequentialPathFault(path)).toBe(fault);
  });
});

test.each([
  ['/', '/', ''],
  ['/a', '/', 'a'],
  ['/a/b', '/a', 'b'],
  ['/a/b/c-0000000001', '/a/b', 'c-0000000001'],
])('%s has the parent %s and the name %j', (path, parent, name) => {
  expect(parentOf(path)).toBe(parent);
  expect(nameOf(path)).toBe(name);
  if (path !== '/') expect(joinPath(parent, name)).toBe(path);
});
