import { describe, expect, test } from 'vitest';
import { socketAddress } from '../base/socket-address.ts';
import { addressText, parseConnectString } from './connect-string.ts';

const tcp = (host: string, port = 2181) => ({ host, port });
const unix = (host: string) => ({ host, port: 0 });

describe('a connect string', () => {
  test.each([
    ['a', [tcp('a')], ''],
    ['a:1,b:2/c/d', [tcp('a', 1), tcp('b', 2)], '/c/d'],
    [' a , b:2 ', [tcp('a'), tcp('b', 2)], ''],
    ['[::1]:9/', [tcp('::1', 9)], ''],
    ['a/b,c', [tcp('a')], '/b,c'],
    ['a/b:c', [tcp('a')], '/b:c'],
    ['unix:/run/x.sock', [unix('/run/x.sock')], ''],
    ['unix:/run/x.sock:/app', [unix('/run/x.sock')], '/app'],
    ['unix:/run/x.sock:/', [unix('/run/x.sock')], ''],
    ['unix:/a.sock,b:3/app', [unix('/a.sock'), tcp('b', 3)], '/app'],
    ['b,unix:/a.sock:/app', [tcp('b'), unix('/a.sock')], '/app'],
    ['unix:/with%2Ccomma%3aand%25:/app', [unix('/with,comma:and%')], '/app'],
    ['unix', [tcp('unix')], ''],
  ])('%s', (text, servers, chroot) => {
    expect(parseConnectString(text)).toEqual({ servers, chroot });
  });

  test.each([
    ['', 'server ""'],
    ['a,,b', 'server ""'],
    ['a b', 'server "a b"'],
    ['a:0', 'port 0'],
    ['a:70000', 'port 70000'],
    ['a//b', 'chroot "//b"'],
    ['unix:relative.sock', 'server "unix:relative.sock"'],
    ['unix:', 'server "unix:"'],
    ['unix:/a.sock:app', 'chroot ":app"'],
    ['unix:/a.sock:/app/../b', 'chroot "/app/../b"'],
    [`unix:/${'x'.repeat(103)}`, 'socket path of 104 bytes'],
  ])('%s is refused', (text, saying) => {
    expect(() => parseConnectString(text)).toThrow(new RegExp(`^connect string .*${saying}`));
    expect(() => parseConnectString(text)).toThrow(TypeError);
  });

  test('of a socket leads back to it, whatever its path', () => {
    const path = '/odd, 100%: done/é.sock';
    expect(parseConnectString(socketAddress(path)).servers).toEqual([unix(path)]);
    expect(addressText(unix(path))).toBe(socketAddress(path));
    expect(addressText(tcp('::1', 9))).toBe('[::1]:9');
  });
});

test('a chroot may have 1 024 bytes in UTF-8, and not one more', () => {
  const { chroot } = parseConnectString(`zk:2181/${'é'.repeat(511)}x`);
  expect(Buffer.byteLength(chroot)).toBe(1_024);
  expect(() => parseConnectString(`zk:2181/${'é'.repeat(512)}`)).toThrow(
    'chroot of 1025 bytes in UTF-8; at most 1024 are allowed',
  );
});
