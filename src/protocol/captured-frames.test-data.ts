import { Connect, Connected } from './handshake.ts';
import type { Operation } from './operations.ts';
import { operations, xids } from './operations.ts';
import type { Codec } from './record.ts';
import { ReplyHeader, RequestHeader, type Stat, WatcherEvent } from './records.ts';

/** One record of a frame: how it is read, and what it must be read as. */
export interface CapturedPart {
  readonly codec: Codec<unknown>;
  readonly value: unknown;
}

/** A frame as a packet capture of ZooKeeper 3.8.0 shows it, length prefix included. */
export interface CapturedFrame {
  readonly name: string;
  readonly from: 'client' | 'server';
  readonly bytes: Buffer;
  readonly parts: readonly CapturedPart[];
}

const part = <T>(codec: Codec<T>, value: T): CapturedPart => ({ codec, value });

const client = (name: string, hex: string, ...parts: CapturedPart[]): CapturedFrame => ({
  name,
  from: 'client',
  bytes: fromHex(hex),
  parts,
});
const server = (name: string, hex: string, ...parts: CapturedPart[]): CapturedFrame => ({
  ...client(name, hex, ...parts),
  from: 'server',
});

/** A request; the operation's number is part of what is compared. */
const asks = <Q, R>(xid: number, operation: Operation<Q, R>, value: Q): CapturedPart[] => [
  part(RequestHeader, { xid, type: operation.opcode }),
  part(operation.request, value),
];
const answers = <Q, R>(xid: number, zxid: bigint, operation: Operation<Q, R>, value: R): CapturedPart[] => [
  header(xid, zxid, 0),
  part(operation.reply, value),
];
/** A reply that is its header alone. */
const header = (xid: number, zxid: bigint, err: number): CapturedPart =>
  part(ReplyHeader, { xid, zxid, err });
const tells = (type: number, path: string): CapturedPart[] => [
  header(xids.notification, -1n, 0),
  part(WatcherEvent, { type, state: 3, path }),
];

function fromHex(hex: string): Buffer {
  return Buffer.from(hex.replaceAll(/\s/g, ''), 'hex');
}

const text = (value: string) => Buffer.from(value, 'utf8');
const noPassword = Buffer.alloc(16);
const openAcl = [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }];

const newNode = { version: 0, cversion: 0, aversion: 0, ephemeralOwner: 0n, dataLength: 0, numChildren: 0 };
const cfgCreated: Stat = {
  ...newNode,
  czxid: 4n,
  mzxid: 4n,
  ctime: 0x1a1e2071325n,
  mtime: 0x1a1e2071325n,
  dataLength: 2,
  pzxid: 4n,
};
const cfgCreatedHex = `0000000000000004 0000000000000004 000001a1e2071325 000001a1e2071325
  00000000 00000000 00000000 0000000000000000 00000002 00000000 0000000000000004`;
const cfgChanged: Stat = { ...cfgCreated, mzxid: 5n, mtime: 0x1a1e207133fn, version: 1 };
const cfgChangedHex = `0000000000000004 0000000000000005 000001a1e2071325 000001a1e207133f
  00000001 00000000 00000000 0000000000000000 00000002 00000000 0000000000000004`;

/**
 * Stands where the capture has a Stat whose bytes were not kept: it proves nothing about a Stat, only that
 * what is around it is read and that the length the server wrote leaves room for 68 bytes.
 */
const unrecorded: Stat = {
  ...newNode,
  czxid: 8n,
  mzxid: 8n,
  ctime: 0n,
  mtime: 0n,
  version: 1,
  dataLength: 1,
  pzxid: 8n,
};
const unrecordedHex = `0000000000000008 0000000000000008 0000000000000000 0000000000000000
  00000001 00000000 00000000 0000000000000000 00000001 00000000 0000000000000008`;

/** Every frame written down from sessions of real clients with ZooKeeper 3.8.0, in the order they passed. */
export const capturedFrames: readonly CapturedFrame[] = [
  client(
    'connect, new session',
    '0000002d 00000000 0000000000000000 00007530 0000000000000000 00000010 00000000000000000000000000000000 00',
    part(Connect, {
      protocolVersion: 0,
      lastZxidSeen: 0n,
      timeOut: 30_000,
      sessionId: 0n,
      passwd: noPassword,
      readOnly: false,
    }),
  ),
  server(
    'connected, new session',
    '00000025 00000000 00007530 0100002e64270000 00000010 0b16957a3c7601cc610b2adce5462eb5 00',
    part(Connected, {
      protocolVersion: 0,
      timeOut: 30_000,
      sessionId: 0x0100002e64270000n,
      passwd: fromHex('0b16957a3c7601cc610b2adce5462eb5'),
      readOnly: false,
    }),
  ),
  client(
    'connect without the readOnly byte',
    '0000002c 00000000 0000000000000000 00002710 0000000000000000 00000010 00000000000000000000000000000000',
    part(Connect, {
      protocolVersion: 0,
      lastZxidSeen: 0n,
      timeOut: 10_000,
      sessionId: 0n,
      passwd: noPassword,
      readOnly: null,
    }),
  ),
  server(
    'connected without the readOnly byte',
    '00000024 00000000 00002710 010000236adf000f 00000010 a50d313a44ea76e4f3108513651cd424',
    part(Connected, {
      protocolVersion: 0,
      timeOut: 10_000,
      sessionId: 0x010000236adf000fn,
      passwd: fromHex('a50d313a44ea76e4f3108513651cd424'),
      readOnly: null,
    }),
  ),
  server(
    'connected, session unknown or expired',
    '00000025 00000000 00000000 0000000000000000 00000010 00000000000000000000000000000000 00',
    part(Connected, { protocolVersion: 0, timeOut: 0, sessionId: 0n, passwd: noPassword, readOnly: false }),
  ),

  client(
    'create /app',
    `00000035 00000001 00000001 00000004 2f617070 00000002 6869
     00000001 0000001f 00000005 776f726c64 00000006 616e796f6e65 00000000`,
    ...asks(1, operations.create, { path: '/app', data: text('hi'), acl: openAcl, flags: 0 }),
  ),
  server(
    'create /app, answer',
    '00000018 00000001 0000000000000002 00000000 00000004 2f617070',
    ...answers(1, 2n, operations.create, { path: '/app' }),
  ),

  client(
    'create ephemeral sequential /app/n-',
    `00000036 00000002 00000001 00000007 2f6170702f6e2d 00000000
     00000001 0000001f 00000005 776f726c64 00000006 616e796f6e65 00000003`,
    ...asks(2, operations.create, { path: '/app/n-', data: text(''), acl: openAcl, flags: 3 }),
  ),
  server(
    'create ephemeral sequential /app/n-, answer',
    '00000025 00000002 0000000000000003 00000000 00000011 2f6170702f6e2d30303030303030303030',
    ...answers(2, 3n, operations.create, { path: '/app/n-0000000000' }),
  ),

  client(
    'create2 /app/cfg',
    `00000039 00000003 0000000f 00000008 2f6170702f636667 00000002 7631
     00000001 0000001f 00000005 776f726c64 00000006 616e796f6e65 00000000`,
    ...asks(3, operations.create2, { path: '/app/cfg', data: text('v1'), acl: openAcl, flags: 0 }),
  ),
  server(
    'create2 /app/cfg, answer',
    `00000060 00000003 0000000000000004 00000000 00000008 2f6170702f636667 ${cfgCreatedHex}`,
    ...answers(3, 4n, operations.create2, { path: '/app/cfg', stat: cfgCreated }),
  ),

  client(
    'getChildren /app',
    '00000011 00000004 00000008 00000004 2f617070 00',
    ...asks(4, operations.getChildren, { path: '/app', watch: false }),
  ),
  server(
    'getChildren /app, answer',
    '0000002b 00000004 0000000000000004 00000000 00000002 00000003 636667 0000000c 6e2d30303030303030303030',
    ...answers(4, 4n, operations.getChildren, { children: ['cfg', 'n-0000000000'] }),
  ),
  client(
    'getChildren2 /app',
    '00000011 00000005 0000000c 00000004 2f617070 00',
    ...asks(5, operations.getChildren2, { path: '/app', watch: false }),
  ),
  server(
    'getChildren2 /app, answer',
    `0000006f 00000005 0000000000000004 00000000 00000002 00000003 636667 0000000c 6e2d30303030303030303030
     0000000000000002 0000000000000002 000001a1e20712f7 000001a1e20712f7
     00000000 00000002 00000000 0000000000000000 00000002 00000002 0000000000000004`,
    ...answers(5, 4n, operations.getChildren2, {
      children: ['cfg', 'n-0000000000'],
      stat: {
        ...newNode,
        czxid: 2n,
        mzxid: 2n,
        ctime: 0x1a1e20712f7n,
        mtime: 0x1a1e20712f7n,
        cversion: 2,
        dataLength: 2,
        numChildren: 2,
        pzxid: 4n,
      },
    }),
  ),

  client(
    'exists /app/x with watch',
    '00000013 00000006 00000003 00000006 2f6170702f78 01',
    ...asks(6, operations.exists, { path: '/app/x', watch: true }),
  ),
  server('exists /app/x, no node', '00000010 00000006 0000000000000004 ffffff9b', header(6, 4n, -101)),
  client(
    'exists /app/cfg with watch',
    '00000015 00000007 00000003 00000008 2f6170702f636667 01',
    ...asks(7, operations.exists, { path: '/app/cfg', watch: true }),
  ),
  server(
    'exists /app/cfg, answer',
    `00000054 00000007 0000000000000004 00000000 ${cfgCreatedHex}`,
    ...answers(7, 4n, operations.exists, { stat: cfgCreated }),
  ),

  client(
    'setData /app/cfg, expected version 0',
    '0000001e 00000008 00000005 00000008 2f6170702f636667 00000002 7632 00000000',
    ...asks(8, operations.setData, { path: '/app/cfg', data: text('v2'), version: 0 }),
  ),
  server(
    'event: /app/cfg changed',
    '00000024 ffffffff ffffffffffffffff 00000000 00000003 00000003 00000008 2f6170702f636667',
    ...tells(3, '/app/cfg'),
  ),
  server(
    'setData /app/cfg, answer',
    `00000054 00000008 0000000000000005 00000000 ${cfgChangedHex}`,
    ...answers(8, 5n, operations.setData, { stat: cfgChanged }),
  ),

  client(
    'getData /app/cfg with watch',
    '00000015 00000009 00000004 00000008 2f6170702f636667 01',
    ...asks(9, operations.getData, { path: '/app/cfg', watch: true }),
  ),
  server(
    'getData /app/cfg, answer',
    `0000005a 00000009 0000000000000005 00000000 00000002 7632 ${cfgChangedHex}`,
    ...answers(9, 5n, operations.getData, { data: text('v2'), stat: cfgChanged }),
  ),
  client(
    'delete /app/cfg, expected version 1',
    '00000018 0000000a 00000002 00000008 2f6170702f636667 00000001',
    ...asks(10, operations.delete, { path: '/app/cfg', version: 1 }),
  ),
  server(
    'event: /app/cfg deleted',
    '00000024 ffffffff ffffffffffffffff 00000000 00000002 00000003 00000008 2f6170702f636667',
    ...tells(2, '/app/cfg'),
  ),
  server(
    'delete /app/cfg, answer',
    '00000010 0000000a 0000000000000006 00000000',
    ...answers(10, 6n, operations.delete, undefined),
  ),
  client(
    'delete /app/cfg again, any version',
    '00000018 0000000b 00000002 00000008 2f6170702f636667 ffffffff',
    ...asks(11, operations.delete, { path: '/app/cfg', version: -1 }),
  ),
  server(
    'delete /app/cfg again, no node',
    '00000010 0000000b 0000000000000007 ffffff9b',
    header(11, 7n, -101),
  ),

  client(
    'multi: create, check, setData, delete',
    `0000008f 0000000c 0000000e
     00000001 00 ffffffff  00000006 2f6170702f6d 00000000
       00000001 0000001f 00000005 776f726c64 00000006 616e796f6e65 00000000
     0000000d 00 ffffffff  00000004 2f617070 00000000
     00000005 00 ffffffff  00000006 2f6170702f6d 00000001 7a 00000000
     00000002 00 ffffffff  00000006 2f6170702f6d ffffffff
     ffffffff 01 ffffffff`,
    ...asks(12, operations.multi, [
      { op: 'create', request: { path: '/app/m', data: text(''), acl: openAcl, flags: 0 } },
      { op: 'check', request: { path: '/app', version: 0 } },
      { op: 'setData', request: { path: '/app/m', data: text('z'), version: 0 } },
      { op: 'delete', request: { path: '/app/m', version: -1 } },
    ]),
  ),
  server(
    'multi, all done (the Stat not recorded)',
    `0000008b 0000000c 0000000000000008 00000000
     00000001 00 00000000  00000006 2f6170702f6d
     0000000d 00 00000000
     00000005 00 00000000  ${unrecordedHex}
     00000002 00 00000000
     ffffffff 01 ffffffff`,
    ...answers(12, 8n, operations.multi, [
      { kind: 'create', path: '/app/m' },
      { kind: 'check' },
      { kind: 'setData', stat: unrecorded },
      { kind: 'delete' },
    ]),
  ),
  server(
    'multi, the third operation refused',
    `0000004d 0000000d 0000000000000009 00000000
     ffffffff 00 00000000  00000000
     ffffffff 00 00000000  00000000
     ffffffff 00 ffffff9b  ffffff9b
     ffffffff 00 fffffffe  fffffffe
     ffffffff 01 ffffffff`,
    ...answers(13, 9n, operations.multi, [
      { kind: 'error', err: 0 },
      { kind: 'error', err: 0 },
      { kind: 'error', err: -101 },
      { kind: 'error', err: -2 },
    ]),
  ),

  client(
    'multiRead: getData, getChildren, getData',
    `00000046 0000000b 00000016
     00000004 00 ffffffff 00000003 2f6a76 00
     00000008 00 ffffffff 00000003 2f6a76 00
     00000004 00 ffffffff 00000005 2f6e6f6e6f 00
     ffffffff 01 ffffffff`,
    ...asks(11, operations.multiRead, [
      { op: 'getData', request: { path: '/jv', watch: false } },
      { op: 'getChildren', request: { path: '/jv', watch: false } },
      { op: 'getData', request: { path: '/nono', watch: false } },
    ]),
  ),
  server(
    'multiRead, one of them refused (the Stat not recorded)',
    `0000009a 0000000b 0000000000000034 00000000
     00000004 00 00000000  00000001 02 ${unrecordedHex}
     00000008 00 00000000  00000002 00000001 63 0000000c 6e2d30303030303030303030
     ffffffff 00 ffffff9b  ffffff9b
     ffffffff 01 ffffffff`,
    ...answers(11, 0x34n, operations.multiRead, [
      { kind: 'getData', data: Buffer.from([2]), stat: unrecorded },
      { kind: 'getChildren', children: ['c', 'n-0000000000'] },
      { kind: 'error', err: -101 },
    ]),
  ),

  client('ping', '00000008 fffffffe 0000000b', ...asks(xids.ping, operations.ping, undefined)),
  server(
    'ping, answer',
    '00000010 fffffffe 0000000000000009 00000000',
    ...answers(xids.ping, 9n, operations.ping, undefined),
  ),
  client(
    'auth digest u:p',
    '0000001d fffffffc 00000064 00000000 00000006 646967657374 00000003 753a70',
    ...asks(xids.auth, operations.auth, { type: 0, scheme: 'digest', auth: text('u:p') }),
  ),
  server(
    'auth, accepted',
    '00000010 fffffffc 0000000000000000 00000000',
    ...answers(xids.auth, 0n, operations.auth, undefined),
  ),
  server('auth, rejected', '00000010 fffffffc 0000000000000000 ffffff8d', header(xids.auth, 0n, -115)),
  client(
    'getAcl /app',
    '00000010 0000000e 00000006 00000004 2f617070',
    ...asks(14, operations.getAcl, { path: '/app' }),
  ),
  server(
    'getAcl /app, answer (the Stat not recorded)',
    `0000006f 0000000e 0000000000000009 00000000
     00000001 0000001f 00000005 776f726c64 00000006 616e796f6e65 ${unrecordedHex}`,
    ...answers(14, 9n, operations.getAcl, { acl: openAcl, stat: unrecorded }),
  ),
  client(
    'sync /app',
    '00000010 0000000f 00000009 00000004 2f617070',
    ...asks(15, operations.sync, { path: '/app' }),
  ),
  server(
    'sync /app, answer',
    '00000018 0000000f 0000000000000009 00000000 00000004 2f617070',
    ...answers(15, 9n, operations.sync, { path: '/app' }),
  ),
  client(
    'addWatch /jv, recursive',
    '00000013 00000008 0000006a 00000003 2f6a76 00000001',
    ...asks(8, operations.addWatch, { path: '/jv', mode: 1 }),
  ),
  server(
    'addWatch /jv, answer',
    '00000014 00000008 0000000000000032 00000000 00000000',
    ...answers(8, 0x32n, operations.addWatch, { err: 0 }),
  ),
  client('closeSession', '00000008 00000010 fffffff5', ...asks(16, operations.closeSession, undefined)),
  server(
    'closeSession, answer',
    '00000010 00000010 000000000000000a 00000000',
    ...answers(16, 10n, operations.closeSession, undefined),
  ),

  client(
    'connect, renewing a session',
    '0000002d 00000000 0000000000000036 00002710 010000236adf0003 00000010 c080773ac45effa974edad0a7ab2dd87 00',
    part(Connect, {
      protocolVersion: 0,
      lastZxidSeen: 0x36n,
      timeOut: 10_000,
      sessionId: 0x010000236adf0003n,
      passwd: fromHex('c080773ac45effa974edad0a7ab2dd87'),
      readOnly: false,
    }),
  ),
  server(
    'connected, session renewed',
    '00000025 00000000 00002710 010000236adf0003 00000010 c080773ac45effa974edad0a7ab2dd87 00',
    part(Connected, {
      protocolVersion: 0,
      timeOut: 10_000,
      sessionId: 0x010000236adf0003n,
      passwd: fromHex('c080773ac45effa974edad0a7ab2dd87'),
      readOnly: false,
    }),
  ),
  client(
    'auth digest u2:p2, after the renewal',
    '0000001f fffffffc 00000064 00000000 00000006 646967657374 00000005 75323a7032',
    ...asks(xids.auth, operations.auth, { type: 0, scheme: 'digest', auth: text('u2:p2') }),
  ),
  client(
    'auth digest u:p, after the renewal',
    '0000001d fffffffc 00000064 00000000 00000006 646967657374 00000003 753a70',
    ...asks(xids.auth, operations.auth, { type: 0, scheme: 'digest', auth: text('u:p') }),
  ),
  client(
    'setWatches',
    `00000038 00000005 00000065 0000000000000036
     00000002 00000003 2f6a76 00000001 2f
     00000001 00000005 2f6a763278
     00000001 00000003 2f6a76`,
    ...asks(5, operations.setWatches, {
      relativeZxid: 0x36n,
      dataWatches: ['/jv', '/'],
      existWatches: ['/jv2x'],
      childWatches: ['/jv'],
    }),
  ),
  server(
    'auth digest u2:p2, accepted after the renewal',
    '00000010 fffffffc 0000000000000000 00000000',
    ...answers(xids.auth, 0n, operations.auth, undefined),
  ),
  server(
    'auth digest u:p, accepted after the renewal',
    '00000010 fffffffc 0000000000000000 00000000',
    ...answers(xids.auth, 0n, operations.auth, undefined),
  ),
  server(
    'event: /jv changed while the connection was down',
    '0000001f ffffffff ffffffffffffffff 00000000 00000003 00000003 00000003 2f6a76',
    ...tells(3, '/jv'),
  ),
  server(
    'setWatches, answer',
    '00000010 00000005 0000000000000039 00000000',
    ...answers(5, 0x39n, operations.setWatches, undefined),
  ),
];
