import { afterEach, describe, expect, test, vi } from 'vitest';
import { connect, type Holdfast, type HoldfastOptions } from '../../src/holdfast.ts';
import { onEveryLockBackend } from '../support/lock-backends.ts';

/** Nothing listens there: what is refused is refused before anything is tried. */
const NOWHERE = '127.0.0.1:1';

afterEach(() => vi.unstubAllEnvs());

describe('connect', () => {
  test.each<[string, HoldfastOptions, string | RegExp]>([
    ['empty servers', { servers: '' }, 'connect string ""'],
    ['servers that are none', { servers: 'a b' }, 'connect string'],
    ['servers of the wrong type', { servers: 7 as never }, 'connect string: number given'],
    ['a root that is no path', { servers: NOWHERE, root: 'locks' }, 'root "locks"'],
    ['the root of all', { servers: NOWHERE, root: '/' }, 'it is the root of all'],
    ['a root with a trailing slash', { servers: NOWHERE, root: '/locks/' }, 'root "/locks/"'],
    ['a root of the wrong type', { servers: NOWHERE, root: 7 as never }, 'it is not a string'],
    ['a baton folder that is no path', { servers: NOWHERE, batonFolder: 'x' }, 'batonFolder "x"'],
    ['a baton folder among the locks', { servers: NOWHERE, batonFolder: '/locks/b' }, 'it is inside /locks'],
    [
      'a root where the floor of tokens is',
      { servers: NOWHERE, root: '/token-floor', batonFolder: '/b' },
      'floor',
    ],
    ['a baton folder that is the root', { servers: NOWHERE, batonFolder: '/locks' }, 'it is inside /locks'],
    [
      'writes of no kind',
      { servers: NOWHERE, writesUnderLocks: 'mine' as never },
      'writesUnderLocks: "mine" given',
    ],
    ['an app of the wrong type', { servers: NOWHERE, app: 5 as never }, 'app: number given; a string'],
    ['labels of the wrong type', { servers: NOWHERE, labels: { a: 5 } as never }, 'labels: an object whose'],
    ['labels that are a list', { servers: NOWHERE, labels: [] as never }, 'labels: an object whose'],
    ['labels that are null', { servers: NOWHERE, labels: null as never }, 'labels: an object whose'],
    ['an empty acl', { servers: NOWHERE, acl: [] }, 'acl: an empty list given'],
    ['an empty folderAcl', { servers: NOWHERE, folderAcl: [] }, 'folderAcl: an empty list given'],
    ['an acl that is no list', { servers: NOWHERE, acl: 'open' as never }, 'acl: string given; a list'],
    ['an acl of no entries', { servers: NOWHERE, folderAcl: [null] as never }, 'folderAcl: each entry needs'],
    [
      'an acl of unknown permissions',
      { servers: NOWHERE, folderAcl: [{ scheme: 'world', id: 'anyone', permissions: ['own' as never] }] },
      'folderAcl: permission own; allowed are',
    ],
    ['a root around the baton folder', { servers: NOWHERE, root: '/holdfast' }, 'it is inside /holdfast'],
  ])('refuses %s', async (_what, options, message) => {
    expect(process.env['HOLDFAST_SERVERS']).toBeUndefined();
    await expect(connect(options)).rejects.toThrow(message);
    await expect(connect(options)).rejects.toBeInstanceOf(TypeError);
  });

  test.each<[string, HoldfastOptions]>([
    ['lockDelayMs: 3600001', { lockDelayMs: 3_600_001 }],
    ['labels: 2067 bytes', { labels: { a: 'x'.repeat(2_048) } }],
  ])('refuses what is beyond a limit: %s', async (message, options) => {
    await expect(connect({ servers: NOWHERE, ...options })).rejects.toThrow(message);
    await expect(connect({ servers: NOWHERE, ...options })).rejects.toBeInstanceOf(RangeError);
  });

  test.each<[string, readonly unknown[], string]>([
    [
      'a misspelt option',
      [{ server: NOWHERE }],
      'connect: there is no option "server", did you mean servers? options are ',
    ],
    [
      'a misspelt option behind the servers',
      [NOWHERE, { session: 1 }],
      'connect: there is no option "session", did you mean sessionTimeoutMs?',
    ],
    ['servers twice', [NOWHERE, { servers: NOWHERE }], 'connect: there is no option "servers"'],
    ['a second object of options', [{ servers: NOWHERE }, { root: '/r' }], 'two objects of options given'],
    ['no object of options', [7], 'connect: a number given; an object of options is needed'],
    ['null', [null], 'connect: null given; an object of options is needed'],
    ['a list of servers', [[NOWHERE]], 'connect: an array given; an object of options is needed'],
    ['empty servers as a string', [''], 'connect string ""'],
    ['credentials that are no list', [NOWHERE, { auth: 'digest:a:b' }], 'auth: an array of { scheme, auth }'],
    [
      'misspelt credentials',
      [NOWHERE, { auth: [{ scheme: 'digest', password: 'a' }] }],
      'auth: there is no option "password"',
    ],
    ['credentials without a secret', [NOWHERE, { auth: [{ scheme: 'digest' }] }], 'auth: an entry needs'],
  ])('refuses %s before anything is sent', async (_what, given, message) => {
    vi.stubEnv('HOLDFAST_SERVERS', NOWHERE);
    const connecting = (connect as (...given: readonly unknown[]) => Promise<unknown>)(...given);
    await expect(connecting).rejects.toThrow(message);
    await expect(connecting).rejects.toBeInstanceOf(TypeError);
  });

  test('takes the servers as a string, with or without options behind them', async () => {
    vi.stubEnv('HOLDFAST_SERVERS', '127.0.0.1:2');
    await expect(connect(NOWHERE, { timeoutMs: 100 })).rejects.toThrow(`no session with ${NOWHERE}`);
  });

  test('says in the log which servers are meant, and where they were given', async () => {
    const lines: unknown[] = [];
    const log = (_level: string, message: string, facts?: object) => {
      if (message === 'connecting') lines.push(facts);
    };
    await expect(connect(NOWHERE, { timeoutMs: 100, log })).rejects.toThrow();
    vi.stubEnv('HOLDFAST_SERVERS', NOWHERE);
    await expect(connect({ timeoutMs: 100, log })).rejects.toThrow();
    expect(lines).toEqual([
      { servers: NOWHERE, source: 'options' },
      { servers: NOWHERE, source: 'HOLDFAST_SERVERS' },
    ]);
  });

  test.each([{}, { servers: undefined as never }])(
    'in production refuses no servers at all: %j',
    async (options) => {
      vi.stubEnv('NODE_ENV', 'production');
      const refusal = connect(options);
      await expect(refusal).rejects.toThrow('servers: nothing given and HOLDFAST_SERVERS is not set');
      await expect(refusal).rejects.toBeInstanceOf(TypeError);
    },
  );

  test('takes what is left out, or undefined, from the environment', async () => {
    vi.stubEnv('HOLDFAST_SERVERS', NOWHERE);
    for (const options of [{ timeoutMs: 100 }, { timeoutMs: 100, servers: undefined as never }]) {
      await expect(connect(options)).rejects.toThrow(`no session with ${NOWHERE}`);
    }
  });

  test.each([
    ['HOLDFAST_ROOT', 'locks', 'root "locks"'],
    ['HOLDFAST_AUTH', 'secret', 'HOLDFAST_AUTH: scheme:credentials is needed'],
    ['HOLDFAST_SESSION_TIMEOUT', 'long', 'HOLDFAST_SESSION_TIMEOUT: "long" given'],
    ['HOLDFAST_TLS_CA', '/no/such/file', 'HOLDFAST_TLS_CA: ENOENT'],
  ])('refuses a bad %s', async (name, value, message) => {
    vi.stubEnv(name, value);
    const refusal = connect({ servers: NOWHERE });
    await expect(refusal).rejects.toThrow(message);
    await expect(refusal).rejects.not.toThrow('secret');
  });

  test('says that no server answers', async () => {
    const connecting = connect({ servers: NOWHERE, timeoutMs: 200 });
    await expect(connecting).rejects.toMatchObject({ code: 'ZK_UNREACHABLE' });
  });
});

/** What cannot be, and what it is told. */
const refused: [string, (holdfast: Holdfast) => unknown, unknown, string][] = [
  ['an empty name', (h) => h.mutex(''), TypeError, 'it is empty'],
  ['a name with a slash', (h) => h.mutex('a/b'), TypeError, 'it has a /'],
  ['a relative name', (h) => h.mutex('..'), TypeError, 'name ".."'],
  ['a name with a zero', (h) => h.mutex('a\0b'), TypeError, 'name "a'],
  ['a name that is none', (h) => h.mutex(7 as never), TypeError, 'name: number given'],
  ['a cache that is none', (h) => h.mutex('o', { cache: 1 as never }), TypeError, 'cache: 1 given'],
  [
    'too few grants',
    (h) => h.mutex('o', { handOff: { grantsMax: 0 } }),
    RangeError,
    'handOff.grantsMax: 0 given',
  ],
  [
    'a mutex that has other options',
    (h) => {
      h.mutex('o', { cache: true });
      h.mutex('o', { cache: true }); // The same object.
      h.mutex('o');
    },
    RangeError,
    'neither cache nor handOff given; mutex o has cache of 60000 ms in this connection',
  ],
  ['a bad name of a read-write lock', (h) => h.readWriteLock('a/b'), TypeError, 'it has a /'],
  ['a bad name of a semaphore', (h) => h.semaphore('', { permits: 1 }), TypeError, 'it is empty'],
  ['a bad name of an election', (h) => h.election('/e'), TypeError, 'it has a /'], // L21
  ['a bad name of a simple lock', (h) => h.simpleLock('.'), TypeError, 'name "."'],
  ['a bad name to inspect', (h) => h.inspect('a/b'), TypeError, 'it has a /'],
  ['a bad name to revoke', (h) => h.revoke(''), TypeError, 'it is empty'],
  ['no names', (h) => h.multiLock([]), TypeError, 'at least one name'],
  ['names that are none', (h) => h.multiLock('ab' as never), TypeError, 'at least one name'],
  ['a name twice', (h) => h.multiLock(['a', 'b', 'a']), TypeError, 'each only once'],
  ['a bad name among many', (h) => h.multiLock(['a', 'b/c']), TypeError, 'it has a /'],
  ['no permits', (h) => h.semaphore('s', { permits: 0 }), RangeError, 'permits: 0 given'],
  ['half a permit', (h) => h.semaphore('s', { permits: 1.5 }), RangeError, 'permits: 1.5 given'],
  [
    'permits of the wrong type',
    (h) => h.semaphore('s', { permits: '2' as never }),
    RangeError,
    'permits: 2 given',
  ],
  [
    'another number of permits',
    (h) => [h.semaphore('s', { permits: 2 }), h.semaphore('s', { permits: 3 })],
    RangeError,
    'semaphore s has 2',
  ],
  [
    'more than all permits',
    (h) => h.semaphore('s', { permits: 2 }).acquire({ permits: 3 }),
    RangeError,
    '1 to 2',
  ],
  [
    'no permit wanted',
    (h) => h.semaphore('s', { permits: 2 }).tryAcquire({ permits: 0 }),
    RangeError,
    '1 to 2',
  ],
  ['a negative time', (h) => h.mutex('m').acquire({ timeoutMs: -1 }), RangeError, 'timeoutMs'],
  [
    'endless time',
    (h) => h.mutex('m').acquire({ timeoutMs: Number.POSITIVE_INFINITY }),
    RangeError,
    'timeoutMs',
  ],
  ['a time that is none', (h) => h.mutex('m').attempt({ timeoutMs: Number.NaN }), RangeError, 'timeoutMs'],
  ['too long a time', (h) => h.mutex('m').use(() => {}, { timeoutMs: 2 ** 31 }), RangeError, 'timeoutMs'],
  ['a time of the wrong type', (h) => h.mutex('m').acquire({ timeoutMs: '1' as never }), Error, 'timeoutMs'],
];

describe('a lock', () => {
  onEveryLockBackend(
    'refuses what cannot be, with nothing done',
    async (workspace) => {
      const holdfast = await workspace.holdfast();
      for (const [what, make, kind, message] of refused) {
        const outcome = await (async () => make(holdfast))().then(
          () => 'accepted',
          (error: unknown) => error,
        );
        expect(outcome, what).toBeInstanceOf(kind);
        expect((outcome as Error).message, what).toContain(message);
      }
      expect(await workspace.admin.exists('/locks')).toBeUndefined();
    },
    ['embedded server'],
  );

  onEveryLockBackend(
    'is the same object for the same name, and lives where it was told',
    async (workspace) => {
      const holdfast = await workspace.holdfast({ root: '/app/locks', batonFolder: '/app/batons' });
      const name = 'nämé with 空白';
      for (const make of [
        () => holdfast.mutex(name),
        () => holdfast.readWriteLock(name),
        () => holdfast.semaphore(name, { permits: 2 }),
        () => holdfast.election(name),
        () => holdfast.election(name, { id: 'me' }),
        () => holdfast.simpleLock(name),
        () => holdfast.multiLock([name, 'other']),
      ]) {
        expect(make()).toBe(make());
      }
      expect(holdfast.multiLock(['a', 'b'])).toBe(holdfast.multiLock(['b', 'a']));
      expect(holdfast.mutex('a')).not.toBe(holdfast.mutex('b'));
      expect(holdfast.election(name, { id: 'me' })).not.toBe(holdfast.election(name));
      const [held, waiting] = [await holdfast.mutex(name).acquire(), holdfast.mutex(name).acquire()];
      expect(await workspace.admin.exists(`/app/locks/${name}`)).toMatchObject({
        numChildren: expect.any(Number),
      });
      await held.release();
      await (await waiting).release();
      await (await holdfast.mutex(name).acquire()).release(); // Saw others a moment ago, and passes a baton.
      expect(await workspace.admin.children('/app/batons')).toEqual([]);
      expect(await workspace.admin.exists('/locks')).toBeUndefined();
      expect(await workspace.admin.exists('/holdfast')).toBeUndefined();
    },
  );
});
