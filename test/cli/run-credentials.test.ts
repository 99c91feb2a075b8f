import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { acls, connect } from '../../src/zookeeper.ts';
import { COMMAND, holdfast } from './command-process.ts';
import { RunScene } from './run-scene.ts';

const SECRET = 'digest:anna:right';
const SELF = `'${process.execPath}' '${COMMAND}'`;
let scene: RunScene;

beforeAll(async () => {
  scene = await RunScene.open();
  await using zk = await connect(scene.server.connectString, {
    auth: [{ scheme: 'digest', auth: 'anna:right' }],
  });
  await zk.create('/vault', '', { acl: acls.creatorOnly });
});
afterAll(() => scene[Symbol.asyncDispose]());

const run = (script: string, ...options: string[]) =>
  holdfast(['run', '--root', '/vault', ...options, 'a', '--', 'sh', '-c', script], {
    env: {
      HOLDFAST_SERVERS: scene.server.connectString,
      HOLDFAST_ROOT: '/vault',
      HOLDFAST_AUTH: SECRET,
    },
  }).ended;

describe('the credentials of a run', () => {
  test('are not in the environment of its command, nor of the runs inside it, which work all the same', async () => {
    const { code, stdout, stderr } = await run(
      `env; ${SELF} ls; ${SELF} run b -- sh -c "env; ${SELF} run c -- echo innermost"`,
    );
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).not.toContain('right');
    expect(stdout).not.toContain('HOLDFAST_AUTH');
    expect(stdout).toMatch(/^a +mutex .*\n/m);
    expect(stdout).toMatch(/\ninnermost\n$/);
  });

  test('are passed where that is asked for, also by a run inside another', async () => {
    const { stdout } = await run('echo "1 $HOLDFAST_AUTH"', '--pass-auth');
    expect(stdout).toBe(`1 ${SECRET}\n`);
    const inner = await run(`${SELF} run --pass-auth b -- sh -c 'echo "2 $HOLDFAST_AUTH"'`);
    expect(inner).toMatchObject({ stdout: `2 ${SECRET}\n`, stderr: '' });
  });

  test('that cannot be had, since the run above is gone, are missed in one line', async () => {
    const held = JSON.stringify([{ session: '0x1', token: '1', locks: ['x'], door: '/nowhere/door' }]);
    const { code, stderr } = await holdfast(['run', '--root', '/vault', 'fresh', 'true'], {
      env: { HOLDFAST_SERVERS: scene.server.connectString, HOLDFAST_HELD: held },
    }).ended;
    expect(code).toBe(205);
    expect(stderr).toMatch(/^holdfast: .*\n$/);
  });
});
