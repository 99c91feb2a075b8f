import { describe, expect } from 'vitest';
import type { LockLease } from '../../src/holdfast.ts';
import { type AclEntry, digestId } from '../../src/zookeeper.ts';
import { runCommand, withoutVariables } from '../support/command-run.ts';
import { parseDot } from '../support/dot-reader.ts';
import { type LockWorkspace, onEveryLockBackend } from '../support/lock-backends.ts';
import { until } from '../support/until.ts';

const serversOf = ({ servers, root }: LockWorkspace) => ['--servers', `${servers.connectString}${root}`];

/** A few locks of three programs, waits included. */
async function scene(workspace: LockWorkspace) {
  const [billing, report] = await Promise.all([
    workspace.holdfast({ app: 'billing' }),
    workspace.holdfast({ app: '会員' }),
  ]);
  const stop = new AbortController();
  const over = new Promise((resolve) => stop.signal.addEventListener('abort', resolve, { once: true }));
  const waits: Promise<unknown>[] = [];
  const wait = (acquiring: Promise<LockLease>) => {
    waits.push(acquiring.then((lease) => over.then(() => lease.release())).catch(() => {}));
  };
  const leases = [
    await billing!.mutex('member-123').acquire({ reason: 'charge' }),
    await report!.readWriteLock('catalogue').read.acquire({ reason: 'look\x1b[2J\nhere' }),
    await report!.semaphore('exports', { permits: 2 }).acquire({ permits: 2 }),
    await billing!.election('scheduler', { id: 'node-7' }).campaign(),
    await billing!.simpleLock('textbook').acquire(),
  ];
  wait(report!.mutex('member-123').acquire({ signal: stop.signal }));
  await workspace.untilEntries('member-123', 2);
  wait(billing!.readWriteLock('catalogue').write.acquire({ signal: stop.signal }));
  await workspace.untilEntries('catalogue', 2);
  wait(billing!.semaphore('exports', { permits: 2 }).acquire({ signal: stop.signal }));
  await until('a waiter for exports', async () => (await billing!.inspect('exports')).queue.length === 1);
  await (await billing!.mutex('was-used').acquire()).release();
  return {
    billing: billing!,
    report: report!,
    async [Symbol.asyncDispose]() {
      stop.abort(new Error('over'));
      await Promise.all(waits);
      await Promise.all(leases.map((lease) => lease.release()));
    },
  };
}

describe('holdfast ls', () => {
  onEveryLockBackend('shows every lock in use: kind, holder, who waits, why', async (workspace) => {
    await using _scene = await scene(workspace);
    const { stdout, stderr, exitCode } = await runCommand(['ls', ...serversOf(workspace)]);
    expect(withoutVariables(stdout).split('\n')).toEqual([
      'LOCK  KIND  HOLDER  JOINED  WAITING  WHY',
      'catalogue  read-write  会員@<host>  <age>  1  look\\x1b[2J\\nhere',
      'exports  semaphore  会員@<host> and 1 more  <age>  1',
      'member-123  mutex  billing@<host>  <age>  1  charge',
      'scheduler  election  node-7  <age>  0',
      'textbook  simple  billing@<host>  <age>  0',
      '',
    ]);
    expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 0 });
  });

  onEveryLockBackend(
    'filters by pattern, shows free ones on demand, and speaks JSON',
    async (workspace) => {
      await using _scene = await scene(workspace);
      const { stdout } = await runCommand(['ls', '--json', '--all', 'w?s-*', ...serversOf(workspace)]);
      expect(JSON.parse(stdout)).toEqual({
        locks: [{ name: 'was-used', kind: 'free', holders: [], queue: [], foreign: [], numbered: 1 }],
      });
      const member = JSON.parse(
        (await runCommand(['ls', '--json', 'member-*', ...serversOf(workspace)])).stdout,
      );
      expect(member.locks[0].holders[0]).toEqual({
        id: expect.stringMatching(/^_c_.*-lock-0000000000$/),
        role: 'exclusive',
        token: expect.stringMatching(/^\d+$/),
        session: expect.stringMatching(/^0x[0-9a-f]+$/),
        joined: expect.stringMatching(/^\d{4}-.*Z$/),
        owner: expect.objectContaining({ app: 'billing', reason: 'charge', pid: process.pid }),
      });
      const none = await runCommand(['ls', 'no-*', ...serversOf(workspace)]);
      expect(none).toEqual({ exitCode: 0, stdout: 'No lock is held or waited for.\n', stderr: '' });
    },
    ['embedded server'],
  );
});

describe('a folder that may not be read', () => {
  const nobody = [
    { scheme: 'digest', id: digestId('somebody', 'else'), permissions: ['all'] },
  ] as const satisfies readonly AclEntry[];

  onEveryLockBackend('hides itself and no other lock', async (workspace) => {
    const [holdfast, other] = await workspace.holdfasts(2, { app: 'billing' });
    const lease = await holdfast!.mutex('seen').acquire();
    const stop = new AbortController();
    const waiting = other!
      .mutex('seen')
      .acquire({ signal: stop.signal })
      .catch(() => {});
    await workspace.untilEntries('seen', 2);
    await workspace.admin.create('/locks/hidden', '', { acl: nobody });
    const run = (...args: string[]) => runCommand([...args, ...serversOf(workspace)]);
    try {
      const listed = await run('ls');
      expect(withoutVariables(listed.stdout)).toMatch(
        /^hidden {2}unreadable {2}- {2}- {2}0 {2}.*no auth\nseen {2}mutex {2}billing@<host> .*$/m,
      );
      expect(listed).toMatchObject({ exitCode: 0, stderr: '' });
      const { locks } = JSON.parse((await run('ls', '--json')).stdout);
      expect(locks).toMatchObject([
        { name: 'hidden', kind: 'unreadable', holders: [], problem: { code: 'ZK_NO_AUTH' } },
        { name: 'seen', kind: 'mutex' },
      ]);
      expect((await run('top')).stdout).toMatch(/^seen .*\nhidden /m);
      expect(await run('graph')).toMatchObject({
        exitCode: 0,
        stdout: expect.stringMatching(
          /^billing@.* seen .*\nnot readable, and left out: hidden \(.*no auth\)\n$/m,
        ),
      });
      expect(JSON.parse((await run('graph', '--json')).stdout)).toMatchObject({
        waits: [{ lock: 'seen' }],
        unreadable: [{ name: 'hidden', code: 'ZK_NO_AUTH' }],
      });
      const { findings } = JSON.parse((await run('doctor', '--json')).stdout);
      expect(findings).toContainEqual(
        expect.objectContaining({
          check: 'unreadable',
          verdict: 'warn',
          detail: expect.stringContaining('hidden'),
        }),
      );
      expect(findings).toContainEqual(expect.objectContaining({ check: 'queues' }));
      expect(await run('inspect', 'hidden')).toMatchObject({ exitCode: 205, stdout: '' });
    } finally {
      await workspace.admin.delete('/locks/hidden');
      stop.abort(new Error('over'));
      await waiting;
      await lease.release();
    }
  });

  onEveryLockBackend('nor does a contender whose data may not be read', async (workspace) => {
    const [secret, open] = [
      await workspace.holdfast({ acl: nobody }),
      await workspace.holdfast({ app: 'open' }),
    ];
    const lease = await secret.mutex('a').acquire();
    const stop = new AbortController();
    const waiting = open
      .mutex('a')
      .acquire({ signal: stop.signal })
      .catch(() => {});
    await workspace.untilEntries('a', 2);
    const { holders, queue } = await open.inspect('a');
    expect(holders).toMatchObject([
      { id: expect.stringMatching(/lock-0000000000$/), owner: {}, unreadable: true },
    ]);
    // Real ZooKeeper tells what a node is; the embedded server hides that too.
    const known = { token: lease.token, session: secret.zk.session.id };
    expect([known, { token: 0n, session: 0n }]).toContainEqual({
      token: holders[0]!.token,
      session: holders[0]!.session,
    });
    expect(queue).toMatchObject([{ owner: { app: 'open' } }]);
    const listed = await runCommand(['ls', ...serversOf(workspace)]);
    expect(listed.stdout).toMatch(/^a +mutex +(session 0x[0-9a-f]+, )?not readable /m);
    stop.abort(new Error('over'));
    await waiting;
    await lease.release();
  });

  onEveryLockBackend(
    'if it is the root, the doctor still tells of the servers',
    async (workspace) => {
      await workspace.admin.create('/closed', '', { acl: nobody });
      const args = ['--root', '/closed', ...serversOf(workspace)];
      const { exitCode, stdout } = await runCommand(['doctor', '--json', ...args]);
      const { findings } = JSON.parse(stdout);
      expect(exitCode).toBe(1);
      expect(findings).toContainEqual(expect.objectContaining({ check: 'server', verdict: 'ok' }));
      expect(findings).toContainEqual(expect.objectContaining({ check: 'unreadable', verdict: 'fail' }));
      expect(await runCommand(['ls', ...args])).toMatchObject({ exitCode: 205, stdout: '' });
      await workspace.admin.delete('/closed');
    },
    ['embedded server'],
  );

  onEveryLockBackend(
    'if it is a record, it does not hide the history',
    async (workspace) => {
      const holdfast = await workspace.holdfast({ app: 'billing' });
      const lease = await holdfast.mutex('a').acquire();
      await holdfast.revoke('a', { reason: 'deploying' });
      await workspace.admin.create('/holdfast/audit/a/record-0', '', { acl: nobody });
      const history = await runCommand(['history', 'a', ...serversOf(workspace)]);
      expect(history).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('deploying') });
      await workspace.admin.delete('/holdfast/audit/a/record-0');
      await lease.release();
    },
    ['embedded server'],
  );
});

describe('holdfast inspect', () => {
  onEveryLockBackend('shows the queue of one lock, in the order of turns', async (workspace) => {
    await using _scene = await scene(workspace);
    const { stdout } = await runCommand(['inspect', 'member-123', ...serversOf(workspace)]);
    expect(withoutVariables(stdout).split('\n')).toEqual([
      'member-123: mutex, held by 1, 1 waiting',
      'PLACE  WHO  ROLE  JOINED  TOKEN  SESSION  ID  WHY',
      'holds  billing@<host>  exclusive  <age>  <token>  <session>  _c_<uuid>-lock-0000000000  charge',
      '1st in line  会員@<host>  exclusive  <age>  <token>  <session>  _c_<uuid>-lock-0000000001',
      '',
    ]);
  });

  onEveryLockBackend(
    'fits a terminal, ids below, and can be told what no lock is',
    async (workspace) => {
      await using _scene = await scene(workspace);
      const { stdout } = await runCommand(['inspect', 'member-123', ...serversOf(workspace)], {
        columns: 80,
        env: { NO_COLOR: '1' },
      });
      const lines = stdout.trimEnd().split('\n');
      expect(lines.every((line) => line.length <= 80)).toBe(true);
      expect(lines.at(-1)).toMatch(/^id of the holder: _c_.*-lock-0000000000$/);
      expect((await runCommand(['inspect', 'nothing', ...serversOf(workspace)])).stdout).toBe(
        'nothing: free\n',
      );
      const wrong = await runCommand(['inspect', 'a/b', '--servers', '127.0.0.1:1']);
      expect(wrong).toEqual({
        exitCode: 2,
        stdout: '',
        stderr: expect.stringMatching(/^holdfast: .*it has a \/\n$/),
      });
    },
    ['embedded server'],
  );
});

describe('holdfast graph', () => {
  onEveryLockBackend('finds a deadlock, says who is in it, and exits with 1', async (workspace) => {
    const [one, two, three] = await workspace.holdfasts(3);
    const leases = [await one!.mutex('a').acquire(), await two!.mutex('b').acquire()];
    const calm = await runCommand(['graph', ...serversOf(workspace)]);
    expect(calm).toEqual({ exitCode: 0, stdout: 'Nobody waits.\n', stderr: '' });
    const stop = new AbortController();
    const waits = [
      one!.mutex('b').acquire({ signal: stop.signal }),
      two!.mutex('a').acquire({ signal: stop.signal }),
    ];
    await workspace.untilEntries('a', 2);
    await workspace.untilEntries('b', 2);
    waits.push(three!.mutex('a').acquire({ signal: stop.signal }));
    await workspace.untilEntries('a', 3);

    const { exitCode, stdout } = await runCommand(['graph', '--json', ...serversOf(workspace)]);
    expect(exitCode).toBe(1);
    const hex = (holdfast: typeof one) => `0x${holdfast!.zk.session.id.toString(16)}`;
    const graph = JSON.parse(stdout);
    expect(graph.deadlocks.map((group: string[]) => group.sort())).toEqual([[hex(one), hex(two)].sort()]);
    expect(graph.stuck).toEqual([hex(three)]);
    expect(graph.waits).toHaveLength(3);

    const people = await runCommand(['graph', ...serversOf(workspace)]);
    expect(people.stdout).toMatch(/^2 sessions wait for each other, for \d+(ms|s):$/m);
    expect(people.stdout).toMatch(/behind a deadlock/);
    const dot = await runCommand(['graph', '--dot', ...serversOf(workspace)]);
    expect(parseDot(dot.stdout)).toEqual({
      nodes: expect.arrayContaining([hex(one), hex(two), hex(three)]),
      edges: expect.arrayContaining([
        [hex(one), hex(two), 'b'],
        [hex(two), hex(one), 'a'],
        [hex(three), hex(one), 'a'],
      ]),
    });
    stop.abort(new Error('over'));
    await Promise.allSettled(waits);
    await Promise.all(leases.map((lease) => lease.release()));
    expect((await runCommand(['graph', ...serversOf(workspace)])).exitCode).toBe(0);
  });
});

describe('holdfast revoke', () => {
  onEveryLockBackend('asks the holder, who is told; with a reason, history is made', async (workspace) => {
    const holdfast = await workspace.holdfast();
    const lease = await holdfast.mutex('a').acquire();
    const { revocation } = lease;
    const told = new Promise((resolve) => revocation.addEventListener('abort', resolve, { once: true }));
    await workspace.untilWatched('a');
    const asked = await runCommand(['revoke', 'a', '--reason', 'deploying', ...serversOf(workspace)]);
    expect(asked).toEqual({ exitCode: 0, stdout: 'a: asked 1 holder to let go\n', stderr: '' });
    await told;
    expect(revocation.reason.code).toBe('LOCK_REVOKED');
    expect(await holdfast.audit('a')).toMatchObject([{ action: 'asked', reason: 'deploying' }]);
    await lease.release();
    const nobody = await runCommand(['revoke', 'a', '--json', ...serversOf(workspace)]);
    expect(nobody).toEqual({ exitCode: 1, stdout: '{"lock":"a","asked":0}\n', stderr: '' });
  });

  onEveryLockBackend(
    'does not ask a leader: 206',
    async (workspace) => {
      const holdfast = await workspace.holdfast();
      const leadership = await holdfast.election('e').campaign();
      const refused = await runCommand(['revoke', 'e', ...serversOf(workspace)]);
      expect(refused).toEqual({
        exitCode: 206,
        stdout: '',
        stderr: 'holdfast: lock e: a leader cannot be asked to let go\n',
      });
      await leadership.resign();
    },
    ['embedded server'],
  );
});

describe('holdfast release', () => {
  onEveryLockBackend(
    'takes the lock from exactly that holder, and the record says why',
    async (workspace) => {
      await using world = await scene(workspace);
      const [id] = (await world.report.inspect('member-123')).holders.map((holder) => holder.id);
      for (const wrong of ['x', `${id}9`]) {
        const refused = await runCommand([
          'release',
          'member-123',
          '--id',
          wrong,
          '--reason',
          'r',
          ...serversOf(workspace),
        ]);
        expect(refused).toMatchObject({
          exitCode: 1,
          stdout: '',
          stderr: expect.stringContaining(`held by ${id}`),
        });
      }
      const { exitCode, stdout } = await runCommand([
        'release',
        'member-123',
        '--id',
        id!,
        '--reason',
        'host is gone',
        '--json',
        ...serversOf(workspace),
      ]);
      expect(exitCode).toBe(0);
      expect(JSON.parse(stdout)).toMatchObject({
        action: 'released',
        holder: id,
        reason: 'host is gone',
        owner: { app: 'billing' },
      });
      const { holders } = await world.report.inspect('member-123');
      expect(holders.map(({ owner }) => owner.app)).toEqual(['会員']);
      expect(await world.report.audit('member-123')).toHaveLength(1);
    },
  );

  onEveryLockBackend(
    'needs an id and a reason',
    async (workspace) => {
      for (const args of [
        ['--id', 'x'],
        ['--reason', 'y'],
        ['--id', 'x', '--reason', ' '],
      ]) {
        const { exitCode, stderr } = await runCommand(['release', 'a', ...args, ...serversOf(workspace)]);
        expect({ exitCode, lines: stderr.trimEnd().split('\n').length }).toEqual({ exitCode: 2, lines: 1 });
      }
    },
    ['embedded server'],
  );
});
