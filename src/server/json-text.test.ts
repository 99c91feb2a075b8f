import { describe, expect, test } from 'vitest';
import { jsonText } from './json-text.ts';

describe('jsonText', () => {
  test('is what JSON.stringify gives, where that can give anything', () => {
    const value = { a: [1, 'two "quoted"\n', null, true, [], {}], '/path': { nested: [{ b: -1.5 }] } };
    expect(jsonText(value)).toBe(JSON.stringify(value, null, 2));
  });

  test('shows every digit of a bigint', () => {
    expect(jsonText({ id: [72057594037927936n, -1n] })).toBe(
      '{\n  "id": [\n    72057594037927936,\n    -1\n  ]\n}',
    );
  });
});
