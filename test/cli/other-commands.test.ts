import { execFileSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { COMMANDS } from '../../src/cli/commands.ts';
import { displayWidth } from '../../src/cli/terminal/display-width.ts';
import { CommandProcess } from '../support/command-process.ts';
import { runCommand } from '../support/command-run.ts';
import { type LockWorkspace, onEveryLockBackend } from '../support/lock-backends.ts';
import { until } from '../support/until.ts';
import { holdfast, LocalHome } from './command-process.ts';

const serversOf = ({ servers, root }: LockWorkspace) => ['--servers', `${servers.connectString}${root}`];

describe('holdfast history', () => {
  onEveryLockBackend(
    'shows requests and takings with who, whom and why, and who holds now',
    async (workspace) => {
      const holdfast = await workspace.holdfast({ app: 'billing' });
      const nothing = await runCommand(['history', 'a', ...serversOf(workspace)]);
      expect(nothing.stdout).toBe('Nothing is known of it.\n');
      await holdfast.mutex('a').acquire();
      const [first] = (await holdfast.inspect('a')).holders;
      await holdfast.revoke('a', { reason: 'deploying', by: 'ops' });
      await holdfast.forceRelease('a', { holder: first!.id, reason: 'hung\x1b[31m', by: 'ops' });
      const lease = await holdfast.mutex('a').acquire({ reason: 'again' });
      const { stdout } = await runCommand(['history', 'a', ...serversOf(workspace)]);
      expect(stdout.replaceAll(/^\S+Z|@\S+:\d+|(?<=token )\d+/gm, '…').split('\n')).toEqual([
        '…  asked     billing…, by ops: deploying',
        '…  taken     from billing…, by ops: hung\\x1b[31m',
        '…  holds     billing…, token …, since before this was looked at: again',
        '',
      ]);
      const json = (await runCommand(['history', 'a', '--json', ...serversOf(workspace)])).stdout;
      const events = json
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line));
      expect(events).toMatchObject([
        { event: 'asked', by: 'ops', holder: first!.id },
        { event: 'released', by: 'ops', holder: first!.id },
        { event: 'holds', lock: 'a', fromStart: false, holder: { owner: { reason: 'again' } } },
      ]);
      await lease.release();
    },
  );

  onEveryLockBackend(
    'follows: each hold as it begins and ends, until it is told to stop',
    async (workspace) => {
      const holdfast = await workspace.holdfast();
      await using following = new CommandProcess([
        'history',
        'a',
        '--follow',
        '--json',
        ...serversOf(workspace),
      ]);
      const events = () =>
        following.stdout
          .split('\n')
          .slice(0, -1)
          .map((line) => JSON.parse(line));
      const first = await holdfast.mutex('a').acquire();
      await until('the first hold to be told', () => events().length >= 1);
      await first.release();
      await until('its end to be told', () => events().length >= 2);
      const second = await holdfast.mutex('a').acquire();
      await until('the second hold to be told', () => events().length >= 3);
      following.kill('SIGINT');
      expect(await following.exited()).toBe(0);
      expect(events()).toMatchObject([
        { event: 'holds', holder: { token: String(first.token) } },
        { event: 'ended', holder: { token: String(first.token) } },
        { event: 'holds', fromStart: true, holder: { token: String(second.token) } },
      ]);
      await second.release();
    },
  );
});

describe('holdfast history --follow', () => {
  onEveryLockBackend(
    'tells who asked for a lock and who took it, why, and that it was asked for without a reason',
    async (workspace) => {
      const holdfast = await workspace.holdfast({ app: 'billing' });
      const args = ['history', 'a', '--follow', ...serversOf(workspace)];
      await using people = new CommandProcess(args);
      await using programs = new CommandProcess([...args, '--json']);
      const lease = await holdfast.mutex('a').acquire();
      await Promise.all([people.untilSaid(/ holds /), programs.untilSaid(/"holds"/)]);
      await holdfast.revoke('a', { reason: 'deploying\u202e', by: 'ops' });
      await people.untilSaid(/ asked {5}billing@\S+, by ops: deploying\\u\{202e\}\n/);
      await programs.untilSaid(/"asked"/);
      const [holder] = (await holdfast.inspect('a')).holders;
      await holdfast.forceRelease('a', { holder: holder!.id, reason: 'hung', by: 'boss' });
      await people.untilSaid(/ taken {5}from billing@\S+, by boss: hung\n.* let go {4}billing@/);
      await lease.release();
      const second = await holdfast.mutex('a').acquire();
      await people.untilSaid(/(holds (?:.|\n)*){2}/);
      await holdfast.revoke('a');
      await people.untilSaid(/ asked {5}billing@\S+, without a reason\n/);
      await second.release();
      expect(
        programs.stdout
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line).event)
          .slice(0, 4),
      ).toEqual(['holds', 'asked', 'released', 'ended']);
    },
  );

  onEveryLockBackend(
    'goes on over an outage that is longer than any patience, and draws the gap',
    async (workspace) => {
      const { holdfast, proxy } = await workspace.faulty();
      const lease = await (await workspace.holdfast()).mutex('a').acquire();
      const args = [
        '--json',
        '--session-timeout',
        '4s',
        '--servers',
        `${proxy.connectString}${workspace.root}`,
      ];
      await using following = new CommandProcess(['history', 'a', '--follow', ...args]);
      await following.untilSaid(/"holds"/);
      proxy.refuse();
      proxy.resetAll();
      await following.untilSaid(/"gap"/);
      // Longer than the 15 s for which a connection is waited for by default.
      await new Promise((resolve) => setTimeout(resolve, 16_000));
      expect(following.exitCode).toBeUndefined();
      await lease.release();
      proxy.heal();
      await following.untilSaid(/"back"(?:.|\n)*"ended"/);
      following.kill('SIGINT');
      expect(await following.exited()).toBe(0);
      const events = following.stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line));
      expect(events).toMatchObject([
        { event: 'holds' },
        { event: 'gap', lock: 'a' },
        { event: 'back', gapMs: expect.any(Number) },
        { event: 'ended' },
      ]);
      expect(events[2].gapMs).toBeGreaterThan(15_000);
      await holdfast.close();
    },
    ['embedded server'],
    60_000,
  );
});

describe('holdfast elect', () => {
  onEveryLockBackend(
    'runs the command while leading, as the candidate that was named',
    async (workspace) => {
      const script = 'echo "$HOLDFAST_LOCK $HOLDFAST_TOKEN"; read _ < /dev/null; sleep 30';
      await using leading = new CommandProcess([
        'elect',
        'e',
        '--id',
        'web-3',
        ...serversOf(workspace),
        '--',
        'sh',
        '-c',
        script,
      ]);
      const [, epoch] = await leading.untilSaid(/^e (\d+)$/m);
      const observer = await workspace.holdfast();
      await using listening = new CommandProcess([
        'elect',
        'e',
        '--listen',
        '--json',
        ...serversOf(workspace),
      ]);
      await listening.untilSaid(/\n/);
      expect(JSON.parse(listening.stdout)).toEqual({ leader: 'web-3', epoch });
      const busy = await runCommand(['elect', 'e', '--try', ...serversOf(workspace), '--', 'true']);
      expect(busy.exitCode).toBe(200);
      leading.kill('SIGTERM');
      expect(await leading.exited()).toBe(143);
      await listening.untilSaid(/"leader":null/);
      expect((await observer.inspect('e')).holders).toEqual([]);
      listening.kill('SIGINT');
      await listening.exited();
    },
    ['embedded server'],
  );

  test.each([
    [['elect', 'a/b', '--', 'true'], /it has a \//],
    [['elect', 'e'], /a command to run is needed/],
    [['elect', 'e', '--listen', '--', 'true'], /--listen runs no command/],
  ])('%j is bad usage', async (args, message) => {
    const { exitCode, stderr } = await runCommand([
      ...args.slice(0, 1),
      '--servers',
      '127.0.0.1:1',
      ...args.slice(1),
    ]);
    expect(exitCode).toBe(2);
    expect(stderr).toMatch(message);
  });
});

describe('holdfast bench', () => {
  onEveryLockBackend(
    'measures three scenarios, and leaves no lock behind',
    async (workspace) => {
      const { stdout, exitCode } = await runCommand([
        'bench',
        '--duration',
        '300ms',
        '--json',
        ...serversOf(workspace),
      ]);
      expect(exitCode).toBe(0);
      const { scenarios } = JSON.parse(stdout);
      expect(scenarios.map(({ name }: { name: string }) => name)).toEqual(['solo', 'parallel', 'contended']);
      for (const { acquireMs } of scenarios) {
        expect(Object.keys(acquireMs)).toEqual(['p50', 'p95', 'p99', 'max']);
      }
      expect(await workspace.admin.children('/locks')).toEqual([]);
      const wrong = await runCommand(['bench', '--duration', '1ms', ...serversOf(workspace)]);
      expect(wrong).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('100ms to 10m') });
    },
    ['embedded server'],
  );
});

describe('holdfast top', () => {
  onEveryLockBackend(
    'prints once where there is no terminal, most waited-for first',
    async (workspace) => {
      const [one, two] = await workspace.holdfasts(2);
      const leases = [await one!.mutex('calm').acquire(), await one!.mutex('wanted').acquire()];
      const stop = new AbortController();
      const waiting = two!
        .mutex('wanted')
        .acquire({ signal: stop.signal })
        .catch(() => {});
      await workspace.untilEntries('wanted', 2);
      const { stdout } = await runCommand(['top', ...serversOf(workspace)]);
      expect(stdout.split('\n').map((line) => line.split(' ')[0])).toEqual(['LOCK', 'wanted', 'calm', '']);
      stop.abort(new Error('over'));
      await waiting;
      await Promise.all(leases.map((lease) => lease.release()));
    },
    ['embedded server'],
  );
});

describe('holdfast completion', () => {
  /** What bash offers for a line, the last word of which is being typed. */
  function bashOffers(script: string, ...words: string[]): string[] {
    const quoted = words.map((word) => `'${word}'`).join(' ');
    const ask = `COMP_WORDS=(${quoted}); COMP_CWORD=${words.length - 1}; _holdfast; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const answer = execFileSync('bash', ['--norc', '-c', `${script}\n${ask}`], { encoding: 'utf8' });
    return answer.split('\n').filter((line) => line !== '');
  }

  test('makes bash offer commands, subcommands, options and choices', async () => {
    const { stdout: script, exitCode } = await runCommand(['completion', 'bash']);
    expect(exitCode).toBe(0);
    const names = COMMANDS.map(({ name }) => name);
    expect(bashOffers(script, 'holdfast', '')).toEqual([...names, 'help', '--help', '--version']);
    expect(bashOffers(script, 'holdfast', 're')).toEqual(['revoke', 'release']);
    expect(bashOffers(script, 'holdfast', 'demo', 'h')).toEqual(['herd']);
    expect(bashOffers(script, 'holdfast', 'demo', 'herd', '--s')).toEqual([
      '--servers',
      '--session-timeout',
      '--svg',
    ]);
    expect(bashOffers(script, 'holdfast', 'completion', '')).toEqual(expect.arrayContaining(['bash', 'zsh']));
    expect(bashOffers(script, 'holdfast', 'run', '--on-suspend', '')).toEqual(['pause', 'term', 'ignore']);
    expect(bashOffers(script, 'holdfast', 'run', 'a', '--', 'tru')).toContain('true');
  });

  onEveryLockBackend(
    'makes bash and zsh offer the names of locks, and only those that are plain words',
    async (workspace) => {
      const leases = [];
      const hostile = ['$(touch x)', 'a b', '-rf', '`id`', "it's"];
      for (const name of ['nightly', 'night-2', 'Über', ...hostile]) {
        leases.push(await (await workspace.holdfast()).mutex(name).acquire());
      }
      const env = { HOLDFAST_SERVERS: `${workspace.servers.connectString}${workspace.root}` };
      const { stdout: names, exitCode } = await runCommand(['completion', 'locks'], { env });
      expect({ exitCode, names }).toEqual({ exitCode: 0, names: 'night-2\nnightly\nÜber\n' });
      await Promise.all(leases.map((lease) => lease.release()));

      const { stdout: bash } = await runCommand(['completion', 'bash']);
      const stub = `holdfast() { printf '%s\\n' night-2 nightly '$(echo hurt)'; }`;
      const offers = (...words: string[]) => bashOffers(`${bash}\n${stub}`, 'holdfast', ...words);
      expect(offers('inspect', 'nightl')).toEqual(['nightly']);
      expect(offers('run', '--wait', '3s', 'night')).toEqual(['night-2', 'nightly']);
      expect(offers('run', '--wait', 'night')).toEqual([]);
      expect(offers('run', 'nightly,nig')).toEqual(['nightly,night-2', 'nightly,nightly']);
      expect(offers('release', '$')).toEqual(['$(echo hurt)']);
      expect(offers('inspect', 'nightly', 'nig')).toEqual([]);
      expect(offers('inspect', '--js')).toEqual(['--json']);

      const { stdout: zsh } = await runCommand(['completion', 'zsh']);
      const ask = `compdef() {}; compset() {}; compadd() { print -l -- \${(P)2} }; ${stub}\n${zsh}\n_holdfast_locks`;
      const answer = execFileSync('zsh', ['-f', '-c', ask], { encoding: 'utf8' });
      expect(answer).toBe('night-2\nnightly\n$(echo hurt)\n');
      expect(zsh).toMatch(/ {8}inspect\) _arguments .*'1:lock:_holdfast_locks' ;;/);
      expect(zsh).toMatch(/ {8}run\) _arguments .*'1:lock:_holdfast_locks' '\*::command:_normal' ;;/);
    },
    ['embedded server'],
  );

  test('has no names, and starts nothing, where no server answers', async () => {
    await using home = await LocalHome.make();
    expect(await home.command('completion', 'locks').ended).toMatchObject({
      code: 0,
      stdout: '',
      stderr: '',
    });
    expect(() => home.server).toThrow('no local server runs');
    const env = { HOLDFAST_SERVERS: '127.0.0.1:1' };
    expect(await holdfast(['completion', 'locks'], { env }).ended).toMatchObject({
      code: 0,
      stdout: '',
      stderr: '',
    });
  });

  test('makes a script that zsh accepts, with every command in it', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-zsh-'));
    try {
      const { stdout: script } = await runCommand(['completion', 'zsh']);
      const file = join(folder, '_holdfast');
      await writeFile(file, script);
      execFileSync('zsh', ['-f', '-n', file]);
      const load = `autoload -U compinit; compinit -u -D; source ${file}; print -r -- $_comps[holdfast]`;
      expect(execFileSync('zsh', ['-f', '-c', load], { encoding: 'utf8' })).toBe('_holdfast\n');
      for (const { name, summary } of COMMANDS) expect(script).toContain(`'${name}:${summary}'`);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  test('knows no other shell', async () => {
    const { exitCode, stderr } = await runCommand(['completion', 'fish']);
    expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: expect.stringContaining('bash, zsh') });
  });
});

describe('every command', () => {
  test.each(COMMANDS.map(({ name }) => name))('%s --help has examples', async (name) => {
    const { exitCode, stdout } = await runCommand([name, '--help']);
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^Examples:\n {2}\S/m);
    const onTerminal = await runCommand([name, '--help'], { columns: 72 });
    for (const line of onTerminal.stdout.split('\n')) expect(displayWidth(line)).toBeLessThanOrEqual(72);
  });
});
