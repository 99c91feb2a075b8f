import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { JuteReader } from '../../src/protocol/jute-reader.ts';
import { operations, xids } from '../../src/protocol/operations.ts';
import { ReplyHeader } from '../../src/protocol/records.ts';
import { connectFrame, node, requestFrame } from '../../src/server/memory-client.test-data.ts';
import { type RunningServer, startServer } from '../../src/server/start-server.ts';
import { sharedStandalone } from '../support/shared-servers.ts';
import { type Address, RawPeer } from './raw-peer.ts';

let embedded: RunningServer;
beforeAll(async () => {
  embedded = await startServer({ limits: { tickMs: 500, sessionTimeoutMsMin: 1_000 } });
});
afterAll(() => embedded.stop());

/** What a server makes of it: the error codes of its answers, and whether the connection is left. */
interface Outcome {
  readonly answers: readonly (number | 'a handshake')[];
  readonly connection: 'open' | 'closed';
}
interface Row {
  readonly name: string;
  readonly bytes: Buffer;
  /** What ZooKeeper does at times instead. */
  readonly mayAlso?: Outcome;
  readonly real: Outcome;
  /** Where the embedded server is meant to do otherwise, and why. */
  readonly here?: Outcome & { readonly because: string };
}

const EPHEMERAL = 1;
/** No answer to a request here is as long as the answer to a connect request. */
const HANDSHAKE_BYTES = 37;
/** Of this run alone: the real server is shared. */
const prefix = `/hostile-${process.pid}-`;
const length = (bytes: number) => {
  const out = Buffer.alloc(4);
  out.writeInt32BE(bytes);
  return out;
};

/** The body of a good request. */
const bodyOf = (name: keyof typeof operations, record: unknown) =>
  Buffer.from(requestFrame(1, name, record).subarray(12));
const request = (name: keyof typeof operations, body: Buffer, xid = 1) =>
  withBody(operations[name].opcode, body, xid);
const withBody = (opcode: number, body: Buffer, xid = 1) => {
  const frame = Buffer.alloc(12 + body.byteLength);
  frame.writeInt32BE(8 + body.byteLength, 0);
  frame.writeInt32BE(xid, 4);
  frame.writeInt32BE(opcode, 8);
  frame.set(body, 12);
  return frame;
};
/** Bytes of a good body, changed at a place. */
const changed = (body: Buffer, at: number, value: number) => {
  const copy = Buffer.from(body);
  copy.writeInt32BE(value, at);
  return copy;
};
const text = (value: string) => Buffer.concat([length(Buffer.byteLength(value)), Buffer.from(value)]);

const path = `${prefix}node`;
const creation = bodyOf('create', node(path, Buffer.from('x'), EPHEMERAL));
/** Where the count of access list entries is: behind the path and the data. */
const ACL_COUNT_AT = 4 + path.length + 4 + 1;
const multiOf = (...parts: Buffer[]) => Buffer.concat(parts);
const multiHeader = (type: number, done = false) =>
  Buffer.concat([length(type), Buffer.from([done ? 1 : 0]), length(-1)]);
const created = (somePath: string) => request('create', bodyOf('create', node(somePath, null, EPHEMERAL)));
const invalidUtf8 = Buffer.concat([length(3), Buffer.from([0x2f, 0xff, 0xfe])]);

const open = (...answers: Outcome['answers']): Outcome => ({ answers, connection: 'open' });
const closed = (...answers: Outcome['answers']): Outcome => ({ answers, connection: 'closed' });

const lengths: Row[] = [0x7fffffff, -1, 0, 2 ** 21, 0xfffff + 1].map((bytes) => ({
  name: `a length of ${bytes}`,
  bytes: length(bytes),
  real: closed(),
}));
const opcodes: Row[] = [9999, -5, 10, 108, 0x7fffffff].map((opcode) => ({
  name: `opcode ${opcode}`,
  bytes: withBody(opcode, creation),
  real: closed(-6),
}));
const undecodable: Row[] = (
  [
    ['half a body', request('create', creation.subarray(0, creation.byteLength / 2))],
    ['no body at all', request('create', Buffer.alloc(0))],
    ['a path of -2 bytes', request('create', changed(creation, 0, -2))],
    ['a path of 2 GiB', request('create', changed(creation, 0, 0x7fffffff))],
    ['data of -7 bytes', request('create', changed(creation, 4 + path.length, -7))],
    ['10^9 access list entries', request('create', changed(creation, ACL_COUNT_AT, 1e9))],
    ['10^9 watches', request('setWatches', Buffer.concat([Buffer.alloc(8), length(1e9)]))],
    ['a multi that is cut off', request('multi', multiOf(multiHeader(1), creation.subarray(0, 9)))],
    ['a multi without an end', request('multi', multiOf(multiHeader(1), creation))],
    [
      'a read inside a multi',
      request(
        'multi',
        multiOf(multiHeader(4), bodyOf('getData', { path: '/', watch: false }), multiHeader(-1, true)),
      ),
    ],
    [
      'an unknown operation inside a multi',
      request('multi', multiOf(multiHeader(77), multiHeader(-1, true))),
    ],
    [
      'a write inside a multiRead',
      request('multiRead', multiOf(multiHeader(1), creation, multiHeader(-1, true))),
    ],
    ['a getData without a path', request('getData', Buffer.alloc(2))],
    ['a setData without a version', request('setData', Buffer.concat([text('/'), text('data')]))],
  ] as const
).map(([name, bytes]) => ({ name, bytes, real: open(-5) }));
const paths: Row[] = (
  [
    ['a path without a slash', created('no-slash'), -8],
    ['an empty path', created(''), -8],
    ['a NUL in a path', created(`${prefix}a\0b`), -8],
    ['U+0001 in a path', created(`${prefix}a\u0001b`), -8],
    [
      'a path that is not UTF-8',
      request('create', Buffer.concat([invalidUtf8, creation.subarray(4 + path.length)])),
      -8,
    ],
    ['an empty element below nothing', created(`${prefix}nothing//b`), -101],
    ['.. below nothing', created(`${prefix}nothing/../b`), -101],
    ['a slash at the end below nothing', created(`${prefix}nothing/b/`), -101],
    ['an empty element', created('//b'), -8],
    ['.. at the root', created('/..'), -8],
    ['the root', created('/'), -110],
  ] as const
).map(([name, bytes, err]) => ({ name: `create: ${name}`, bytes, real: open(err) }));
const arguments_: Row[] = (
  [
    ['create with flags 77', request('create', changed(creation, creation.byteLength - 4, 77)), -8],
    ['create with flags -1', request('create', changed(creation, creation.byteLength - 4, -1)), -8],
    [
      'create with an empty access list',
      request('create', bodyOf('create', { ...node(path), acl: [] })),
      -114,
    ],
    ['create with no access list', request('create', bodyOf('create', { ...node(path), acl: null })), -114],
    ['delete of the root', request('delete', bodyOf('delete', { path: '/', version: -1 })), -8],
    ['delete of /zookeeper', request('delete', bodyOf('delete', { path: '/zookeeper', version: -1 })), -8],
    [
      'a good create with bytes behind it',
      request('create', Buffer.concat([creation, Buffer.alloc(99, 0xee)])),
      0,
    ],
    ['a multi of nothing', request('multi', multiHeader(-1, true)), 0],
    [
      'credentials without a colon',
      request('auth', bodyOf('auth', { type: 0, scheme: 'digest', auth: Buffer.from('nonsense') })),
      0,
    ],
    [
      'credentials that are not text',
      request('auth', bodyOf('auth', { type: 0, scheme: 'digest', auth: Buffer.from([0xff, 0x3a, 0]) })),
      0,
    ],
    ['a mode of addWatch that is none', request('addWatch', bodyOf('addWatch', { path: '/', mode: 7 })), -5],
  ] as const
).map(([name, bytes, err]) => ({ name, bytes, real: open(err) }));
const endings: Row[] = [
  {
    name: 'credentials of an unknown scheme',
    bytes: request('auth', bodyOf('auth', { type: 0, scheme: 'nonsense', auth: Buffer.from('x') })),
    real: closed(-115),
  },
  { name: 'a second connect request', bytes: connectFrame(), real: closed(-6) },
  {
    name: 'a request behind closeSession',
    bytes: Buffer.concat([
      withBody(operations.closeSession.opcode, Buffer.alloc(0)),
      created(`${prefix}late`),
    ]),
    real: closed(0),
    mayAlso: closed(0, -112), // Where the request is looked at before the connection is closed.
  },
  {
    name: 'createSession inside a session',
    bytes: withBody(-10, connectFrame().subarray(4)),
    real: open('a handshake'),
    here: { ...closed(-6), because: 'a second handshake inside a session is an answer to nothing' },
  },
];

const rows = [...lengths, ...opcodes, ...undecodable, ...paths, ...arguments_, ...endings];

/**
 * Sends it, and tells what came. That nothing more comes is shown by the answer to a ping or by the end of the
 * connection; a ping sent too early would be answered, now and then, before ZooKeeper has closed.
 */
async function outcomeOf(address: Address, bytes: Buffer, expected: Outcome): Promise<Outcome> {
  await using peer = await RawPeer.connected(address, { timeOut: 40_000 });
  peer.send(bytes);
  const answers: Outcome['answers'][number][] = [];
  const take = (frame: Buffer) => answers.push(answerIn(frame));
  for (let count = 0; count < expected.answers.length && !peer.closed; count++) take(await peer.frame());
  if (expected.connection === 'closed') {
    await peer.close();
    for (const frame of peer.rest()) take(frame);
    return { answers, connection: 'closed' };
  }
  peer.send(requestFrame(xids.ping, 'ping'));
  for (;;) {
    const frame = await peer.frame();
    if (frame.readInt32BE(0) === xids.ping) return { answers, connection: 'open' };
    take(frame);
  }
}

function answerIn(frame: Buffer): Outcome['answers'][number] {
  return frame.byteLength === HANDSHAKE_BYTES ? 'a handshake' : ReplyHeader.read(new JuteReader(frame)).err;
}

describe.each(['embedded server', 'ZooKeeper'] as const)('%s, given', (side) => {
  const address = (): Address => (side === 'ZooKeeper' ? sharedStandalone() : embedded);

  test.each(rows.map((row) => [row.name, row] as const))('%s', async (_, row) => {
    const { bytes, real, here, mayAlso } = row;
    const { answers, connection } = side === 'embedded server' && here ? here : real;
    const expected = { answers, connection };
    const outcome = await outcomeOf(address(), bytes, expected);
    if (side === 'ZooKeeper' && mayAlso) expect([expected, mayAlso]).toContainEqual(outcome);
    else expect(outcome).toEqual(expected);
  });

  test.each([
    ['a length bomb', length(0x7fffffff)],
    ['a web request', Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n')],
    ['a word that is none', Buffer.from('abcd')],
    ['a frame too short to be a connect request', Buffer.concat([length(4), Buffer.alloc(4)])],
    ['an empty frame', length(0)],
    ['a password of 2 GiB', Buffer.concat([length(44), changed(connectFrame().subarray(4), 24, 0x7fffffff)])],
    ['a client that has seen the future', connectFrame({ lastZxidSeen: 2n ** 63n - 1n })],
  ])('%s before the handshake, closes without a word', async (_, bytes) => {
    await using peer = await RawPeer.dial(address());
    peer.send(bytes);
    await peer.close();
    expect(peer.rest()).toEqual([]);
  });

  test('half a connect request, waits for the other half', async () => {
    await using peer = await RawPeer.dial(address());
    const frame = connectFrame();
    peer.send(frame.subarray(0, 20));
    // Somebody else is served meanwhile: it is not that nothing was read yet.
    await using other = await RawPeer.connected(address());
    expect(other.closed).toBe(false);
    expect(peer.closed).toBe(false);
    peer.send(frame.subarray(20));
    expect((await peer.handshakeAnswer()).timeOut).toBe(10_000);
  });
});
