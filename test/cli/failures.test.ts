import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { startServer } from '../../src/server.ts';
import { makeCertificates } from '../support/certificates.ts';
import { runCommand } from '../support/command-run.ts';
import { onEveryLockBackend } from '../support/lock-backends.ts';
import { COMMAND, holdfast, LocalHome } from './command-process.ts';

const run = promisify(execFile);

/** A line of a shell, in which `$H` is the command. */
async function shell(
  line: string,
  servers: string,
): Promise<{ code: number; stderr: string; stdout: string }> {
  const env = { ...process.env, HOLDFAST_SERVERS: servers, H: `${process.execPath} ${COMMAND}` };
  try {
    return { code: 0, ...(await run('bash', ['-c', `set -o pipefail; ${line}`], { env })) };
  } catch (error) {
    return error as { code: number; stderr: string; stdout: string };
  }
}

describe('standard output', () => {
  onEveryLockBackend(
    'that nobody reads ends the command without a word; a full disk is said',
    async (workspace) => {
      const servers = `${workspace.servers.connectString}${workspace.root}`;
      const lease = await (await workspace.holdfast()).mutex('a').acquire();
      expect(await shell('$H ls | true', servers)).toMatchObject({ code: 141, stderr: '' });
      expect(await shell('$H ls >/dev/full', servers)).toMatchObject({
        code: 209,
        stderr: expect.stringMatching(/^holdfast: standard output: ENOSPC.*\n$/),
      });
      const json = await shell('$H ls --json >/dev/full', servers);
      expect(JSON.parse(json.stderr)).toMatchObject({ event: 'failed', exitCode: 209, code: 'ENOSPC' });
      // A follower has nothing to say for a long time, and ends when it has.
      let over = false;
      const following = shell('$H history a --follow --json | head -1', servers).finally(() => {
        over = true;
      });
      await lease.release();
      for (const mutex = (await workspace.holdfast()).mutex('a'); !over; )
        await (await mutex.acquire()).release();
      const { code, stdout } = await following;
      expect({ code, lines: stdout.trim().split('\n').length }).toEqual({ code: 141, lines: 1 });
    },
    ['embedded server'],
  );
});

describe('a certificate that is not accepted', () => {
  test('is named in the line and in JSON, by run and by the others', async () => {
    await using certificates = await makeCertificates();
    const { server: pair, otherCaFile } = certificates;
    const tls = { cert: await readFile(pair.certFile), key: await readFile(pair.keyFile) };
    const server = await startServer({ tls });
    try {
      const env = {
        HOLDFAST_SERVERS: `${server.connectString},127.0.0.1:1`,
        HOLDFAST_TLS_CA: otherCaFile,
      };
      const ended = await Promise.all([
        holdfast(['run', '--wait', '2s', 'a', 'true'], { env }).ended,
        holdfast(['run', '--json', '--wait', '2s', 'a', 'true'], { env }).ended,
        holdfast(['ls', '--json'], { env }).ended,
      ]);
      expect(ended.map(({ code }) => code)).toEqual([211, 211, 211]);
      expect(ended[0]!.stderr).toMatch(
        /^holdfast: .*unable to (verify|get).*; the server's certificate is not signed by an authority in HOLDFAST_TLS_CA\n$/,
      );
      for (const { stderr } of ended.slice(1)) {
        expect(JSON.parse(stderr)).toMatchObject({
          event: 'failed',
          exitCode: 211,
          cause: { code: expect.stringMatching(/^UNABLE_TO_/) },
        });
      }
    } finally {
      await server.stop();
    }
  });
});

describe('what cannot be', () => {
  test.each([
    [
      ['--wait', '30d'],
      {},
      /^holdfast: option '-w, --wait <duration>' argument '30d' is invalid. at most 24d/,
    ],
    [
      ['--session-timeout', '30d'],
      {},
      /'--session-timeout <duration>' argument '30d' is invalid. at most 24d/,
    ],
    [['--session-timeout', '0'], {}, /sessionTimeoutMs: 0 given/],
    [[], { HOLDFAST_SESSION_TIMEOUT: '30d' }, /HOLDFAST_SESSION_TIMEOUT: "30d" given; 1ms to 24d is allowed/],
    [
      [],
      { HOLDFAST_TLS_CA: '/etc/passwd' },
      /HOLDFAST_TLS_CA "\/etc\/passwd": certificates in PEM are needed: [^;]*no start line\n$/,
    ],
    [
      [],
      { HOLDFAST_TLS_KEY: '/etc/passwd' },
      /HOLDFAST_TLS_KEY "\/etc\/passwd": key without cert; both are needed\n$/,
    ],
  ])('is bad usage that names it, before a server is started: %j %j', async (args, env, line) => {
    await using home = await LocalHome.make(env);
    const { code, stdout, stderr } = await home.command('run', ...args, 'a', 'echo', 'ran').ended;
    expect({ code, stdout, stderr }).toEqual({ code: 2, stdout: '', stderr: expect.stringMatching(line) });
    expect(await readdir(home.folder)).toEqual([]);
  });

  test('is a program whose name is a whole script: nothing is found by that name', async () => {
    await using home = await LocalHome.make();
    const script = `${'x'.repeat(2_100)} | cat`;
    const { code, stderr } = await home.command('run', 'a', '--', script).ended;
    expect({ code, stderr }).toEqual({
      code: 127,
      stderr: expect.stringMatching(/x…: (command not found|.*name too long)\n$/),
    });
  });
});

describe('a wait of a millisecond', () => {
  test('takes a lock that is free, and says 200 of one that is taken: the connection has its time', async () => {
    await using home = await LocalHome.make();
    const run = ['run', '--wait', '1ms', 'a', '--', 'echo', 'ran'];
    for (let count = 0; count < 2; count++) {
      expect(await home.command(...run).ended).toMatchObject({ code: 0, stdout: 'ran\n' });
    }
    await using holder = home.user('hold', 'a');
    await holder.says('token');
    expect(await home.command(...run).ended).toMatchObject({ code: 200, stdout: '' });
  });
});

describe('a failure', () => {
  test('is JSON where JSON is asked for, bad usage too', async () => {
    for (const args of [
      ['ls', '--json', '--servers', 'x:y:z'],
      ['ls', '--json', '--nonsense'],
      ['inspect', '--json', 'a/b'],
    ]) {
      const { exitCode, stdout, stderr } = await runCommand(args);
      expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
      expect(JSON.parse(stderr)).toMatchObject({ event: 'failed', exitCode: 2 });
    }
  });
});
