import { describe, expect, test } from 'vitest';
import type { Finding } from '../../src/cli/doctor/finding.ts';
import { runCommand } from '../support/command-run.ts';
import { freePorts } from '../support/free-port.ts';
import { type LockWorkspace, onEveryLockBackend } from '../support/lock-backends.ts';
import { sharedEnsemble } from '../support/shared-servers.ts';

async function examined(workspace: LockWorkspace, ...args: string[]) {
  const { servers, root } = workspace;
  const { stdout, stderr, exitCode } = await runCommand([
    'doctor',
    '--json',
    '--timeout',
    '20s',
    '--servers',
    `${servers.connectString}${root}`,
    ...args,
  ]);
  expect(stderr).toBe('');
  const { verdict, findings } = JSON.parse(stdout) as { verdict: string; findings: Finding[] };
  const of = (check: string) => findings.filter((finding) => finding.check === check);
  return { verdict, exitCode, of };
}

describe('holdfast doctor', () => {
  onEveryLockBackend(
    'finds nothing wrong where nothing is, and leaves nothing behind',
    async (workspace) => {
      const { exitCode, of } = await examined(workspace);
      expect(exitCode).toBe(0);
      expect(of('server').map(({ verdict }) => verdict)).toEqual(workspace.servers.endpoints.map(() => 'ok'));
      for (const check of [
        'ensemble',
        'lock',
        'deadlocks',
        'queues',
        'orphans',
        'foreign',
        'sequence',
        'clock',
      ]) {
        expect(of(check)).toMatchObject([{ verdict: 'ok' }]);
      }
      expect(await workspace.admin.children('/locks')).toEqual([]);
    },
    ['embedded server', 'ZooKeeper standalone', 'ZooKeeper ensemble'],
  );

  onEveryLockBackend('sees what is wrong with locks, and says what to do', async (workspace) => {
    const { admin } = workspace;
    const id = '_c_3f1c8a52-6a5b-4a53-8a0d-0f6a3d1c9b11-lock-0000000000';
    await admin.ensurePath('/locks/stays');
    await admin.create(`/locks/stays/${id}`, '');
    await admin.ensurePath('/locks/strange');
    await admin.create('/locks/strange/6f__lock__0000000001', '');
    await admin.ensurePath('/holdfast/batons/forged');
    const { exitCode, verdict, of } = await examined(workspace);
    expect({ exitCode, verdict }).toEqual({ exitCode: 1, verdict: 'fail' });
    expect(of('orphans')).toMatchObject([
      { verdict: 'fail', detail: expect.stringContaining(id) },
      { verdict: 'warn' },
    ]);
    expect(of('foreign')).toMatchObject([{ verdict: 'warn', detail: expect.stringContaining('kazoo') }]);
    await admin.deleteTree('/holdfast');
  });

  onEveryLockBackend(
    'compares the session with syncLimit × tickTime',
    async (workspace) => {
      const short = await examined(workspace, '--session-timeout', '1s');
      expect(short.of('session-timeout')).toMatchObject([
        { verdict: 'warn', detail: expect.stringMatching(/^1000 ms; .*\d+ ms/) },
      ]);
      const long = await examined(workspace);
      expect(long.of('session-timeout')).toMatchObject([{ verdict: 'ok' }]);
    },
    ['ZooKeeper ensemble'],
  );

  onEveryLockBackend('says that it may not write where it may not', async (workspace) => {
    await workspace.admin.ensurePath('/locks');
    await workspace.admin.setAcl('/locks', [{ scheme: 'world', id: 'anyone', permissions: ['read'] }]);
    const { exitCode, of } = await examined(workspace);
    expect(exitCode).toBe(1);
    expect(of('lock')).toMatchObject([{ verdict: 'fail', advice: expect.stringContaining('credentials') }]);
    const looking = await examined(workspace, '--read-only');
    expect(looking.exitCode).toBe(0);
    expect(looking.of('lock')).toMatchObject([{ verdict: 'skip' }]);
  });

  test('says which servers do not answer, and ends with 204 if none does', async () => {
    const nobody = `127.0.0.1:${(await freePorts(1))[0]}`;
    const one = await runCommand([
      'doctor',
      '--timeout',
      '3s',
      '--servers',
      `${sharedEnsemble().connectString},${nobody}`,
    ]);
    expect(one.exitCode).toBe(1);
    expect(one.stdout).toMatch(new RegExp(`^fail +server +${nobody}: .*ECONNREFUSED`, 'm'));
    expect(one.stdout.match(/^ok +server /gm)).toHaveLength(3);
    const none = await runCommand(['doctor', '--timeout', '1s', '--servers', nobody]);
    expect(none.exitCode).toBe(204);
    expect(none.stdout).toMatch(/^ +→ see that it runs/m);
  });
});
