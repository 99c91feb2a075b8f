import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../support/until.ts';
import { COMMAND, holdfast } from './command-process.ts';
import { RunScene } from './run-scene.ts';

let scene: RunScene;
beforeAll(async () => {
  scene = await RunScene.open();
});
afterAll(() => scene[Symbol.asyncDispose]());

const SELF = [process.execPath, COMMAND, 'run'] as const;
/** `holdfast run` of a command that is `holdfast run` itself, and so on: each level its own arguments. */
const nested = (...levels: (readonly string[])[]): string[] =>
  levels.flatMap((level, at) => (at === 0 ? [...level, '--'] : [...SELF, ...level, '--']));

describe('a run that wants what a run that started it holds', () => {
  const refused = (lock: string) =>
    new RegExp(
      `^holdfast: lock ${lock} is held by a run that started this one \\(.*\\): waiting for it would never end; --reenter .*\\n$`,
    );

  test.each([
    ['the same lock', [['self'], ['self']], 'self'],
    ['through a level in between', [['far'], ['near'], ['far']], 'far'],
    ['one of several', [['several-b'], ['several-a,several-b']], 'several-b'],
    ['several, then one of them', [['pair-a,pair-b'], ['pair-b']], 'pair-b'],
    [
      'to write what is shared',
      [
        ['--shared', 'rw'],
        ['--exclusive', 'rw'],
      ],
      'rw',
    ],
    [
      'to read what is written',
      [
        ['--exclusive', 'wr'],
        ['--shared', 'wr'],
      ],
      'wr',
    ],
    [
      'the permits that are missing',
      [
        ['--permits', '2/3', 'some'],
        ['--permits', '2/3', 'some'],
      ],
      'some',
    ],
    ['within a time', [['bounded'], ['--wait', '1m', 'bounded']], 'bounded'],
  ])('is refused at once: %s', async (_, levels, lock) => {
    const { code, stdout, stderr } = await scene.run([...nested(...levels), 'echo', 'ran']).ended;
    expect({ code, stdout }).toEqual({ code: 207, stdout: '' });
    expect(stderr).toMatch(refused(lock));
  });

  test('is refused at once also where the names of the locks above do not fit into the environment', async () => {
    const names = (mark: string, fill: string, count: number) =>
      Array.from({ length: count }, (_, at) => `${mark}${at}${fill.repeat(1_000)}`).join(',');
    for (const above of [names('long', 'x', 64), names('quoted', '"', 64)]) {
      const one = above.split(',')[0]!;
      for (const between of [[], [['between'], [names('other', 'y', 60)]]]) {
        const { code, stdout } = await scene.run([...nested([above], ...between, [one]), 'echo', 'ran'])
          .ended;
        expect({ code, stdout }).toEqual({ code: 207, stdout: '' });
      }
    }
  });

  test('is let in where that is no wait: shared with shared, permits that are left; and --try says that it is taken', async () => {
    for (const level of [
      ['--shared', 'both'],
      ['--permits', '1/2', 'left'],
    ]) {
      const { code, stdout } = await scene.run([...nested(level, level), 'echo', 'ran']).ended;
      expect({ code, stdout }).toEqual({ code: 0, stdout: 'ran\n' });
    }
    expect((await scene.run([...nested(['tried'], ['--try', 'tried']), 'true']).ended).code).toBe(200);
  });

  test('to share what is shared is refused when a writer has come between', async () => {
    await using outer = scene.run(
      [
        '--shared',
        'between',
        '--',
        'sh',
        '-c',
        `read line; exec "$@"`,
        'sh',
        ...SELF,
        '--shared',
        'between',
        'true',
      ],
      { stdin: 'open' },
    );
    await scene.counts('between', 'holders', 1);
    await using writer = scene.run(['--exclusive', 'between', 'true']);
    await scene.counts('between', 'queue', 1);
    outer.child.stdin!.end('go\n');
    expect(await outer.ended).toMatchObject({ code: 207, stderr: expect.stringMatching(refused('between')) });
    expect((await writer.ended).code).toBe(0);
  });

  test('says it to programs too', async () => {
    const { stderr } = await scene.run([...nested(['told'], ['--json', 'told']), 'true']).ended;
    expect(JSON.parse(stderr)).toMatchObject({
      event: 'failed',
      exitCode: 207,
      message: expect.stringContaining('told'),
    });
  });
});

describe('--reenter', () => {
  test('runs the command under the hold of the run above, however many levels, with its token', async () => {
    const show = 'echo $HOLDFAST_LOCK $HOLDFAST_TOKEN $HOLDFAST_SESSION';
    const { code, stdout, stderr } = await scene.run([
      ...['again', '--', 'sh', '-c', `${show}; "$@"`, 'sh'],
      ...[...SELF, 'other', '--'],
      ...[...SELF, '--reenter', 'again', '--', 'sh', '-c', `${show}; exit 9`],
    ]).ended;
    const [outer, inner] = stdout.trim().split('\n');
    expect({ code, inner, stderr }).toEqual({ code: 9, inner: outer, stderr: '' });
  });

  test('takes the lock as ever where no run above holds it', async () => {
    const { code, stdout } = await scene.run(['--reenter', 'fresh', '--', 'sh', '-c', 'echo $HOLDFAST_LOCK'])
      .ended;
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'fresh\n' });
  });

  test('does not make a writer of a reader, or several of one', async () => {
    for (const levels of [
      [
        ['--shared', 'one'],
        ['--reenter', '--exclusive', 'one'],
      ],
      [['two'], ['--reenter', 'two,three']],
      [
        ['--permits', '1/3', 'four'],
        ['--reenter', '--permits', '3/3', 'four'],
      ],
    ]) {
      const { code, stdout, stderr } = await scene.run([...nested(...levels), 'echo', 'ran']).ended;
      expect({ code, stdout }).toEqual({ code: 207, stdout: '' });
      expect(stderr).toMatch(/^holdfast: --reenter: .*\n$/);
    }
  });

  test('keeps the lock for what has left the group of the first command, until that has ended', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-reenter-'));
    try {
      const late = `until [ -e ${folder}/go ]; do sleep 0.02; done; echo late >${folder}/done`;
      const leave = `setsid "$0" "$1" run --reenter kept -- sh -c 'echo in >${folder}/in; ${late}' & until [ -e ${folder}/in ]; do sleep 0.02; done`;
      await using outer = scene.run(['kept', '--', 'sh', '-c', leave, process.execPath, COMMAND]);
      await until('the command to be in', async () => (await readdir(folder)).includes('in'));
      await using next = scene.run(['kept', 'echo', 'next']);
      await scene.counts('kept', 'queue', 1);
      expect(next.stdout).toBe('');
      await writeFile(join(folder, 'go'), '');
      expect((await outer.ended).code).toBe(0);
      expect(await readdir(folder)).toContain('done');
      expect((await next.ended).stdout).toBe('next\n');
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test('ends with the hold: a lock that is lost ends what runs under it', async () => {
    await using outer = scene.run([
      ...nested(['gone'], ['--reenter', 'gone']),
      'sh',
      '-c',
      'echo in; exec sleep 60',
    ]);
    await outer.says('in');
    scene.server.expireSession(await scene.sessionOf('gone'));
    expect((await outer.ended).code).toBe(201);
  });

  const POLITE = `trap 'echo asked; sleep 0.5; echo done; exit 0' TERM; echo in; while :; do sleep 0.1; done`;

  test.each([
    ['by the run above, after --max-hold', ['--max-hold', '1s'], 202],
    ['by a request to let go', [], 203],
  ])('has the grace when the hold is ended %s', async (_, flags, code) => {
    const lock = `graceful-${code}`;
    const outer = ['--grace', '20s', ...flags, lock];
    await using run = scene.run([
      ...nested(outer, ['--reenter', '--grace', '20s', lock]),
      'sh',
      '-c',
      POLITE,
    ]);
    await run.says('in\n');
    if (code === 203) await scene.onlooker.revoke(lock);
    const ended = await run.ended;
    expect(ended.code).toBe(code);
    expect(ended.stdout).toMatch(/^in\n(asked\n)+done\n$/);
  });

  test('has no more time than the run above gives it, or than its own --grace', async () => {
    const stubborn = `trap '' TERM; echo in; while :; do sleep 0.1; done`;
    for (const [above, own] of [
      ['300ms', '1h'],
      ['1h', '300ms'],
    ] as const) {
      const outer = ['--grace', above, `short-${above}`];
      const inner = ['--reenter', '--grace', own, `short-${above}`];
      await using run = scene.run([...nested(outer, inner), 'sh', '-c', stubborn]);
      await run.says('in\n');
      await scene.onlooker.revoke(`short-${above}`);
      expect((await run.ended).code).toBe(203);
    }
  });

  test('has the grace also when the run above is killed, whose lease goes on to its end', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-killed-'));
    try {
      const polite = `trap 'sleep 0.5; echo done >${folder}/done; exit 0' TERM; echo in; while :; do sleep 0.1; done`;
      await using run = scene.run([...nested(['orphaned'], ['--reenter', 'orphaned']), 'sh', '-c', polite]);
      await run.says('in\n');
      run.kill('SIGKILL');
      await run.ended;
      expect(await readdir(folder)).toEqual(['done']);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test('is refused, and nothing is run, by a variable that is forged or stale', async () => {
    await using holder = scene.run(['theirs', 'cat'], { stdin: 'open' });
    await scene.counts('theirs', 'holders', 1);
    const { session, token } = (await scene.onlooker.inspect('theirs')).holders[0]!;
    const said = (door: string, tokenText = String(token)) =>
      JSON.stringify([{ session: `0x${session.toString(16)}`, token: tokenText, locks: ['theirs'], door }]);
    const run = (held: string, ...args: string[]) =>
      holdfast(['run', ...args, 'theirs', 'echo', 'ran'], {
        env: { HOLDFAST_SERVERS: scene.server.connectString, HOLDFAST_HELD: held },
      }).ended;
    // Of a hold that is there, at a door that is not: not let in. Of one that is not there: an ordinary wait.
    expect(await run(said('/nowhere'), '--reenter')).toMatchObject({ code: 207, stdout: '' });
    for (const held of [said('/nowhere', '1'), 'rubbish', '[{}]']) {
      expect(await run(held, '--reenter', '--wait', '2s')).toMatchObject({ code: 200, stdout: '' });
      expect(await run(held, '--wait', '2s')).toMatchObject({ code: 200, stdout: '' });
    }
    holder.child.stdin!.end();
    await holder.ended;
    expect(await run(said('/nowhere'))).toMatchObject({ code: 0, stdout: 'ran\n' });
  });
});

describe('holdfast graph', () => {
  test('shows the deadlock of run A -- run B and run B -- run A', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-graph-'));
    try {
      const both = (first: string, second: string) =>
        scene.run([
          ...[
            first,
            '--',
            'sh',
            '-c',
            `: >${folder}/${first}; until [ -e ${folder}/${second} ]; do sleep 0.02; done; "$@"`,
          ],
          ...['sh', ...SELF, second, 'true'],
        ]);
      await using _one = both('ab-a', 'ab-b');
      await using _two = both('ab-b', 'ab-a');
      await scene.counts('ab-a', 'queue', 1);
      await scene.counts('ab-b', 'queue', 1);
      const env = { HOLDFAST_SERVERS: scene.server.connectString };
      const { code, stdout } = await holdfast(['graph', '--json'], { env }).ended;
      const graph = JSON.parse(stdout);
      expect(code).toBe(1);
      expect(graph.deadlocks.map((group: string[]) => group.length)).toEqual([4]);
      expect(graph.nested).toHaveLength(2);
      const people = await holdfast(['graph'], { env }).ended;
      expect(people.stdout).toMatch(/^4 sessions wait for each other/m);
      expect(people.stdout.match(/holds until its command ends/g)).toHaveLength(2);
      expect((await holdfast(['doctor', '--json'], { env }).ended).stdout).toContain(
        '4 sessions wait for each other in a circle',
      );
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
