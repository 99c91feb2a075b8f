import { describe, expect, expectTypeOf, test, vi } from 'vitest';
import { conditionOf, errorCodes, type ServerCondition } from './error-codes.ts';
import * as errors from './errors.ts';

const {
  AuthFailedError,
  ClosedError,
  ConnectionLossError,
  isServerError,
  LeaseEndedError,
  MultiError,
  ProtocolError,
  QueueFullError,
  RequestTimeoutError,
  ServerBehindError,
  ServerError,
  SessionLostError,
  UnreachableError,
  ZkError,
} = errors;

/** The numbers and names of ZooKeeper 3.5 to 3.9 (`KeeperException.Code`). */
const codesOfZooKeeper: [number, string, ServerCondition][] = [
  [-1, 'SYSTEMERROR', 'system-error'],
  [-2, 'RUNTIMEINCONSISTENCY', 'runtime-inconsistency'],
  [-3, 'DATAINCONSISTENCY', 'data-inconsistency'],
  [-4, 'CONNECTIONLOSS', 'connection-loss'],
  [-5, 'MARSHALLINGERROR', 'marshalling-error'],
  [-6, 'UNIMPLEMENTED', 'unimplemented'],
  [-7, 'OPERATIONTIMEOUT', 'operation-timeout'],
  [-8, 'BADARGUMENTS', 'bad-arguments'],
  [-12, 'UNKNOWNSESSION', 'unknown-session'],
  [-13, 'NEWCONFIGNOQUORUM', 'new-config-no-quorum'],
  [-14, 'RECONFIGINPROGRESS', 'reconfig-in-progress'],
  [-100, 'APIERROR', 'api-error'],
  [-101, 'NONODE', 'no-node'],
  [-102, 'NOAUTH', 'no-auth'],
  [-103, 'BADVERSION', 'bad-version'],
  [-108, 'NOCHILDRENFOREPHEMERALS', 'no-children-for-ephemerals'],
  [-110, 'NODEEXISTS', 'node-exists'],
  [-111, 'NOTEMPTY', 'not-empty'],
  [-112, 'SESSIONEXPIRED', 'session-expired'],
  [-113, 'INVALIDCALLBACK', 'invalid-callback'],
  [-114, 'INVALIDACL', 'invalid-acl'],
  [-115, 'AUTHFAILED', 'auth-failed'],
  [-118, 'SESSIONMOVED', 'session-moved'],
  [-119, 'NOTREADONLY', 'not-read-only'],
  [-120, 'EPHEMERALONLOCALSESSION', 'ephemeral-on-local-session'],
  [-121, 'NOWATCHER', 'no-watcher'],
  [-122, 'REQUESTTIMEOUT', 'request-timeout'],
  [-123, 'RECONFIGDISABLED', 'reconfig-disabled'],
  [-124, 'SESSIONCLOSEDREQUIRESASLAUTH', 'session-closed-requires-sasl-auth'],
  [-125, 'QUOTAEXCEEDED', 'quota-exceeded'],
  [-127, 'THROTTLEDOP', 'throttled-op'],
];

describe('a number of the server', () => {
  test.each(codesOfZooKeeper)('%i, %s there, is %s here', (code, _, condition) => {
    expect(conditionOf(code)).toBe(condition);
    const error = new ServerError(code, 'getData', '/a');
    expect(error).toMatchObject({
      condition,
      serverCode: code,
      path: '/a',
      code: `ZK_${condition.toUpperCase().replaceAll('-', '_')}`,
      message: `getData /a: ${condition.replaceAll('-', ' ')}`,
    });
  });

  test('is in the table for every condition, and for no other', () => {
    expect(Object.keys(errorCodes).sort()).toEqual(
      codesOfZooKeeper.map(([, , condition]) => condition).sort(),
    );
    expect(Object.values(errorCodes).sort()).toEqual(codesOfZooKeeper.map(([code]) => code).sort());
  });

  test.each([0, 1, -9, -15, -116, -117, -126, -128, 101, -(2 ** 31)])('%i is unknown, and kept', (code) => {
    expect(conditionOf(code)).toBe('unknown');
    expect(new ServerError(code, 'create', '/a')).toMatchObject({
      condition: 'unknown',
      serverCode: code,
      code: 'ZK_UNKNOWN',
      message: `create /a: error code ${code}`,
    });
  });
});

type Sample = [
  errors.ZkError,
  name: string,
  code: string,
  errors.ErrorScope,
  errors.Outcome,
  message: string,
];
const samples = (
  [
    [
      new ServerError(-101, 'getData', '/a/b'),
      'ServerError',
      'ZK_NO_NODE',
      'request',
      'not-applied',
      'getData /a/b: no node',
    ],
    [
      new ServerError(-5, 'whoAmI'),
      'ServerError',
      'ZK_MARSHALLING_ERROR',
      'request',
      'not-applied',
      'whoAmI: marshalling error',
    ],
    [
      new MultiError(-103, 'setData', '/a', 2),
      'MultiError',
      'ZK_BAD_VERSION',
      'request',
      'not-applied',
      'multi, operation 2: setData /a: bad version',
    ],
    [
      new ConnectionLossError('create', 'unknown'),
      'ConnectionLossError',
      'ZK_CONNECTION_LOSS',
      'connection',
      'unknown',
      'create: the connection was lost before the answer came',
    ],
    [
      new ConnectionLossError('create', 'not-applied'),
      'ConnectionLossError',
      'ZK_CONNECTION_LOSS',
      'connection',
      'not-applied',
      'create: the connection was lost before the request was sent',
    ],
    [
      new RequestTimeoutError('delete', 500, 'unknown'),
      'RequestTimeoutError',
      'ZK_REQUEST_TIMEOUT',
      'request',
      'unknown',
      'delete: no answer within 500 ms',
    ],
    [
      new RequestTimeoutError('delete', 500, 'not-applied'),
      'RequestTimeoutError',
      'ZK_REQUEST_TIMEOUT',
      'request',
      'not-applied',
      'delete: no answer within 500 ms',
    ],
    [
      new SessionLostError('gone', 'expired-by-server'),
      'SessionLostError',
      'ZK_SESSION_LOST',
      'session',
      'unknown',
      'gone',
    ],
    [
      new SessionLostError('gone', 'local-clock', 'not-applied'),
      'SessionLostError',
      'ZK_SESSION_LOST',
      'session',
      'not-applied',
      'gone',
    ],
    [new LeaseEndedError('over'), 'LeaseEndedError', 'ZK_LEASE_ENDED', 'session', 'unknown', 'over'],
    [
      new AuthFailedError('refused'),
      'AuthFailedError',
      'ZK_AUTH_FAILED',
      'session',
      'not-applied',
      'refused',
    ],
    [
      new UnreachableError('nobody'),
      'UnreachableError',
      'ZK_UNREACHABLE',
      'connection',
      'not-applied',
      'nobody',
    ],
    [
      new ServerBehindError('behind'),
      'ServerBehindError',
      'ZK_SERVER_BEHIND',
      'connection',
      'not-applied',
      'behind',
    ],
    [new QueueFullError('full'), 'QueueFullError', 'ZK_QUEUE_FULL', 'request', 'not-applied', 'full'],
    [new ClosedError('closed'), 'ClosedError', 'ZK_CLOSED', 'client', 'not-applied', 'closed'],
    [new ClosedError('closed', 'unknown'), 'ClosedError', 'ZK_CLOSED', 'client', 'unknown', 'closed'],
    [new ProtocolError('cut'), 'ProtocolError', 'ZK_PROTOCOL', 'connection', 'unknown', 'cut'],
  ] satisfies Sample[]
).map(([error, name, code, scope, outcome, message]) => ({ error, name, code, scope, outcome, message }));

/** Every class of errors.ts, the abstract root left out. */
const classes = Object.entries(errors).flatMap(([name, value]) =>
  typeof value === 'function' && 'brand' in value && name !== 'ZkError' ? [[name, value] as const] : [],
);

describe('an error', () => {
  test.each(samples)('says what it is: $name, $code, $scope, $outcome', ({ error, ...rest }) => {
    expect(error).toMatchObject(rest);
    expect(error).toBeInstanceOf(Error);
    expect(error.constructor.name).toBe(rest.name);
    expect(String(error)).toBe(`${rest.name}: ${rest.message}`);
    expect(error.stack).toContain('errors.test.ts');
  });

  test('has a sample here and a row in the table of the documentation for every class', () => {
    const names = classes.map(([name]) => name).sort();
    expect([...new Set(samples.map(({ name }) => name))].sort()).toEqual(names);
    expect(errors.errorTable.map(({ name }) => name).sort()).toEqual(names);
  });

  test.each(samples)('is documented as it is: $name, $outcome', ({ name, code, scope, outcome }) => {
    const row = errors.errorTable.find((each) => each.name === name)!;
    expect(row.scope).toBe(scope);
    expect(row.code === 'ZK_<CONDITION>' || row.code === code).toBe(true);
    expect(row.outcome).toContain(outcome);
  });

  test('keeps its cause', () => {
    const cause = new Error('ECONNRESET');
    expect(new ConnectionLossError('exists', 'unknown', { cause }).cause).toBe(cause);
    expect(new UnreachableError('nobody', { cause }).cause).toBe(cause);
  });

  test('shows no brand where its properties are listed', () => {
    const listed = samples.flatMap(({ error }) => Reflect.ownKeys({ ...error }));
    expect(listed.filter((key) => typeof key === 'symbol')).toEqual([]);
    expect(listed).not.toContain('brand');
  });
});

describe('instanceof', () => {
  const isA = (error: unknown, type: unknown) => error instanceof (type as typeof ServerError);

  test('holds for the class itself and the classes above it, and for no other', () => {
    const above: Record<string, string[]> = {
      MultiError: ['MultiError', 'ServerError'],
      ServerBehindError: ['ServerBehindError', 'UnreachableError'],
    };
    for (const { error, name } of samples) {
      expect(isA(error, ZkError)).toBe(true);
      const holding = classes.filter(([, type]) => isA(error, type)).map(([each]) => each);
      expect(holding.sort()).toEqual(above[name] ?? [name]);
    }
  });

  test.each<[string, unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['a number', 0],
    ['a string', 'ZkError'],
    ['a symbol', Symbol('ZkError')],
    ['an object', {}],
    ['an array', []],
    ['a function', () => {}],
    ['a plain error', new Error('plain')],
    ['an object with brands under another key', { brands: ['ZkError'] }],
  ])('does not hold for %s', (_, value) => {
    for (const type of [...classes.map(([, each]) => each), ZkError]) expect(isA(value, type)).toBe(false);
  });

  test('agrees with a second copy of the package, both ways', async () => {
    vi.resetModules();
    const copy = await import('./errors.ts');
    expect(copy.ServerError).not.toBe(ServerError);
    const theirs = new copy.MultiError(-101, 'delete', '/a', 0);
    const ours = new MultiError(-101, 'delete', '/a', 0);
    expect(Object.getPrototypeOf(theirs)).not.toBe(Object.getPrototypeOf(ours));
    for (const [ourType, theirType, holds] of [
      [ZkError, copy.ZkError, true],
      [ServerError, copy.ServerError, true],
      [MultiError, copy.MultiError, true],
      [ProtocolError, copy.ProtocolError, false],
      [SessionLostError, copy.SessionLostError, false],
    ] as const) {
      expect(isA(theirs, ourType)).toBe(holds);
      expect(isA(ours, theirType)).toBe(holds);
    }
    expect(isServerError(theirs, 'no-node')).toBe(true);
    expect(copy.isServerError(ours, 'no-node')).toBe(true);
  });

  test('goes by the brand alone, which every copy writes under the same symbol', () => {
    const foreign = { [Symbol.for('holdfast.error.brands')]: ['MultiError', 'ServerError', 'ZkError'] };
    expect(isA(foreign, ServerError)).toBe(true);
    expect(isA(foreign, ZkError)).toBe(true);
    expect(isA(foreign, ProtocolError)).toBe(false);
    expect(isA({ [Symbol.for('holdfast.error.brands')]: 'ServerError' }, ServerError)).toBe(false);
  });

  test('goes by the prototype for a class that a user derived', () => {
    class AppError extends ServerError {}
    const derived = new AppError(-101, 'getData');
    expect(isA(new ServerError(-101, 'getData'), AppError)).toBe(false);
    expect([isA(derived, AppError), isA(derived, ServerError), isA(derived, ZkError)]).toEqual([
      true,
      true,
      true,
    ]);
  });
});

describe('isServerError', () => {
  const error: unknown = new ServerError(-101, 'getData', '/a');

  test('holds for its condition only', () => {
    expect(isServerError(error, 'no-node')).toBe(true);
    expect(isServerError(error, 'node-exists')).toBe(false);
    expect(isServerError(new MultiError(-110, 'create', '/a', 0), 'node-exists')).toBe(true);
    expect(isServerError(new ServerError(-9_999, 'getData'), 'unknown')).toBe(true);
  });

  test.each([
    undefined,
    null,
    'no-node',
    { condition: 'no-node' },
    new ConnectionLossError('getData', 'unknown'),
  ])('does not hold for %s', (other) => {
    expect(isServerError(other, 'no-node')).toBe(false);
  });

  test('narrows to the error and to the condition', () => {
    if (!isServerError(error, 'no-node')) throw new Error('not narrowed');
    expectTypeOf(error).toExtend<errors.ServerError>();
    expectTypeOf(error.condition).toEqualTypeOf<'no-node'>();
    expect(error.path).toBe('/a');
  });
});
