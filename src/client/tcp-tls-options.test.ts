import { describe, expect, test } from 'vitest';
import type { TlsOptions } from './tcp-tls-options.ts';
import { ZooKeeper } from './zookeeper.ts';

const cases: [what: string, tls: unknown, message: RegExp][] = [
  ['no object', true, /^tls: a boolean given; an object of options is needed/],
  [
    'an option that does not exist',
    { certificate: '' },
    /^tls: there is no option "certificate", did you mean cert/,
  ],
  [
    'a path instead of a certificate',
    { cert: '/etc/client.pem', key: 'x' },
    /^tls\.cert: certificates in PEM/,
  ],
  ['a certificate without its key', { cert: 'x' }, /^tls: cert without key; both are needed/],
  ['a key without its certificate', { key: 'x' }, /^tls: key without cert; both are needed/],
  ['authorities that are none', { ca: 'garbage' }, /^tls\.ca: certificates in PEM are needed/],
  ['authorities cut short', { ca: '-----BEGIN CERTIFICATE-----\nMIIB' }, /^tls\.ca: certificates in PEM/],
  ['no authorities at all', { ca: [] }, /^tls\.ca: an empty list given/],
  ['a bundle that is none', { pfx: Buffer.from('garbage') }, /^tls\.pfx: PKCS#12 is needed/],
  ['ciphers that do not exist', { ciphers: 'NOPE' }, /^tls\.ciphers: /],
  ['a version that does not exist', { minVersion: 'TLSv9' }, /^tls\.minVersion, tls\.maxVersion: /],
  [
    'a check that is no function',
    { checkServerIdentity: null, servername: 5 },
    /^tls\.servername: number given/,
  ],
  [
    'a check that is a string',
    { checkServerIdentity: 'no' },
    /^tls\.checkServerIdentity: string given; a function/,
  ],
  ['a refusal that is no boolean', { rejectUnauthorized: 'false' }, /^tls\.rejectUnauthorized: string given/],
];

describe('options of TLS are looked at before anything happens', () => {
  test.each(cases)('%s', (_what, tls, message) => {
    const open = () => ZooKeeper.open('127.0.0.1:1', { tls: tls as TlsOptions });
    expect(open).toThrow(TypeError);
    expect(open).toThrow(message);
  });

  test('one that is undefined is one that is left out', async () => {
    const tls = { ca: undefined, cert: undefined, checkServerIdentity: undefined } as unknown as TlsOptions;
    await using zk = ZooKeeper.open('127.0.0.1:1', { tls });
    await expect(zk.connected({ timeoutMs: 50 })).rejects.toMatchObject({
      code: 'ZK_UNREACHABLE',
      message: expect.stringContaining('ECONNREFUSED'),
    });
  });

  test('an address that is none is a failed attempt', async () => {
    const resolve = async () => [{ address: '127.0.0.1' } as unknown as string];
    await using zk = ZooKeeper.open('zk.example:2181', { resolve });
    await expect(zk.connected({ timeoutMs: 50 })).rejects.toMatchObject({ code: 'ZK_UNREACHABLE' });
  });
});
