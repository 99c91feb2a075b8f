import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Guardian } from './guardian.ts';
import type { Watched } from './guardian-main.ts';
import { MARK_VARIABLE } from './process-tree.ts';

const MAIN = fileURLToPath(new URL('./guardian-main.ts', import.meta.url));

const WATCHED: Watched = {
  tree: { mark: 'none', pid: undefined, ownGroup: true },
  leaseEndMs: Number.MAX_SAFE_INTEGER,
  graceMs: 1_000,
  done: false,
};

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-guardian-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('the guardian', () => {
  test('whose file is gone lets nothing begin', () => {
    const entry = join(folder, 'gone.mjs');
    expect(() => new Guardian(WATCHED, () => {}, entry)).toThrow(
      expect.objectContaining({
        message: `the guardian process cannot be started: ${entry} is not there`,
        exitCode: 210,
      }),
    );
  });

  test('that ends again and again is started five times, ever more slowly, and then given up, which is told once', async () => {
    const entry = join(folder, 'ends.mjs');
    const starts = join(folder, 'starts');
    writeFileSync(
      entry,
      `import { appendFileSync } from 'node:fs';\nappendFileSync(${JSON.stringify(starts)}, '.');\nprocess.exit(3);\n`,
    );
    const told: string[] = [];
    const guardian = new Guardian(WATCHED, (why) => told.push(why), entry);
    while (guardian.failure === undefined) await new Promise((resolve) => setTimeout(resolve, 10));
    expect(told).toEqual(['the guardian process does not stay (exit code 3)']);
    expect(readFileSync(starts, 'utf8')).toBe('.....');
    guardian.tell({ graceMs: 1 }); // Whatever is told then is lost, and no error.
    guardian.dismiss();
  });

  // Once in a full run of the suites a command outlived the lock after its guardian and then its wrapper were killed.
  test('ends the command of a wrapper that is killed before it has written anything to it', async () => {
    const mark = `guardian-test-${process.pid}`;
    const env = { ...process.env, [MARK_VARIABLE]: mark };
    const command = spawn('sleep', ['30'], { env, detached: true, stdio: 'ignore' });
    const ended = once(command, 'exit');
    const watched: Watched = { ...WATCHED, tree: { mark, pid: command.pid, ownGroup: true } };
    const shown = join(folder, 'shown');
    const entry = join(folder, 'shows.mjs');
    const source = `import { renameSync, writeFileSync } from 'node:fs';
      writeFileSync('${shown}.new', process.env.HOLDFAST_WATCHED ?? 'nothing');
      renameSync('${shown}.new', '${shown}');
      process.stdin.resume();`;
    writeFileSync(entry, source);
    const guardian = new Guardian(watched, () => {}, entry);
    try {
      while (!existsSync(shown)) await new Promise((resolve) => setTimeout(resolve, 10));
    } finally {
      guardian.dismiss();
    }
    // The same start of the real one, whose standard input ends at once.
    const given = { PATH: process.env['PATH'], HOLDFAST_WATCHED: readFileSync(shown, 'utf8') };
    spawn(process.execPath, ['--import', 'tsx', MAIN], { env: given, stdio: 'ignore' });
    expect(await ended).toEqual([null, 'SIGTERM']);
  });
});
