import { execFile } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { COMMAND } from './command-process.ts';
import { RunScene } from './run-scene.ts';

let scene: RunScene;
beforeAll(async () => {
  scene = await RunScene.open();
});
afterAll(() => scene[Symbol.asyncDispose]());

/** Runs it by a shell, since Node can give a process nothing but UTF-8. `H` is `holdfast`. */
function shell(script: string): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const env = { ...process.env, HOLDFAST_SERVERS: scene.server.connectString };
  return new Promise((resolve) => {
    const args = ['-c', `H() { "$NODE" "$MAIN" "$@"; }; ${script}`];
    const options = { env: { ...env, NODE: process.execPath, MAIN: COMMAND } };
    const child = execFile('bash', args, options, (_, stdout, stderr) =>
      resolve({ code: child.exitCode, stdout, stderr }),
    );
  });
}

describe('what is not UTF-8', () => {
  test('in an argument is refused, and nothing is started', async () => {
    expect(await shell(String.raw`H run bytes -- printf 'ran %s' $'caf\xe9'`)).toEqual({
      code: 2,
      stdout: '',
      stderr: "holdfast: argument 6, $'caf\\xe9', is not UTF-8: it cannot be passed on unchanged\n",
    });
  });

  test('in the name of a lock is refused by every command', async () => {
    expect(await shell(String.raw`H inspect --json $'lock\xff'`)).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining("argument 3, $'lock\\\\xff'"),
    });
  });

  test('in a variable is refused, and nothing is started', async () => {
    expect(await shell(String.raw`STRANGE=$'caf\xe9' H run bytes -- echo ran`)).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(/^holdfast: environment variable \$'STRANGE' is not UTF-8: .*\n$/),
    });
  });
});

test('UTF-8 is passed on as it is, the character for undecodable bytes included', async () => {
  const script = String.raw`X=$'\xef\xbf\xbd' H run bytes -- sh -c 'printf %s "$1$X" | od -An -tx1' sh $'caf\xc3\xa9\xef\xbf\xbd'`;
  expect(await shell(script)).toMatchObject({
    code: 0,
    stdout: ' 63 61 66 c3 a9 ef bf bd ef bf bd\n',
    stderr: '',
  });
});
