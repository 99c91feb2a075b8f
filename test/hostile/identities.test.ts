import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { connectFrame, node, requestFrame } from '../../src/server/memory-client.test-data.ts';
import { principalOfName } from '../../src/server/x509-principal.ts';
import { startServer } from '../../src/server.ts';
import { connect } from '../../src/zookeeper.ts';
import { javaArguments } from '../foreign-clients/java-program.ts';
import { runProgram } from '../foreign-clients/run-program.ts';
import { makeCertificates } from '../support/certificates.ts';

const ALL = ['read', 'write', 'create', 'delete', 'admin'] as const;

/** Connects from an address, sends what it reads, and resets the connection. */
const SEND_AND_RESET = `
import socket, struct, sys
address, port = sys.argv[1], int(sys.argv[2])
peer = socket.socket()
peer.bind((address, 0))
peer.connect(('127.0.0.1', port))
peer.sendall(sys.stdin.buffer.read())
peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
peer.close()
`;

describe('a peer that resets its connection before it is accepted', () => {
  test('has no address, and nothing that it sent is executed', async () => {
    await using server = await startServer();
    await using zk = await connect(server.connectString);
    const acl = [{ scheme: 'ip', id: '127.0.0.1', permissions: ALL }] as const;
    await zk.create('/guarded', '', { acl });
    const frames = Buffer.concat([
      connectFrame(),
      requestFrame(1, 'create', node('/guarded/stolen')),
      requestFrame(2, 'create', node('/unguarded')),
    ]);
    // The event loop of the server stands still meanwhile: it accepts what has been reset already.
    execFileSync('python3', ['-c', SEND_AND_RESET, '127.0.0.2', `${server.port}`], { input: frames });
    // Connections are accepted in order: this one comes behind it.
    await using later = await connect(server.connectString);
    expect(await later.children('/guarded')).toEqual([]);
    expect(await later.exists('/unguarded')).toBeUndefined();
  });
});

// A name is a sequence of sets of attributes; see RFC 5280, section 4.1.2.4.

const SEQUENCE = 0x30;
const SET = 0x31;
const IDENTIFIER = 0x06;
const UTF8 = 0x0c;
const OID = {
  CN: '550403',
  O: '55040a',
  OU: '55040b',
  UID: '0992268993f22c640101',
  DC: '0992268993f22c640119',
  surname: '550404',
  emailAddress: '2a864886f70d010901',
} as const;

function der(tag: number, ...contents: readonly Buffer[]): Buffer {
  const content = Buffer.concat(contents);
  const bytes = content.byteLength;
  const length = bytes < 0x80 ? [bytes] : [0x82, bytes >> 8, bytes & 0xff];
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
}

function attribute(type: keyof typeof OID, value: string, tag = UTF8): Buffer {
  return der(SEQUENCE, der(IDENTIFIER, Buffer.from(OID[type], 'hex')), der(tag, Buffer.from(value)));
}

/** Each part is a set: mostly of one attribute. */
function name(...parts: readonly (Buffer | readonly Buffer[])[]): Buffer {
  return der(SEQUENCE, ...parts.map((part) => der(SET, ...(Buffer.isBuffer(part) ? [part] : part))));
}

const NASTY_VALUES = [
  'admin',
  'admin,OU=ops,O=acme',
  'admin+OU=ops',
  ' before',
  'after ',
  ' ',
  '   ',
  'in  between',
  '',
  '#0401',
  'a#b',
  '"quoted"',
  '\\',
  'a\\,b',
  '\\ ',
  '+=,;<>',
  '\0',
  'a\0b',
  '\r a \r',
  'a\n',
  '\n',
  '\t',
  'é',
  '日本',
  '😀',
  '\ufeff',
  '\u00a0a\u00a0',
  'x'.repeat(300),
];
/** UTF-8, Printable, T61, IA5, General, BMP, Universal and Numeric strings, and one that is no text. */
const VALUE_TAGS = [UTF8, 0x13, 0x14, 0x16, 0x1b, 0x1e, 0x1c, 0x12, 0x04];
const NASTY_NAMES = [
  ...VALUE_TAGS.flatMap((tag) =>
    NASTY_VALUES.map((value) => name(attribute('O', 'acme'), attribute('CN', value, tag))),
  ),
  ...(Object.keys(OID) as (keyof typeof OID)[]).map((type) => name(attribute(type, 'a'))),
  name([attribute('OU', 'b'), attribute('CN', 'a')], attribute('O', 'c')),
  name([attribute('CN', 'z'), attribute('CN', 'a'), attribute('UID', 'q')]),
  name(attribute('OU', 'a'), attribute('CN', 'b'), attribute('OU', 'c')),
  name(attribute('OU', 'a'), attribute('OU', 'c'), attribute('CN', 'b')),
];

describe('the principal of a certificate', () => {
  test('is what ZooKeeper makes of it, whatever its subject is', async () => {
    const java = await javaArguments(new URL('./PrincipalNames.java', import.meta.url));
    const input = NASTY_NAMES.map((each) => `${each.toString('base64')}\n`).join('');
    const { stdout } = await runProgram('java', java, { input });
    const principals = stdout.trimEnd().split('\n');
    expect(NASTY_NAMES.map(principalOfName)).toEqual(
      principals.map((line) => Buffer.from(line, 'base64').toString()),
    );
  });

  test('is no other name’s', () => {
    const different = new Set(NASTY_NAMES.map((each) => each.toString('hex')));
    const inUtf8 = NASTY_VALUES.map((value) => principalOfName(name(attribute('CN', value))));
    expect(new Set(inUtf8).size).toBe(NASTY_VALUES.length);
    expect(different.size).toBe(NASTY_NAMES.length);
  });

  test.each<[string, Buffer]>([
    ['empty', name()],
    [
      'text that is not UTF-8',
      name(der(SEQUENCE, der(IDENTIFIER, Buffer.from(OID.CN, 'hex')), der(UTF8, Buffer.from([0xe9])))),
    ],
    ['cut off', name(attribute('CN', 'a')).subarray(0, -1)],
    ['followed by more', Buffer.concat([name(attribute('CN', 'a')), Buffer.alloc(1)])],
    ['nothing', Buffer.alloc(0)],
  ])('is none where the subject is %s', (_what, subject) => {
    expect(principalOfName(subject)).toBeUndefined();
  });

  test('is not given to a common name that looks like it', async () => {
    await using certificates = await makeCertificates();
    const { caFile, server: pair, client, forgedClient } = certificates;
    const [ca, cert, key] = await Promise.all(
      [caFile, pair.certFile, pair.keyFile].map((file) => readFile(file, 'utf8')),
    );
    await using server = await startServer({
      tls: { ca: ca!, cert: cert!, key: key!, requestCert: true, rejectUnauthorized: true },
    });
    const as = async ({ certFile, keyFile }: typeof client) =>
      connect(server.connectString, {
        tls: { ca: ca!, cert: await readFile(certFile), key: await readFile(keyFile) },
      });
    await using owner = await as(client);
    expect(await owner.whoAmI()).toContainEqual({ authScheme: 'x509', user: 'CN=client,O=Holdfast' });
    const acl = [{ scheme: 'x509', id: 'CN=client,O=Holdfast', permissions: ALL }] as const;
    await owner.create('/mine', 'secret', { acl });
    await using forger = await as(forgedClient);
    expect(await forger.whoAmI()).toContainEqual({ authScheme: 'x509', user: 'CN=client\\,O\\=Holdfast' });
    await expect(forger.get('/mine')).rejects.toMatchObject({ condition: 'no-auth' });
    expect((await owner.get('/mine')).data?.toString()).toBe('secret');
  });
});
