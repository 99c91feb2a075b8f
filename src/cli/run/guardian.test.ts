import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Guardian } from './guardian.ts';
import type { Watched } from './guardian-main.ts';

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
});
