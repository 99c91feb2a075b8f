import { expect, test } from 'vitest';
import { type ConnectOptions, connectOptionNames, readOptions } from './connect-options.ts';

/** What is made anew each time. */
const MADE = ['transport'] as const;

function config(options: ConnectOptions) {
  const read = { ...readOptions('a:1,b:2/app', options) };
  for (const name of MADE) Reflect.deleteProperty(read, name);
  return read;
}

const undefinedOf = (names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [name, undefined])) as ConnectOptions;

test('an option that is given as undefined is as one that is left out', () => {
  expect(config(undefinedOf(Object.keys(connectOptionNames)))).toEqual(config({}));
});

test('one inside another too', () => {
  const lease = undefinedOf(Object.keys(readOptions('a', {}).lease)) as NonNullable<ConnectOptions['lease']>;
  expect(config({ lease })).toEqual(config({}));
});
