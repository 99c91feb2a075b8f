import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { until } from '../support/until.ts';
import type { CommandProcess } from './command-process.ts';
import { childrenOf, isAnyAlive, markOf, RunScene, SHORT_SESSION, STUBBORN } from './run-scene.ts';

const guardianOf = (run: CommandProcess) =>
  childrenOf(run.pid).find(({ command }) => command.includes('guardian-main'))?.pid;

describe('a run that loses its lock', () => {
  test('because its session expired: killed with all it started, exit 201', async () => {
    await using scene = await RunScene.open();
    await using run = scene.run(['a', '--', ...STUBBORN]);
    const mark = await markOf(run);
    scene.server.expireSession(await scene.sessionOf('a'));
    expect(await run.exited).toBe(201);
    expect(isAnyAlive(mark)).toBe(false);
    expect((await run.ended).stderr).toBe('holdfast: a: the lock is lost; the command was killed\n');
  });

  test('because somebody removed its node: killed with all it started, exit 201', async () => {
    await using scene = await RunScene.open();
    await using run = scene.run(['a', '--', ...STUBBORN]);
    const mark = await markOf(run);
    const { holders } = await scene.onlooker.inspect('a');
    await scene.onlooker.zk.delete(`/locks/a/${holders[0]!.id}`);
    expect(await run.exited).toBe(201);
    expect(isAnyAlive(mark)).toBe(false);
  });

  test('because the server is gone: asked to end before the lease does, killed when it does, exit 201', async () => {
    await using scene = await RunScene.open();
    await using polite = scene.run([
      '--on-suspend',
      'ignore',
      'a',
      '--',
      'sh',
      '-c',
      "trap 'echo asked; exit 0' TERM; echo up; while :; do sleep 0.05; done",
    ]);
    await using stubborn = scene.run([...SHORT_SESSION, 'b', '--', ...STUBBORN]);
    await polite.says('up');
    const mark = await markOf(stubborn);
    scene.server.pause();
    expect(await polite.ended).toMatchObject({ code: 201, stdout: 'up\nasked\n' });
    expect(await stubborn.exited).toBe(201);
    expect(isAnyAlive(mark)).toBe(false);
    scene.server.resume();
  });

  test('is dead before anyone else can hold', async () => {
    await using scene = await RunScene.open();
    await using run = scene.run([...SHORT_SESSION, 'a', '--', ...STUBBORN]);
    const mark = await markOf(run);
    const next = scene.onlooker.mutex('a').acquire();
    // Stopped as a whole: it cannot see to anything, and its session runs out.
    run.kill('SIGSTOP');
    await using _lease = await next;
    expect(isAnyAlive(mark)).toBe(false);
    run.kill('SIGCONT');
    expect((await run.ended).code).toBe(201);
  });
});

describe('a run whose wrapper is killed', () => {
  test('is dead before anyone else can hold, also what ignores SIGTERM, and what left its group', async () => {
    await using scene = await RunScene.open();
    await using run = scene.run([...SHORT_SESSION, 'a', '--', ...STUBBORN]);
    const mark = await markOf(run);
    const next = scene.onlooker.mutex('a').acquire();
    run.kill('SIGKILL');
    await using _lease = await next;
    expect(isAnyAlive(mark)).toBe(false);
  });

  test('may end in an orderly way first', async () => {
    await using scene = await RunScene.open();
    await using run = scene.run([
      'a',
      '--',
      'sh',
      '-c',
      "trap 'echo tidied; exit 0' TERM; echo up; while :; do sleep 0.05; done",
    ]);
    await run.says('up');
    run.kill('SIGKILL');
    await until('it has tidied up', () => run.stdout.includes('tidied'));
  });

  test('is dead also if the guardian was killed before, since there is another', async () => {
    await using scene = await RunScene.open();
    await using run = scene.run([...SHORT_SESSION, 'a', '--', ...STUBBORN]);
    const mark = await markOf(run);
    const first = guardianOf(run)!;
    process.kill(first, 'SIGKILL');
    await until('another guardian', () => ![undefined, first].includes(guardianOf(run)));
    const next = scene.onlooker.mutex('a').acquire();
    run.kill('SIGKILL');
    await using _lease = await next;
    expect(isAnyAlive(mark)).toBe(false);
  });

  test('leaves no guardian behind, nor does one that ends well', async () => {
    await using scene = await RunScene.open();
    await using run = scene.run(['a', 'cat'], { stdin: 'open' });
    await until('the guardian is there', () => guardianOf(run) !== undefined);
    const guardian = guardianOf(run)!;
    run.child.stdin!.end();
    await run.ended;
    await until('the guardian is gone', () => !readdirSync('/proc').includes(String(guardian)));
  });
});

describe('a run whose connection is down', () => {
  const ticking = ['sh', '-c', 'i=0; while :; do echo tick $i; i=$((i+1)); sleep 0.02; done'];

  test('is paused, and goes on when the servers say that the lock is still held', async () => {
    await using scene = await RunScene.open();
    await using run = scene.run(['--session-timeout', '40s', 'a', '--', ...ticking]);
    await run.says('tick 3');
    const session = await scene.sessionOf('a');
    const command = childrenOf(run.pid).find(({ command }) => command.startsWith('sh '))!.pid;
    const stateOf = () => readFileSync(`/proc/${command}/stat`, 'utf8').replace(/^.*\) /s, '')[0];
    // The server takes connections and says nothing: the session is suspended for as long as that lasts.
    scene.server.pause();
    scene.server.dropConnection(session);
    await until('it is stopped', () => stateOf() === 'T');
    scene.server.resume();
    await until('it goes on', () => stateOf() !== 'T');
    const said = run.stdout.length;
    await until('it ticks', () => run.stdout.length > said);
    run.kill('SIGTERM');
    expect((await run.ended).code).toBe(143);
  });

  test('is asked to end at once, with --on-suspend term', async () => {
    await using scene = await RunScene.open();
    await using run = scene.run(['--on-suspend', 'term', 'a', '--', ...ticking]);
    await run.says('tick 3');
    scene.server.dropConnection(await scene.sessionOf('a'));
    expect((await run.ended).code).toBe(201);
  });
});

describe('a run that is to end', () => {
  test('because somebody asks for the lock: SIGTERM, grace, SIGKILL, released, exit 203', async () => {
    await using scene = await RunScene.open();
    await using run = scene.run(['--grace', '300ms', 'a', '--', ...STUBBORN]);
    const mark = await markOf(run);
    expect(await scene.onlooker.revoke('a')).toBe(1);
    expect(await run.exited).toBe(203);
    expect(isAnyAlive(mark)).toBe(false);
    expect(await scene.isFree('a')).toBe(true);
  });

  test('because it has held for --max-hold: likewise, exit 202', async () => {
    await using scene = await RunScene.open();
    await using run = scene.run(['--max-hold', '300ms', '--grace', '300ms', 'a', '--', ...STUBBORN]);
    const mark = await markOf(run);
    expect(await run.exited).toBe(202);
    expect(isAnyAlive(mark)).toBe(false);
    const said = 'holdfast: a: held for 0.3 s, which is the most allowed; ending the command\n';
    expect((await run.ended).stderr).toBe(said);
    expect(await scene.isFree('a')).toBe(true);
  });
});
