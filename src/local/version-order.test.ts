import { expect, test } from 'vitest';
import { isNewer } from './version-order.ts';

test.each([
  ['0.1.0', '0.0.9'],
  ['0.10.0', '0.9.0'],
  ['1.0.0', '0.99.99'],
  ['1.0.0', '1.0.0-rc.1'],
  ['1.0.0-rc.10', '1.0.0-rc.9'],
  ['0.0.1', 'unreadable'],
])('%s is newer than %s, and not the other way round', (newer, older) => {
  expect(isNewer(newer, older)).toBe(true);
  expect(isNewer(older, newer)).toBe(false);
});

test.each(['1.2.3', '1.2.3-rc.1', 'unreadable'])('%s is not newer than itself', (version) => {
  expect(isNewer(version, version)).toBe(false);
});
