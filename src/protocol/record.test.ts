import { spawnSync } from 'node:child_process';
import { isDeepStrictEqual } from 'node:util';
import fc, { type Arbitrary } from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ProtocolError } from './errors.ts';
import { Connect, Connected } from './handshake.ts';
import { JuteReader } from './jute-reader.ts';
import { JuteWriter } from './jute-writer.ts';
import {
  type MultiOp,
  type MultiReadOp,
  MultiReadRequest,
  MultiReadResponse,
  MultiRequest,
  MultiResponse,
  type MultiResult,
} from './multi.ts';
import { type Operation, operationOf, operations } from './operations.ts';
import {
  boolean,
  buffer,
  type Codec,
  int,
  long,
  loopedCodec,
  nothing,
  nullableUstring,
  nullableVector,
  remembering,
  straightCodec,
  ustring,
  type ValueOf,
  vector,
} from './record.ts';
import * as records from './records.ts';

const INT_MIN = -(2 ** 31);
const INT_MAX = 2 ** 31 - 1;
const LONG_MIN = -(2n ** 63n);
const LONG_MAX = 2n ** 63n - 1n;
/** Doubles cannot hold these, and their neighbours are where a wrong sign or a lost bit shows. */
const longsOfNote = [LONG_MIN, -(2n ** 53n) - 1n, -1n, 0n, 2n ** 31n, 2n ** 53n + 1n, LONG_MAX];
/** Either side of the 48 units up to which the writer encodes by hand, and every length of UTF-8 sequence. */
const stringsOfNote = [
  '',
  '/',
  'a'.repeat(47),
  'a'.repeat(48),
  'a'.repeat(49),
  'ä'.repeat(48),
  `${'a'.repeat(47)}\u{20ac}`,
  '/größe/名前',
  '\u0000\u007f\u0080\u07ff\u0800\uffff',
  'beyond the BMP: \u{1f512}',
  'x'.repeat(20_000),
  '鍵'.repeat(7_000),
];

const fields = <T extends object>(model: { [K in keyof T]: Arbitrary<T[K]> }): Arbitrary<T> =>
  fc.record<T>(model, { noNullPrototype: true });
const anInt = fc.oneof(
  fc.constantFrom(INT_MIN, -1, 0, 1, INT_MAX),
  fc.integer({ min: INT_MIN, max: INT_MAX }),
);
const aLong = fc.oneof(fc.constantFrom(...longsOfNote), fc.bigInt({ min: LONG_MIN, max: LONG_MAX }));
const bytes = fc.uint8Array({ maxLength: 100 }).map((array) => Buffer.from(array));
const aBuffer = fc.oneof(fc.constantFrom(null, Buffer.alloc(0), Buffer.alloc(20_000, 7)), bytes);
const aString = fc.oneof(
  { weight: 1, arbitrary: fc.constantFrom(...stringsOfNote) },
  { weight: 6, arbitrary: fc.string({ unit: 'binary', maxLength: 60 }) },
);
const aNullableString = fc.option(aString);
const strings = fc.array(aString, { maxLength: 5 });
const aBoolean = fc.boolean();

const aStat: Arbitrary<records.Stat> = fields({
  czxid: aLong,
  mzxid: aLong,
  ctime: aLong,
  mtime: aLong,
  version: anInt,
  cversion: anInt,
  aversion: anInt,
  ephemeralOwner: aLong,
  dataLength: anInt,
  numChildren: anInt,
  pzxid: aLong,
});
const anId = fields({ scheme: aString, id: aNullableString });
const anAcl = fields({ perms: anInt, id: anId });
const acls = fc.array(anAcl, { maxLength: 4 });
const aClientInfo = fields({ authScheme: aString, user: aString });
const connectFields = {
  protocolVersion: anInt,
  lastZxidSeen: aLong,
  timeOut: anInt,
  sessionId: aLong,
  passwd: aBuffer,
};
const connectedFields = { protocolVersion: anInt, timeOut: anInt, sessionId: aLong, passwd: aBuffer };
const createFields = { path: aString, data: aBuffer, acl: fc.option(acls), flags: anInt };
const setWatchesFields = {
  relativeZxid: aLong,
  dataWatches: strings,
  existWatches: strings,
  childWatches: strings,
};

/** One generator per record: a record without one does not compile. */
const values: { [K in keyof typeof records]: Arbitrary<ValueOf<(typeof records)[K]>> } = {
  RequestHeader: fields({ xid: anInt, type: anInt }),
  ReplyHeader: fields({ xid: anInt, zxid: aLong, err: anInt }),
  Stat: aStat,
  Id: anId,
  Acl: anAcl,
  ConnectRequest: fields(connectFields),
  ConnectResponse: fields(connectedFields),
  CreateRequest: fields(createFields),
  CreateTtlRequest: fields({ ...createFields, ttl: aLong }),
  CreateResponse: fields({ path: aString }),
  Create2Response: fields({ path: aString, stat: aStat }),
  DeleteRequest: fields({ path: aString, version: anInt }),
  PathRequest: fields({ path: aString }),
  PathWatchRequest: fields({ path: aString, watch: aBoolean }),
  StatResponse: fields({ stat: aStat }),
  GetDataResponse: fields({ data: aBuffer, stat: aStat }),
  SetDataRequest: fields({ path: aString, data: aBuffer, version: anInt }),
  GetAclResponse: fields({ acl: acls, stat: aStat }),
  SetAclRequest: fields({ path: aString, acl: fc.option(acls), version: anInt }),
  GetChildrenResponse: fields({ children: strings }),
  GetChildren2Response: fields({ children: strings, stat: aStat }),
  CheckVersionRequest: fields({ path: aString, version: anInt }),
  SyncRequest: fields({ path: aNullableString }),
  SyncResponse: fields({ path: aNullableString }),
  ReconfigRequest: fields({
    joiningServers: aNullableString,
    leavingServers: aNullableString,
    newMembers: aNullableString,
    curConfigId: aLong,
  }),
  WatchTypeRequest: fields({ path: aString, type: anInt }),
  AddWatchRequest: fields({ path: aString, mode: anInt }),
  ErrorResponse: fields({ err: anInt }),
  SetWatches: fields(setWatchesFields),
  SetWatches2: fields({
    ...setWatchesFields,
    persistentWatches: strings,
    persistentRecursiveWatches: strings,
  }),
  AuthPacket: fields({ type: anInt, scheme: aString, auth: aBuffer }),
  SaslToken: fields({ token: aBuffer }),
  GetEphemeralsRequest: fields({ prefixPath: aNullableString }),
  GetEphemeralsResponse: fields({ ephemerals: strings }),
  GetAllChildrenNumberResponse: fields({ totalNumber: anInt }),
  ClientInfo: aClientInfo,
  WhoAmIResponse: fields({ clientInfo: fc.array(aClientInfo, { maxLength: 4 }) }),
  WatcherEvent: fields({ type: anInt, state: anInt, path: aString }),
  MultiHeader: fields({ type: anInt, done: aBoolean, err: anInt }),
};

const multiRequests: { [K in MultiOp['op']]: Arbitrary<Extract<MultiOp, { op: K }>['request']> } = {
  create: values.CreateRequest,
  create2: values.CreateRequest,
  createContainer: values.CreateRequest,
  createTtl: values.CreateTtlRequest,
  delete: values.DeleteRequest,
  setData: values.SetDataRequest,
  check: values.CheckVersionRequest,
};
const multiReadRequests: { [K in MultiReadOp['op']]: Arbitrary<MultiReadOp['request']> } = {
  getData: values.PathWatchRequest,
  getChildren: values.PathWatchRequest,
};
const multiResults: {
  [K in MultiResult['kind']]: Arbitrary<Omit<Extract<MultiResult, { kind: K }>, 'kind'>>;
} = {
  create: values.CreateResponse,
  create2: values.Create2Response,
  setData: values.StatResponse,
  getData: values.GetDataResponse,
  getChildren: values.GetChildrenResponse,
  delete: fc.constant({}),
  check: fc.constant({}),
  error: values.ErrorResponse,
};

function listOf<Item>(
  tag: string,
  table: Record<string, Arbitrary<unknown>>,
  nested: boolean,
): Arbitrary<Item[]> {
  const items = Object.entries(table).map(([name, arbitrary]) =>
    arbitrary.map((body) => (nested ? { [tag]: name, request: body } : { [tag]: name, ...(body as object) })),
  );
  return fc.array(fc.oneof(...items), { maxLength: 6 }) as Arbitrary<unknown> as Arbitrary<Item[]>;
}

/** A codec, and values it must carry without loss. */
interface Row {
  readonly name: string;
  readonly codec: Codec<unknown>;
  readonly value: Arbitrary<unknown>;
}
const row = <T>(name: string, codec: Codec<T>, value: Arbitrary<T>): Row => ({ name, codec, value });

const recordRows: Row[] = Object.entries(records).map(([name, codec]) => ({
  name,
  codec: codec as Codec<unknown>,
  value: values[name as keyof typeof records],
}));
const listRows: Row[] = [
  row('MultiRequest', MultiRequest, listOf<MultiOp>('op', multiRequests, true)),
  row('MultiReadRequest', MultiReadRequest, listOf<MultiReadOp>('op', multiReadRequests, true)),
  row('MultiResponse', MultiResponse, listOf<MultiResult>('kind', multiResults, false)),
  row('MultiReadResponse', MultiReadResponse, listOf<MultiResult>('kind', multiResults, false)),
];
const handshakeRows: Row[] = [
  row('Connect', Connect, fields({ ...connectFields, readOnly: fc.option(aBoolean) })),
  row(
    'Connected',
    Connected,
    fields({ ...connectedFields, readOnly: fc.option(aBoolean) }).map((answer) =>
      answer.timeOut > 0 ? { ...answer, passwd: Buffer.alloc(16, 9) } : answer,
    ),
  ),
];
const primitiveRows: Row[] = [
  row('int', int, anInt),
  row('long', long, aLong),
  row('boolean', boolean, aBoolean),
  row('buffer', buffer, aBuffer),
  row('ustring', ustring, aString),
  row('nullableUstring', nullableUstring, aNullableString),
  row('vector', vector(long), fc.array(aLong)),
  row('nullableVector', nullableVector(ustring), fc.option(strings)),
  row('nothing', nothing, fc.constant(undefined)),
];
const rows = [...primitiveRows, ...recordRows, ...listRows, ...handshakeRows];

function encode<T>(codec: Codec<T>, value: T): Buffer {
  const out = new JuteWriter();
  codec.write(out, value);
  return out.take();
}

/** `toStrictEqual` visits a buffer byte by byte in JavaScript; it is asked only for the report of a difference. */
function expectSame(actual: unknown, expected: unknown): void {
  if (!isDeepStrictEqual(actual, expected)) expect(actual).toStrictEqual(expected);
}

function endsWithOptionalByte(codec: Codec<unknown>, value: unknown): boolean {
  return (codec === Connect || codec === Connected) && (value as { readOnly: unknown }).readOnly !== null;
}

describe.each(rows)('$name', ({ codec, value }) => {
  test('comes back as it was written, to the last byte', () => {
    fc.assert(
      fc.property(value, (written) => {
        const encoded = encode(codec, written);
        const input = new JuteReader(encoded);
        expectSame(codec.read(input), written);
        expect(input.remaining).toBe(0);
        expect(encoded.byteLength).toBeGreaterThanOrEqual(codec.bytesMin);
      }),
    );
  });
});

describe.each(rows.filter(({ codec }) => codec.bytesMin > 0))('$name', ({ codec, value }) => {
  test('is refused if it is cut short anywhere', () => {
    fc.assert(
      fc.property(value, fc.nat(), (written, cut) => {
        const whole = encode(codec, written);
        const part = whole.subarray(0, cut % whole.byteLength);
        if (part.byteLength === whole.byteLength - 1 && endsWithOptionalByte(codec, written)) return;
        expect(() => codec.read(new JuteReader(part))).toThrow(ProtocolError);
      }),
      { numRuns: 30 },
    );
  });
});

// What follows the handshake's records is their readOnly byte.
describe.each(rows.filter(({ codec }) => codec !== Connect && codec !== Connected))('$name', (each) => {
  test('is read without what follows it', () => {
    fc.assert(
      fc.property(each.value, (written) => {
        const input = new JuteReader(Buffer.concat([encode(each.codec, written), Buffer.from('junk')]));
        expectSame(each.codec.read(input), written);
        expect(input.remaining).toBe(4);
      }),
      { numRuns: 30 },
    );
  });
});

describe('a codec made of a table', () => {
  const table = {
    perms: int,
    owner: long,
    watch: boolean,
    data: buffer,
    path: ustring,
    id: nullableUstring,
    acl: records.Acl,
    'not-an-identifier': vector(int),
  };
  const value = fields({
    perms: anInt,
    owner: aLong,
    watch: aBoolean,
    data: aBuffer,
    path: aString,
    id: aNullableString,
    acl: fields({ perms: anInt, id: fields({ scheme: aString, id: aNullableString }) }),
    'not-an-identifier': fc.array(anInt),
  });

  test('is the same whether it goes straight or through the table', () => {
    const straight = straightCodec(table)!;
    const looped = loopedCodec(table);
    expect(straight.bytesMin).toBe(looped.bytesMin);
    fc.assert(
      fc.property(value, (written) => {
        const encoded = encode(straight, written);
        expectSame(encoded, encode(looped, written));
        expectSame(straight.read(new JuteReader(encoded)), looped.read(new JuteReader(encoded)));
      }),
    );
  });

  test('goes through the table where code may not be made of text', () => {
    const program = `
      import { record, int, straightCodec } from ${JSON.stringify(new URL('./record.ts', import.meta.url).href)};
      import { JuteWriter } from ${JSON.stringify(new URL('./jute-writer.ts', import.meta.url).href)};
      const out = new JuteWriter();
      record({ a: int, b: int }).write(out, { a: 1, b: 2 });
      console.log(straightCodec({ a: int }), out.take().toString('hex'));`;
    const { stdout } = spawnSync(
      process.execPath,
      ['--import', 'tsx', '--disallow-code-generation-from-strings', '--input-type=module', '-e', program],
      { encoding: 'utf8' },
    );
    expect(stdout.trim()).toBe('undefined 0000000100000002');
  });
});

describe('a value that is remembered', () => {
  const codec = remembering(nullableVector(ustring));
  const lists = ['a', 'b', 'a much longer one'].map((text) => [text, text]);

  test('is read as it would be, whatever came before it', () => {
    const one = fc.oneof(fc.constantFrom(...lists), fc.option(strings));
    fc.assert(
      fc.property(fc.array(one), (values) => {
        const input = new JuteReader(Buffer.concat(values.map((each) => encode(codec, each))));
        for (const each of values) expectSame(codec.read(input), each);
        expect(input.remaining).toBe(0);
      }),
    );
  });

  test('is handed out again for the same bytes, also if more follow', () => {
    const bytes = encode(codec, lists[0]!);
    const first = codec.read(new JuteReader(bytes));
    expect(codec.read(new JuteReader(Buffer.concat([bytes, bytes])))).toBe(first);
    expect(() => codec.read(new JuteReader(bytes.subarray(0, -1)))).toThrow(ProtocolError);
  });
});

describe('operations', () => {
  const byCodec = new Map(rows.map((each) => [each.codec, each.value]));
  const all = Object.entries<Operation>(operations);

  test.each(all)('%s carries its request and its reply behind the headers', (_, operation) => {
    const request = byCodec.get(operation.request)!;
    const reply = byCodec.get(operation.reply)!;
    fc.assert(
      fc.property(values.RequestHeader, request, values.ReplyHeader, reply, (asked, sent, answered, came) => {
        const { RequestHeader, ReplyHeader } = records;
        const frame = new JuteReader(
          Buffer.concat([
            encode(RequestHeader, { ...asked, type: operation.opcode }),
            encode(operation.request, sent),
            encode(ReplyHeader, answered),
            encode(operation.reply, came),
          ]),
        );
        expectSame(RequestHeader.read(frame), { ...asked, type: operation.opcode });
        expectSame(operation.request.read(frame), sent);
        expectSame(ReplyHeader.read(frame), answered);
        expectSame(operation.reply.read(frame), came);
      }),
      { numRuns: 25 },
    );
  });

  test.each(all)('%s is found by its number and named as its key', (name, operation) => {
    expect(operationOf(operation.opcode)).toBe(operation);
    expect(operation.name).toBe(name);
  });

  test.each([0, 10, 13, 20, -10, 99, 108])(
    'number %i is not an operation that a client can ask for',
    (opcode) => {
      expect(operationOf(opcode)).toBeUndefined();
    },
  );
});

describe('null and empty', () => {
  const read = (codec: Codec<unknown>, hex: string) =>
    codec.read(new JuteReader(Buffer.from(hex.replaceAll(' ', ''), 'hex')));

  test.each<[string, Codec<unknown>, string, unknown]>([
    ['null data', records.SaslToken, 'ffffffff', { token: null }],
    ['empty data', records.SaslToken, '00000000', { token: Buffer.alloc(0) }],
    ['the null id that kazoo writes', records.Id, '00000004 61757468 ffffffff', { scheme: 'auth', id: null }],
    ['an empty id', records.Id, '00000004 61757468 00000000', { scheme: 'auth', id: '' }],
    ['a null path of sync', records.SyncRequest, 'ffffffff', { path: null }],
    ['an empty path of sync', records.SyncRequest, '00000000', { path: '' }],
    ['a null prefix of getEphemerals', records.GetEphemeralsRequest, 'ffffffff', { prefixPath: null }],
    [
      'null data and a null ACL list of create',
      records.CreateRequest,
      '00000001 2f ffffffff ffffffff 00000000',
      { path: '/', data: null, acl: null, flags: 0 },
    ],
    [
      'an empty ACL list of setAcl',
      records.SetAclRequest,
      '00000001 2f 00000000 ffffffff',
      { path: '/', acl: [], version: -1 },
    ],
    [
      'the unused strings of reconfig',
      records.ReconfigRequest,
      'ffffffff ffffffff 00000000 ffffffffffffffff',
      { joiningServers: null, leavingServers: null, newMembers: '', curConfigId: -1n },
    ],
    ['an empty vector', records.GetChildrenResponse, '00000000', { children: [] }],
    [
      'a count below -1 as an empty vector, as Java does',
      records.GetChildrenResponse,
      '80000000',
      { children: [] },
    ],
  ])('%s is read as what it is', (_, codec, hex, value) => {
    expect(read(codec, hex)).toStrictEqual(value);
  });

  test.each<[string, Codec<unknown>, string]>([
    ['path', records.PathRequest, 'ffffffff'],
    ['path of an event', records.WatcherEvent, '00000001 00000003 ffffffff'],
    ['path of create', records.CreateRequest, 'ffffffff 00000000 00000000 00000000'],
    ['scheme', records.Id, 'ffffffff 00000000'],
    ['child', records.GetChildrenResponse, '00000001 ffffffff'],
    ['list of children', records.GetChildrenResponse, 'ffffffff'],
    ['list of ACLs in an answer', records.GetAclResponse, `ffffffff ${'00'.repeat(68)}`],
    ['list of watches', records.SetWatches, '0000000000000000 00000000 ffffffff 00000000'],
  ])('a null %s is refused', (_, codec, hex) => {
    expect(() => read(codec, hex)).toThrow(/^null where a (string|vector) is required$/);
    expect(() => read(codec, hex)).toThrow(ProtocolError);
  });

  test.each(['fffffffe', '80000000', '7fffffff', '00000001'])(
    'a length of %s with no bytes behind it is refused',
    (length) => {
      expect(() => read(buffer, length)).toThrow(ProtocolError);
      expect(() => read(nullableUstring, length)).toThrow(ProtocolError);
    },
  );
});

describe('booleans', () => {
  test.each([
    [0, false],
    [1, true],
    [2, true],
    [0xff, true],
  ])('byte %i is read as %s', (byte, value) => {
    expect(boolean.read(new JuteReader(Buffer.from([byte])))).toBe(value);
  });
});

describe('handshake', () => {
  const answer = {
    protocolVersion: 0,
    timeOut: 4_000,
    sessionId: 1n,
    passwd: Buffer.alloc(16),
    readOnly: false,
  };

  test.each([
    ['null', null],
    ['empty', Buffer.alloc(0)],
    ['15 bytes long', Buffer.alloc(15)],
    ['17 bytes long', Buffer.alloc(17)],
  ])('a session granted with a password that is %s is refused', (_, passwd) => {
    const bytes = encode(Connected, { ...answer, passwd });
    expect(() => Connected.read(new JuteReader(bytes))).toThrow(ProtocolError);
  });

  test.each([0, -1])('the password of a session refused by a timeout of %i does not matter', (timeOut) => {
    const refusal = { ...answer, timeOut, passwd: null };
    expect(Connected.read(new JuteReader(encode(Connected, refusal)))).toStrictEqual(refusal);
  });

  test('a password of a request may be of any length', () => {
    const request = {
      protocolVersion: 0,
      lastZxidSeen: 0n,
      timeOut: 1,
      sessionId: 0n,
      passwd: null,
      readOnly: null,
    };
    expect(Connect.read(new JuteReader(encode(Connect, request)))).toStrictEqual(request);
  });
});

describe('multi', () => {
  const item = (type: number, done: boolean) => encode(records.MultiHeader, { type, done, err: -1 });
  const end = item(-1, true);

  test.each([
    ['multi', MultiRequest, [3, 4, 6, 7, 8, 9, 11, 12, 14, 16, 22, 0, -1, -11]],
    ['multiRead', MultiReadRequest, [1, 2, 3, 5, 12, 13, 14, 15, 22, 0, -1]],
    ['result of a multi', MultiResponse, [0, 3, 6, 7, 9, 12, 14, 19, 21, 22, -2]],
  ] as [string, Codec<unknown>, number[]][])('refuses what cannot be inside a %s', (_, codec, types) => {
    for (const type of types) {
      const bytes = Buffer.concat([item(type, false), Buffer.alloc(100), end]);
      expect(() => codec.read(new JuteReader(bytes)), `type ${type}`).toThrow(ProtocolError);
    }
  });

  test('is refused if it never says that it is done', () => {
    const bytes = encode(MultiResponse, [{ kind: 'delete' }, { kind: 'check' }]);
    const endless = bytes.subarray(0, -end.byteLength);
    expect(() => MultiResponse.read(new JuteReader(endless))).toThrow(ProtocolError);
  });

  test('with nothing in it is its end alone', () => {
    expect(encode(MultiRequest, []).toString('hex')).toBe('ffffffff01ffffffff');
    expect(MultiResponse.read(new JuteReader(end))).toStrictEqual([]);
  });

  test('an answer to createContainer and createTtl has the number of create2', () => {
    const stat = fc.sample(aStat, { numRuns: 1, seed: 1 })[0]!;
    const result: MultiResult = { kind: 'create2', path: '/c', stat };
    expect(encode(MultiResponse, [result]).readInt32BE(0)).toBe(15);
  });
});
