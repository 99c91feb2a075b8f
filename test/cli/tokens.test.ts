import { describe, expect, test } from 'vitest';
import { connect } from '../../src/holdfast.ts';
import { startServer } from '../../src/server.ts';
import { runCommand } from '../support/command-run.ts';
import { onEveryLockBackend } from '../support/lock-backends.ts';

describe('holdfast tokens', () => {
  onEveryLockBackend(
    'tells the newest token, and raises tokens for all who lock there',
    async (workspace) => {
      const servers = ['--servers', `${workspace.servers.connectString}${workspace.root}`];
      const holdfast = await workspace.holdfast();
      const lease = await holdfast.mutex('a').acquire();
      const told = JSON.parse((await runCommand(['tokens', '--json', ...servers])).stdout);
      expect(BigInt(told.newest)).toBeGreaterThanOrEqual(lease.token);
      expect(told.floor).toBe('0');
      await lease.release();

      const above = lease.token + 2n ** 60n;
      const { stdout } = await runCommand(['tokens', '--raise-to', String(above), ...servers]);
      expect(stdout).toMatch(new RegExp(`^newest token {2}\\d+\nfloor {9}${above}\n$`));
      const next = await holdfast.mutex('a').acquire();
      expect(next.token).toBeGreaterThan(above);
      const shown = JSON.parse((await runCommand(['inspect', 'a', '--json', ...servers])).stdout);
      expect(shown.holders[0].token).toBe(String(next.token));
      await next.release();
      const again = await runCommand(['tokens', '--json', '--raise-to', String(lease.token), ...servers]);
      expect(JSON.parse(again.stdout).floor).toBe(String(above));
    },
  );

  test.each(['-1', '1e9', '9.5', '0x10', String(2n ** 62n + 1n)])('refuses %s', async (given) => {
    const { exitCode, stderr } = await runCommand([
      'tokens',
      `--raise-to=${given}`,
      '--servers',
      '127.0.0.1:1',
    ]);
    expect(exitCode).toBe(2);
    expect(stderr).toContain('a whole number up to 4611686018427387904');
  });

  test('moves a token by hand from one store to the next', async () => {
    await using old = await startServer();
    await using before = await connect(old.connectString);
    await using lease = await before.mutex('a').acquire();
    const told = JSON.parse((await runCommand(['tokens', '--json', '--servers', old.connectString])).stdout);
    await using fresh = await startServer();
    await runCommand(['tokens', '--raise-to', told.newest, '--servers', fresh.connectString]);
    await using after = await connect(fresh.connectString);
    await using next = await after.mutex('a').acquire();
    expect(next.token).toBeGreaterThan(BigInt(told.newest));
    expect(BigInt(told.newest)).toBeGreaterThanOrEqual(lease.token);
  });
});
