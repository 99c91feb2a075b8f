import { expect, test } from 'vitest';
import { Chroot } from './chroot.ts';

test.each([
  ['', '/', '/'],
  ['', '/a/b', '/a/b'],
  ['/app', '/', '/app'],
  ['/app', '/a', '/app/a'],
  ['/app/x', '/a/b', '/app/x/a/b'],
])('chroot %j maps %j to %j and back', (prefix, path, serverPath) => {
  const chroot = new Chroot(prefix);
  expect(chroot.toServer(path)).toBe(serverPath);
  expect(chroot.fromServer(serverPath)).toBe(path);
});

test('leaves a path alone that only begins with the same letters', () => {
  expect(new Chroot('/zoo').fromServer('/zookeeper/config')).toBe('/zookeeper/config');
});

test('keeps the slash at the end of a sequential name', () => {
  expect(new Chroot('/app').toServerSequential('/')).toBe('/app/');
  expect(new Chroot('').toServerSequential('/')).toBe('/');
});
