import { chmod, copyFile, mkdtemp, open, rm, symlink, writeFile } from 'node:fs/promises';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { COMMAND, holdfast, isAlive } from './command-process.ts';
import { RunScene } from './run-scene.ts';

let scene: RunScene;
beforeAll(async () => {
  scene = await RunScene.open();
});
afterAll(() => scene[Symbol.asyncDispose]());

describe('the command’s end is the end of holdfast run', () => {
  test('every exit code passes through', async () => {
    const codes = [0, 1, 2, 63, 64, 77, 125, 126, 127, 128, 130, 137, 199, 200, 201, 206, 254, 255];
    const runs = codes.map((code) => scene.run([`code-${code}`, 'sh', '-c', `exit ${code}`]).ended);
    expect((await Promise.all(runs)).map(({ code }) => code)).toEqual(codes);
  });

  test('death by signal n is 128 + n', async () => {
    const signals = ['SIGHUP', 'SIGINT', 'SIGKILL', 'SIGUSR1', 'SIGPIPE', 'SIGALRM', 'SIGTERM'] as const;
    const runs = signals.map(
      (name) => scene.run([`died-${name}`, 'sh', '-c', `kill -${name.slice(3)} $$`]).ended,
    );
    const codes = (await Promise.all(runs)).map(({ code }) => code);
    expect(codes).toEqual(signals.map((name) => 128 + constants.signals[name]));
  });

  test('a command that is not there is 127, one that cannot be executed 126, and the lock is free again', async () => {
    expect(await scene.run(['missing', 'no-such-command']).ended).toMatchObject({
      code: 127,
      stderr: 'holdfast: no-such-command: command not found\n',
      stdout: '',
    });
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-run-'));
    try {
      const file = join(folder, 'plain.txt');
      await writeFile(file, 'no program');
      expect(await scene.run(['missing', '--', file]).ended).toMatchObject({
        code: 126,
        stderr: `holdfast: ${file}: permission denied\n`,
      });
    } finally {
      await rm(folder, { recursive: true });
    }
    expect(await scene.isFree('missing')).toBe(true);
  });
});

describe('a command that cannot be executed', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'holdfast-run-'));
    await writeFile(join(folder, 'file'), '');
    await symlink(join(folder, 'loop'), join(folder, 'loop'));
    await copyFile('/bin/sleep', join(folder, 'busy'));
    await chmod(join(folder, 'busy'), 0o755);
  });
  afterAll(() => rm(folder, { recursive: true }));

  const script = `${'x'.repeat(3_000)} | cat`;
  test.each<[what: string, command: (folder: string) => string[], code: number, reason: string]>([
    ['in a file that is no folder', (at) => [`${at}/file/program`], 127, 'not a directory'],
    ['whose name is too long', (at) => [`${at}/${'a'.repeat(300)}`], 127, 'name too long'],
    ['behind a link to itself', (at) => [`${at}/loop`], 127, 'too many symbolic links encountered'],
    ['that is being written', (at) => [`${at}/busy`, '1'], 126, 'text file is busy'],
    ['that is a whole script', () => [script], 127, 'name too long'],
  ])('is named, with the reason and the exit code of a shell: %s', async (_what, command, code, reason) => {
    await using _writing = await open(join(folder, 'busy'), 'r+');
    const words = command(folder);
    const name = words[0]!.length > 200 ? `${words[0]!.slice(0, 200)}…` : words[0]!;
    expect(await scene.run(['unable', '--', ...words]).ended).toMatchObject({
      code,
      stdout: '',
      stderr: `holdfast: ${name}: ${reason}\n`,
    });
    expect(await scene.isFree('unable')).toBe(true);
  });

  test('is named where its environment is too long', async () => {
    // As long as Linux takes it: the run's own mark does not fit in.
    const env = { HOLDFAST_SERVERS: scene.server.connectString, HOLDFAST_RUN: 'x'.repeat(131_058) };
    expect(await holdfast(['run', 'unable', 'echo', 'ran'], { env }).ended).toMatchObject({
      code: 126,
      stdout: '',
      stderr: 'holdfast: echo: argument list too long\n',
    });
  });
});

describe('the command', () => {
  test('gets its standard input, and its output is not touched', async () => {
    const input = 'line\n'.repeat(50_000);
    const { code, stdout, stderr } = await scene.run(['pipes', '--', 'cat'], { stdin: input }).ended;
    expect({ code, stderr, same: stdout === input }).toEqual({ code: 0, stderr: '', same: true });
  });

  test('may fill a pipe that nobody reads for a while, also when holdfast writes to it meanwhile', async () => {
    // If holdfast made the pipe non-blocking, which is the command's too, the last write would be cut short.
    const program = `
import os, select, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
room = select.poll()
room.register(2, select.POLLOUT)
print('ready', flush=True)
sys.stdin.readline()
while room.poll(0): os.write(2, b'x' * 1000)
print('full', flush=True)
print(os.write(2, b'y' * 500_000))`;
    await using run = scene.run(['--grace', '1m', 'pipe', '--', 'python3', '-c', program], { stdin: 'open' });
    await run.says('ready\n');
    expect(await scene.onlooker.revoke('pipe')).toBe(1);
    await run.says('ending the command\n', 'stderr');
    run.child.stderr!.pause();
    run.child.stdin!.end('go\n');
    await run.says('full\n');
    run.child.stderr!.resume();
    const { code, stdout, stderr } = await run.ended;
    expect({ code, stdout }).toEqual({ code: 203, stdout: 'ready\nfull\n500000\n' });
    expect(stderr).toMatch(/x{1000}y{500000}/);
  });

  test('sees what it holds', async () => {
    const { stdout } = await scene.run(['a,b', '--', 'sh', '-c', 'env | grep ^HOLDFAST_ | sort']).ended;
    const variables = Object.fromEntries(
      stdout
        .trim()
        .split('\n')
        .map((line) => line.split(/=(.*)/s)),
    );
    expect(variables).toMatchObject({ HOLDFAST_LOCK: 'a,b' });
    expect(BigInt(variables['HOLDFAST_TOKEN'])).toBeGreaterThan(0n);
    expect(variables['HOLDFAST_SESSION']).toMatch(/^0x[0-9a-f]+$/);
    expect(Date.now() - Date.parse(variables['HOLDFAST_ACQUIRED_AT'])).toBeLessThan(60_000);
  });

  test('of a nested run sees the inner lock and its token', async () => {
    const show = 'echo $HOLDFAST_LOCK $HOLDFAST_TOKEN';
    const inner = `"$0" "$1" run inner -- sh -c '${show}'`;
    const { stdout } = await scene.run([
      'outer',
      '--',
      ...['sh', '-c', `${show}; ${inner}; ${show}`, process.execPath, COMMAND],
    ]).ended;
    const [before, within, after] = stdout
      .trim()
      .split('\n')
      .map((line) => line.split(' '));
    expect([before![0], within![0], after![0]]).toEqual(['outer', 'inner', 'outer']);
    expect(after).toEqual(before);
    expect(BigInt(within![1]!)).toBeGreaterThan(BigInt(before![1]!));
  });

  test('may have options like ours, with and without the two dashes', async () => {
    const runs = [
      ['x', 'echo', '--wait', '-q', '--', 'y'],
      ['x', '--', 'echo', '--wait', '-q', '--', 'y'],
      ['--wait', '5s', 'x', '--quiet', 'echo', '--wait', '-q', '--', 'y'],
      ['x', '--wait=5s', '--', 'echo', '--wait', '-q', '--', 'y'],
    ];
    for (const args of runs) {
      expect(await scene.run(args).ended).toMatchObject({ code: 0, stdout: '--wait -q -- y\n', stderr: '' });
    }
  });

  test('that leaves something running in its group has it ended before the lock is free; not what left the group', async () => {
    // The second has left the group only when its session is its own.
    const program = [
      'sleep 300 >/dev/null & echo $!',
      'setsid sleep 300 >/dev/null 2>&1 & echo $!',
      'until read -r _ _ _ _ _ session _ </proc/$!/stat && [ "$session" = $! ]; do :; done',
    ].join('\n');
    const { code, stdout } = await scene.run(['leftovers', '--', 'sh', '-c', program]).ended;
    const [left, apart] = stdout.trim().split('\n').map(Number) as [number, number];
    expect({ code, left: isAlive(left), apart: isAlive(apart) }).toEqual({
      code: 0,
      left: false,
      apart: true,
    });
    process.kill(apart, 'SIGKILL');
  });
});

describe('the owner of the command', () => {
  test('reads who asks for the lock and why, if that was said', async () => {
    await using run = scene.run(['wanted', '--', 'sh', '-c', 'echo up; exec sleep 60']);
    await run.says('up');
    expect(await scene.onlooker.revoke('wanted', { reason: 'deploying\u202e', by: 'ops@desk' })).toBe(1);
    const { code, stderr } = await run.ended;
    expect({ code, stderr }).toEqual({
      code: 203,
      stderr:
        'holdfast: wanted: asked to let go; ending the command\nholdfast: wanted: asked for by ops@desk: deploying\\u{202e}\n',
    });
    await using plain = scene.run(['--json', 'unexplained', '--', 'sh', '-c', 'echo up; exec sleep 60']);
    await plain.says('up');
    await scene.onlooker.revoke('unexplained');
    const ended = await plain.ended;
    expect(ended.code).toBe(203);
    expect(ended.stderr).not.toContain('"asked"');
  });
});

describe('the lock', () => {
  test('is held by one at a time, and free afterwards', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-run-'));
    try {
      // Whoever finds the folder there is not alone.
      const program = `mkdir ${folder}/inside && sleep 0.02 && rmdir ${folder}/inside`;
      const runs = Array.from({ length: 8 }, () => scene.run(['alone', '--', 'sh', '-c', program]).ended);
      expect((await Promise.all(runs)).map(({ code }) => code)).toEqual(Array(8).fill(0));
    } finally {
      await rm(folder, { recursive: true });
    }
    expect(await scene.isFree('alone')).toBe(true);
  });

  test('that is taken: --try and --wait end with 200 and start nothing; --busy-exit says otherwise', async () => {
    await using holder = scene.run(['busy', 'cat'], { stdin: 'open' });
    await scene.counts('busy', 'holders', 1);
    const by = 'held by cat@\\S+:\\d+ since \\d\\d:\\d\\d:\\d\\d, 0 wait';
    const stderr = expect.stringMatching(new RegExp(`^holdfast: busy is taken: ${by}\\n$`));
    const busy = { code: 200, stdout: '', stderr };
    expect(await scene.run(['--try', 'busy', 'echo', 'ran']).ended).toMatchObject(busy);
    expect(await scene.run(['--wait', '0', 'busy', 'echo', 'ran']).ended).toMatchObject(busy);
    const waited = await scene.run(['--wait', '300ms', 'busy', 'echo', 'ran']).ended;
    expect(waited).toMatchObject({ code: 200, stdout: '' });
    expect(waited.stderr).toMatch(
      new RegExp(
        `^holdfast: waiting for busy: .*\\nholdfast: lock busy: not granted within 300 ms; ${by}\\n$`,
      ),
    );
    await using waiter = scene.run(['busy', 'true']);
    await scene.counts('busy', 'queue', 1);
    const told = await scene.run(['--json', '--wait', '100ms', 'busy', 'true']).ended;
    const facts = {
      holder: expect.stringMatching(/^cat@/),
      since: expect.any(String),
      holders: 1,
      waiting: 1,
    };
    expect(JSON.parse(told.stderr.trim().split('\n').at(-1)!)).toMatchObject({
      event: 'failed',
      exitCode: 200,
      code: 'LOCK_TIMEOUT',
      ...facts,
    });
    const tried = await scene.run(['--json', '--try', 'busy', 'true']).ended;
    expect(JSON.parse(tried.stderr)).toEqual({ event: 'busy', lock: 'busy', ...facts });
    const quiet = await scene.run(['--try', '-q', '--busy-exit', '0', 'busy', 'echo', 'ran']).ended;
    expect(quiet).toMatchObject({ code: 0, stdout: '', stderr: '' });
    holder.child.stdin!.end();
    expect((await holder.ended).code).toBe(0);
    expect((await waiter.ended).code).toBe(0);
  });

  test('is waited for with one line at the start and one at the grant', async () => {
    await using holder = scene.run(['--reason', 'the night\u001b[2J shift', 'lines', 'cat'], {
      stdin: 'open',
    });
    await scene.counts('lines', 'holders', 1);
    await using run = scene.run(['lines', 'true']);
    await run.says('\n', 'stderr');
    expect(run.stderr).toMatch(
      /^holdfast: waiting for lines: 1st in line, held by cat@.*:\d+ since \d\d:\d\d:\d\d: the night\\x1b\[2J shift\n$/,
    );
    holder.child.stdin!.end();
    expect((await run.ended).stderr).toMatch(/\nholdfast: lines granted after \d+\.\d s\n$/);
  });

  test('tells its story to programs', async () => {
    const { code, stdout, stderr } = await scene.run(['--json', 'story', '--', 'sh', '-c', 'exit 3']).ended;
    const events = stderr
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
    expect(events).toMatchObject([
      { event: 'granted', lock: 'story', token: expect.stringMatching(/^\d+$/) },
      { event: 'started', pid: expect.any(Number) },
      { event: 'ended', exitCode: 3, commandExitCode: 3 },
    ]);
  });

  test('may be shared, with --shared; --exclusive keeps readers out', async () => {
    await using reader = scene.run(['--shared', 'catalogue', 'cat'], { stdin: 'open' });
    await scene.counts('catalogue', 'holders', 1);
    expect((await scene.run(['--shared', '--try', 'catalogue', 'true']).ended).code).toBe(0);
    expect((await scene.run(['--exclusive', '--try', 'catalogue', 'true']).ended).code).toBe(200);
    reader.child.stdin!.end();
    await reader.ended;
    expect((await scene.run(['--exclusive', '--try', 'catalogue', 'true']).ended).code).toBe(0);
  });

  test('may be k permits of n', async () => {
    await using two = scene.run(['--permits', '2/3', 'exports', 'cat'], { stdin: 'open' });
    await scene.counts('exports', 'holders', 2);
    expect((await scene.run(['--permits', '2/3', '--try', 'exports', 'true']).ended).code).toBe(200);
    expect((await scene.run(['--permits', '1/3', '--try', 'exports', 'true']).ended).code).toBe(0);
    two.child.stdin!.end();
    expect((await two.ended).code).toBe(0);
  });

  test('is kept for --min-hold, also when the command has ended', async () => {
    await using run = scene.run(['--min-hold', '1h', 'kept', 'echo', 'ran']);
    await run.says('ran');
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(await scene.isFree('kept')).toBe(false);
    run.kill('SIGTERM'); // Enough of it.
    expect((await run.ended).code).toBe(0);
    expect(await scene.isFree('kept')).toBe(true);
  });
});
