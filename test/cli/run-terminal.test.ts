import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FaultProxy } from '../../src/testing.ts';
import { COMMAND } from './command-process.ts';
import { isAnyAlive, RunScene } from './run-scene.ts';

type Step = readonly ['see' | 'type', string];

const run = promisify(execFile);
const terminalProgram = fileURLToPath(new URL('./terminal.py', import.meta.url));

let scene: RunScene;
beforeAll(async () => {
  scene = await RunScene.open();
});
afterAll(() => scene[Symbol.asyncDispose]());

/** `holdfast run` on a terminal, by someone who looks and types. */
async function onTerminal(
  args: readonly string[],
  steps: readonly Step[],
  columns = 200,
): Promise<{ shown: string; missing: string | null; code: number }> {
  const command = [process.execPath, COMMAND, 'run', ...args];
  const { stdout } = await run(
    'python3',
    [terminalProgram, String(columns), JSON.stringify(steps), ...command],
    {
      env: { ...process.env, HOLDFAST_SERVERS: scene.server.connectString },
    },
  );
  return JSON.parse(stdout);
}

describe('on a terminal', () => {
  test('a wait is one line that is kept current, and gone when it is over', async () => {
    const lease = await scene.onlooker.mutex('line').acquire({ reason: 'month end' });
    const running = onTerminal(
      ['line', 'echo', 'ran'],
      [
        ['see', 'waiting for line: 1st in line, held by '],
        ['see', ': month end, waited '],
        ['type', 'typed ahead'],
        ['see', '\u001b[A\r\u001b[Kwaiting for line: '], // A second later.
        ['see', 'ran'],
      ],
    );
    await scene.counts('line', 'queue', 1);
    await new Promise((resolve) => setTimeout(resolve, 1_500)); // So that it is shown more than once.
    await lease.release();
    const { shown, missing, code } = await running;
    expect({ missing, code }).toEqual({ missing: null, code: 0 });
    // Each line that was shown was written over by the next, and the last was cleared, with what was typed below it.
    const [first, ...others] = shown.slice(0, shown.indexOf('holdfast: line granted')).split('\r\u001b[K');
    expect(first).toBe('');
    expect(others.pop()).toBe('\u001b[J');
    const shownLine = /^waiting for line: .*, waited [\d.]+ s\r\n(typed ahead)?<up>$/;
    for (const line of others) expect(line.replaceAll('\u001b[A', '<up>')).toMatch(shownLine);
    expect(shown.split('\u001b[J').at(-1)).toMatch(/^holdfast: line granted after [\d.]+ s\r\nran\r\n$/);
  });

  test('the line is no longer than the terminal is wide', async () => {
    await using _lease = await scene.onlooker.mutex('narrow').acquire({ reason: 'a long story '.repeat(20) });
    const steps = [
      ['see', 'waiting for narrow'],
      ['see', '\r\u001b[Kwaiting for narrow'],
      ['type', '\u0003'],
    ] as const;
    const { shown, missing } = await onTerminal(['narrow', 'true'], steps, 40);
    expect(missing).toBeNull();
    const [, ...lines] = shown.split('\r\u001b[K');
    const waiting = lines.filter((line) => line.startsWith('waiting')).map((line) => line.split('\r\n')[0]!);
    for (const line of waiting) {
      expect(line.length).toBeLessThanOrEqual(39);
      expect(line).toMatch(/^waiting for narrow: 1st in line, held?.*…/);
    }
    expect(waiting.length).toBeGreaterThan(1);
  });

  test('says so when no server answers, and goes on counting', async () => {
    await using lease = await scene.onlooker.mutex('cut').acquire();
    const proxy = await FaultProxy.start({ target: scene.server });
    try {
      const running = onTerminal(
        ['--servers', proxy.connectString, 'cut', 'true'],
        [
          ['see', 'waiting for cut: 1st in line'],
          ['see', 'waiting for cut: no server answers, was 1st in line'],
          ['see', 'waiting for cut: no server answers, was 1st in line'],
          ['type', '\u0003'],
        ],
      );
      await scene.counts('cut', 'queue', 1);
      await new Promise((resolve) => setTimeout(resolve, 1_000)); // So that it is shown first.
      proxy.refuse();
      proxy.resetAll();
      expect((await running).missing).toBeNull();
    } finally {
      await proxy[Symbol.asyncDispose]();
      await lease.release();
    }
  });

  test('the command reads what is typed, and control-C reaches it, once', async () => {
    const program =
      "trap 'echo interrupted; exit 5' INT; read word; echo got $word; while :; do sleep 0.05; done";
    const { shown, missing, code } = await onTerminal(
      ['typed', '--', 'sh', '-c', `echo up; ${program}`],
      [
        ['see', 'up'],
        ['type', 'hello\n'],
        ['see', 'got hello'],
        ['type', '\u0003'],
        ['see', 'interrupted'],
      ],
    );
    expect({ missing, code, times: shown.match(/interrupted/g)?.length }).toEqual({
      missing: null,
      code: 5,
      times: 1,
    });
    expect(await scene.isFree('typed')).toBe(true);
  });

  test('control-C while waiting leaves the queue', async () => {
    await using _lease = await scene.onlooker.mutex('left').acquire();
    const { missing, code, shown } = await onTerminal(
      ['left', 'echo', 'ran'],
      [
        ['see', 'waiting for left'],
        ['type', '\u0003'],
      ],
    );
    expect({ missing, code }).toEqual({ missing: null, code: 130 });
    expect(shown).not.toContain('ran\r\n');
    expect((await scene.onlooker.inspect('left')).queue).toEqual([]);
  });

  test('with --foreground the command has the terminal for itself: /dev/tty, and control-C from it', async () => {
    const program =
      "trap 'echo interrupted; exit 5' INT; read word </dev/tty; echo got $word; while :; do sleep 0.05; done";
    const { shown, missing, code } = await onTerminal(
      ['--foreground', 'front', '--', 'sh', '-c', `echo up; ${program}`],
      [
        ['see', 'up'],
        ['type', 'hello\n'],
        ['see', 'got hello'],
        ['type', '\u0003'],
        ['see', 'interrupted'],
      ],
    );
    expect({ missing, code, times: shown.match(/interrupted/g)?.length }).toEqual({
      missing: null,
      code: 5,
      times: 1,
    });
  });

  test('with --foreground a lost lock ends the command all the same, and what it has started', async () => {
    const program = `trap '' TERM INT; (trap '' TERM; for i in $(seq 100); do sleep 0.2; done) & echo "mark=$HOLDFAST_RUN."; cat`;
    const running = onTerminal(['--foreground', 'lost', '--', 'sh', '-c', program], [['see', '.\r\n']]);
    await scene.counts('lost', 'holders', 1);
    await new Promise((resolve) => setTimeout(resolve, 300));
    scene.server.expireSession(await scene.sessionOf('lost'));
    const { shown, missing, code } = await running;
    expect({ missing, code }).toEqual({ missing: null, code: 201 });

    expect(isAnyAlive(/mark=(.*)\./.exec(shown)![1]!)).toBe(false);
  });
});
