import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { acls, connect } from '../../src/zookeeper.ts';
import { holdfast } from './command-process.ts';
import { RunScene } from './run-scene.ts';

let scene: RunScene;
beforeAll(async () => {
  scene = await RunScene.open();
});
afterAll(() => scene[Symbol.asyncDispose]());

const RAN = ['--', 'echo', 'ran'];

describe('holdfast run refuses in one line, and starts nothing', () => {
  test.each<[what: string, args: string[], line: string]>([
    ['an unknown option', ['--bogus', 'a', ...RAN], "unknown option '--bogus'"],
    ['an unknown option behind the lock', ['a', '--bogus', ...RAN], "unknown option '--bogus'"],
    ['an empty name', ['', ...RAN], 'name "": it is empty'],
    ['a name of two dots', ['..', ...RAN], 'name "..": it has the relative element ..'],
    ['a name with a slash', ['a/b', ...RAN], 'name "a/b": it has a /'],
    ['an empty name among others', ['a,,b', ...RAN], 'name "": it is empty'],
    ['a name twice', ['a,b,a', ...RAN], 'a,b,a: each lock only once'],
    ['no command', ['a'], 'a command to run is needed'],
    ['no lock', [], "missing required argument 'lock'"],
    ['--try with --wait', ['--try', '--wait', '1s', 'a', ...RAN], '--try and --wait: one of them'],
    [
      '--shared with --permits',
      ['--shared', '--permits', '1/2', 'a', ...RAN],
      '--shared, --exclusive and --permits: one of them',
    ],
    [
      '--shared for several',
      ['--shared', 'a,b', ...RAN],
      'several locks as one are exclusive: no --shared, --exclusive or --permits',
    ],
    [
      'more permits than there are',
      ['--permits', '3/2', 'a', ...RAN],
      '--permits "3/2": such as 1/5, one of five, is needed',
    ],
    [
      'a wait that is none',
      ['--wait', 'soon', 'a', ...RAN],
      "option '-w, --wait <duration>' argument 'soon' is invalid. such as 30s, 500ms or 1h is needed",
    ],
    [
      'a min-hold above the max-hold',
      ['--min-hold', '2s', '--max-hold', '1s', 'a', ...RAN],
      '--min-hold is longer than --max-hold',
    ],
    [
      'servers that are none',
      ['--servers', 'a b', 'a', ...RAN],
      'connect string "a b": server "a b"; host, host:port, unix:/path or [ipv6]:port is needed',
    ],
    [
      'credentials without a scheme',
      ['--auth', 'secret', 'a', ...RAN],
      '--auth: scheme:credentials is needed, such as digest:user:password',
    ],
    ['a root that is none', ['--root', 'locks', 'a', ...RAN], 'root "locks": it does not begin with /'],
  ])('%s', async (_what, args, line) => {
    expect(await scene.run(args).ended).toMatchObject({ code: 2, stdout: '', stderr: `holdfast: ${line}\n` });
  });

  test('servers that cannot be reached: 204, within --wait, or a second if that is shorter', async () => {
    const startedAtMs = performance.now();
    const { code, stdout, stderr } = await holdfast([
      'run',
      '--servers',
      '127.0.0.1:1',
      '--wait',
      '500ms',
      'a',
      ...RAN,
    ]).ended;
    expect({ code, stdout }).toEqual({ code: 204, stdout: '' });
    expect(stderr).toMatch(
      /^holdfast: no session with 127\.0\.0\.1:1 within 1000 ms; last: .*ECONNREFUSED.*\n$/,
    );
    expect(performance.now() - startedAtMs).toBeLessThan(10_000);
  });

  test('no server, and not to be waited for: 204 after three seconds, also where --wait is 0', async () => {
    const tries = [['--try'], ['--wait', '0']].map((how) =>
      holdfast(['run', ...how, '--servers', '127.0.0.1:1', 'a', ...RAN]),
    );
    for (const run of tries) {
      const { code, stderr } = await run.ended;
      expect(code).toBe(204);
      expect(stderr).toMatch(/^holdfast: no session with 127\.0\.0\.1:1 within 3000 ms; .*\n$/);
    }
  });

  test('a wrong password: 205; the right one is let in', async () => {
    const auth = [{ scheme: 'digest', auth: 'anna:right' }];
    await using zk = await connect(scene.server.connectString, { auth });
    await zk.create('/vault', '', { acl: acls.creatorOnly });
    const run = (password: string) =>
      scene.run(['--root', '/vault', '--auth', `digest:anna:${password}`, 'a', ...RAN]).ended;
    const refused = await run('wrong');
    expect({ code: refused.code, stdout: refused.stdout }).toEqual({ code: 205, stdout: '' });
    expect(refused.stderr).toMatch(/^holdfast: [^\n]*vault[^\n]*\n$/);
    expect(refused.stderr).not.toContain('wrong');
    expect(await run('right')).toMatchObject({ code: 0, stdout: 'ran\n', stderr: '' });
  });

  test('a lock of another kind: 206', async () => {
    await using _permit = await scene.onlooker.semaphore('permits', { permits: 2 }).acquire();
    expect(await scene.run(['permits', ...RAN]).ended).toMatchObject({
      code: 206,
      stdout: '',
      stderr: 'holdfast: lock permits: there is a semaphore under this name\n',
    });
    await using _lease = await scene.onlooker.mutex('plain').acquire();
    const { code, stderr } = await scene.run(['--shared', 'plain', ...RAN]).ended;
    expect(code).toBe(206);
    expect(stderr).toMatch(/^holdfast: lock plain: there is a mutex under this name \(.*\)\n$/);
  });
});
