import { mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { processStat } from '../../src/base/process-identity.ts';
import { runningServer } from '../../src/local/server-record.ts';
import { connect } from '../../src/zookeeper.ts';
import { until } from '../support/until.ts';
import { CommandProcess, holdfast, isAlive, LOCAL_USER, LocalHome } from './command-process.ts';

const modeOf = async (path: string) => (await stat(path)).mode & 0o777;

/** Fifty Nodes at once, on whatever else the machine has to do. */
const CROWD_MS_MAX = 120_000;

describe('with nothing configured, the local server', () => {
  test(
    'is started once by fifty first users at the same moment, who share its locks',
    async () => {
      await using home = await LocalHome.make();
      const users = Array.from({ length: 50 }, () => home.user('hold', 'a'));
      for (const user of users) user.child.stdin!.end();
      const ended = await Promise.all(users.map((user) => user.ended));
      expect(ended.filter(({ code }) => code !== 0)).toEqual([]);
      const tokens = ended.map(({ stdout }) => JSON.parse(stdout.split('\n')[0]!).token);
      expect(new Set(tokens).size).toBe(50);
      expect(await home.startCount()).toBe(1);
      const { pid } = home.server;
      const leftovers = (await readdir(home.place.folder)).filter((name) =>
        /starting|server\.json\./.test(name),
      );
      expect(leftovers).toEqual([]);
      expect(isAlive(pid)).toBe(true);
    },
    CROWD_MS_MAX,
  );

  test('can be entered by its user alone', async () => {
    await using home = await LocalHome.make();
    const user = home.user('hold', 'a');
    user.child.stdin!.end();
    expect((await user.ended).code).toBe(0);
    expect(await modeOf(home.place.folder)).toBe(0o700);
    expect(await modeOf(home.server.socketPath)).toBe(0o600);
    expect(await modeOf(home.place.logFile)).toBe(0o600);
  });

  test('runs apart from whoever started it: not of its session, nor its environment', async () => {
    await using home = await LocalHome.make({ SECRET_OF_THE_FIRST: 'x', NODE_OPTIONS: '--no-warnings' });
    const user = home.user('hold', 'a');
    user.child.stdin!.end();
    await user.ended;
    const { pid } = home.server;
    expect(isAlive(pid)).toBe(true);
    const environment = await readFile(`/proc/${pid}/environ`, 'utf8');
    expect(environment).not.toContain('SECRET_OF_THE_FIRST');
    expect(environment).not.toContain('NODE_OPTIONS');
    const session = (await readFile(`/proc/${pid}/stat`, 'utf8')).replace(/^.*\) /s, '').split(' ')[3];
    expect(Number(session)).toBe(pid);
  });

  test('is started again by those who hold when it is killed, and they keep what they hold', async () => {
    await using home = await LocalHome.make();
    await using holder = home.user('hold', 'a');
    await holder.says('token');
    const { token, session } = JSON.parse(holder.stdout);
    const killed = home.server;
    process.kill(killed.pid, 'SIGKILL');
    await holder.says(`{"connected":"${session}"}`);
    const second = home.server;
    expect(second.pid).not.toBe(killed.pid);
    await using waiter = home.user('hold', 'a');
    await until('the waiter queues', async () =>
      (await home.command('server', 'status').ended).stdout.includes('held or queued  2'),
    );
    expect(waiter.stdout).toBe('');
    holder.child.stdin!.end();
    expect((await holder.ended).stdout).toContain('{"held":true}');
    await waiter.says('token');
    expect(BigInt(JSON.parse(waiter.stdout).token)).toBeGreaterThan(BigInt(token));
    waiter.child.stdin!.end();
    expect((await waiter.ended).code).toBe(0);
  });

  test('goes when nobody is connected and nothing held, and not before', async () => {
    await using home = await LocalHome.make({ HOLDFAST_LOCAL_IDLE: '300ms' });
    await using holder = home.user('hold', 'a');
    await holder.says('token');
    const { pid } = home.server;
    await new Promise((resolve) => setTimeout(resolve, 1_000)); // Three idle times, with a holder.
    expect(isAlive(pid)).toBe(true);
    holder.child.stdin!.end();
    await holder.ended;
    await until('the server is gone', () => !isAlive(pid));
    expect(await readdir(home.place.folder)).not.toContain('server.json');
    expect(await readdir(home.place.folder)).not.toContain('socket');
    await using next = home.user('hold', 'a');
    await next.says('token');
    expect(await home.startCount()).toBe(2);
  });

  test('that is to stay no time without anyone is there for the one that started it, and goes then', async () => {
    await using home = await LocalHome.make({ HOLDFAST_LOCAL_IDLE: '0' });
    for (let count = 1; count <= 2; count++) {
      const ran = await home.command('run', 'a', '--', 'echo', 'ran').ended;
      expect(ran).toMatchObject({ code: 0, stdout: 'ran\n' });
      await until('the server is gone', () => runningServer(home.place) === undefined);
      expect(await home.startCount()).toBe(count);
    }
  });

  test('has its idle time checked before anything is done, also where one runs', async () => {
    await using home = await LocalHome.make();
    const env = { ...home.env, HOLDFAST_LOCAL_IDLE: 'soon' };
    const refused = {
      code: 2,
      stderr: 'holdfast: HOLDFAST_LOCAL_IDLE: "soon" given; such as 10m is needed\n',
    };
    expect(await holdfast(['run', 'a', 'true'], { env }).ended).toMatchObject(refused);
    expect(await readdir(home.folder)).toEqual([]);
    expect(await home.command('run', 'a', 'true').ended).toMatchObject({ code: 0 });
    expect(await holdfast(['run', 'a', 'true'], { env }).ended).toMatchObject(refused);
  });

  test('is replaced in place by a newer version, and never by an older one', async () => {
    await using home = await LocalHome.make();
    await using holder = home.user('hold', 'a');
    await holder.says('token');
    const { session } = JSON.parse(holder.stdout);
    const before = home.server;
    const newer = await home.user('ensure', '99.0.0').ended;
    expect(JSON.parse(newer.stdout)).toMatchObject({ version: '99.0.0' });
    expect(JSON.parse(newer.stdout).pid).not.toBe(before.pid);
    expect(isAlive(before.pid)).toBe(false);
    await holder.says(`{"connected":"${session}"}`);
    const older = await home.user('ensure', '0.0.1').ended;
    expect(JSON.parse(older.stdout)).toEqual(JSON.parse(newer.stdout));
    holder.child.stdin!.end();
    expect((await holder.ended).stdout).toContain('{"held":true}');
  });

  test('is refused in production, unless it is asked for by name', async () => {
    await using home = await LocalHome.make({ NODE_ENV: 'production' });
    const refused = await home.user('hold', 'a').ended;
    expect(refused.stderr).toContain('TypeError: servers: nothing given and HOLDFAST_SERVERS is not set');
    expect(() => home.server).toThrow('no local server runs');
    await using named = await LocalHome.make({ NODE_ENV: 'production', HOLDFAST_SERVERS: 'local' });
    await using user = named.user('hold', 'a');
    await user.says('token');
  });

  test('has its socket elsewhere when the path of its folder is too long for one', async () => {
    await using home = await LocalHome.make();
    const state = join(home.folder, 'long'.repeat(25));
    await using long = await LocalHome.make({ HOLDFAST_LOCAL_FOLDER: state, TMPDIR: home.folder });
    await using user = long.user('hold', 'a');
    await user.says('token');
    const { socketPath } = long.server;
    expect(long.place.folder.startsWith(state)).toBe(true);
    expect(socketPath.length).toBeLessThan(104);
    expect(await modeOf(dirname(socketPath))).toBe(0o700);
  });

  test('is not trusted to a folder that somebody has put in its place', async () => {
    await using home = await LocalHome.make();
    const { folder } = home.place;
    await mkdir(dirname(folder), { recursive: true });
    await symlink(home.folder, folder);
    const { code, stderr } = await home.command('run', 'a', '--', 'true').ended;
    expect({ code, stderr }).toEqual({
      code: 204,
      stderr: `holdfast: local server: ${folder} is not a folder of user ${process.getuid!()}; have it removed, or name another by HOLDFAST_LOCAL_FOLDER\n`,
    });
    await rm(folder);
  });

  test('that cannot start says why, to everyone who asks', async () => {
    await using home = await LocalHome.make();
    const { folder } = home.place;
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await writeFile(join(folder, 'data'), 'a file where a folder should be');
    for (let attempt = 0; attempt < 2; attempt++) {
      const { code, stderr } = await home.command('run', 'a', '--', 'true').ended;
      expect(code).toBe(204);
      expect(stderr).toMatch(/^holdfast: local server: .*data.*; see .*server\.log\n$/);
    }
  });
});

describe('holdfast server', () => {
  test('status and stop tell whether there is a local one, and stop spares one in use', async () => {
    await using home = await LocalHome.make();
    expect(await home.command('server', 'status').ended).toMatchObject({ code: 1, stdout: 'not running\n' });
    expect(await home.command('server', 'stop').ended).toMatchObject({ code: 0, stdout: 'not running\n' });
    await using holder = home.user('hold', 'a');
    await holder.says('token');
    const { stdout } = await home.command('server', 'status').ended;
    expect(stdout).toMatch(
      /^running +process \d+, version .*\naddress +unix:.*\nfolder .*\nconnections +1\n/,
    );
    expect(await home.command('server', 'stop').ended).toMatchObject({
      code: 1,
      stderr: 'holdfast: 1 programs are connected and would start it again; --force stops it all the same\n',
    });
    holder.child.stdin!.end();
    await holder.ended;
    const { pid } = home.server;
    expect(await home.command('server', 'stop').ended).toMatchObject({ code: 0, stdout: 'stopped\n' });
    expect(isAlive(pid)).toBe(false);
  });

  test('stop leaves a process alone that the record names and that is no local server', async () => {
    await using home = await LocalHome.make();
    await using other = new CommandProcess(LOCAL_USER, ['hold', 'a'], { env: home.env, stdin: 'open' });
    await other.says('token');
    const record = home.server;
    const startedAt = `${processStat(other.pid)!.startedAtTicks} of ${record.bootId}`;
    await rm(home.place.recordFile);
    process.kill(record.pid, 'SIGSTOP'); // It would put its record back.
    await writeFile(home.place.recordFile, JSON.stringify({ ...record, pid: other.pid, startedAt }), {
      mode: 0o600,
    });
    const { code, stderr } = await home.command('server', 'stop').ended;
    process.kill(record.pid, 'SIGCONT');
    expect(other.hasEnded).toBe(false);
    expect({ code, stderr }).toEqual({
      code: 204,
      stderr: expect.stringMatching(
        new RegExp(
          `^holdfast: local server: process ${other.pid}, .* is no local server of .*: it is left alone`,
        ),
      ),
    });
    await until('the server has put its record back', () => runningServer(home.place)?.pid === record.pid);
  });

  test('in the foreground serves where it is told, and stops on SIGTERM', async () => {
    await using home = await LocalHome.make();
    const socket = join(home.folder, 'zk.sock');
    await using server = home.command(
      'server',
      '--listen',
      `unix:${socket}`,
      '--data',
      join(home.folder, 'zk'),
      '--limit',
      'tickMs=500',
    );
    await server.says(`listening on unix:${socket}\n`);
    const { code, stdout } = await home.command(
      'run',
      '--servers',
      `unix:${socket}`,
      'a',
      '--',
      'echo',
      'ran',
    ).ended;
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'ran\n' });
    server.kill('SIGTERM');
    expect((await server.ended).code).toBe(0);
  });

  test('says that its disk fails, with the time and the reason, whether or not it is asked to tell more', async () => {
    await using home = await LocalHome.make();
    const folder = join(home.folder, 'zk');
    for (const options of [[], ['--json', '--verbose']]) {
      await using server = home.command('server', '--listen', '127.0.0.1:0', '--data', folder, ...options);
      await server.says(/127\.0\.0\.1:\d+/);
      await using zk = await connect(/127\.0\.0\.1:\d+/.exec(server.stdout)![0]);
      await rm(folder, { recursive: true });
      const large = Buffer.alloc(700_000);
      await zk.create('/large', large); // Into the file that is open, as far as it reaches.
      await expect(zk.create('/larger', large)).rejects.toThrow();
      await server.says(/the log cannot be written.*\n/, 'stderr');
      const line = server.stderr.split('\n').find((each) => each.includes('the log cannot be written'))!;
      if (options.length === 0) {
        expect(line).toMatch(
          /^\d{4}-\d\d-\d\dT[\d:.]+Z error the log cannot be written: writes are refused error="ENOENT: .*"$/,
        );
        expect(server.stderr).not.toContain('server started');
      } else {
        expect(JSON.parse(line)).toMatchObject({
          time: expect.stringMatching(/^\d{4}-.*Z$/),
          level: 'error',
          error: expect.stringMatching(/^ENOENT: /),
        });
        expect(server.stderr).toContain('server started');
      }
      server.kill('SIGTERM');
      await server.ended;
    }
  });

  test('shows its default address as it is written', async () => {
    await using home = await LocalHome.make();
    const { stdout } = await home.command('server', '--help').ended;
    expect(stdout.replaceAll(/\s+/g, ' ')).toContain('host:port or unix:/path (default: 127.0.0.1:2181)');
  });

  test.each([
    [
      ['--words', 'srvr,foo'],
      'fourLetterWords: "foo" given; there are ruok, isro, srvr, stat, mntr, conf, cons, crst, srst, dump, envi, wchs, wchc, wchp, dirs',
    ],
    [['--limit', 'bogus=1'], 'there is no limit bogus'],
    [
      ['--limit', 'tickMs'],
      "option '--limit <name=value>' argument 'tickMs' is invalid. such as tickMs=500 is needed",
    ],
    [
      ['--listen', 'nowhere'],
      "option '-l, --listen <address>' argument 'nowhere' is invalid. such as 127.0.0.1:2181 is needed",
    ],
    [['--bogus'], "unknown option '--bogus'"],
  ])('%j is refused in one line', async (args, line) => {
    await using home = await LocalHome.make();
    expect(await home.command('server', ...args).ended).toMatchObject({
      code: 2,
      stderr: `holdfast: ${line}\n`,
    });
  });
});
