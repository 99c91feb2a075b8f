// Runs one test file of the suite against changed sources: how a planted bug is found that the simulation hardly meets.
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { makeFolder, root } from '../runner/compile.ts';

/**
 * Whether the tests of a file pass with these sources in the place of those that are there. One of `test` may need no
 * server of its own but the embedded one.
 */
export async function passes(sources: ReadonlyMap<string, string>, file: string): Promise<boolean> {
  const folder = makeFolder();
  try {
    const parts = ['src', 'simulation', ...(file.startsWith('test/') ? ['test'] : [])];
    for (const part of parts) cpSync(join(root, part), join(folder, part), { recursive: true });
    for (const [path, text] of sources) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), text);
    }
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}\n');
    writeFileSync(join(folder, 'vitest.config.js'), "export default { oxc: { target: 'es2022' } };\n");
    const vitest = join(root, 'node_modules/.bin/vitest');
    return await new Promise((resolve, reject) => {
      const child = spawn(vitest, ['run', '--root', folder, file], { cwd: folder, stdio: 'ignore' });
      child.on('error', reject);
      child.on('exit', (code) => resolve(code === 0));
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
