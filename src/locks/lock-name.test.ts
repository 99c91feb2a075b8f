import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkFolder, checkName, checkNames } from './lock-name.ts';

/** So many bytes of UTF-8, of characters that take so many each. */
const textOf = (bytes: number, character: string): string =>
  character.repeat(Math.floor(bytes / Buffer.byteLength(character))) +
  'x'.repeat(bytes % Buffer.byteLength(character));

const characters = ['a', 'é', '€'];

describe('the name of a lock', () => {
  test.each(characters)('may have 1 024 bytes in UTF-8, and not one more (%s)', (character) => {
    checkName(textOf(1_024, character));
    expect(() => checkName(textOf(1_025, character))).toThrow(RangeError);
    expect(() => checkName(textOf(1_025, character))).toThrow(
      '1025 bytes in UTF-8 given; at most 1024 are allowed',
    );
  });

  test('is refused with little of it in the message, however long it is', () => {
    let message = '';
    try {
      checkName('x'.repeat(10_000_000));
    } catch (error) {
      ({ message } = error as Error);
    }
    expect(message.length).toBeLessThan(150);
  });

  test('is taken or refused by its bytes, whatever its length and characters', () => {
    fc.assert(
      fc.property(fc.nat(3_000), fc.constantFrom(...characters), (bytes, character) => {
        const name = textOf(bytes + 1, character);
        if (bytes + 1 <= 1_024) checkName(name);
        else expect(() => checkName(name)).toThrow(RangeError);
      }),
    );
  });
});

describe('the names of a multi-lock', () => {
  const names = (count: number, bytes: number) =>
    Array.from({ length: count }, (_, index) => String(index).padStart(bytes, '0'));

  test('may be 256, and not one more', () => {
    checkNames(names(256, 3));
    expect(() => checkNames(names(257, 3))).toThrow('names: 257 given; at most 256 are allowed');
  });

  test('may have 65 536 bytes together, and not one more', () => {
    checkNames(names(256, 256));
    expect(() => checkNames([...names(255, 256), 'x'.repeat(257)])).toThrow(
      'names: 65537 bytes in UTF-8 given together; at most 65536 are allowed',
    );
  });
});

test.each(['root', 'batonFolder', 'auditFolder'])('%s may have 1 024 bytes, and not one more', (option) => {
  checkFolder(option, `/${'x'.repeat(1_023)}`);
  expect(() => checkFolder(option, `/${'x'.repeat(1_024)}`)).toThrow(
    `${option}: 1025 bytes in UTF-8 given; at most 1024 are allowed`,
  );
});
