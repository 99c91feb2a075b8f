import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../support/until.ts';
import { type CommandProcess, holdfast } from './command-process.ts';
import { childrenOf, RunScene } from './run-scene.ts';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1'] as const;

let scene: RunScene;
beforeAll(async () => {
  scene = await RunScene.open();
});
afterAll(() => scene[Symbol.asyncDispose]());

const stateOf = (pid: number) => readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /s, '')[0];

/** Listens like a socket of a run above, with what is to happen at each connection. */
async function withSocket(
  name: string,
  onConnection: (socket: Socket) => void,
  use: (folder: string) => Promise<void>,
) {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-signals-'));
  const server = createServer(onConnection);
  await new Promise<void>((resolve) => server.listen(join(folder, name), resolve));
  try {
    await use(folder);
  } finally {
    server.close();
    rmSync(folder, { recursive: true });
  }
}

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
    await until('it is stopped', () => stateOf(run.pid) === 'T');
    run.kill('SIGCONT');
    const said = run.stdout.length;
    await until('it goes on', () => run.stdout.length > said);
    run.kill('SIGTERM');
    expect((await run.ended).code).toBe(143);
  });

  test.each(SIGNALS)('between the grant and the start of the command starts nothing: %s', async (signal) => {
    const lock = `granted-${signal}`;
    let run: CommandProcess | undefined;
    let askedCount = 0;
    // The run above is asked for credentials before the servers are, and again between the grant and the start.
    const onConnection = (socket: Socket) => {
      askedCount += 1;
      socket.on('error', () => {});
      if (askedCount === 1) socket.end('{}');
      else run!.kill(signal);
    };
    await withSocket('credentials', onConnection, async (folder) => {
      const above = [{ session: '0x1', token: '1', locks: [], door: join(folder, 'door') }];
      run = holdfast(['run', '--json', lock, 'echo', 'ran'], {
        env: { HOLDFAST_SERVERS: scene.server.connectString, HOLDFAST_HELD: JSON.stringify(above) },
      });
      await using ending = run;
      const { code, stdout, stderr } = await ending.ended;
      expect({ code, stdout }).toEqual({ code: 128 + constants.signals[signal], stdout: '' });
      expect(stderr).toMatch(/"granted"(?:.|\n)*"signalled"/);
      expect(await scene.isFree(lock)).toBe(true);
    });
  });

  test('while a run above does not let it in ends the wait for that', async () => {
    await using holder = scene.run(['silent', 'cat'], { stdin: 'open' });
    await scene.counts('silent', 'holders', 1);
    const { session, token } = (await scene.onlooker.inspect('silent')).holders[0]!;
    let run: CommandProcess | undefined;
    await withSocket(
      'door',
      () => run!.kill('SIGTERM'),
      async (folder) => {
        const above = { session: `0x${session.toString(16)}`, token: String(token), locks: ['silent'] };
        run = holdfast(['run', '--reenter', 'silent', 'echo', 'ran'], {
          env: {
            HOLDFAST_SERVERS: scene.server.connectString,
            HOLDFAST_HELD: JSON.stringify([{ ...above, door: join(folder, 'door') }]),
          },
        });
        await using ending = run;
        expect(await ending.ended).toMatchObject({ code: 143, stdout: '' });
      },
    );
    holder.child.stdin!.end();
    await holder.ended;
  });
});

describe('--min-hold, when the command has ended', () => {
  /** A run whose command and guardian have ended. */
  async function kept(lock: string): Promise<CommandProcess> {
    const run = scene.run(['--min-hold', '1h', lock, 'echo', 'ran']);
    await run.says('ran');
    await until('only the hold to be left', () => run.hasEnded || childrenOf(run.pid).length === 0);
    return run;
  }

  test.each(['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const)('is cut short by %s', async (signal) => {
    await using run = await kept(`cut-${signal}`);
    run.kill(signal);
    expect(await run.ended).toMatchObject({ code: 0, stderr: '' });
    expect(await scene.isFree(`cut-${signal}`)).toBe(true);
  });

  test('goes on when the terminal is resized, and when it is stopped and continued', async () => {
    await using run = await kept('resized');
    for (const signal of ['SIGWINCH', 'SIGUSR1', 'SIGUSR2', 'SIGCONT'] as const) run.kill(signal);
    run.kill('SIGTSTP');
    await until('it is stopped', () => stateOf(run.pid) === 'T');
    run.kill('SIGCONT');
    await until('it goes on', () => stateOf(run.pid) !== 'T');
    await scene.counts('resized', 'holders', 1);
    run.kill('SIGTERM');
    expect((await run.ended).code).toBe(0);
  });

  test('ends with 201 when the lock is lost, and with 203 when it is asked for, and says so', async () => {
    await using lost = await kept('kept-lost');
    scene.server.expireSession(await scene.sessionOf('kept-lost'));
    expect(await lost.ended).toMatchObject({
      code: 201,
      stderr: 'holdfast: kept-lost: the lock is lost before --min-hold is over; the command had ended\n',
    });
    await using asked = await kept('kept-asked');
    await scene.onlooker.revoke('kept-asked', { reason: 'deploying', by: 'ops@desk' });
    expect(await asked.ended).toMatchObject({
      code: 203,
      stderr:
        'holdfast: kept-asked: asked to let go before --min-hold is over; the command had ended\nholdfast: kept-asked: asked for by ops@desk: deploying\n',
    });
  });
});

test('holdfast elect --rejoin listens to signals once, however often it stands again', async () => {
  await using run = holdfast(['elect', '--rejoin', 'again', '--', 'sh', '-c', 'echo up; exec sleep 60'], {
    env: { HOLDFAST_SERVERS: scene.server.connectString },
  });
  for (let count = 1; count <= 12; count += 1) {
    await until(`leadership ${count}`, () => run.stdout.split('up').length > count);
    if (count < 12) scene.server.expireSession(await scene.sessionOf('again'));
  }
  run.kill('SIGTERM');
  expect((await run.ended).code).toBe(143);
  expect(run.stderr).not.toContain('Warning');
});
