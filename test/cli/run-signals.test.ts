import { readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../support/until.ts';
import { RunScene } from './run-scene.ts';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1'] as const;

let scene: RunScene;
beforeAll(async () => {
  scene = await RunScene.open();
});
afterAll(() => scene[Symbol.asyncDispose]());

describe('a signal to holdfast run', () => {
  test.each(SIGNALS)('while it waits ends the wait: %s', async (signal) => {
    const lock = `waiting-${signal}`;
    await using _holding = await scene.onlooker.mutex(lock).acquire();
    await using run = scene.run([lock, 'echo', 'ran']);
    await run.says('waiting for', 'stderr');
    run.kill(signal);
    const { code, stdout } = await run.ended;
    expect({ code, stdout }).toEqual({ code: 128 + constants.signals[signal], stdout: '' });
    expect((await scene.onlooker.inspect(lock)).queue).toEqual([]);
  });

  test.each(SIGNALS)(
    'while the command runs goes to its whole group, which may answer it: %s',
    async (signal) => {
      const name = signal.slice(3);
      const lock = `running-${signal}`;
      const loop = 'while :; do sleep 0.1; done';
      const program = `(trap 'echo child; exit' ${name}; echo up; ${loop}) & trap 'echo parent; wait; exit 9' ${name}; echo up; ${loop}`;
      await using run = scene.run([lock, '--', 'bash', '-c', program]);
      await run.says(/up\nup\n/);
      run.kill(signal);
      const { code, stdout } = await run.ended;
      expect(code).toBe(9);
      expect(stdout).toContain('child\n');
      expect(stdout).toContain('parent\n');
      expect(await scene.isFree(lock)).toBe(true);
    },
  );

  test('that the command does not care for changes nothing', async () => {
    await using run = scene.run(['careless', '--', 'sh', '-c', "trap '' TERM; echo up; cat"], {
      stdin: 'open',
    });
    await run.says('up');
    run.kill('SIGTERM');
    run.child.stdin!.write('still here\n');
    await run.says('still here');
    run.child.stdin!.end();
    expect((await run.ended).code).toBe(0);
  });

  test('that kills the command is its exit code, and the lock is free', async () => {
    await using run = scene.run(['killed', '--', 'sh', '-c', 'echo up; exec sleep 300']);
    await run.says('up');
    run.kill('SIGTERM');
    expect((await run.ended).code).toBe(143);
    expect(await scene.isFree('killed')).toBe(true);
  });

  test('SIGTSTP stops it and the command, SIGCONT continues both, the lock kept', async () => {
    const program = 'i=0; while :; do echo tick $i; i=$((i+1)); sleep 0.05; done';
    await using run = scene.run(['stopped', '--', 'sh', '-c', program]);
    await run.says('tick 2');
    run.kill('SIGTSTP');
    await run.says('stopped: stopped is lost', 'stderr');
    const stateOf = (pid: number) => readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /s, '')[0];
    await until('it is stopped', () => stateOf(run.pid) === 'T');
    run.kill('SIGCONT');
    const said = run.stdout.length;
    await until('it goes on', () => run.stdout.length > said);
    run.kill('SIGTERM');
    expect((await run.ended).code).toBe(143);
  });
});
