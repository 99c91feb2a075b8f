import { describe, expect, test } from 'vitest';
import { checkArguments, checkVariables } from './original-bytes.ts';

const bytes = (...texts: string[]) => texts.map((text) => Buffer.from(text, 'latin1'));
const REPLACED = '\ufffd';
const REPLACED_BYTES = Buffer.from(REPLACED).toString('latin1');

describe('an argument', () => {
  const original = (...texts: string[]) => ({ arguments: bytes('node', 'main.js', ...texts), variables: [] });

  test('that is not UTF-8 is refused, and shown as a shell takes it', () => {
    expect(() => checkArguments(['run', `caf${REPLACED}'s`], original('run', "caf\xe9's"))).toThrow(
      expect.objectContaining({
        exitCode: 2,
        message: "argument 2, $'caf\\xe9\\'s', is not UTF-8: it cannot be passed on unchanged",
      }),
    );
  });

  test('that is UTF-8 is not, also with the character that stands for undecodable bytes', () => {
    checkArguments(['run', REPLACED], original('run', REPLACED_BYTES));
    checkArguments([], original());
    checkArguments(['a', 'b', 'c', 'd'], original());
  });

  test('is looked for behind those of Node', () => {
    checkArguments(['run'], { arguments: bytes('/caf\xe9/node', 'run'), variables: [] });
  });
});

describe('an environment variable', () => {
  const original = (...texts: string[]) => ({ arguments: [], variables: bytes(...texts) });

  test('that is not UTF-8 is refused, by its name and without its value', () => {
    expect(() => checkVariables({ SECRET: `a${REPLACED}` }, original('A=b', 'SECRET=a\xe9'))).toThrow(
      expect.objectContaining({
        exitCode: 2,
        message:
          "environment variable $'SECRET' is not UTF-8: it cannot be passed on unchanged; unset it, or set it otherwise",
      }),
    );
    expect(() => checkVariables({ [`N${REPLACED}`]: 'x' }, original('N\xe9=x'))).toThrow("$'N\\xe9'");
  });

  test('is not refused if it is UTF-8, or is not passed on', () => {
    checkVariables({ A: REPLACED }, original(`A=${REPLACED_BYTES}`));
    checkVariables({}, original('A=\xe9'));
  });
});
