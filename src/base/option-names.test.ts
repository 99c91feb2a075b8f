import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkOptionNames } from './option-names.ts';

interface WaitFor {
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}
const names = { timeoutMs: true, signal: true } as const;
const check = (options: unknown) => checkOptionNames<WaitFor>('acquire', options as WaitFor, names);

describe('the check of option names', () => {
  test('accepts every subset of the options, also options given as undefined', () => {
    check({});
    check({ timeoutMs: 1 });
    check({ timeoutMs: undefined, signal: undefined });
    check(Object.create(null));
  });

  test('refuses what is no object', () => {
    for (const [given, words] of [
      ['zk1:2181', 'the string "zk1:2181"'],
      [null, 'null'],
      [[1], 'an array'],
      [5_000, 'a number'],
      [() => {}, 'a function'],
    ] as const) {
      expect(() => check(given)).toThrow(
        new TypeError(`acquire: ${words} given; an object of options is needed`),
      );
    }
  });

  test.each([
    ['timeout', ', did you mean timeoutMs?'],
    ['timeoutMS', ', did you mean timeoutMs?'],
    ['tiemoutMs', ';'],
    ['timoutMs', ', did you mean timeoutMs?'],
    ['signals', ', did you mean signal?'],
    ['sginal', ';'],
    ['singal', ';'],
    ['signl', ', did you mean signal?'],
    ['reason', ';'],
    ['toString', ';'],
    ['__proto', ';'],
  ])('refuses the option %s', (name, words) => {
    expect(() => check({ [name]: 1 })).toThrow(
      new TypeError(
        `acquire: there is no option ${JSON.stringify(name)}${words} options are timeoutMs, signal`,
      ),
    );
  });

  test('refuses every name but the options, whatever it is', () => {
    fc.assert(
      fc.property(fc.string(), (name) => {
        fc.pre(!Object.hasOwn(names, name) && name !== '__proto__');
        expect(() => check({ [name]: undefined })).toThrow(TypeError);
      }),
    );
  });
});
